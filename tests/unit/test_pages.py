"""Claims of `toolcell.pages`: every byte of an output can be read, a page at a time."""

import asyncio
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.declare import ToolError
from toolcell.legible import OutputBudget, legible
from toolcell.legible import clean as cleaned
from toolcell.outputs import OutputStore, writing
from toolcell.pages import Lines, OutputReader, Pattern, PatternError, search
from toolcell.registry import ToolRegistry

from .samples import prepared

NOTE = re.compile(r"\n?\[[^\n]*\]\Z")
NUMBERED = "".join(f"line {number} é😀\n" for number in range(1, 40_001))


@pytest.fixture
def store(tmp_path):
    return OutputStore(tmp_path / "outputs")


def put(store, data, kind="stdout", workspace="/w"):
    writer = store.begin(kind, workspace=workspace)
    writer.write(data if isinstance(data, bytes) else data.encode())
    return writer.close().handle


def reading(store, **budget):
    return OutputReader(store, "/w", OutputBudget(**budget)).page


def pages(page, handle, start):
    """Read on for as long as the last line says how; the texts, without it."""
    texts = []
    more = start
    while more:
        text = page({"handle": handle, **more})
        found = re.search(r'; to go on: \{"(\w+)": (\d+)\}\]\Z', text)
        more = {found[1]: int(found[2])} if found else None
        texts.append(NOTE.sub("\n", text))
    return texts


@pytest.mark.parametrize("budget", [{}, {"bytes": 2000}, {"lines": 3000}, {"tokens": 2000}])
def test_every_line_can_be_read_a_page_at_a_time(store, budget):
    some = NUMBERED[: NUMBERED.index("line 6000 ")]
    texts = pages(reading(store, **budget), put(store, some), {"start_line": 1})
    assert "".join(texts) == some
    assert len(texts) > 1
    assert all(len(text.encode()) <= budget.get("bytes", 32 * 1024) for text in texts)
    assert all(text.count("\n") <= budget.get("lines", 10**6) for text in texts)


@pytest.mark.parametrize("budget", [{}, {"bytes": 1001}])
def test_every_byte_of_a_line_of_any_length_can_be_read(store, budget):
    data = "é😀x" * 20_000
    page, handle = reading(store, **budget), put(store, data)
    texts = pages(page, handle, {"start_byte": 0})
    assert "".join(text.removesuffix("\n") for text in texts) == data
    first = page({"handle": handle})
    place = int(re.search(r'left out; they are at \{"start_byte": (\d+)\}', first)[1])
    assert data.encode()[:place].decode() == first.partition("[... ")[0]


def test_a_range_of_lines_is_given_and_told(store):
    page, handle = reading(store), put(store, NUMBERED)
    assert page({"handle": handle, "start_line": 7, "end_line": 8}) == (
        'line 7 é😀\nline 8 é😀\n[lines 7 to 8 of 40,000; to go on: {"start_line": 9}]'
    )
    assert page({"handle": handle, "start_line": 40_000}).endswith(
        "line 40000 é😀\n[lines 40,000 to 40,000 of 40,000: the end]"
    )
    assert page({"handle": handle, "start_line": 40_001}) == (
        "[there is no line 40,001: it has 40,000]"
    )


def test_a_range_of_bytes_cuts_no_character(store):
    handle = put(store, "é😀é")
    assert reading(store)({"handle": handle, "start_byte": 1, "end_byte": 7}) == (
        '😀\n[bytes 2 to 6 of 8; to go on: {"start_byte": 6}]'
    )
    assert "no byte 8" in reading(store)({"handle": handle, "start_byte": 8})


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [("line 777 ", [777]), (r"^line 39\d99 ", range(39099, 40000, 100)), ("no such", [])],
)
def test_a_search_gives_the_lines_that_match_with_their_numbers(store, pattern, numbers):
    text = reading(store)({"handle": put(store, NUMBERED), "search": pattern})
    assert [int(n) for n in re.findall(r"^(\d+): line \1 ", text, re.M)] == [*numbers]
    found = f"{len(numbers)} matching line{'s' * (len(numbers) != 1)}"
    assert text.endswith(f"[{found} in lines 1 to 40,000 of 40,000: the end]")


