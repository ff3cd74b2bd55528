"""Claims of `toolcell.cells.plan`: what it does not name is not there, no requirement is bent."""

import dataclasses
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from toolcell.cells.capabilities import Capabilities
from toolcell.cells.landlock import MAKE_REG, READ_DIR, READ_FILE, REMOVE_FILE, WRITE_FILE
from toolcell.errors import CellRefused, ImportPathWarning
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


def test_without_mounts_scratch_does_not_lie_in_what_every_call_can_read(workspace, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(workspace))
    with pytest.raises(CellRefused, match=r"temporary directory .* lies in what is") as caught:
        plan(workspace, rung="landlock")
    assert "TMPDIR" in caught.value.remedy
    assert plan(workspace).scratch is None, "with namespaces it has file systems of its own"


def test_without_mounts_a_file_that_may_hold_passwords_is_not_lent(workspace, monkeypatch):
    monkeypatch.setattr("toolcell.cells.plan.hidden_files", lambda: ["/venv/pip.conf"])
    with pytest.raises(CellRefused, match=r"/venv/pip\.conf may hold passwords"):
        plan(workspace, rung="landlock")
    assert plan(workspace).hidden == ("/venv/pip.conf",)


@pytest.mark.parametrize("abi", [3, 4, 7])
def test_without_a_network_of_its_own_landlock_keeps_tcp_too(workspace, abi):
    here = dataclasses.replace(HERE, landlock_abi=abi)
    closed = plan(workspace, capabilities=here, rung="landlock").landlock
    assert closed.tcp == (3 if abi >= 4 else 0)
    opened = CellSettings(network="host", require=())
    assert plan(workspace, opened, here, rung="landlock").landlock.tcp == 0
    assert plan(workspace, capabilities=here).landlock.tcp == 0, "its own loopback is to work"


def test_what_is_lent_is_all_that_landlock_lets_be_read_and_little_written(workspace, tmp_path):
    (tmp_path / "lent").mkdir()
    settings = CellSettings(read=(str(tmp_path / "lent"),))
    rules = dict(plan(workspace, settings, rung="landlock").landlock.rules)
    changes = WRITE_FILE | MAKE_REG | REMOVE_FILE
    written = {path for path, rights in rules.items() if rights & changes}
    devices = {path for path in written if path.startswith("/dev/")}
    assert written - devices == {".", str(workspace)}
    assert not any(rights & MAKE_REG for path, rights in rules.items() if path in devices)
    assert rules[str(tmp_path / "lent")] & READ_FILE
    assert not {"/", "/etc", "/home", "/root", "/dev", "/tmp", str(tmp_path)} & set(rules)
    assert not rules["/etc/passwd"] & READ_DIR, "a file has no such right"


def test_a_tool_never_has_more_rights_than_the_workspaces_owner(workspace, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = plan(workspace, rung="landlock").identity
    assert (made.inside_uid, made.outer_gid) == (workspace.stat().st_uid, workspace.stat().st_gid)


def test_modules_are_preloaded_only_from_where_no_tool_can_write(workspace, monkeypatch):
    (workspace.parent / "lib").mkdir()
    for entry in (workspace, workspace.parent, workspace.parent / "lib"):
        monkeypatch.syspath_prepend(str(entry))
    settings = CellSettings(read=(str(workspace.parent / "lib"),), preload=("json",))
    with pytest.warns(ImportPathWarning):
        made = plan(workspace, settings)
    assert made.preload == ("json",)
    assert str(workspace) in made.python_path, "the control"
    assert str(workspace.parent / "lib") in made.preload_path
    assert not {str(workspace), str(workspace.parent)} & set(made.preload_path)
