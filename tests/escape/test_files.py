"""Files outside of the workspace, and those inside that a tool must not change."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from escape.attacks import BOTH, FULL, Attack, each, each_on_its_rungs, not_attacked
from escape.ground import Ground
from escape.siege import Siege

pytestmark = pytest.mark.isolation

LINES = (
    "../ traversal",
    "absolute-path join",
    "prefix sibling",
    "NUL in a path",
    "symlink to a file outside",
    "symlink to a directory outside",
    "chained symlinks",
    "symlink to a target that does not exist yet",
    "hard link of a denied file",
    "rename into a denied path",
    "creating a protected configuration that is absent",
    "a symlink made inside that the host later follows",
    "writes to .git/hooks or .git/config",
    "shell start-up files",
    "mknod, FIFO, device",
    "openat2 with odd flags",
    "truncating a denied file",
    "xattr, chmod, utimes outside",
    "/proc/self/root, /proc/1/root",
    "setuid binaries",
    "exec from a noexec scratch",
    "a host path in an error message",
    "archive traversal",
    "chown through a symlink",
)


def _links(**links: str) -> Callable[[Ground], None]:
    """Links in the workspace, made before the attack; targets may name {places}."""

    def make(ground: Ground) -> None:
        for name, target in links.items():
            (ground.workspace / name).symlink_to(target.format(**ground.targets()))

    return make


def _archive(*members: tuple[str, str]) -> Callable[[Ground], None]:
    """An archive in the workspace: members with a content, or with `-> target` as links."""

    def make(ground: Ground) -> None:
        places = ground.targets()
        with tarfile.open(ground.workspace / "archive.tar", "w") as archive:
            for name, content in members:
                member = tarfile.TarInfo(name.format(**places))
                text = content.format(**places)
                if text.startswith(("-> ", "=> ")):
                    member.type = tarfile.SYMTYPE if text.startswith("->") else tarfile.LNKTYPE
                    member.linkname = text[3:]
                    archive.addfile(member)
                else:
                    member.size = len(text)
                    archive.addfile(member, io.BytesIO(text.encode()))

    return make


def _reading(line: str, how: str, path: str, **options: Any) -> Attack:
    return Attack(line, how, f"read(f{path!r})", judged=True, **options)


def _writing(line: str, how: str, path: str, **options: Any) -> Attack:
    return Attack(line, how, f"write(f{path!r})", judged=True, **options)


_TRAVERSAL = "../ traversal"
_ABSOLUTE = "absolute-path join"
_SIBLING = "prefix sibling"
_NUL = "NUL in a path"
_LINK = "symlink to a file outside"
_DIRECTORY = "symlink to a directory outside"
_CHAIN = "chained symlinks"
_DANGLING = "symlink to a target that does not exist yet"
_HARD = "hard link of a denied file"
_RENAME = "rename into a denied path"
_HOOKS = "writes to .git/hooks or .git/config"
_START = "shell start-up files"
_NODES = "mknod, FIFO, device"
_OPENAT2 = "openat2 with odd flags"
_TRUNCATE = "truncating a denied file"
_METADATA = "xattr, chmod, utimes outside"
_PROC = "/proc/self/root, /proc/1/root"
_SETUID = "setuid binaries"
_EXEC = "exec from a noexec scratch"
_ARCHIVE = "archive traversal"
_CHOWN = "chown through a symlink"
_LATER = "a symlink made inside that the host later follows"
_ABSENT = "creating a protected configuration that is absent"
_ERRORS = "a host path in an error message"


def _with_tools(line: str, path: str, code: str, **options: Any) -> list[Attack]:
    """Attacks on one path by the built-in tools; `code` is that path in Python."""
    written = {"path": path, "content": "written by an attack"}
    searched = {"path": path, "pattern": "secret"}
    return [
        Attack(line, "read_file", f"read({code})", tool=("read_file", {"path": path}),
               judged=True, **options),
        Attack(line, "write_file", f"write({code})", tool=("write_file", written), judged=True,
               **options),
        Attack(line, "search_text", f"read({code})", tool=("search_text", searched),
               judged=True, **options),
    ]  # fmt: skip


PATHS = [
    _reading(_TRAVERSAL, "read", "../outside/secret"),
    _writing(_TRAVERSAL, "write", "../outside/secret"),
    _writing(_TRAVERSAL, "a new file", "../outside/new"),
    _reading(_TRAVERSAL, "through a directory inside", "conf/../../outside/secret"),
    _reading(_TRAVERSAL, "through the scratch", "/tmp/..{T.secret}"),
    _reading(_TRAVERSAL, "many levels up", "../" * 40 + "{T.secret}"),
    Attack(_TRAVERSAL, "by the current directory", 'os.chdir("../outside"); read("secret")',
           judged=True),
    Attack(_TRAVERSAL, "list", 'need("secret" in os.listdir("../outside"))'),
    Attack(_TRAVERSAL, "list what is above",
           'need("outside" in os.listdir(".."))'),
    Attack(_TRAVERSAL, "by a descriptor", program="files 'leave by a descriptor' outside/secret",
           judged=True),
    Attack(_TRAVERSAL, "remove", 'os.remove("../outside/secret")', judged=True),
    Attack(_TRAVERSAL, "make a directory", 'os.mkdir("../outside/new")', judged=True),
    Attack(_TRAVERSAL, "remove a tree", 'shutil.rmtree("../outside/deep")', judged=True),
    Attack(_TRAVERSAL, "run", 'print(subprocess.run(["../outside/script"], '
           'capture_output=True, text=True).stdout)', judged=True),
    Attack(_TRAVERSAL, "by the shell", shell="cat ../outside/secret", judged=True),
    Attack(_TRAVERSAL, "append by the shell", shell="echo x >> ../outside/secret", judged=True),
    *_with_tools(_TRAVERSAL, "../outside/secret", "'../outside/secret'"),
    Attack(_TRAVERSAL, "list_files", 'print(os.listdir("../outside")); read("../outside/secret")',
           tool=("list_files", {"path": "../outside"}), judged=True),
    _reading(_ABSOLUTE, "read", "{T.secret}"),
    _writing(_ABSOLUTE, "write", "{T.secret}"),
    Attack(_ABSOLUTE, "join", 'read(os.path.join(T.workspace, T.secret))', judged=True),
    _reading(_ABSOLUTE, "two slashes", "/{T.secret}"),
    *_with_tools(_ABSOLUTE, "{secret}", "T.secret"),
    _reading(_SIBLING, "read", "{T.workspace}-evil/secret"),
    _writing(_SIBLING, "write", "{T.workspace}-evil/new"),
    *_with_tools(_SIBLING, "{workspace}-evil/secret", "T.workspace + '-evil/secret'"),
    *_with_tools(_NUL, "{secret}\0/allowed.txt", "T.secret"),
    Attack(_NUL, "past the library", program="files nul {secret}", judged=True),
    Attack(_NUL, "in a name made of bytes",
           "libc = ctypes.CDLL(None, use_errno=True)\n"
           "fd = libc.open(T.secret.encode() + b'\\0.txt', 0)\n"
           "need(fd >= 0)\nprint(os.read(fd, 4096).decode())", judged=True),
]  # fmt: skip

# By one process, for as long as another reads: which of the two is read is chance each time.
_SWAPPED = """
os.symlink("allowed.txt", "l")
pid = os.fork()
if pid == 0:
    for _ in range(3000):
        for target in ("allowed.txt", T.secret):
            os.symlink(target, "n")
            os.rename("n", "l")
            os.sched_yield()
    os._exit(0)