def test_a_search_with_many_matches_goes_on_where_it_stopped(store):
    page, handle = reading(store, bytes=3000), put(store, "x match\n" * 1000)
    first = page({"handle": handle, "search": "match"})
    shown = first.count(": x match\n")
    assert first.endswith(f'lines 1 to {shown} of 1,000; to go on: {{"start_line": {shown + 1}}}]')
    rest = page({"handle": handle, "search": "match", "start_line": 999})
    assert rest.startswith("999: x match\n1000: x match\n[2 matching lines in lines 999 to 1,000")


def test_a_match_in_a_very_long_line_is_found_and_shown_with_what_is_around_it(store):
    page = reading(store)
    for place in (100, 1_048_570, 3_000_000):
        handle = put(store, "a" * place + " needle " + "b" * 500_000 + "\n")
        for pattern in ("needle", "n[e]+dle"):
            text = page({"handle": handle, "search": pattern})
            assert " needle " in text
            assert "characters ...]" in text
            assert len(text) < 6000


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing \\)"),
        ("(?=x)", "look-around"),
        (r"(x)\1", "back-reference"),
        ("(?<!a)b", "look-around"),
        ("[z-a]", "bad character range"),
        (r"(\w{100}){100}", "lower counts"),
        (r"\pL{900}z", "lower counts"),
    ],
)
def test_what_is_no_pattern_of_the_linear_engine_is_told(store, pattern, words):
    page, handle = reading(store), put(store, f"x\n{pattern}\n")
    with pytest.raises(ToolError, match=words) as caught:
        page({"handle": handle, "search": pattern})
    assert "`literal`" in str(caught.value)
    found = page({"handle": handle, "search": pattern, "literal": True})
    assert found.startswith(f"2: {pattern}\n")


def test_a_page_of_matches_says_how_many_there_are_up_to_a_bound(store, monkeypatch):
    page, handle = reading(store), put(store, "a\nb\n" * 1000)
    assert page({"handle": handle, "search": "a", "limit": 2}) == (
        "1: a\n3: a\n"
        '[2 of 1,000 matching lines in lines 1 to 4 of 2,000; to go on: {"start_line": 5}]'
    )
    monkeypatch.setattr(search, "MOST_COUNTED", 10)
    assert "[2 of 10 or more matching lines" in page({"handle": handle, "search": "a", "limit": 2})


LINE = st.text("ab é\t\x1b[1m", max_size=6)


