"""Claims of ignores: they are git's, with .ignore before them, and are never waited for."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from sandbox_workers.tools.walking import Walk

NAMES = ["a", "b", "ab", "abc", "a.b", "foo.txt", "b a", "x]", "\\a", ".h", "z!", "#c", "c "]
TABLE = """a|*|/a|a/|a/b|**/a|a/**|a/**/b|*.b|!a|!*.b|!/b|[ab]|[!a]*|a*c|a?|\\#c|#c|foo.txt |b\\ a
b a\\ |/*|!/a/|**|!**/|*/a|a**|[a-c]|[[:alpha:]]|\\\\a|x]|[]x]*|[a|!.h|.h|a*b*c|*a*|/**/b|foo/**
**/b/**|\\a|abc\r|z\\!|ab/|!ab/|?|!?|*/*/a|a/*/b|[b-a]|[^a]|[[:foo:]a]|a\\|\\!a|c |c\\ |!!a|/|//
\ufeffa|**/|/**|a//b|a\\/b|[/b]a|a[/]b|a[b/]*|{a,b}|[a-]|[!b-]|[\\]x]*"""
LINES = TABLE.replace("\n", "|").split("|")


def grow(place: Path, chance: random.Random, depth: int = 0) -> None:
    """Fill a directory with names and ignore files drawn from the tables."""
    for name in chance.sample(NAMES, chance.randrange(1, 6)):
        if depth < 2 and chance.random() < 0.5:
            (place / name).mkdir()
            grow(place / name, chance, depth + 1)
        else:
            (place / name).touch()
    if depth == 0 or chance.random() < 0.5:
        chosen = chance.choices(LINES, k=chance.randrange(1, 6))
        (place / ".gitignore").write_text("\n".join([*chosen, ""][: len(chosen) + (depth % 2)]))


def git(*arguments: str) -> str:
    options = ("-c", "core.excludesFile=/dev/null")
    return subprocess.run(
        ["git", *options, *arguments], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    return tmp_path


def walked(**options: bool) -> list[str]:
    walk = Walk(".", **({"hidden": True} | options))
    return [entry.path for entry in walk if entry.kind != "directory"]


@pytest.mark.parametrize("seed", range(2))
def test_what_is_left_out_is_what_git_leaves_out(repository, seed):
    """80 trees in one repository, each with ignore files of its own at every level."""
    chance = random.Random(seed)
    (repository / ".git/info/exclude").write_text("zz*\n!a.b\nb\n[^.]*.txt\n")
    for number in range(80):
        place = repository / f"tree{number}"
        place.mkdir()
        grow(place, chance)
    kept = git("ls-files", "-co", "--exclude-standard", "-z").split("\0")[:-1]
    assert sorted(walked()) == sorted(kept)
    everything = walked(ignored=True)
    assert len(everything) > len(kept) > 100, "the control: much is ignored, and not all"


def fill(*paths: str) -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("")


def test_ignore_goes_before_gitignore_and_that_before_exclude(repository):
    fill("a", "b", "c", "d/a", "d/b")
    (repository / ".git/info/exclude").write_text("a\nb\nc\n")
    (repository / ".gitignore").write_text("!c\n")
    (repository / ".ignore").write_text("!b\nc\n")
    (repository / "d/.gitignore").write_text("b\n!a\n")
    assert walked(hidden=False) == ["b", "d/a", "d/b"]


def test_ignore_files_count_without_a_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill("a.log", "d/b.log", "d/c", "node_modules/x", "d/__pycache__/x")
    Path(".gitignore").write_text("*.log\n")
    assert walked(hidden=False) == ["d/c"]
    assert "node_modules/x" in walked(ignored=True)
    Path(".gitignore").write_text("!node_modules/\n")
    assert "node_modules/x" in walked()


def test_files_above_count_where_a_walk_begins_further_down(repository):
    fill("d/e/a", "d/e/b", "d/e/c", "d/e/f/a")
    (repository / ".gitignore").write_text("a\n/d/e/c\n")
    (repository / "d/.gitignore").write_text("b\n")
    walk = Walk("d/e")
    assert [entry.path for entry in walk] == ["d/e/f"]
    assert walk.ignored == 4


def test_git_itself_is_never_listed(repository):
    fill("sub/x")
    (repository / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    assert walked(ignored=True) == ["sub/x"]


def test_what_git_excludes_counts_in_a_worktree_as_in_git(repository, monkeypatch):
    (repository / "main").mkdir()
    monkeypatch.chdir(repository / "main")
    git("init", "-q")
    who = ("-c", "user.name=x", "-c", "user.email=x")
    git(*who, "commit", "-q", "--allow-empty", "-m", "x")
    git("worktree", "add", "-q", "../tree")
    (repository / "main/.git/info/exclude").write_text("a\n")
    fill("../tree/a", "../tree/b")
    monkeypatch.chdir(repository / "tree")
    assert git("ls-files", "-co", "--exclude-standard").split() == ["b"]
    assert walked() == ["a", "b"], "from here the repository is outside, and is not read"
    monkeypatch.chdir(repository)
    assert [path for path in walked() if path.startswith("tree/")] == ["tree/b"]


@pytest.mark.parametrize(
    "said", ["gitdir: ", "gitdir: a\0b", "gitdir: none", "gitdir: .", "gitdir: " + "x" * 5000, "x"]
)
def test_a_git_file_that_says_nothing_useful_counts_for_nothing(tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    fill("sub/a")
    Path("sub/.git").write_text(said)
    assert walked() == ["sub/a"]


def test_an_ignore_file_that_is_none_counts_for_nothing(repository):
    fill("a", "b")
    os.mkfifo(".gitignore")
    (repository / "rules").write_text("a\n")
    (repository / ".ignore").symlink_to("rules")
    assert walked(hidden=False) == ["a", "b", "rules"]


def test_an_ignore_file_that_cannot_be_read_is_named(repository, monkeypatch):
    fill("a", ".gitignore")
    real = os.open

    def refuse(path, *arguments):
        if path == ".gitignore":
            raise PermissionError
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    walk = Walk(".")
    assert [entry.path for entry in walk] == ["a"]
    assert walk.unreadable == [".gitignore"]


def test_hostile_lines_do_not_hang(repository):
    fill("a" * 200)
    (repository / ".gitignore").write_text("*a" * 80 + "b\n" + "**/*a*a*a" * 50 + "\n[" + "[" * 999)
    assert walked(hidden=False) == ["a" * 200]