while os.waitpid(pid, os.WNOHANG)[0] == 0:
    try:
        text = open("l").read()
    except OSError:
        continue
    if text != "allowed":
        print(text, flush=True)
        os.kill(pid, signal.SIGKILL)
"""

LINKS = [
    _reading(_LINK, "read", "link", prepare=_links(link="{secret}")),
    _writing(_LINK, "write", "link", prepare=_links(link="{secret}")),
    _reading(_LINK, "read a relative one", "link", prepare=_links(link="../outside/secret")),
    Attack(_LINK, "made by the attack", 'os.symlink(T.secret, "l"); read("l")', judged=True),
    Attack(_LINK, "copied by the shell", shell='ln -s "$SECRET" l; cp -L l copy; cat copy',
           judged=True),
    Attack(_LINK, "by a link of /proc",
           'os.symlink(f"/proc/self/cwd/../outside/secret", "l"); read("l")', judged=True),
    Attack(_LINK, "swapped while it is read", _SWAPPED, judged=True),
    *_with_tools(_LINK, "link", "'link'", prepare=_links(link="{secret}")),
    _reading(_DIRECTORY, "read", "link/secret", prepare=_links(link="{outside}")),
    _writing(_DIRECTORY, "a new file", "link/new", prepare=_links(link="{outside}")),
    Attack(_DIRECTORY, "list", 'need("secret" in os.listdir("link"))',
           prepare=_links(link="{outside}")),
    Attack(_DIRECTORY, "enter", 'os.symlink(T.outside, "l"); os.chdir("l"); read("secret")',
           judged=True),
    Attack(_DIRECTORY, "remove through it",
           'os.symlink(T.outside, "l"); os.remove("l/secret")', judged=True),
    Attack(_DIRECTORY, "to the root", 'os.symlink("/", "l"); read("l" + T.secret)', judged=True),
    *_with_tools(_DIRECTORY, "link/secret", "'link/secret'", prepare=_links(link="{outside}")),
    Attack(_DIRECTORY, "list_files", "print(os.listdir('link')); read('link/secret')",
           tool=("list_files", {"path": "link"}), judged=True, prepare=_links(link="{outside}")),
    _reading(_CHAIN, "read", "a", prepare=_links(a="b", b="c", c="d/secret", d="../outside")),
    _writing(_CHAIN, "write", "a", prepare=_links(a="b", b="c", c="d/secret", d="../outside")),
    Attack(_CHAIN, "made by the attack",
           'os.symlink(T.outside, "b"); os.symlink("b/deep", "c"); os.mkdir("d");'
           'os.symlink("../c/er/secret", "d/e"); read("d/e")', judged=True),
    *_with_tools(_CHAIN, "a", "'a'", prepare=_links(a="b", b="c", c="{secret}")),
    _writing(_DANGLING, "write", "link", prepare=_links(link="{outside}/new")),
    Attack(_DANGLING, "made by the attack",
           'os.symlink(T.outside + "/new", "l"); write("l")', judged=True),
    Attack(_DANGLING, "a directory", 'os.symlink(T.outside, "l"); os.makedirs("l/new/deep")',
           judged=True),
    Attack(_DANGLING, "by the shell", shell='ln -s "$OUTSIDE/new" l; echo evil > l', judged=True),
    Attack(_DANGLING, "write_file", "write('link')", judged=True,
           tool=("write_file", {"path": "link", "content": "x"}),
           prepare=_links(link="{outside}/new")),
]  # fmt: skip

_LINKAT = """
fd = os.open(T.secret, os.O_PATH)
libc = ctypes.CDLL(None, use_errno=True)
here, follow = -100, 0x400
if libc.linkat(here, f"/proc/self/fd/{fd}".encode(), here, b"linked", follow) != 0:
    raise OSError(ctypes.get_errno(), "linkat")
