"""Claims of `toolcell.cells.capabilities`: what a machine gives, and a remedy."""

import errno

import pytest

from toolcell.cells import capabilities as module
from toolcell.cells.capabilities import (
    capabilities,
    explain,
    kernel_version,
    may_step_down,
    rungs,
)
from toolcell.errors import CellRefused, WallsNotBuilt
from toolcell.model import CellSettings, Guarantee


@pytest.fixture
def fresh():
    """The answer is kept for the life of a process; these tests ask anew."""
    capabilities.cache_clear()
    yield
    capabilities.cache_clear()


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("6.18.44-distro", (6, 18)),
        ("5.4.0", (5, 4)),
        ("5.15.167.4-microsoft-standard-WSL2", (5, 15)),
        ("4.4", (4, 4)),
        ("unknown", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_kernel_versions_are_read(release, version):
    assert kernel_version(release) == version


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("target", "value", "words"),
    [
        ("sys.platform", "darwin", "this is darwin; run it on Linux 5.12"),
        ("platform.machine", lambda: "riscv64", "architecture riscv64; it runs on x86_64"),
        ("platform.release", lambda: "5.10.0-8", "Linux 5.10.*5.12; upgrade the kernel"),
    ],
)
def test_a_machine_that_cannot_make_cells_is_told_what_to_do(monkeypatch, target, value, words):
    monkeypatch.setattr(target, value)
    with pytest.raises(CellRefused, match=words):
        capabilities()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("release", "counted"), [("5.13.0", False), ("5.14.0", True)])
def test_processes_are_enforced_where_the_kernel_counts_them(monkeypatch, release, counted):
    monkeypatch.setattr("platform.release", lambda: release)
    enforced = capabilities().enforced["full"]
    assert (Guarantee.PROCESSES in enforced) is counted
    assert {Guarantee.FILESYSTEM, Guarantee.NETWORK, Guarantee.PROCESS_TREE} <= set(enforced)
    assert all(enforced.values())


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("abi", "tree"), [(1, False), (5, False), (6, True), (7, True)])
def test_without_namespaces_a_tree_is_kept_only_where_landlock_keeps_its_signals(
    monkeypatch, abi, tree
):
    monkeypatch.setattr(module.confine, "landlock_abi", lambda: abi)
    enforced = capabilities().enforced["landlock"]
    assert (Guarantee.PROCESS_TREE in enforced) is tree
    assert (Guarantee.FILESYSTEM in enforced) is (abi >= 3)
    assert {Guarantee.NETWORK, Guarantee.SYSCALLS} <= set(enforced)
    assert not {Guarantee.DISK, Guarantee.PROCESSES} & set(enforced), "no kernel counts them"


@pytest.mark.usefixtures("fresh")
def test_a_kernel_without_landlock_has_no_cells_without_namespaces(monkeypatch):
    monkeypatch.setattr(module.confine, "landlock_abi", lambda: 0)
    here = capabilities()
    assert "landlock" not in here.enforced
    assert "lsm=" in here.missing["landlock"].remedy


def test_a_policy_names_a_rung_or_takes_the_strongest_and_never_none():
    assert rungs(CellSettings()) == ("full", "landlock")
    for one in ("full", "landlock", "none"):
        assert rungs(CellSettings(isolation=one)) == (one,)


@pytest.mark.parametrize(
    ("refusal", "steps"),
    [
        (WallsNotBuilt("unshare failed", errno.EPERM), True),
        (WallsNotBuilt("mount proc failed", errno.EACCES), True),
        (WallsNotBuilt("unshare failed", errno.ENOSPC), True),
        (WallsNotBuilt("too many open files", errno.EMFILE), False),
        (WallsNotBuilt("no memory", errno.ENOMEM), False),
        (WallsNotBuilt("the init could not set up the cell: mount proc failed", errno.EPERM), True),
        (WallsNotBuilt("the id maps could not be written: not permitted", errno.EPERM), True),
        (WallsNotBuilt("unshare failed", errno.EINVAL), True),
        (WallsNotBuilt("the file system cannot map owners", errno.EINVAL), False),
        (WallsNotBuilt("mount_setattr failed", errno.EINVAL), False),
        (WallsNotBuilt("mount tmpfs on /tmp failed", errno.EINVAL), False),
        (WallsNotBuilt("open_tree on /lent failed", errno.EACCES), False),
        (WallsNotBuilt("No space left on device (/tmp/x)", errno.ENOSPC), False),
        (WallsNotBuilt("user 7 cannot execute python: Permission denied", errno.EACCES), False),
        (CellRefused("the walls do not hold on this machine"), False),
    ],
)
def test_only_walls_that_a_machine_does_not_allow_are_done_without(refusal, steps):
    assert may_step_down(refusal) is steps


@pytest.mark.parametrize(
    ("message", "number", "remedy"),
    [
        ("mount proc on /proc: Operation not permitted", errno.EPERM, "systempaths=unconfined"),
        ("open_tree /x: No such file or directory", errno.ENOENT, "is missing; check the path"),
        ("move_mount /x: Permission denied", errno.EACCES, "forbids mounts"),
        ("something else", errno.EIO, "toolcell doctor"),
    ],
)
def test_a_failed_start_keeps_the_systems_words_and_adds_a_remedy(message, number, remedy):
    refusal = explain(WallsNotBuilt(message, number))
    assert message in refusal.cause
    assert remedy in refusal.remedy


@pytest.mark.parametrize(
    ("switch", "value", "remedy"),
    [
        ("_APPARMOR", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("_USERNS_SWITCH", "0", "kernel.unprivileged_userns_clone=1"),
        ("_USERNS_COUNT", "0", "user.max_user_namespaces=10000"),
        (None, "", "seccomp=unconfined"),
    ],
)
@pytest.mark.parametrize(
    ("message", "number"),
    [("unshare: Operation not permitted", errno.EPERM), ("the id maps could not be written", 1)],
)
def test_user_namespaces_that_are_switched_off_are_told_with_their_switch(
    monkeypatch, tmp_path, switch, value, remedy, message, number
):
    for name in ("_APPARMOR", "_USERNS_SWITCH", "_USERNS_COUNT"):
        path = tmp_path / name
        if name == switch:
            path.write_text(f"{value}\n")
        monkeypatch.setattr(module, name, path)
    assert remedy in explain(WallsNotBuilt(message, number)).remedy
