"""Claims of `toolcell.cells.plan`: what it does not name is not there, no requirement is bent."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from toolcell.cells.capabilities import Capabilities
from toolcell.errors import CellRefused
from toolcell.model import CellSettings, Guarantee

from .samples import HERE, mounts, plan, shown


@pytest.mark.parametrize("place", ["/", "/root", "/home", "/etc", "/etc/shadow", "/var", "/run"])
def test_what_is_private_to_the_machine_is_not_there(workspace, place):
    made = plan(workspace)
    assert place not in mounts(made)
    assert place not in made.files


def test_the_files_of_etc_tell_of_the_cell_and_not_of_the_host(workspace):
    made = plan(workspace)
    users = [line.split(":")[0] for line in made.files["/etc/passwd"].splitlines()]
    assert users == ["toolcell", "nobody"]
    assert f":{made.identity.inside_uid}:" in made.files["/etc/passwd"]
    assert made.files["/etc/hostname"] == "cell\n"


def test_no_link_of_a_plan_stands_where_a_mount_does(home):
    # /var/tmp is a link in every other cell; a mount below it needs a directory there.
    with TemporaryDirectory(dir="/var/tmp") as directory:
        place = Path(directory).resolve()
        made = plan(place)
    assert shown(made, place).writable
    assert not any(
        Path(target).is_relative_to(link) for target in mounts(made) for link in made.links
    )


def test_a_required_guarantee_that_is_missing_is_refused_with_cause_and_remedy(workspace):
    weak = Capabilities(0, {"full": {Guarantee.FILESYSTEM: "a wall"}}, {})
    with pytest.raises(CellRefused) as caught:
        plan(workspace, CellSettings(require=("filesystem", "syscalls", "cpu")), weak)
    assert "requires syscalls, cpu, which the full rung cannot enforce here" in caught.value.cause
    assert "toolcell doctor" in caught.value.remedy


def test_required_and_enforced_are_two_recorded_values(workspace):
    made = plan(workspace, CellSettings(require=("filesystem",))).enforcement
    assert (made.rung, made.required) == ("full", (Guarantee.FILESYSTEM,))
    assert made.enforced == HERE.enforced["full"]


def test_network_host_is_not_claimed_as_a_wall(workspace):
    made = plan(workspace, CellSettings(network="host", require=("filesystem",)))
    assert Guarantee.NETWORK not in made.enforcement.enforced
    assert made.network == "host"


def test_the_environment_is_built_from_nothing(workspace, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("LD_PRELOAD", "/evil.so")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    made = plan(workspace, CellSettings(env={"MODE": "test"}))
    assert made.environment["MODE"] == "test"
    assert made.environment["HOME"] == "/tmp"
    assert not {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PYTHONPATH"} & set(made.environment)
    assert "hunter2" not in made.model_dump_json()
    assert str(workspace.parent) not in "".join(made.environment.values())


@pytest.mark.parametrize("uid", [0, 1234])
def test_nobody_is_root_inside_or_outside(workspace, monkeypatch, uid):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(os, "getegid", lambda: uid)
    identity = plan(workspace).identity
    assert 0 not in identity.model_dump().values()
    if uid:
        assert set(identity.model_dump().values()) == {uid}


def test_the_same_settings_give_the_same_plan(workspace):
    assert plan(workspace) == plan(workspace)
    assert plan(workspace) != plan(workspace, CellSettings(workspace="ro"))
