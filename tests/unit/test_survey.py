"""Claims of `toolcell.cells.listing`, `declared`, `survey` and `toolcell.artifacts`."""

import os
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from toolcell.artifacts import Shelf, type_of
from toolcell.cells import declared, listing
from toolcell.cells.rights import READ, Rights
from toolcell.cells.survey import Survey
from toolcell.model import CellSettings, LeftFiles, Limits
from toolcell.outputs import Keeper, OutputStore
from toolcell.policy.paths import PatternError, glob_pattern
from toolcell.registry import define

from .samples import greet


@pytest.fixture
def shelf(tmp_path):
    return Shelf(Keeper(OutputStore(tmp_path / "outputs"), kept_for={"workspace": "w"}))


def changed(before, after):
    told, note = listing.changes(before, after)
    return [(each.kind, each.path, each.size_before, each.size) for each in told], note


def test_added_changed_and_removed_files_are_told_with_sizes(workspace):
    (workspace / "stays").write_text("1")
    (workspace / "goes").write_text("12")
    (workspace / "grows").write_text("1")
    before = listing.listed(workspace)
    (workspace / "goes").unlink()
    (workspace / "grows").write_text("123")
    (workspace / "new/deep").mkdir(parents=True)
    (workspace / "new/deep/file").write_text("1234")
    (workspace / ".git").mkdir()
    (workspace / ".git/index").write_text("1")
    found, note = changed(before, listing.listed(workspace))
    assert found == [
        ("removed", "goes", 2, None),
        ("changed", "grows", 1, 3),
        ("added", "new/deep/file", None, 4),
        ("added", ".git/index", None, 1),
    ]
    assert note == ""
    assert changed(before, before) == ([], "")


@pytest.mark.attack
def test_a_modification_time_that_is_set_back_does_not_hide_a_change(workspace):
    file = workspace / "file"
    file.write_text("old")
    facts = file.stat()
    before = listing.listed(workspace)
    file.write_text("new")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (facts.st_mtime_ns, facts.st_size)
    assert changed(before, listing.listed(workspace))[0] == [("changed", "file", 3, 3)]


@pytest.mark.attack
def test_links_are_listed_and_never_followed(workspace, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("1")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "loop").symlink_to(".")
    assert sorted(listing.listed(workspace).marks) == ["link", "loop"]


@pytest.mark.attack
def test_a_tree_that_is_too_large_or_too_deep_is_told_as_such(workspace, monkeypatch):
    for number in range(20):
        (workspace / str(number)).write_text("")
    small = listing.listed(workspace)
    monkeypatch.setattr(listing, "_MOST", 10)
    large = listing.listed(workspace)
    assert "more than 10 files" in large.unknown
    assert listing.changes(small, large) == (
        (),
        f"what changed in the workspace is not known: {large.unknown}",
    )
    monkeypatch.setattr(listing, "_MOST", 1000)
    monkeypatch.setattr(listing, "_DEEPEST", 3)
    assert not listing.listed(workspace).unknown, "the control"
    (workspace / "a/b/c/d/e").mkdir(parents=True)
    assert "more than 3 deep" in listing.listed(workspace).unknown


def test_of_many_changes_some_are_listed_and_the_rest_counted(workspace, monkeypatch):
    monkeypatch.setattr(listing, "_LISTED", 3)
    before = listing.listed(workspace)
    for number in range(5):
        (workspace / str(number)).write_text("")
    found, note = changed(before, listing.listed(workspace))
    assert len(found) == 3
    assert note == "5 files changed in all"


def test_names_are_made_visible(workspace):
    before = listing.listed(workspace)
    (workspace / "a\x1b[31m\nb").write_text("")
    Path(os.fsdecode(os.fsencode(workspace) + b"/\xff")).write_text("")
    found, _ = changed(before, listing.listed(workspace))
    assert [path for _, path, _, _ in found] == [r"a\x1b[31m\x0ab", r"\udcff"]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.html", ["a.html"]),
        ("report/*.html", ["report/b.html"]),
        ("**/*.html", ["a.html", "report/b.html", "report/x/c.html"]),
        ("report/**", ["report/b.html", "report/x/c.html", "report/x/d.txt"]),
        ("r*/x/?.*", ["report/x/c.html", "report/x/d.txt"]),
        ("report", []),
        ("nowhere/*", []),
    ],
)
def test_declared_files_are_found_by_globs(workspace, glob, names):
    (workspace / "report/x").mkdir(parents=True)
    for name in ("a.html", "report/b.html", "report/x/c.html", "report/x/d.txt"):
        (workspace / name).write_text(name)
    (workspace / "link").symlink_to("report")
    assert sorted(declared.found(workspace, [glob])) == names


