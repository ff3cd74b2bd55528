"""What unit tests share: a home directory that is nobody's, and a workspace in it."""

import pytest


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
