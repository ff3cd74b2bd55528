"""Runs the isolation tests as an ordinary user, when root runs the tests.

Most users are not root, and the walls are built in another way for them. The tree is
copied to where that user can read it, and tested there as a new user would: with
`make test`, an environment of its own, and a Python that is not in root's home.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
USER = 1000
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3", "/opt/python/bin/python3", sys.executable)
PARTS = ("src", "sandbox_workers", "policies", "tests", "examples", "benchmarks")
FILES = ("pyproject.toml", "Makefile", "README.md", "LICENSE")
_FIT = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"


def main() -> int:
    """Run the tests; returns the exit code."""
    python = next((path for path in PYTHONS if _usable(path)), None)
    if python is None:
        print(
            "no Python >= 3.11 with venv is readable by an ordinary user (looked at "
            f"{', '.join(PYTHONS)}); the isolation tests ran as root only",
            file=sys.stderr,
        )
        return int(os.environ.get("TOOLCELL_MUST_ISOLATE") == "1")
    with tempfile.TemporaryDirectory(prefix="toolcell-user-") as directory:
        place = Path(directory)
        _copy(place / "toolcell")
        for path in [place, *place.rglob("*")]:
            os.chown(path, USER, USER, follow_symlinks=False)
        print(f"the isolation tests again, as uid {USER} with {python}", flush=True)
        command = ["make", "--no-print-directory", "test", f"PYTHON={python}"]
        return subprocess.run(
            [*command, "TESTS=tests -m 'isolation and not any_user'"],
            cwd=place / "toolcell",
            env=_environment(place),
            user=USER,
            group=USER,
            extra_groups=[],
            check=False,
        ).returncode


def _usable(python: str) -> bool:
    try:
        command = [python, "-c", _FIT]
        done = subprocess.run(
            command,
            user=USER,
            group=USER,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def _copy(target: Path) -> None:
    target.mkdir()
    for part in PARTS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, target / part, ignore=ignored, symlinks=True)
    for name in FILES:
        shutil.copy(ROOT / name, target / name)


def _environment(home: Path) -> dict[str, str]:
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    return kept | {"HOME": str(home), "TMPDIR": str(home)}


if __name__ == "__main__":
    sys.exit(main())