_PARTS = ["a", "b", "*", "?", "[ab]", "[!a]", "[a-x]", "[]]", "[]", "[!]", "[", "!", "]"]


@given(st.lists(st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4).map("".join), max_size=2))
@settings(max_examples=200)
def test_the_globs_of_tools_and_of_policies_are_one_language(tmp_path_factory, glob):
    assume(all("**" not in part for part in glob) and any(glob))
    place = tmp_path_factory.getbasetemp() / "globs"
    names = ["a", "ab", "b-", "a/a", "a!/b", "[a]", "x/a/b", "x/[/-"]
    for number, name in enumerate(names):
        (place / str(number) / name).parent.mkdir(parents=True, exist_ok=True)
        (place / str(number) / name).write_text("")
    pattern = "/".join(glob)
    try:
        policy = glob_pattern(pattern)
    except PatternError:
        return
    for number, name in enumerate(names):
        fits = name in declared.found(place / str(number), [pattern])
        assert fits == bool(policy(name)), (pattern, name)


def test_a_glob_with_braces_is_refused_because_it_would_fit_nothing():
    with pytest.raises(ValidationError, match="write one for each"):
        define(greet).model_validate(define(greet).model_dump() | {"artifacts": ["*.{png,svg}"]})
    define(greet).model_validate(define(greet).model_dump() | {"artifacts": ["*.png", "{a}"]})


async def survey(workspace, globs, shelf, work, limits=None):
    settings = CellSettings()
    definition = define(greet).model_copy(update={"artifacts": globs})
    begun = await Survey.begin(workspace, settings, definition)
    work()
    return await begun.end(LeftFiles(), shelf, limits or Limits())


async def test_a_declared_file_comes_back_where_the_call_made_or_changed_it(workspace, shelf):
    (workspace / "old.csv").write_text("1")
    (workspace / "same.csv").write_text("1")

    def work():
        (workspace / "old.csv").write_text("2,3")
        (workspace / "new.csv").write_text("4")
        (workspace / "other.txt").write_text("5")

    left = await survey(workspace, ("*.csv",), shelf, work)
    assert [(a.name, a.media_type, a.size) for a in left.artifacts] == [
        ("new.csv", "text/csv", 1),
        ("old.csv", "text/csv", 3),
    ]
    assert shelf.keeper.store.read(left.artifacts[1].handle) == b"2,3"
    assert left.changes == ()


@pytest.mark.attack
async def test_what_a_tool_puts_in_the_place_of_a_declared_file_is_refused(
    workspace, shelf, tmp_path
):
    (tmp_path / "secret").write_text("key")
    (workspace / "private").write_text("key")

    def work():
        (workspace / "a.out").symlink_to(tmp_path / "secret")
        os.mkfifo(workspace / "b.out")
        os.link(workspace / "private", workspace / "c.out")
        (workspace / "d.out").write_text("")
        os.truncate(workspace / "d.out", 20 * 1024**2)
        (workspace / "e.out").write_text("the control")
        (workspace / "f.out").write_text("1" * 3000)

    limits = Limits(artifacts=1, artifact_total=2000)
    left = await survey(workspace, ("*.out",), shelf, work, limits)
    assert [a.name for a in left.artifacts] == ["e.out"]
    reasons = {each.name: each.reason for each in left.refused}
    for name, words in zip(
        "abcdf", ["link", "pipe", "hard link", "sparse", "as many"], strict=True
    ):
        assert words in reasons[f"{name}.out"]