read("linked")
"""

MOVES = [
    Attack(_HARD, "link", 'os.link(T.secret, "linked")', judged=True),
    Attack(_HARD, "by the shell", shell='ln "$SECRET" linked; cat linked', judged=True),
    Attack(_HARD, "of an open descriptor", _LINKAT, judged=True),
    Attack(_HARD, "from inside to outside", 'os.link("allowed.txt", T.outside + "/new")',
           judged=True),
    Attack(_HARD, "of a protected file, outside of the workspace",
           'os.link(T.policy, T.outside + "/p"); write(T.outside + "/p")', judged=True),
    Attack(_RENAME, "a file out", 'os.rename("allowed.txt", T.outside + "/new")', judged=True),
    Attack(_RENAME, "over a file outside", 'os.rename("allowed.txt", T.secret)', judged=True),
    Attack(_RENAME, "a file in", 'os.rename(T.secret, "mine")', judged=True),
    Attack(_RENAME, "a directory in", 'os.rename(T.outside, "mine")', judged=True),
    Attack(_RENAME, "an exchange", program="files exchange allowed.txt {secret}", judged=True),
    Attack(_RENAME, "the workspace itself",
           'os.rename(T.workspace, T.workspace + "-moved"); write(T.outside + "/moved")\n'
           'os.rename(T.workspace + "-moved", T.workspace)', judged=True),
    Attack(_RENAME, "by the shell", shell='mv allowed.txt "$OUTSIDE/new"', judged=True),
]  # fmt: skip

_SYSTEM_PLACES = {
    "/etc": "/etc",
    "the programs": "/usr/bin",
    "local programs": "/usr/local/bin",
    "the libraries": "/usr/lib",
}
# A file without a name shows the right to make one, and is gone at once.
_NAMELESS = "os.close(os.open({path!r}, os.O_TMPFILE | os.O_WRONLY))"
_START_UP = (
    ".bashrc", ".bash_profile", ".profile", ".zshenv", ".gitconfig", ".ssh/authorized_keys",
    ".config/systemd/user/evil.service", ".local/bin/git", ".config/fish/config.fish",
)  # fmt: skip

CONFIGURATION = [
    _writing(_HOOKS, "of a project outside", "{T.outside}/project/.git/hooks/post-checkout"),
    _writing(_HOOKS, "the configuration of a project outside", "{T.outside}/project/.git/config"),
    Attack(_HOOKS, "by git's own setting", judged=True,
           shell="git config --global core.hooksPath /tmp/evil"),
    *(
        Attack(_HOOKS, f"in a read-only workspace: {name}", judged=False,
               code=f"os.makedirs(os.path.dirname('.git/{name}'), exist_ok=True)\n"
               f"write('.git/{name}')", cell={"workspace": "ro"})
        for name in ("hooks/post-checkout", "config")
    ),
    *(_writing(_START, name, "{T.home}/" + name) for name in _START_UP),
    *(
        Attack(_START, f"a new file in {name}", _NAMELESS.format(path=path), root=True)
        for name, path in _SYSTEM_PLACES.items()
    ),
    Attack(_START, "the interpreter's own packages",
           "import sysconfig\n"
           "os.close(os.open(sysconfig.get_path('purelib'), os.O_TMPFILE | os.O_WRONLY))",
           unless=lambda: "" if os.access(_purelib(), os.W_OK) else "they are not this user's"),
    # /proc/self/exe is no measure: a program that runs is busy, whatever else forbids it.
    Attack(_START, "the interpreter's own library",
           "os.close(os.open(os.__file__, os.O_WRONLY))", root=True),
    Attack(_START, "a file beside the interpreter",
           "place = os.path.dirname(os.path.realpath(sys.executable))\n"
           "os.close(os.open(place, os.O_TMPFILE | os.O_WRONLY))", root=True),
]  # fmt: skip


def _purelib() -> str:
    import sysconfig

    return sysconfig.get_path("purelib")


NODES = [
    Attack(_NODES, "a memory device", program="files node here 020666 1 1", root=True),
    Attack(_NODES, "a null device", program="files node here 020666 1 3", root=True),
    Attack(_NODES, "a block device", program="files node here 060666 254 0", root=True),
    Attack(_NODES, "a whiteout", program="files node here 020666 0 0"),
    Attack(_NODES, "a FIFO outside", 'os.mkfifo(T.outside + "/fifo")', judged=True),
    Attack(_NODES, "a file outside", program="files node {outside}/new 0100666 0 0", judged=True),
    Attack(_NODES, "a socket outside",
           's = socket.socket(socket.AF_UNIX); s.bind(T.outside + "/s")', judged=True),
    Attack(_NODES, "a node in the scratch",
           "os.mknod(os.environ.get('TMPDIR', '/tmp') + f'/escape-{os.getpid()}', 0o020666, "
           "os.makedev(1, 3))\n"
           "os.remove(os.environ.get('TMPDIR', '/tmp') + f'/escape-{os.getpid()}')", root=True),
    *(
        Attack(_NODES, path, f"os.close(os.open({path!r}, os.O_RDONLY | os.O_NONBLOCK))",
               root=True, missing=(1, 6, 16, 19, 38))
        for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/fuse", "/dev/kvm",
                     "/dev/net/tun", "/dev/loop-control", "/dev/port")
        if Path(path).exists()
    ),
    Attack(_NODES, "any block device",
           "found = [n for n in os.listdir('/dev') if stat.S_ISBLK(os.stat('/dev/' + n).st_mode)]\n"
           "need(found, 'there is none')\n"
           "os.close(os.open('/dev/' + found[0], os.O_RDONLY))", root=True, missing=(1, 38)),
]  # fmt: skip

_RESOLVE = {"none": 0, "no magic links": 2, "no symlinks": 4, "cached": 0x20, "no mounts": 1}

CALLS = [
    *(
        Attack(_OPENAT2, name, program=f"files openat2 {{secret}} {flags:x}", judged=True,
               missing=(38, 11))
        for name, flags in _RESOLVE.items()
        if flags != 1
    ),
    Attack(_OPENAT2, "a relative path", program="files openat2 ../outside/secret 0", judged=True),
    Attack(_OPENAT2, "a magic link", program="files openat2 /proc/self/root{secret} 0",
           judged=True),
    Attack(_OPENAT2, "in a root of its own", program="files 'openat2 below a descriptor' {secret}",
           judged=True),
    Attack(_OPENAT2, "a larger structure", program="files 'openat2 of a larger size' {secret}",
           judged=True),
    Attack(_OPENAT2, "a place that is named only", program="files reopen {secret}", judged=True),
    *(
        Attack(_TRUNCATE, how, program=f"files {how!r} {{secret}}", judged=True)
        for how in ("truncate", "creat", "open with O_TRUNC", "ftruncate", "reopen for writing")
    ),
    *(
        Attack(_TRUNCATE, f"{how} through a link", program=f"files {how!r} link", judged=True,
               prepare=_links(link="{secret}"))
        for how in ("truncate", "creat", "open with O_TRUNC")
    ),
    Attack(_TRUNCATE, "punch a hole", program="files 'punch a hole' {secret}", judged=True),
    Attack(_TRUNCATE, "overwrite through a mapping", program="files mapping {secret}",
           judged=True),
    Attack(_TRUNCATE, "overwrite by sendfile", program="files sendfile {secret}", judged=True),
]  # fmt: skip

# Not on the lower rung: Landlock does not look at a file's attributes.
METADATA = [
    Attack(_METADATA, how, code, judged=True, rungs=(FULL,), missing=(38, 95), root=root)
    for how, code, root in (
        ("chmod", "os.chmod(T.secret, 0o600)", False),
        ("chmod through a link", "os.symlink(T.secret, 'l'); os.chmod('l', 0o600)", False),
        ("fchmod of a descriptor", "os.fchmod(os.open(T.secret, os.O_RDONLY), 0o600)", False),
        ("chmod of /proc/self/fd",
         "fd = os.open(T.secret, os.O_PATH); os.chmod(f'/proc/self/fd/{fd}', 0o600)", False),
        ("utimes", "os.utime(T.secret, (1, 1))", False),
        ("utimes through a link", "os.symlink(T.secret, 'l'); os.utime('l', (1, 1))", False),
        ("touch", "subprocess.run(['touch', '-d', '2001-01-01', T.secret], check=False)", False),
        ("setxattr", "os.setxattr(T.secret, 'user.reached', b'x')", False),
        ("setxattr through a link",
         "os.symlink(T.secret, 'l'); os.setxattr('l', 'user.reached', b'x')", False),
        ("a security attribute", "os.setxattr(T.secret, 'trusted.reached', b'x')", True),
        ("an access list",
         "os.setxattr(T.secret, 'system.posix_acl_access', struct.pack('<I', 2) + b''.join("
         "struct.pack('<HHI', t, 7, i) for t, i in "
         "((1, 2**32 - 1), (2, 1234), (4, 2**32 - 1), (16, 2**32 - 1), (32, 2**32 - 1))))", False),
    )
] + [
    Attack(_METADATA, "setxattrat", program="abi setxattrat {secret}", rungs=(FULL,),
           missing=(38, 95)),
    Attack(_METADATA, "file_setattr", program="abi file_setattr {secret}", rungs=(FULL,),
           missing=(38, 95, 25)),
    *(
        Attack(_CHOWN, how, code, judged=True, rungs=(FULL,), root=True)
        for how, code in (
            ("chown", "os.symlink(T.secret, 'l'); os.chown('l', 12345, 12345)"),
            ("to oneself", "os.symlink(T.secret, 'l'); "
             "os.chown('l', os.getuid() or 12345, os.getgid())"),
            ("by the shell", "os.symlink(T.outside, 'l'); "
             "subprocess.run(['chown', '-R', '-L', '12345', 'l'], check=False)"),
            ("fchownat of a descriptor", "os.symlink(T.secret, 'l')\n"
             "os.chown(os.open('l', os.O_RDONLY), 12345, 12345)"),
        )
    ),
]  # fmt: skip

_EVERY_PROCESS = """
T.bystander
for pid in processes():
    try:
        read(f"/proc/{pid}/root" + T.secret)
    except OSError:
        pass
