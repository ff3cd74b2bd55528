"""Claims of `toolcell.cells.cgroup`: where groups are made, and how both versions are read."""

import os
from pathlib import Path
from typing import Any

import pytest

from toolcell.cells import cgroup
from toolcell.cells.cgroup import Group, Groups, find_groups

V1 = "4:memory:/jobs/one\n0::/jobs/one\n"
V2 = "0::/user.slice/app.slice/me.scope\n"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A machine whose cgroup mounts lie in tmp_path; groups get the kernel's files when made."""

    def lay(own: str, mounts: str, kernel: dict[str, str]) -> None:
        texts = {"/proc/self/cgroup": own, "/proc/self/mountinfo": mounts.format(tmp_path)}
        read = cgroup._read
        monkeypatch.setattr(cgroup, "_read", lambda path: texts.get(path) or read(path))
        mkdir, rmdir = Path.mkdir, Path.rmdir

        def make(path: Path, *args: Any, **options: Any) -> None:
            mkdir(path, *args, **options)
            if path.name.startswith("toolcell-"):
                for name, text in kernel.items():
                    (path / name).write_text(text)

        def remove(path: Path) -> None:
            for file in path.iterdir():
                file.unlink()
            rmdir(path)

        monkeypatch.setattr(Path, "mkdir", make)
        monkeypatch.setattr(Path, "rmdir", remove)

    return lay


FILES_1 = {
    "memory.limit_in_bytes": "",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory.max_usage_in_bytes": "4096\n",
    "cgroup.procs": "",
}
FILES_2 = {
    "memory.max": "",
    "memory.swap.max": "",
    "memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n",
    "memory.peak": "8192\n",
    "cgroup.procs": "",
}


def test_version_1_has_its_place_below_the_process_own_group(system: Any, tmp_path: Path) -> None:
    (tmp_path / "memory/jobs/one").mkdir(parents=True)
    system(V1, "31 1 0:1 / {}/memory rw - cgroup cgroup rw,memory\n", FILES_1)
    groups = find_groups()
    assert groups is not None
    assert (groups.parent, groups.version) == (tmp_path / "memory/jobs/one", 1)
    group = groups.make(1000)
    assert (group.kills(), group.peak()) == (0, 4096)


def test_version_2_takes_the_nearest_group_that_gives_memory_on(
    system: Any, tmp_path: Path
) -> None:
    (tmp_path / "unified/user.slice/app.slice/me.scope").mkdir(parents=True)
    for place, text in (("user.slice/app.slice", "memory pids"), ("user.slice", "memory")):
        (tmp_path / "unified" / place / "cgroup.subtree_control").write_text(text)
    system(V2, "31 1 0:1 / {}/unified rw - cgroup2 cgroup2 rw\n", FILES_2)
    groups = find_groups()
    assert groups is not None
    assert (groups.parent, groups.version) == (tmp_path / "unified/user.slice/app.slice", 2)
    made = groups.make(5000)
    assert (made._path / "memory.max").read_text() == "5000"
    assert (made._path / "memory.swap.max").read_text() == "0"


def test_a_kill_counts_from_the_time_the_group_was_last_begun(system: Any, tmp_path: Path) -> None:
    system(V2, "", FILES_2)
    group = Group(tmp_path / "toolcell-1-1", 2, 5000)
    assert group.kills() == 0
    (tmp_path / "toolcell-1-1/memory.events").write_text("oom_kill 3\n")
    assert group.kills() == 2
    group.begin_again()
    assert group.kills() == 0


@pytest.mark.parametrize("version", [1, 2])
def test_a_limit_that_was_lowered_for_one_cell_is_what_it_was_for_the_next(
    system: Any, tmp_path: Path, version: int
) -> None:
    system(V2 if version == 2 else V1, "", FILES_2 if version == 2 else FILES_1)
    group = Group(tmp_path / "toolcell-1-1", version, 5000)
    limit = tmp_path / "toolcell-1-1" / ("memory.max" if version == 2 else "memory.limit_in_bytes")
    group.lower(3000)
    assert limit.read_text() == "3000"
    group.begin_again()
    assert limit.read_text() == "5000"


@pytest.mark.parametrize(
    "mounts",
    ["", "31 1 0:1 / {}/none rw - cgroup cgroup rw,cpu\n", "31 1 0:1 / {}/x rw - tmpfs x rw\n"],
)
def test_where_there_is_no_memory_controller_there_is_no_place(system: Any, mounts: str) -> None:
    system(V1, mounts, FILES_1)
    assert find_groups() is None


def test_a_place_that_cannot_be_written_is_no_place(system: Any, tmp_path: Path) -> None:
    system(V1, "31 1 0:1 / {}/absent rw - cgroup cgroup rw,memory\n", FILES_1)
    assert find_groups() is None


def test_what_a_dead_controller_left_is_swept_and_no_other(system: Any, tmp_path: Path) -> None:
    place = tmp_path / "memory/jobs/one"
    place.mkdir(parents=True)
    system(V1, "31 1 0:1 / {}/memory rw - cgroup cgroup rw,memory\n", FILES_1)
    for name in (f"toolcell-{2**31 - 1}-1", f"toolcell-{os.getpid()}-99", "toolcell-x-1", "other"):
        (place / name).mkdir()
    find_groups()
    left = {path.name for path in place.iterdir()}
    assert left == {f"toolcell-{os.getpid()}-99", "toolcell-x-1", "other"}


def test_a_group_that_cannot_be_limited_is_not_left_behind(system: Any, tmp_path: Path) -> None:
    system(V1, "", {})
    (tmp_path / "memory.limit_in_bytes").mkdir()
    with pytest.raises(OSError, match="oom_control"):
        Groups(tmp_path, 1).make(1000)
    assert not list(tmp_path.glob("toolcell-*"))