@pytest.mark.attack
async def test_a_declared_path_through_a_link_leads_nowhere(workspace, shelf, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.html").write_text("secret")
    left = await survey(
        workspace,
        ("report/*.html",),
        shelf,
        lambda: (workspace / "report").symlink_to(tmp_path / "outside"),
    )
    assert left == LeftFiles()
    # Also where the link takes the place of the directory after it was looked into.
    left = declared.collected(workspace, ["report/x.html"], shelf, Limits(), LeftFiles())
    assert left.artifacts == ()
    assert len(left.refused) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what it may not")
async def test_root_reads_no_more_than_the_owner_of_the_workspace(workspace, shelf):
    os.chown(workspace, 1234, 1234)
    for name, owner, mode in [("a", 0, 0o600), ("b", 1234, 0o600), ("c", 0, 0o644)]:
        (workspace / name).write_text("1")
        os.chown(workspace / name, owner, owner)
        (workspace / name).chmod(mode)
    left = declared.collected(workspace, ["a", "b", "c"], shelf, Limits(), LeftFiles())
    assert [a.name for a in left.artifacts] == ["b", "c"]
    assert "could not read it" in left.refused[0].reason


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what it may not")
async def test_root_goes_through_no_directory_that_the_tool_cannot_enter(workspace, shelf):
    for name, owner, mode in [("closed", 0, 0o700), ("open", 0, 0o755), ("own", 1234, 0o700)]:
        (workspace / "pub" / name).mkdir(parents=True)
        (workspace / "pub" / name / "secret").write_text("1")
        os.chown(workspace / "pub" / name, owner, owner)
        (workspace / "pub" / name).chmod(mode)
    for place in (workspace, workspace / "pub"):
        os.chown(place, 1234, 1234)
    before = listing.listed(workspace)
    assert sorted(before.marks) == ["pub/open/secret", "pub/own/secret"]
    left = await survey(
        workspace, ("report/**",), shelf, lambda: (workspace / "pub").rename(workspace / "report")
    )
    assert [a.name for a in left.artifacts] == ["report/open/secret", "report/own/secret"]
    assert left.refused == ()
    told, note = changed(before, listing.listed(workspace))
    assert not note
    assert not any("closed" in path for _, path, _, _ in told)
    # Also where the directory is closed after it was looked into.
    paths = ["report/closed/secret", "report/open/secret"]
    left = declared.collected(workspace, paths, shelf, Limits(), LeftFiles())
    assert [a.name for a in left.artifacts] == ["report/open/secret"]
    assert "could not read it" in left.refused[0].reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what it may not")
def test_a_directory_that_a_tool_closes_over_its_own_work_makes_the_changes_unknown(workspace):
    (workspace / "own").mkdir()
    for place in (workspace, workspace / "own"):
        os.chown(place, 1234, 1234)
    assert not listing.listed(workspace).unknown, "the control"
    (workspace / "own").chmod(0)
    assert "cannot be listed: Permission denied" in listing.listed(workspace).unknown


def test_a_file_that_is_only_renamed_into_place_counts_as_put_there(workspace):
    (workspace / "draft").write_text("1")
    before = declared.found(workspace, ["*.out"])
    (workspace / "draft").rename(workspace / "a.out")
    assert declared.found(workspace, ["*.out"]).keys() - before.keys() == {"a.out"}


@pytest.mark.parametrize(
    ("owner", "group", "mode", "may"),
    [
        (1, 2, 0o400, True),
        (1, 2, 0o044, False),
        (9, 2, 0o040, True),
        (9, 2, 0o404, False),
        (9, 9, 0o004, True),
        (9, 9, 0o440, False),
    ],
)
def test_a_tool_of_root_has_the_rights_that_a_mode_gives_it(owner, group, mode, may):
    facts = os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
    assert Rights(1, 2, root=True).permit(facts, READ) is may
    assert Rights(1, 2, root=False).permit(facts, READ), "the kernel decides"


def test_what_cannot_be_kept_whole_is_not_an_artifact(tmp_path):
    store = OutputStore(tmp_path / "outputs", cap=10)
    file = Shelf(Keeper(store)).begin("a")
    file.write(b"x" * 11)
    assert "up to 10 bytes" in file.close().reason
    assert store.list() == []
    file = Shelf(Keeper(store)).begin("a")
    file.write(b"x" * 10)
    assert file.close().size == 10, "the control"


@pytest.mark.parametrize(
    ("name", "beginning", "kind"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n...", "image/png"),
        ("a.png", b"<script>", "text/plain; charset=utf-8"),
        ("a.html", b"<html>", "text/html"),
        ("a.json", b"{}", "application/json"),
        ("a.html", b"\x89PNG\r\n\x1a\n...", "image/png"),
        ("a.csv.gz", b"text", "text/plain; charset=utf-8"),
        ("a", b"", "text/plain; charset=utf-8"),
    ],
)
def test_a_type_is_told_by_content_and_of_text_by_the_name(name, beginning, kind):
    assert type_of(name, beginning) == kind
