"""The ground that attacks are made on: a workspace, and what lies around it.

Rights are wide open: what holds must be a wall, not a mode.
"""

import os
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

CREDENTIALS = (
    ".ssh/id_ed25519", ".aws/credentials", ".kube/config", ".netrc", ".config/gh/hosts.yml",
    ".docker/config.json", ".config/gcloud/application_default_credentials.json",
    ".azure/msal_token_cache.json", ".npmrc", ".pypirc", ".git-credentials", ".bash_history",
    ".gnupg/private-keys-v1.d/key", ".config/sops/age/keys.txt", ".local/share/keyrings/login",
    ".mozilla/firefox/logins.json", ".vault-token",
)  # fmt: skip
_START_UP = (
    ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".inputrc", ".gitconfig",
    ".config/fish/config.fish", ".config/systemd/user/evil.service", ".ssh/authorized_keys",
    ".vimrc", ".local/bin/git", ".config/autostart/evil.desktop", ".pythonrc",
)  # fmt: skip


class Ground:
    """A workspace with what lies around it, made anew for each attack but for the workspace."""

    def __init__(self, place: Path, secret: str) -> None:
        self.place = place
        self.workspace = place / "workspace"
        self.outside = place / "outside"
        self.home = place / "home"
        self.sibling = place / "workspace-evil"
        self.kept = self.workspace / "conf"
        self._secret = secret
        for directory in (place, self.workspace):
            directory.mkdir()
        self.workspace.chmod(0o777)
        self.restore()

    def restore(self) -> None:
        """Bring back what is protected, which a control may have replaced."""
        if self.kept.is_symlink():
            self.kept.unlink()
        shutil.rmtree(self.kept, ignore_errors=True)
        self._fill({self.kept / "policy.toml": "policy", self.kept / "events.jsonl": "events"})

    def refresh(self) -> None:
        """Bring everything back to how it was."""
        for directory in (self.outside, self.home, self.sibling):
            shutil.rmtree(directory, ignore_errors=True)
        for entry in self.workspace.iterdir():
            if entry == self.kept:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        self._fill({self.workspace / "allowed.txt": "allowed"})
        self._fill({self.outside / name: self._secret for name in ("secret", "deep/er/secret")})
        self._fill({self.outside / "script": f"#!/bin/sh\necho {self._secret}\n"})
        self._fill({self.outside / "project/.git/hooks/README": "x"})
        self._fill({self.sibling / "secret": self._secret})
        self._fill({self.home / name: self._secret for name in CREDENTIALS})
        self._fill({self.home / name: "own" for name in _START_UP})
        (self.outside / "script").chmod(0o777)
        for path in (self.outside, self.home, self.sibling):
            for entry in [path, *path.rglob("*")]:
                entry.chmod(0o777 if entry.is_dir() else 0o666)
        (self.outside / "script").chmod(0o777)

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """Everything outside of the workspace, and what in it is protected."""
        found: dict[str, tuple[Any, ...]] = {}
        for top in (self.outside, self.home, self.sibling, self.kept):
            for path in [top, *top.rglob("*")]:
                if os.path.lexists(path):
                    found[str(path)] = _state(path)
        for path in self.place.iterdir():
            found.setdefault(str(path), ())
        return found

    def targets(self) -> dict[str, Any]:
        """Its places, by name."""
        return {
            "workspace": str(self.workspace),
            "outside": str(self.outside),
            "secret": str(self.outside / "secret"),
            "home": str(self.home),
            "sibling": str(self.sibling),
            "kept": str(self.kept),
            "policy": str(self.kept / "policy.toml"),
            "events": str(self.kept / "events.jsonl"),
        }

    @staticmethod
    def _fill(files: dict[Path, str]) -> None:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def text_of(path: Path, words: int = 0) -> str:
    """What a file says, once it is there and has as many words."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if path.exists() and len((text := path.read_text()).split()) >= words:
            return text
        time.sleep(0.005)
    raise AssertionError(f"{path.name} was not made")


def _state(path: Path) -> tuple[Any, ...]:
    found = path.lstat()
    kind = stat.S_IFMT(found.st_mode)
    content: Any = None
    with suppress(OSError):
        if stat.S_ISREG(found.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(found.st_mode):
            content = str(path.readlink())
    extra: list[str] = []
    with suppress(OSError):
        extra = sorted(os.listxattr(path, follow_symlinks=False))
    times = None if stat.S_ISDIR(found.st_mode) else found.st_mtime_ns
    return (kind, found.st_mode, found.st_uid, found.st_gid, found.st_nlink, times, content, extra)
