"""The launcher's own walls: user namespace, identity, and the private root.

    keeper ──fork──> mapper            stays in the parent user namespace and writes
       │                               the id maps, then ends
       ├─ copy the sources             open_tree: detached copies, before anything is hidden
       ├─ enter the user namespace     as root only now, because root's sources and id-mapped
       │                               mounts need the capabilities of the first namespace
       ├─ tmpfs, mounts, links, files  the new root holds what the plan names and nothing else
       └─ pivot_root                   the host's tree is gone

Controllers that are root hand over to an outer id that owns nothing: files such as
/proc/sys trust the outer uid 0 whatever capabilities say. The workspace is then an
id-mapped mount, so that files made inside belong to its owner outside.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sandbox_workers import libc, mounting

# Directories that exist on every Linux; one is hidden for a moment below the new root.
_STAGES = ("/tmp", "/mnt", "/run", "/srv")  # noqa: S108  # a mount point, no file is made there
_EMPTY = "/run/empty"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Source(NamedTuple):
    """A detached copy of one part of the host's tree, and where it will stand."""

    tree: int
    target: str
    is_directory: bool


def enter(plan: dict[str, Any]) -> None:
    """Put this process behind the plan's walls; raises SystemCallError or OSError."""
    identity = plan["identity"]
    privileged = os.geteuid() == 0
    if privileged:
        libc.do(libc.unshare(libc.CLONE_NEWNS))
        os.setgroups([])
    else:
        with _mapper(identity):
            libc.do(libc.unshare(libc.CLONE_NEWUSER | libc.CLONE_NEWNS))
    # Private, not slave: a host mount made later must not appear inside either.
    libc.do(mounting.mount("none", "/", "", mounting.MS_REC | mounting.MS_PRIVATE))
    sources = [_copy(mount, identity, privileged) for mount in plan["mounts"]]
    # Some containers have no /dev/tty; what needs one there does without it anyway.
    sources += [_copy_device(name) for name in _DEVICES if Path("/dev", name).exists()]
    if privileged:
        with _mapper(identity):
            libc.do(libc.unshare(libc.CLONE_NEWUSER | libc.CLONE_NEWNS))
        change_user(identity)
    libc.do(
        libc.unshare(
            libc.CLONE_NEWIPC | libc.CLONE_NEWUTS | libc.CLONE_NEWCGROUP | libc.CLONE_NEWPID
        )
    )
    stage = _stage()
    _build(stage, plan, sources)


def pivot() -> None:
    """Make the built tree the root; called in the new PID namespace, whose /proc it keeps.

    A user namespace may mount a new proc only while a full one is visible to it
    (mount_too_revealing, Linux 4.2), so each cell needs this one under its own.
    """
    stage = _stage()
    flags = mounting.MS_NOSUID | mounting.MS_NODEV
    libc.do(mounting.mount("proc", f"{stage}/proc", "proc", flags | mounting.MS_NOEXEC))
    os.chdir(stage)
    # Both paths the same: the old root is stacked on the new one and comes off at once.
    libc.do(mounting.pivot_root(".", "."))
    libc.do(mounting.umount(".", mounting.MNT_DETACH))
    os.chdir("/")
    flags |= mounting.MS_REMOUNT | mounting.MS_BIND | mounting.MS_RDONLY
    libc.do(mounting.mount("none", "/", "", flags))


def change_user(identity: dict[str, int]) -> None:
    """Become the user of the cells, where that is another."""
    if (os.getuid(), os.getgid()) == (identity["inside_uid"], identity["inside_gid"]):
        return
    os.setresgid(*[identity["inside_gid"]] * 3)
    os.setresuid(*[identity["inside_uid"]] * 3)
    # setresuid made the process undumpable, and its /proc files root's.
    libc.do(libc.prctl(libc.PR_SET_DUMPABLE, 1))


def _stage() -> str:
    for path in _STAGES:
        if Path(path).is_dir():
            return path
    raise OSError(f"none of {', '.join(_STAGES)} is a directory to build the root on")


def _copy(mount: dict[str, Any], identity: dict[str, int], privileged: bool) -> Source:
    source = mount["source"]
    # The plan's paths are resolved. One that leads through a link by now was changed since,
    # and what it leads to is not what was to be lent.
    place = libc.do(mounting.open_path(source))
    owner = os.fstat(place)
    tree = libc.do(mounting.open_tree(place, source))
    os.close(place)
    attributes = mounting.MOUNT_ATTR_NOSUID | mounting.MOUNT_ATTR_NODEV
    if not mount["writable"]:
        attributes |= mounting.MOUNT_ATTR_RDONLY
    libc.do(mounting.mount_setattr(tree, attributes))
    if privileged and mount["owned"]:
        try:
            _map_owner(tree, owner.st_uid, owner.st_gid, identity)
        except OSError as error:
            if mount["writable"]:
                raise OSError(
                    error.errno,
                    "the file system cannot map owners (idmapped mounts: ext4, xfs, btrfs, "
                    "tmpfs since Linux 6.3), so a controller that is root cannot lend it "
                    'writable; run as an ordinary user or set workspace = "ro"',
                    source,
                ) from error
    return Source(tree, mount["target"], stat.S_ISDIR(owner.st_mode))


