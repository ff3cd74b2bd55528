"""Claims of patches in policies: every file that the tool would touch is seen before it runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.patches import read_patch
from toolcell.errors import PolicyError
from toolcell.policy import Decider, ToolPolicy, load_policy
from toolcell.policy.check import check_policy
from toolcell.policy.explanation import explain
from toolcell.policy.patches import files_named
from toolcell.policy.rules import Rule
from toolcell.registry import ToolRegistry

from .deciding import decide, prepared

HUNK = "@@ -1 +1 @@\n-a\n+b\n"


def change(name, hunk=HUNK):
    return f"--- a/{name}\n+++ b/{name}\n{hunk}"


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        (change("f"), ["f"]),
        (change("src/f.py") + change("g"), ["src/f.py", "g"]),
        ("--- f\n+++ f\n", ["f"]),
        ("--- a/f\n+++ a/f\n", ["a/f"]),
        ("--- b/f\n+++ a/f\n", ["f"]),
        ("--- /dev/null\n+++ b/n\n", ["n"]),
        ("--- a/o\n+++ /dev/null\n", ["o"]),
        ("--- /dev/null\n+++ c/n\n", ["c/n"]),
        ("--- a/f\t2024-01-01 00:00:00\n+++ b/f\t2024-01-01\n", ["f"]),
        ("--- a/with space\t\n+++ b/with space\t\n", ["with space"]),
        ("--- a/f\r\n+++ b/f\r\n", ["f"]),
        ('--- "a/\\303\\274 \\"q\\""\n+++ "b/\\303\\274 \\"q\\""\n', ['ü "q"']),
        ("diff --git a/o b/n\nrename from o\nrename to n\n", ["o", "n"]),
        ("diff --git a/o b/n\ncopy from o\ncopy to n\n", ["o", "n"]),
        ("diff --git a/run me b/run me\nold mode 100644\nnew mode 100755\n", ["run me"]),
        ("diff --git f f\nnew file mode 100644\n", ["f"]),
        ('diff --git "a/\\t" "b/\\t"\nnew file mode 100644\n', ["\t"]),
        ("diff --git w/x i/x\n--- w/x\n+++ /dev/null\n", ["x"]),
        ("diff --git c/x w/x\n--- /dev/null\n+++ w/x\n", ["x"]),
        ("Index: f\n--- f\t(revision 1)\n+++ f\t(working copy)\n", ["f"]),
        ("--- a/f\n", ["a/f", "f"]),
        ("+++ b/f\n", ["b/f", "f"]),
        ("--- a/x\n--- a/y\n+++ b/y\n", ["a/x", "x", "y"]),
        ("--- a/../x\n+++ b/../x\n", ["../x"]),
        ("--- /abs/x\n+++ /abs/x\n", ["/abs/x"]),
        ('--- "a/f\n+++ b/f\n', [None, "b/f"]),
        ('--- "a/\\377"\n+++ "b/\\377"\n', [None]),
        ("--- \n+++ b/f\n", [None, "b/f"]),
        (change("f", "@@ -1 +1 @@\n--- a/.git/x\n+++ b/.git/x\n"), ["f", ".git/x"]),
        ("no patch\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_the_files_of_a_patch_are_read(patch, names):
    assert set(files_named(patch)) == set(names)


def test_of_very_many_files_nothing_is_known():
    patch = "".join(change(f"f{n}", "") for n in range(6000))
    assert files_named(patch) == (None,)


NAMES = st.sampled_from(
    [
        *("a/f", "b/f", "f", "a/.git/config", "b/.git/config", ".git/config", "/dev/null", "b/"),
        *(
            "a/x y",
            "b/x y",
            "c/f",
            "w/f",
            "i/f",
            "a/b/f",
            '"a/f"',
            '"b/\\303\\274"',
            '"a/q',
            "a/f\t1",
        ),
        *("b/f\t", "b/f ", "", '"b/f" x', '"b/\\q"', "a/f b/f", "./f", "a//f", "a/ü", "f\u2028"),
    ]
)
GIT = st.builds(
    lambda pair, name: f"diff --git {pair[0]}/{name} {pair[1]}/{name}",
    st.sampled_from(["ab", "ba", "cw", "iw", "wo", "12", "aa", "xx"]),
    st.sampled_from(["f", "x y", "d/e", ""]),
)
PAIR = st.builds(
    lambda old, new, hunk: f"--- {old}\n+++ {new}\n{hunk}",
    NAMES,
    NAMES,
    st.sampled_from(
        [
            "@@ -1 +1 @@\n-a\n+b",
            "@@ -0,0 +1 @@\n+a",
            "@@ -1,3 +1,3 @@\n-a",
            "@@\n--- a/f\n+++ b/f",
        ]
    ),
)
RENAME = st.builds(
    lambda kind, old, new: f"{kind} from {old}\n{kind} to {new}",
    st.sampled_from(["rename", "copy"]),
    NAMES,
    NAMES,
)
ALONE = st.builds(
    lambda start, name: f"{start}{name}",
    st.sampled_from(
        [
            "--- ",
            "+++ ",
            "diff --git ",
            "rename from ",
            "copy to ",
            "Index: ",
            "-",
            "+",
            " ",
            "junk ",
        ]
    ),
    NAMES,
)
OTHER = st.sampled_from(
    [
        "new file mode 100644",
        "deleted file mode 100644",
        "old mode 100644\nnew mode 100755",
        "index 1..2",
        "",
        "-- ",
        "\\ No newline",
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b",
    ]
)
PATCHES = st.builds(
    lambda rows, end: end.join(rows),
    st.lists(st.one_of(GIT, PAIR, PAIR, RENAME, ALONE, OTHER), min_size=1, max_size=6),
    st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]),
)


def touched(patch):
    """Every name that the tool in the cell takes from a patch."""
    return {
        name
        for section in read_patch(patch)
        for name in (section.old, section.new)
        if name is not None
    }


@given(PATCHES)
@settings(max_examples=1000, deadline=None)
def test_what_the_tool_would_touch_the_policy_has_seen(patch):
    seen = files_named(patch)
    try:
        names = touched(patch)
    except ToolError:
        return
    assert None in seen or names <= set(seen)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1),
            st.sampled_from(["change", "new", "gone", "rename", "mode"]),
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=200, deadline=None)
def test_any_name_that_git_quotes_is_read_alike_on_both_sides(files):
    patch = "".join(_of(_quoted(name), kind) for name, kind in files)
    wanted = {name for name, _ in files} | {"to" for _, kind in files if kind == "rename"}
    assert touched(patch) == wanted
    assert set(files_named(patch)) >= wanted


def _quoted(name):
    return "".join(f"\\{byte:03o}" for byte in name.encode())


def _of(name, kind):
    start = f'diff --git "a/{name}" "b/{name}"\n'
    if kind == "rename":
        return f'diff --git "a/{name}" b/to\nrename from "{name}"\nrename to to\n'
    if kind == "mode":
        return f"{start}old mode 100644\nnew mode 100755\n"
    old = "/dev/null" if kind == "new" else f'"a/{name}"'
    new = "/dev/null" if kind == "gone" else f'"b/{name}"'
    return f"{start}--- {old}\n+++ {new}\n{HUNK}"


DEFAULT = load_policy("default")


@pytest.mark.parametrize(
    "patch",
    [
        change(".git/hooks/pre-commit"),
        change("f") + change("sub/.git/config"),
        "--- a/.git/config\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        "diff --git a/x b/.git/hooks/x\nrename from x\nrename to .git/hooks/x\n",
        "diff --git a/.git/config b/c\ncopy from .git/config\ncopy to c\n",
        "diff --git a/.git/hooks/x b/.git/hooks/x\nold mode 100644\nnew mode 100755\n",
        '--- "a/.\\147it/config"\n+++ "b/.\\147it/config"\n' + HUNK,
        "--- a/src/../.git/config\n+++ b/src/../.git/config\n" + HUNK,
        "--- .git/config\n+++ .git/config\n" + HUNK,
        '--- "a/.git/con\\377"\n+++ "b/.git/con\\377"\n' + HUNK,
        change(".bashrc"),
        change("toolcell.toml"),
    ],
)
def test_what_a_rule_guards_is_guarded_from_patches_too(patch, workspace):
    (workspace / ".git").mkdir()
    decision = decide(DEFAULT, "apply_patch", workspace, patch=patch)
    assert (
        decision.action,
        decision.rule_id in ("version-control", "start-up-files", "own-policy"),
    ) == (
        "ask",
        True,
    )


def test_the_reason_names_the_file_that_the_rule_is_about(workspace):
    patch = change("f") + change("sub/.git/config") + change("g")
    decision = decide(DEFAULT, "apply_patch", workspace, patch=patch)
    assert decision.reason.startswith("`writing sub/.git/config`: version control")
    unreadable = '--- "a/\\377"\n+++ "b/\\377"\n'
    decision = decide(DEFAULT, "apply_patch", workspace, patch=unreadable)
    assert decision.reason.startswith("`writing to a computed path`: ")


def test_a_patch_of_other_files_is_not_asked_about(workspace):
    assert decide(DEFAULT, "apply_patch", workspace, patch=change("src/f.py")).action == "allow"


def test_a_link_to_what_is_guarded_is_guarded(workspace):
    (workspace / ".git").mkdir()
    (workspace / "link").symlink_to(".git")
    decision = decide(DEFAULT, "apply_patch", workspace, patch=change("link/config"))
    assert decision.rule_id == "version-control"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete", {"path": ".git", "recursive": True}),
        ("delete", {"path": "sub/.git/"}),
        ("delete", {"path": ".git/hooks/pre-commit"}),
        ("move", {"source": ".git", "destination": "x"}),
        ("move", {"source": "hooks", "destination": ".git/hooks"}),
        ("move", {"source": "x", "destination": ".vscode"}),
        ("edit_file", {"path": ".git/config", "old_text": "a", "new_text": "b"}),
        ("write_file", {"path": "toolcell.toml", "content": ""}),
    ],
)
def test_what_a_rule_guards_is_guarded_from_the_other_tools(tool, arguments, workspace):
    assert decide(DEFAULT, tool, workspace, **arguments).action == "ask"


def policy(**keys):
    rule = {"id": "r", "tool": ("apply_patch",), "decision": "deny", "reason": "a test", **keys}
    return ToolPolicy(
        name="test",
        allow=("apply_patch",) if rule["decision"] == "deny" else (),
        rules=[Rule(**rule)],
    )


@pytest.mark.parametrize(
    ("condition", "patch", "denied"),
    [
        ({"under": "src"}, change("src/f"), True),
        ({"under": "src"}, change("f") + change("src/f"), True),
        ({"under": "src"}, change("f"), False),
        ({"glob": "**/*.lock"}, change("sub/uv.lock"), True),
        ({"glob": "**/*.lock"}, change("f"), False),
        ({"not_glob": "src/**"}, change("src/f"), False),
        ({"not_glob": "src/**"}, change("src/f") + change("g"), True),
        ({"under": "src"}, '--- "a/\\377"\n+++ b/f\n', True),
        ({"regex": "(?s).*password.*"}, change("f", "@@ -1 +1 @@\n-a\n+password\n"), True),
    ],
)  # fmt: skip
def test_a_rule_that_denies_looks_at_each_file_of_a_patch(condition, patch, denied, workspace):
    decision = decide(policy(args={"patch": condition}), "apply_patch", workspace, patch=patch)
    assert (decision.action == "deny") is denied


@pytest.mark.parametrize(
    ("keys", "patch", "allowed"),
    [
        ({"args": {"patch": {"under": "src"}}}, change("src/f"), True),
        ({"args": {"patch": {"under": "src"}}}, change("src/f") + change("g"), False),
        ({"args": {"patch": {"under": "src"}}}, change("src/../g"), False),
        ({"args": {"patch": {"under": "src"}}}, "no patch", False),
        ({"args": {"patch": {"under": "."}}}, '--- "a/\\377"\n+++ "b/\\377"\n', False),
        ({"args": {"patch": {"glob": ["d/**", "*.md"]}}}, change("d/x") + change("a.md"), True),
        ({"writes": "docs/**"}, change("docs/x"), True),
        ({"writes": "docs/**"}, change("docs/x") + change("f"), False),
        ({"writes": "**"}, "no patch", False),
    ],
)  # fmt: skip
def test_a_rule_that_allows_wants_every_file_of_a_patch(keys, patch, allowed, workspace):
    rules = policy(decision="allow", reason="", **keys)
    assert (decide(rules, "apply_patch", workspace, patch=patch).action == "allow") is allowed


def test_an_explanation_names_the_files_of_a_patch(workspace):
    rules = policy(args={"patch": {"under": "src"}})
    explanation = explain(Decider(rules, workspace), prepared("apply_patch", patch=change("f")))
    assert explanation.nearest.because == ("`patch` names 'f', not under = 'src'",)
    rules = policy(writes="docs/**")
    explanation = explain(Decider(rules, workspace), prepared("apply_patch", patch=change("f")))
    assert explanation.nearest.because == ("it writes nothing that fits docs/**",)


def test_a_rule_on_what_is_written_can_name_the_tool(tmp_path):
    check_policy(policy(writes="docs/**"), ToolRegistry.builtin())
    text = (
        'version = 1\n[[rule]]\nid = "r"\ntool = "apply_patch"\nwrites = "docs/**"\n'
        'decision = "deny"\nreason = "x"\nmatch = [{ patch = "--- a/docs/x\\n+++ b/docs/x\\n" }]\n'
        'not_match = [{ patch = "--- a/x\\n+++ b/x\\n" }]\n'
    )
    place = tmp_path / "p.toml"
    place.write_text(text)
    load_policy(place)
    place.write_text(text.replace("a/x\\n+++ b/x", "a/docs/y\\n+++ b/docs/y"))
    with pytest.raises(PolicyError, match="does match this example"):
        load_policy(place)
