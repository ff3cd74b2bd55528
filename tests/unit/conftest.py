"""What unit tests share: a home directory that is nobody's, a workspace in it, a stage."""

import pytest

from toolcell.cells import pool

from .pool_stage import Stage
from .samples import HERE, plan


@pytest.fixture
def home(tmp_path, monkeypatch):
    place = tmp_path / "home" / "ada"
    (place / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def workspace(home):
    place = home / "project"
    place.mkdir()
    return place


@pytest.fixture
def stage(monkeypatch):
    """Let the pool start launchers that are played."""
    made = Stage()
    monkeypatch.setattr(pool, "Launcher", made)
    monkeypatch.setattr(pool, "attest", made.attest)
    monkeypatch.setattr(pool, "capabilities", lambda: HERE)
    return made


@pytest.fixture
def make_plan(workspace):
    """Plan with one file of the workspace protected."""
    policy = workspace / "policy.toml"
    policy.touch()
    return lambda rung: plan(workspace, protected=[str(policy)], rung=rung)