"""

PROC = [
    _reading(_PROC, "/proc/self/root", "/proc/self/root{T.secret}"),
    _reading(_PROC, "/proc/thread-self/root", "/proc/thread-self/root{T.secret}"),
    _writing(_PROC, "/proc/self/root, writing", "/proc/self/root{T.outside}/new"),
    _reading(_PROC, "/proc/self/cwd", "/proc/self/cwd/../outside/secret"),
    _reading(_PROC, "/proc/1/root", "/proc/1/root{T.secret}", root=True, missing=(13, 38)),
    _reading(_PROC, "the parent's root", "/proc/{os.getppid()}/root{T.secret}"),
    Attack(_PROC, "the root of every process", _EVERY_PROCESS, judged=True),
    Attack(_PROC, "the descriptors of every process", judged=True, code="""
        T.bystander
        for path in [p for pid in processes() for p in glob.glob(f"/proc/{pid}/fd/*")]:
            try:
                if stat.S_ISREG(os.stat(path).st_mode):
                    read(path)
            except OSError:
                pass
        """),
    Attack(_PROC, "the directory of every process", judged=True, code="""
        T.bystander
        for pid in processes():
            try:
                read(f"/proc/{pid}/cwd/bystanders-secret")
            except OSError:
                pass
        """),
    Attack(_PROC, "mapped files of every process", judged=True, root=True, code="""
        T.bystander
        for path in [p for pid in processes() for p in glob.glob(f"/proc/{pid}/map_files/*")]:
            try:
                fd = os.open(path, os.O_RDONLY)
            except OSError:
                continue
            if os.readlink(path).endswith("/bin/bystander"):
                print("REACHED", flush=True)
                break
        """),
]  # fmt: skip


def _owned_by_root(ground: Ground) -> None:
    _only_as_root()
    os.chown(ground.workspace / "privileges", 0, 0)
    (ground.workspace / "privileges").chmod(0o4755)


def _only_as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make such a file")


def _with_capabilities(ground: Ground) -> None:
    _only_as_root()
    # CAP_DAC_READ_SEARCH and CAP_SYS_ADMIN, effective: capabilities(7), revision 2.
    value = (0x02000001).to_bytes(4, "little") + (1 << 2 | 1 << 21).to_bytes(4, "little")
    os.setxattr(ground.workspace / "privileges", "security.capability", value + bytes(12))


_AS_ANOTHER = """
user = {{"user": 12345, "group": 12345}} if os.geteuid() == 0 else {{}}
done = subprocess.run(["./privileges", {attempt!r}], capture_output=True, text=True, **user)
print(done.stdout + done.stderr)
need("REACHED" in done.stdout)
"""
_SU = """
process = subprocess.Popen(["su"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT,
                           **({"user": 12345} if not os.geteuid() else {}))
seen = []
while process.poll() is None and 0 not in seen and len(seen) < 300:
    for line in open(f"/proc/{process.pid}/status"):
        if line.startswith("Uid:"):
            seen.append(int(line.split()[2]))
process.kill()
process.wait()
need(0 in seen)
"""

SETUID = [
    Attack(_SETUID, "owned by root, in the workspace", _AS_ANOTHER.format(attempt="be root"),
           uses="privileges", prepare=_owned_by_root, root=True),
    Attack(_SETUID, "with file capabilities", _AS_ANOTHER.format(attempt="have capabilities"),
           uses="privileges", prepare=_with_capabilities, root=True),
    Attack(_SETUID, "of the system", _SU),
    Attack(_SETUID, "made by the attack", "fd = os.open('f', os.O_CREAT | os.O_WRONLY, 0o755)\n"
           "os.fchmod(fd, 0o4755)\nneed(os.stat('f').st_mode & 0o4000)"),
    Attack(_SETUID, "made by the attack in the scratch",
           "import tempfile\nfile = tempfile.NamedTemporaryFile()\n"
           "os.chmod(file.name, 0o6755)\nneed(os.stat(file.name).st_mode & 0o6000)"),
    Attack(_SETUID, "copied with its mode", shell="cp --preserve=mode /usr/bin/su s || true\n"
           "chmod u+s s\ntest -u s"),
    Attack(_SETUID, "unpacked with its mode", shell="tar -xpf archive.tar\ntest -u s",
           prepare=lambda ground: _set_id_archive(ground)),
]  # fmt: skip


def _set_id_archive(ground: Ground) -> None:
    with tarfile.open(ground.workspace / "archive.tar", "w") as archive:
        member = tarfile.TarInfo("s")
        member.mode = 0o4755
        archive.addfile(member)


# Scratch space is executable by design: compilers and test runners need it. What is run
# there, or from memory, is in the same jail.
_SCRATCH_PROGRAM = """
import tempfile
place = tempfile.mkdtemp()
program = shutil.copy("{program}", place)
print(subprocess.run([program, *{words!r}], capture_output=True, text=True).stdout)
"""
_FROM_MEMORY = """
fd = os.memfd_create("program")
os.write(fd, open("{program}", "rb").read())
pid = os.fork()
if pid == 0:
    os.execve(fd, ["program", *{words!r}], {{}})
os.waitpid(pid, 0)
"""
_BY_THE_LOADER = """
loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
              if os.path.exists(p))