@given(
    st.lists(LINE, max_size=30),
    st.sampled_from(["a", "^a", "b$", "^$", "[^a]b", r"\bé", "a.b", r"\s", "^(a|b)*$"]),
    st.integers(1, 5),
)
def test_lines_match_as_each_would_alone(tmp_path_factory, texts, pattern, window):
    store = OutputStore(tmp_path_factory.mktemp("outputs"))
    data = "".join(f"{text}\n" for text in texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_WINDOW", window * 16)
        with store.opened(put(store, data + "end")) as output:
            found = [match.number for match in search.matching(Lines(output), Pattern(pattern))]
    clean = [legible(cleaned(text.encode()).text) for text in [*texts, "end"]]
    assert found == [number for number, text in enumerate(clean, 1) if Pattern(pattern).is_in(text)]


@pytest.mark.attack
@pytest.mark.parametrize("data", ["\n" * 100_000, "a" * 1_000_000])
async def test_a_search_ends_between_two_windows_when_nobody_waits_for_it(store, data):
    page, handle = reading(store), put(store, data)
    patience = search.Patience()
    assert "0 matching lines" in page({"handle": handle, "search": "zz+y"}, patience), "the control"
    patience.stop.set()
    with pytest.raises(ToolError, match="the search took too long"):
        page({"handle": handle, "search": "zz+y"}, patience)
    with pytest.raises(ToolError, match="the search took too long"):
        page({"handle": handle, "search": "zz+y"}, search.Patience(seconds=0))


@pytest.mark.attack
async def test_given_up_searches_take_no_thread_from_what_is_written(store, monkeypatch):
    begun, stopped = threading.Semaphore(0), threading.Semaphore(0)

    def page(_self, _arguments, patience):
        begun.release()
        patience.stop.wait()
        stopped.release()
        return ""

    monkeypatch.setattr(OutputReader, "page", page)
    reader = OutputReader(store, "/w", OutputBudget())
    call = prepared(ToolRegistry.builtin().resolve("read_output"), handle="out-aaaaaaaaaaaaa")
    searches = [asyncio.ensure_future(reader(call)) for _ in range(8)]
    for _ in searches:
        assert await asyncio.to_thread(begun.acquire, timeout=10)
    assert await asyncio.get_running_loop().run_in_executor(writing, lambda: 1) == 1
    for each in searches:
        each.cancel()
    await asyncio.gather(*searches, return_exceptions=True)
    for _ in searches:
        assert await asyncio.to_thread(stopped.acquire, timeout=10)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+$b", "(.*.*)*x"])
def test_no_pattern_hangs(store, pattern):
    assert "0 matching lines" in reading(store)(
        {"handle": put(store, "a" * 300_000), "search": pattern}
    )


def test_lines_are_shown_and_searched_as_a_terminal_leaves_them(store):
    page = reading(store)
    handle = put(store, b"\x1b[31mre\x1b[1md\x1b[0m\n10%\r100%\n\xff\n")
    assert page({"handle": handle}).startswith("red\n100%\n\ufffd\n[lines 1 to 3")
    assert page({"handle": handle, "search": "red"}).startswith("1: red\n")


def test_what_is_spelled_out_fits_the_page_too(store):
    page, handle = reading(store, bytes=1000), put(store, b"\0" * 20 + b"abc" * 60 + b"\2" * 20)
    for start in ({"start_byte": 0}, {"start_line": 1}):
        assert all(len(text) < 1000 for text in pages(page, handle, start))


def test_binary_output_is_named(store):
    handle = put(store, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "artifact")
    text = reading(store)({"handle": handle})
    assert re.fullmatch(r"\[binary, 2,312 bytes, not shown: image/png; sha256 \w{64}\]", text)


def test_a_handle_of_another_workspace_is_as_if_it_were_not_there(store):
    page, other = reading(store), put(store, "secret", workspace="/other")
    with pytest.raises(ToolError, match="there is no output"):
        page({"handle": other})
    with pytest.raises(ToolError, match="there is no output"):
        page({"handle": "../../etc/passwd"})
    assert "mine" in page({"handle": put(store, "mine")})


def test_what_was_lost_is_told_at_the_end(tmp_path):
    store = OutputStore(tmp_path / "o", cap=1000)
    text = reading(store)({"handle": put(store, "x" * 99 + "\n" + "y" * 1900)})
    assert "the end of what is kept, of 2,000 bytes that were written: one output" in text


@pytest.mark.parametrize(
    "arguments",
    [
        {"start_line": 2, "start_byte": 2},
        {"search": "x", "end_byte": 9},
        {"start_line": 5, "end_line": 4},
        {"start_byte": 5, "end_byte": 5},
    ],
)
def test_what_does_not_go_together_is_told(store, arguments):
    with pytest.raises(ToolError):
        reading(store)({"handle": put(store, NUMBERED), **arguments})


def test_an_empty_output_has_nothing_to_read(tmp_path):
    store = OutputStore(tmp_path / "o")
    writer = store.begin("artifact", workspace="/w")
    writer.write(b"")
    assert writer.close().size == 0


@given(st.lists(st.sampled_from([b"\n", b"abc", b"x" * 999, b"\n\n"]), max_size=40).map(b"".join))
def test_lines_are_where_they_are(tmp_path_factory, data):
    store = OutputStore(tmp_path_factory.mktemp("o"))
    writer = store.begin("value")
    writer.write(data or b"\n")
    data = data or b"\n"
    whole = data.splitlines(keepends=True)
    with store.opened(writer.close().handle) as output:
        lines = Lines(output)
        assert lines.count() == len(whole)
        at = 0
        for number, line in enumerate(whole, 1):
            assert lines.start_of(number) == at
            assert lines.end_of(at) == at + len(line)
            at += len(line)
        assert lines.start_of(len(whole) + 1) == len(data)


def test_a_pattern_knows_about_where_it_matches():
    with pytest.raises(PatternError):
        Pattern("(")
    assert Pattern("b+c").place_in("aabbcc") == 5
    assert Pattern("bb").place_in("aabbcc") == 4