def _copy_device(name: str) -> Source:
    place = libc.do(mounting.open_path(f"/dev/{name}"))
    tree = libc.do(mounting.open_tree(place, f"/dev/{name}"))
    os.close(place)
    libc.do(mounting.mount_setattr(tree, mounting.MOUNT_ATTR_NOSUID))
    return Source(tree, f"/dev/{name}", False)


def _map_owner(tree: int, uid: int, gid: int, identity: dict[str, int]) -> None:
    """Make files of the owner's ids appear as the cell's outer ids on this tree."""
    maps = {
        "uid_map": f"{uid} {identity['outer_uid']} 1",
        "gid_map": f"{gid} {identity['outer_gid']} 1",
    }
    pid, release = _sleeper()
    try:
        for name, text in maps.items():
            Path(f"/proc/{pid}/{name}").write_text(text)
        userns = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(release)
        os.waitpid(pid, 0)
    try:
        libc.do(mounting.mount_setattr(tree, mounting.MOUNT_ATTR_IDMAP, userns))
    finally:
        os.close(userns)


def _sleeper() -> tuple[int, int]:
    """Start a child that holds a new user namespace until the returned descriptor closes."""
    ready_r, ready_w = os.pipe()
    hold_r, hold_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        with suppress(OSError):
            os.close(hold_w)
            libc.do(libc.unshare(libc.CLONE_NEWUSER))
            os.write(ready_w, b"+")
            os.read(hold_r, 1)
            status = 0
        os._exit(status)
    os.close(ready_w)
    os.close(hold_r)
    os.read(ready_r, 1)
    os.close(ready_r)
    return pid, hold_w


@contextmanager
def _mapper(identity: dict[str, int]) -> Iterator[None]:
    """Write the id maps of the user namespace that the body of the `with` enters."""
    target = os.getpid()
    go_r, go_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        os.close(go_w)
        if os.read(go_r, 1):
            status = _write_maps(target, identity)
        os._exit(status)
    os.close(go_r)
    try:
        yield
        os.write(go_w, b"+")
    finally:
        os.close(go_w)
        _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise OSError(code, f"the id maps could not be written: {os.strerror(abs(code))}")


def _write_maps(pid: int, identity: dict[str, int]) -> int:
    """Write one-line maps; returns 0 or the errno, as the exit status of the mapper."""
    try:
        # An unprivileged writer of gid_map must first give up setgroups (Linux 3.19).
        Path(f"/proc/{pid}/setgroups").write_text("deny")
        for kind in ("uid", "gid"):
            line = f"{identity[f'inside_{kind}']} {identity[f'outer_{kind}']} 1"
            Path(f"/proc/{pid}/{kind}_map").write_text(line)
    except OSError as error:
        return error.errno or 1
    return 0


def _build(stage: str, plan: dict[str, Any], sources: list[Source]) -> None:
    flags = mounting.MS_NOSUID | mounting.MS_NODEV
    libc.do(mounting.mount("tmpfs", stage, "tmpfs", flags, "mode=0755,size=4m,nr_inodes=4096"))
    for directory in ("/proc", "/tmp", "/dev/shm", "/dev/pts", "/run"):  # noqa: S108
        _make_directory(stage + directory)
    for path, text in plan["files"].items():
        _make_file(stage + path, text)
    # Shallow targets first: a deeper one is mounted over a shallower one.
    for source in sorted(sources, key=lambda source: source.target.count("/")):
        place = stage + source.target
        if source.is_directory:
            _make_directory(place)
        elif not Path(place).exists():
            _make_file(place, "")
        libc.do(mounting.move_mount(source.tree, place))
        os.close(source.tree)
    for path in plan["hidden"]:
        _cover(stage, path)
    for path, target in plan["links"].items():
        _make_directory(str(Path(stage + path).parent))
        Path(stage + path).symlink_to(target)


def _cover(stage: str, path: str) -> None:
    """Put an empty read-only file over one that comes with what is lent."""
    _make_file(stage + _EMPTY, "")
    empty = libc.do(mounting.open_path(stage + _EMPTY))
    tree = libc.do(mounting.open_tree(empty))
    libc.do(mounting.mount_setattr(tree, mounting.MOUNT_ATTR_RDONLY))
    libc.do(mounting.move_mount(tree, stage + path))
    os.close(tree)
    os.close(empty)


def _make_directory(path: str) -> None:
    Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)


def _make_file(path: str, text: str) -> None:
    _make_directory(str(Path(path).parent))
    Path(path).write_text(text)