print(subprocess.run([loader, "./{program}", *{words!r}], capture_output=True, text=True).stdout)
"""


def _executed(how: str, code: str, program: str, *words: str) -> Attack:
    code = code.format(program=program, words=words)
    return Attack(_EXEC, f"{how}: {' '.join(words)}", code, uses=program, judged=True)


EXECUTED = [
    _executed(how, code, "namespaces", "unshare", "user")
    for how, code in (
        ("from the scratch", _SCRATCH_PROGRAM),
        ("from memory", _FROM_MEMORY),
        ("by the loader", _BY_THE_LOADER),
    )
] + [
    _executed(how, code, "abi", "personality without randomization")
    for how, code in (("from the scratch", _SCRATCH_PROGRAM), ("from memory", _FROM_MEMORY))
]

_UNPACK = """
import tarfile
with tarfile.open("archive.tar") as archive:
    for member in archive:
        try:
            archive.extract(member, **({"filter": "fully_trusted"}
                            if hasattr(tarfile, "data_filter") else {}))
        except OSError as error:
            print("held:", error)
"""
_ARCHIVES = {
    "../ members": [("../outside/new", "evil"), ("../outside/secret", "evil")],
    "absolute members": [("{outside}/new", "evil"), ("{secret}", "evil")],
    "a link to a directory, then a member below it": [("l", "-> ../outside"), ("l/new", "evil")],
    "chained links": [("a", "-> b"), ("b", "-> .."), ("a/outside/new", "evil")],
}

ARCHIVES = [
    *(
        Attack(_ARCHIVE, f"{how}, by Python", _UNPACK, judged=True, prepare=_archive(*members))
        for how, members in _ARCHIVES.items()
    ),
    *(
        Attack(_ARCHIVE, f"{how}, by tar", shell="tar -xPf archive.tar || true", judged=True,
               prepare=_archive(*members))
        for how, members in _ARCHIVES.items()
    ),
    Attack(_ARCHIVE, "a hard link to a file outside, by tar",
           shell="tar -xPf archive.tar; cat l", judged=True,
           prepare=_archive(("l", "=> {secret}"))),
    Attack(_ARCHIVE, "../ members, by Python's zipfile past its own check", """
        import zipfile
        with zipfile.ZipFile("a.zip", "w") as archive:
            archive.writestr("../outside/new", "evil")
        with zipfile.ZipFile("a.zip") as archive:
            for member in archive.infolist():
                with open(os.path.join(T.workspace, member.filename), "wb") as file:
                    file.write(archive.read(member))
        """, judged=True),
]  # fmt: skip

# Each tries to put other text where a protected file is read.
_REPLACEMENTS = {
    "write": "echo evil > $KEPT/{name}",
    "append": "echo evil >> $KEPT/{name}",
    "replace": "echo evil > new; mv -f new $KEPT/{name}",
    "remove": "rm -f $KEPT/{name}",
    "move away": "mv $KEPT/{name} $KEPT/x; echo evil > $KEPT/{name}",
    "move its directory away": "mv conf old; mkdir conf; echo evil > conf/{name}",
    "move its directory down": "mkdir up; mv conf up/; mkdir conf; echo evil > conf/{name}",
    "a link over it": "ln -sfn /etc/hostname $KEPT/{name}",
    "a link over its directory": "mv conf old; ln -s old conf; echo evil > conf/{name}",
    "a hard link of it": "ln $KEPT/{name} linked; echo evil > linked",
    "truncate": "truncate -s 0 $KEPT/{name}",
    "chmod": "chmod 666 $KEPT/{name}; echo evil > $KEPT/{name}",
    "dd": "dd if=/dev/zero of=$KEPT/{name} bs=1 count=1 conv=notrunc status=none",
    "sed": "sed -i s/./evil/ $KEPT/{name}",
    "through /proc/self/cwd": "echo evil > /proc/self/cwd/conf/{name}",
    "through /proc/self/root": "echo evil > /proc/self/root$KEPT/{name}",
    "through a link": "ln -s conf c; echo evil > c/{name}",
    "install": "echo evil > new; install -m 644 new $KEPT/{name}",
}


def _other(ground: Ground) -> None:
    (ground.workspace / "other").mkdir()
    (ground.workspace / "other" / "policy.toml").write_text("evil")


# On the lower rung there are no such files: a plan with one is refused.
PROTECTED = [
    *(
        Attack(_ABSENT, f"{how}: {name}", shell=command.format(name=name), judged=True,
               rungs=(FULL,))
        for how, command in _REPLACEMENTS.items()
        for name in (("policy.toml", "events.jsonl") if how in ("write", "replace") else
                     ("policy.toml",))
    ),
    *(
        Attack(_ABSENT, f"{how}: policy.toml", program=program, judged=True, rungs=(FULL,),
               prepare=_other)
        for how, program in {
            "a nameless file": "files 'nameless file' {policy} {kept}",
            "an exchange": "files exchange allowed.txt {policy}",
            "an exchange of directories": "files exchange other conf",
            "a mapping": "files mapping {policy}",
            "sendfile": "files sendfile {policy}",
            "punch a hole": "files 'punch a hole' {policy}",
            "a descriptor made writable": "files 'reopen for writing' {policy}",
        }.items()
    ),
    *(
        Attack(_ABSENT, f"{how}: policy.toml", code, judged=True, rungs=(FULL,), missing=(38, 95))
        for how, code in {
            "a mode": "os.chmod(T.policy, 0o600)",
            "times": "os.utime(T.policy, (1, 1))",
            "an attribute": "os.setxattr(T.policy, 'user.reached', b'x')",
        }.items()
    ),
]  # fmt: skip


ATTACKS = [
    *PATHS, *LINKS, *MOVES, *CONFIGURATION, *NODES, *CALLS, *METADATA, *PROC, *SETUID, *EXECUTED,
    *ARCHIVES, *PROTECTED,
]  # fmt: skip


@pytest.mark.attack
@each_on_its_rungs(ATTACKS)
def test_nothing_is_reached(rung: str, attack: Attack, siege: Siege) -> None:
    siege.attack(rung, attack)


@pytest.mark.attack(control=True)
@each(ATTACKS)
def test_the_control_reaches_it(attack: Attack, siege: Siege) -> None:
    siege.control(attack)


_RUNGS = pytest.mark.parametrize("rung", BOTH)


def _planted(siege: Siege, rung: str, command: str) -> None:
    """A tool prepares the workspace for what the host does next."""
    siege.inside.refresh()
    controller = siege.controller(rung)
    result = siege.call(controller, "shell", command=command)
    assert result.success, result.for_llm()
    assert result.enforcement.rung == rung


def _toolcell(siege: Siege, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "toolcell", "run", "-w", str(siege.inside.workspace), *words],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=siege.inside.place,
    )


_LOGS = {
    "the log is a link": ("ln -s ../outside/secret log", "log"),
    "the log is a link to nothing yet": ("ln -s ../outside/new log", "log"),
    "the log is a FIFO": ("mkfifo log", "log"),
    "its directory is a link": ("ln -s ../outside logs", "logs/new"),
    "its directory is a link to the secret's": ("ln -s ../outside logs", "logs/secret"),
    "a directory above is a link": ("mkdir a && ln -s ../../outside a/b", "a/b/deep/new"),
}


@pytest.mark.attack
@_RUNGS
@pytest.mark.parametrize("how", _LOGS)
def test_an_event_log_does_not_follow_what_a_tool_planted(
    rung: str, how: str, siege: Siege
) -> None:
    command, name = _LOGS[how]
    _planted(siege, rung, command)
    before = siege.inside.snapshot()
    done = _toolcell(siege, "--events", str(siege.inside.workspace / name), "--", "true")
    assert siege.inside.snapshot() == before, f"written through the link: {done.stderr}"
    assert done.returncode != 0, "and it is refused, not run without a log"
    assert "lies in the workspace" in done.stderr


@pytest.mark.attack(control=True)
def test_the_control_a_plain_log_follows_a_link(siege: Siege) -> None:
    ground = siege.control_ground
    ground.refresh()
    before = ground.snapshot()
    (ground.workspace / "log").symlink_to("../outside/new")
    with (ground.workspace / "log").open("a") as file:
        file.write("event")
    assert ground.snapshot() != before


_POLICY = """
version = 1
[tools]
allow = ["shell", "*"]
"""


@pytest.mark.attack
@_RUNGS
@pytest.mark.parametrize("command", ["ln -s ../outside/policy.toml p", "ln -s ../outside d"])
def test_a_policy_is_not_read_through_a_link_in_the_workspace(
    rung: str, command: str, siege: Siege
) -> None:
    _planted(siege, rung, command)
    name = "p" if command.endswith("p") else "d/policy.toml"
    (siege.inside.outside / "policy.toml").write_text(_POLICY)
    place = siege.inside.workspace / name
    assert place.read_text() == _POLICY, "the control: the link leads there"
    done = _toolcell(siege, "--policy", str(place), "--", "echo", "REACHED")
    assert "REACHED" not in done.stdout
    assert "link" in done.stderr
    own = siege.inside.place / "policy.toml"
    own.write_text(_POLICY)
    done = _toolcell(siege, "--policy", str(own), "--", "echo", "REACHED")
    own.unlink()
    assert "REACHED" in done.stdout, f"the control: a policy that is no link {done.stderr}"


@pytest.mark.attack
def test_a_file_that_a_policy_extends_cannot_be_changed_either(siege: Siege) -> None:
    place = siege.inside.workspace
    (place / "base.toml").write_text(_POLICY)
    own = place / "own.toml"
    own.write_text('version = 1\nextends = "base.toml"\n')
    change = "echo >> base.toml; echo >> own.toml; echo >> other.toml"
    _toolcell(siege, "--policy", str(own), "--", "sh", "-c", change)
    assert (place / "base.toml").read_text() == _POLICY
    assert own.read_text().count("\n") == 2
    assert (place / "other.toml").exists(), "the control"


@pytest.mark.attack
@_RUNGS
def test_what_a_policy_lends_is_not_followed_where_a_tool_made_it_a_link(
    rung: str, siege: Siege
) -> None:
    _planted(siege, rung, "ln -s ../outside data")
    lending = siege.controller(rung, {"read": [str(siege.inside.workspace / "data")]})
    result = siege.controller_call(lending, "shell", command="cat data/secret ../outside/secret")
    assert siege.secret not in result.for_llm()
    siege.inside.refresh()
    (siege.inside.workspace / "data").mkdir()
    (siege.inside.workspace / "data" / "file").write_text("lent")
    # Without mounts nothing can stay read-only in a workspace that is not.
    cell = {"read": [str(siege.inside.workspace / "data")]}
    lending = siege.controller(rung, cell | ({} if rung == FULL else {"workspace": "ro"}))
    assert "lent" in siege.controller_call(lending, "shell", command="cat data/file").output


@pytest.mark.attack
@_RUNGS
def test_a_protected_file_that_is_absent_is_not_left_to_tools_to_make(
    rung: str, siege: Siege
) -> None:
    ground = siege.inside
    ground.refresh()
    absent = ground.workspace / "absent.toml"
    command = "echo evil > absent.toml && echo REACHED"
    protecting = siege.controller(rung, protected=(absent,))
    result = siege.controller_call(protecting, "shell", command=command)
    assert "REACHED" not in result.output
    assert not absent.exists()
    assert str(absent) in result.for_llm(), "it says why"
    if rung != FULL:  # one that is there is refused as well: nothing could keep it
        absent.write_text("policy")
        result = siege.controller_call(protecting, "shell", command=command)
        assert "REACHED" not in result.output
        assert absent.read_text() == "policy"
        absent.unlink()
    plain = siege.call(siege.controller(rung), "shell", command=command)
    assert "REACHED" in plain.output, "the control: a file that is not protected"


_FAILING: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "absent"}),
    ("read_file", {"path": "../absent"}),
    ("read_file", {"path": "link"}),
    ("read_file", {"path": "."}),
    ("read_file", {"path": "x\0y"}),
    ("write_file", {"path": "link/x", "content": "x"}),
    ("write_file", {"path": "absent/x", "content": "x"}),
    ("list_files", {"path": "link"}),
    ("search_text", {"path": "link", "pattern": "("}),
    ("python", {"code": "1 / 0"}),
    ("python", {"code": "import no_such_module"}),
    ("python", {"code": "def f(:"}),
    ("python", {"code": "import os; os.kill(os.getpid(), 11)"}),
    ("python", {"code": "import ctypes; ctypes.CDLL(None).syscall(0x40000027)"}),
    ("shell", {"command": "cat link/secret"}),
    ("shell", {"command": "no-such-command"}),
    ("shell", {"command": "kill -9 $$"}),
    ("shell", {"command": "echo x > /usr/x"}),
    ("no_such_tool", {}),
    ("shell", {"wrong": 1}),
]


@pytest.mark.attack
@_RUNGS
@pytest.mark.parametrize("number", range(len(_FAILING)))
def test_an_error_tells_no_path_of_the_host(rung: str, number: int, siege: Siege) -> None:
    tool, arguments = _FAILING[number]
    ground = siege.inside
    ground.refresh()
    (ground.workspace / "link").symlink_to("../outside")
    result = siege.call(siege.controller(rung), tool, **arguments)
    assert not result.success
    text = result.for_llm()
    # The workspace and the interpreter are where they are; a tool knows of them.
    for secret in (ground.outside, ground.home, siege.inside.place / "bin", Path.cwd()):
        if not Path(sys.prefix).is_relative_to(secret):
            assert str(secret) not in text
    for internal in ("sandbox_workers", "toolcell-probe", "/src/toolcell"):
        assert internal not in text


@pytest.mark.attack(control=True)
def test_the_control_an_error_on_the_host_tells_a_path(siege: Siege) -> None:
    ground = siege.control_ground
    ground.refresh()
    (ground.workspace / "link").symlink_to(ground.outside / "absent")
    code = "import os; open(os.path.realpath('link'))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ground.workspace)
    assert str(ground.outside) in done.stderr


def test_every_line_of_the_catalogue_is_attacked() -> None:
    assert not_attacked(LINES, ATTACKS, _LATER, _ERRORS) == set()
