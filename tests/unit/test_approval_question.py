"""Claims of `toolcell.cli.question`: all that will run is seen, and nothing plays our lines."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.cli.question import account, gist, span, standing, words
from toolcell.model import Approval, ApprovalRequest

_NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
_SPELLED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


def question(arguments, **rest):
    fields = {
        "approval_id": "k3f9x2mq7h",
        "call": {"call_id": "c1", "name": "shell", "arguments": arguments},
        "digest": "sha256:1",
        "policy_version": "sha256:2",
        "rule_id": "git-push",
        "reason": "talks to a remote",
        "workspace": "/home/ada/project",
        "created_at": _NOW - timedelta(minutes=2),
        "expires_at": _NOW + timedelta(minutes=58),
    }
    return ApprovalRequest.model_validate(fields | rest)


def read_back(lines, gutter, more=":"):
    """The text behind a gutter, unfolded and with what was spelled put back."""
    text = ""
    for line in lines:
        assert line.startswith((f"    {gutter} ", f"    {more} ")), line
        text += ("" if line[4] == more else "\n") + line[6:]
    spelled = lambda m: chr(int(m[1] or m[2] or m[3], 16))  # noqa: E731
    return _SPELLED.sub(spelled, text[1:])


def test_all_that_an_answer_depends_on_is_shown():
    shown = account(question({"command": "git push\norigin", "timeout": 30}, run="r"), _NOW)
    assert shown.splitlines() == [
        "Approval k3f9x2mq7h: may shell run with this?",
        "  command",
        "    | git push",
        "    | origin",
        "  timeout",
        "    = 30",
        "  in       /home/ada/project",
        "  because  talks to a remote",
        "  rule     git-push, of policy sha256:2",
        "  asked    2030-01-01 11:58:00 UTC, 2 min ago; expires in 58 min",
        "  call     c1",
        "  run      r",
        "  digest   sha256:1",
    ]


hostile = st.text(
    st.sampled_from("a |=:\n\t\r\x1b[2K\\x5cu202e\u202eé日א\u0301\ufeff🙂")
    | st.characters(codec="utf-8")
)


@pytest.mark.parametrize("width", [None, 30, 80])
@given(text=hostile.filter(bool))
def test_a_text_is_shown_exactly_and_in_full(width, text):
    lines = account(question({"text": text}), _NOW, width).splitlines()
    end = next(n for n, line in enumerate(lines) if line.startswith(("  in ", "    (")))
    assert lines[1] == "  text"
    assert read_back(lines[2:end], "|") == text


@given(value=st.recursive(hostile | st.none() | st.floats(allow_nan=False), st.lists))
def test_other_values_are_shown_exactly_as_json(value):
    lines = account(question({"value": [value]}), _NOW, 40).splitlines()
    end = next(n for n, line in enumerate(lines) if line.startswith("  in "))
    document = ""
    for line in lines[2:end]:
        document += ("" if line[4] == ":" else "\n") + line[6:]
    assert json.loads(document) == [value]


@given(name=hostile, value=hostile, call_id=hostile.filter(bool), reason=hostile.filter(bool))
def test_nothing_plays_a_line_of_ours(name, value, call_id, reason):
    asked = question({name: value}, reason=reason)
    asked = asked.model_copy(update={"call": asked.call.model_copy(update={"call_id": call_id})})
    lines = account(asked, _NOW, 40).split("\n")
    ours = ["in", "because", "rule", "asked", "call", "digest"]
    labels = [line.split()[0] for line in lines if re.match(r"  [a-z]+  ", line)]
    assert labels == ours
    assert all(line.replace("\t", "").isprintable() for line in lines)


@pytest.mark.parametrize(
    "text", ["x" * 500, "日" * 300, "a\tb" * 100, "a" + " " * 200 + "because y"]
)
def test_no_line_is_longer_than_the_terminal_is_wide(text):
    for line in account(question({"text": text, text: 1}, reason=text), _NOW, 60).splitlines():
        columns = len(line.expandtabs()) + sum(c == "日" for c in line)
        assert columns <= 60
    wide = account(question({"text": text}), _NOW)
    assert f"    | {text}" in wide.splitlines(), "the control"


def test_an_empty_text_and_no_arguments_are_said_in_words():
    assert "  text (empty text)" in account(question({"text": ""}), _NOW).splitlines()
    assert "  (no arguments)" in account(question({}), _NOW).splitlines()
    assert "    = null" in account(question({"text": None}), _NOW).splitlines()


def test_text_that_runs_from_right_to_left_is_shown_in_the_order_that_counts():
    lines = account(question({"command": "rm א\necho ב"}), _NOW).splitlines()
    assert lines[2:4] == ["    | rm א", "    | echo ב"]
    assert lines[5:7] == ["    | rm \\u05d0", "    | echo \\u05d1"]
    assert "its own order" not in account(question({"command": "rm é日"}), _NOW), "the control"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("pending", "waits for an answer"),
        ("spent", "its call runs now"),
        ("unknown", "may have run, or not; it will not run again"),
    ],
)
def test_where_it_stands_is_said_in_words(state, said):
    assert said in standing(Approval(request=question({}), state=state))


def test_how_it_came_there_is_said():
    done = Approval(
        request=question({}),
        state="done",
        by="an\x1bna",
        note="go\non",
        answered_at=_NOW,
        spent_at=_NOW,
        settled_at=_NOW + timedelta(seconds=3),
        outcome="failed",
    )
    assert standing(done).splitlines() == [
        "  state    its call has run",
        "  answer   by an\\x1bna at 2030-01-01 12:00:00 UTC",
        "  note     go\\x0aon",
        "  let go   2030-01-01 12:00:00 UTC",
        "  ended    failed, 2030-01-01 12:00:03 UTC",
    ]


def test_an_expired_question_says_so():
    shown = account(question({}), _NOW + timedelta(hours=1))
    assert "expired at 2030-01-01 12:58:00 UTC" in shown


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "a\nb"}, "a\\x0ab"),
        ({"path": "x", "n": 1}, 'path="x", n=1'),
        ({"command": 5}, "command=5"),
        ("text\x1b", "text\\x1b"),
        ({"a b": 1}, '"a b"=1'),
    ],
)
def test_the_gist_is_one_line(arguments, line):
    assert gist(question(arguments)) == line


def test_words_are_those_of_a_shell():
    assert words(("git", "push it", "\x1b")) == "git 'push it' '\\x1b'"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172800, "2 d")],
)
def test_lengths_of_time(seconds, said):
    assert span(timedelta(seconds=seconds)) == said
