"""Claims of `sandbox_workers.scratch`: whatever is in it goes, and nothing else."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox_workers import scratch

NOBODY = 2**22 + 1  # above the highest PID that Linux gives out
HEX = "0123456789abcdef"


@pytest.fixture
def outside(tmp_path):
    place = tmp_path / "outside"
    place.mkdir()
    (place / "keep").write_text("kept")
    place.chmod(0o750)
    return place


@pytest.fixture
def filled(tmp_path, outside):
    """A directory with all that a tool may leave to be in the way."""
    place = tmp_path / "filled"
    (place / "a/b/c").mkdir(parents=True)
    (place / "a/b/c/file").touch()
    (place / "link").symlink_to(outside)
    (place / "a/b/link").symlink_to(outside / "keep")
    (place / "loop").symlink_to("loop")
    (place / "-rf").mkdir()
    os.mkfifo(place / "fifo")
    for closed in ("a/b/c", "a/b", "a", "-rf"):
        (place / closed).chmod(0)
    return place


def test_whatever_is_in_it_goes_and_no_link_is_followed(filled, outside):
    scratch.clear(str(filled), 60)
    assert not filled.exists()
    assert (outside / "keep").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_directory_that_its_tool_has_closed_is_opened_again(filled):
    filled.chmod(0)
    scratch.clear(str(filled), 60)
    assert not filled.exists()


def test_depth_exhausts_nothing(tmp_path):
    here = Path.cwd()
    (tmp_path / "deep").mkdir()
    os.chdir(tmp_path / "deep")
    try:
        for _ in range(1200):
            os.mkdir("d")  # noqa: PTH102  # one level at a time
            os.chdir("d")
    finally:
        os.chdir(here)
    scratch.clear(str(tmp_path / "deep"), 60)
    assert not (tmp_path / "deep").exists()


def test_clearing_ends_in_time_and_what_is_left_can_be_cleared_later(filled):
    scratch.clear(str(filled), -1)
    assert (filled / "fifo").exists()
    scratch.clear(str(filled), 60)
    assert not filled.exists()


def test_a_place_that_is_not_there_or_no_directory_is_left_alone(tmp_path, outside):
    scratch.clear(str(tmp_path / "nothing"), 60)
    (tmp_path / "link").symlink_to(outside)
    scratch.clear(str(tmp_path / "link"), 60)
    assert (outside / "keep").exists()


def test_a_cells_directory_is_made_where_another_cell_had_closed_the_way(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    base.chmod(0)
    scratch.make_one(f"{base}/7")
    assert (base / "7").stat().st_mode & 0o777 == 0o700


def _swept(place):
    """Sweep beside a place, from a process whose child does it, and wait for that."""
    code = (
        "import os, sys\nfrom sandbox_workers import scratch\n"
        "scratch.sweep_left_behind(sys.argv[1])\nos.wait()"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True, timeout=30)


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        (f"toolcell-{NOBODY}-{HEX}", True),
        (f"toolcell-{os.getpid()}-{HEX}", False),
        (f"toolcell-{NOBODY}-my-project", False),
        ("toolcell-2024-notes", False),
        (f"toolcell-probe-{HEX}", False),
        (f"toolcell-{NOBODY}-{HEX}-more", False),
    ],
)
def test_only_what_a_keeper_that_is_gone_made_is_swept(tmp_path, name, goes):
    (tmp_path / name / "inner").mkdir(parents=True)
    _swept(tmp_path / "new")
    assert (tmp_path / name).exists() is not goes


def test_what_somebody_holds_a_lock_on_is_not_swept(tmp_path):
    # As where another PID namespace shares the directory, and the PID tells nothing.
    place = tmp_path / f"toolcell-{NOBODY}-{HEX}"
    scratch.make(str(place), os.getuid(), os.getgid())
    _swept(tmp_path / "new")
    assert place.exists()
    for entry in Path("/proc/self/fd").iterdir():
        if os.path.realpath(entry) == str(place):
            fcntl.flock(int(entry.name), fcntl.LOCK_UN)
            os.close(int(entry.name))
    _swept(tmp_path / "new")
    assert not place.exists(), "the control"


def test_a_link_of_that_name_is_not_followed(tmp_path, outside):
    (tmp_path / f"toolcell-{NOBODY}-{HEX}").symlink_to(outside)
    _swept(tmp_path / "new")
    assert (outside / "keep").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than the owner")
def test_a_keeper_that_is_root_removes_no_more_than_the_owner_could(tmp_path):
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    place = tmp_path / "owned"
    (place / "roots").mkdir(parents=True)
    (place / "roots" / "file").touch()
    os.chown(place, 12345, 12345)
    scratch.clear_as_owner(str(place), 60)
    assert (place / "roots" / "file").exists()
    os.chown(place / "roots", 12345, 12345)
    scratch.clear_as_owner(str(place), 60)
    assert not place.exists(), "the control"


def test_what_a_keeper_has_no_time_for_goes_after_it(tmp_path):
    place = tmp_path / "left"
    for number in range(50):
        (place / str(number) / "inner").mkdir(parents=True)
    scratch.clear(str(place), 0)
    assert place.exists(), "the control"
    near, far = os.pipe()
    scratch.clear_later(str(place), 60)
    os.close(far)
    assert os.read(near, 1) == b""  # its end
    os.wait()
    os.close(near)
    assert not place.exists()
