"""Claims of `sandbox_workers.tools.notebook`, `values` and `sandbox_workers.tracebacks`."""

import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_workers import tracebacks
from sandbox_workers.tools import notebook, values


def failure(source):
    """Run source that fails; the traceback that it is told by, without the frames of this test."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any
        notebook.run(source, {"__name__": "__main__"})
    error = caught.value
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    return tracebacks.text_of(error)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("1 + 1", "2\n"),
        ("x = 5\nx", "5\n"),
        ("'é\\n'", "'é\\n'\n"),
        ("print('a')\n[1]", "a\n[1]\n"),
        ("None", ""),
        ("x = 5", ""),
        ("", ""),
        ("1;", ""),
        ("(1,\n 2) ; # silent", ""),
        ("1 # not silent;", "1\n"),
        ("import sys\nsys.stdout.write('a')", "a"),
        ("from __future__ import annotations\ndef f(x: nowhere): return x\nf(3)", "3\n"),
        ("for x in (1, 2):\n    x", ""),
        ("__name__", "'__main__'\n"),
        ("import asyncio\nx = await asyncio.sleep(0, 3)\nx", "3\n"),
        ("import asyncio\nawait asyncio.sleep(0, 4)", "4\n"),
        (
            "import asyncio\nasync def f(): return 5\nasync with asyncio.Lock(): y = 1\nawait f()",
            "5\n",
        ),
    ],
)
def test_the_value_of_a_last_expression_is_shown_as_in_a_notebook(source, shown, capsys):
    notebook.run(source, {"__name__": "__main__"})
    assert capsys.readouterr().out == shown


def test_a_namespace_is_kept_from_run_to_run(capsys):
    space = {}
    notebook.run("def f(): return x\nx = 1", space, "<1>")
    notebook.run("x += 1\nf()", space, "<2>")
    assert capsys.readouterr().out == "2\n"
    assert inspect.getsource(space["f"]) == "def f(): return x\n"


def test_a_traceback_shows_the_frames_and_lines_of_the_code_and_no_others():
    told = failure("def inner():\n    return 1 / 0\n\n\ninner()")
    assert told.splitlines()[0] == "Traceback (most recent call last):"
    assert 'File "<code>", line 5, in <module>\n    inner()' in told
    assert 'File "<code>", line 2, in inner\n    return 1 / 0' in told
    assert "notebook.py" not in told


def test_lines_are_counted_as_the_compiler_counts_them():
    assert "line 3, in <module>\n    1 / 0" in failure("a = 'x\x0cy\u2028z'\r\n\r1 / 0")


def test_frames_of_a_library_are_counted_and_those_that_it_calls_are_shown():
    told = failure("import json\nclass X:\n    pass\njson.loads('{')")
    assert "json.loads('{')" in told
    assert "  ... 3 frames in json ...\n" in told
    assert json.__file__ not in told
    back = failure("import functools\ndef f(a, b): return a / b\nfunctools.reduce(f, [1, 0])")
    assert "line 2, in f" in back


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('b') from e", 2),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['k']", 2),
        ("raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [TypeError(2)])])", 0),
    ],
)
def test_chains_and_groups_show_no_frame_of_ours(source, words):
    told = failure(source)
    assert "sandbox_workers" not in told
    assert told.count("Traceback") >= max(words, 1)
    assert told.count("<code>") >= max(words, 1)


def test_a_chain_that_leads_through_our_frames_is_shortened_too():
    space = {}
    notebook.run("def later(e):\n    raise KeyError('k') from e", space)
    try:
        notebook.run("1 / 0", space)
    except ZeroDivisionError as error:
        space["e"] = error
    told = failure_in("later(e)", space)
    assert told.count("<code>") == 3
    assert "tools/notebook.py" not in told


def failure_in(source, space):
    try:
        notebook.run(source, space)
    except KeyError as error:
        return tracebacks.text_of(error)
    raise AssertionError


def test_a_syntax_error_shows_its_line_and_place_and_no_heading():
    told = failure("x = 1\ndef f(:\n    pass")
    assert (
        told == '  File "<code>", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
    )


def test_where_all_is_a_library_all_is_shown():
    """The control: a tool may itself be installed as one."""
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next
    assert "decoder.py" in tracebacks.text_of(error)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text(), inner)
        | st.frozensets(st.integers())
    ),
    max_leaves=20,
)


@given(plain)
def test_a_value_that_is_not_long_is_shown_as_repr_does(value):
    assert values.shown(value) == repr(value)


class Broken:
    def __repr__(self):
        raise KeyError("x")


class Endless:
    def __repr__(self):
        return repr([self])


LOOP: list[object] = [1]
LOOP.append(LOOP)
WIDE: list[object] = []
for _ in range(60):
    WIDE = [WIDE, WIDE]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (LOOP, "[1, [...]]"),
        (Broken(), "<Broken object, whose repr raised KeyError>"),
        ([Endless()], "[<Endless object, whose repr raised RecursionError>]"),
        ((1,), "(1,)"),
        (set(), "set()"),
    ],
)
def test_what_has_no_repr_of_its_own_is_still_shown(value, shown):
    assert values.shown(value) == shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (range(10), ""),
        ([0] * 10**7, "9,990,000 more"),
        ("x" * 10**7, "characters left out"),
        (b"x" * 10**7, "bytes left out"),
        (WIDE, "..."),
        (dict.fromkeys(range(10**5), "y" * 100), "more"),
        (["y" * 10_000] * 100, "more"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_long_values_are_bounded_and_say_what_is_left_out(value, words):
    text = values.shown(value)
    assert len(text) < 3 * values.LONGEST
    assert words in text


def test_carets_stand_below_what_failed_on_the_last_line_too():
    with pytest.raises(ZeroDivisionError) as caught:
        notebook.run("1/0", {})
    assert "    1/0\n    ~^~\n" in tracebacks.text_of(caught.value)
