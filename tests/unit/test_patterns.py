"""Claims of the pattern language: pinned down, the same in both engines, and unable to hang."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_workers.patterns import matching
from sandbox_workers.patterns.cost import ways
from sandbox_workers.patterns.linear import Automaton
from sandbox_workers.patterns.literals import Required, required
from sandbox_workers.patterns.matching import Matcher
from sandbox_workers.patterns.parser import MAX_SIZE, literal, parse
from sandbox_workers.patterns.refusals import PatternError
from sandbox_workers.patterns.rendering import for_python

ATOMS = st.sampled_from(
    [*"aab _-é", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", "[ab]", "[^a]", r"[^\W_]", r"[\Wa]"]
)
PLACES = st.sampled_from(["^", "$", r"\b", r"\B"])
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?"])
PATTERNS = st.recursive(
    ATOMS | PLACES,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("({}){}".format, inner, REPEATS),
        st.builds("(?i:{})".format, inner),
    ),
    max_leaves=8,
)
LINES = st.text(alphabet="aabbAB _-é²1\u0301\udce9\t\r", max_size=9)


def lines(matcher: Matcher, text: str) -> list[str]:
    return [text[low:high] for low, high in matcher.lines(text)]


def matches(pattern: str, line: str, **options: bool) -> bool:
    """Whether a line matches; the engines have to agree."""
    node = parse(pattern, **options)
    linear = Automaton(node).find(line) >= 0
    assert linear is bool(re.compile(for_python(node), re.MULTILINE).search(line)), pattern
    return linear


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.lists(LINES, max_size=5))
def test_both_engines_agree_on_every_line(pattern, texts):
    found = [line for line in texts if matches(pattern, line)]
    matcher = Matcher(parse(pattern))
    text = "".join(f"{line}\n" for line in texts)
    assert lines(matcher, text) == found
    slowly = matcher._by_automaton(text, 0, len(text) - 1) if text else ()
    assert [text[low:high] for low, high in slowly] == found


@settings(max_examples=200, deadline=None)
@given(PATTERNS, st.lists(LINES, max_size=4))
def test_what_a_match_needs_is_in_every_text_that_matches(pattern, texts):
    text = "".join(f"{line}\n" for line in texts)
    matcher = Matcher(parse(pattern))
    if lines(matcher, text):
        assert matcher.may_match(text.encode(errors="surrogateescape"))


CATASTROPHES = ["(a+)+$", "(a|a)*b", "(.*a){20}", "(x+x+)+y", r"(\w*)*!", "(a|aa)+$", "(a?){25}b"]


@pytest.mark.parametrize("pattern", CATASTROPHES)
@pytest.mark.parametrize("unit", ["a", "x", "ab "])
def test_patterns_that_hang_others_end_after_bounded_steps(pattern, unit):
    line = unit * (100_000 // len(unit))
    automaton = Automaton(parse(pattern))
    automaton.find(line)
    assert automaton.steps < 3 * len(line)


@pytest.mark.parametrize("pattern", [x for x in CATASTROPHES if "|a)" not in x and "{25}" not in x])
def test_the_same_patterns_take_re_more_than_that(pattern):
    """The control. `(a|a)*b` is not among them any more: it is read as `a*b`."""
    assert ways(parse(pattern), 100_000) > 1e15


def test_a_pattern_of_very_many_states_stays_linear():
    automaton = Automaton(parse("a.{12}$"))
    line = "".join("ab"[number % 7 % 2] for number in range(20_000)) + "b"
    automaton.find(line)
    assert automaton.steps < len(line) * 30
    assert automaton._held <= 50_100


def test_what_re_might_do_decides_which_engine_looks(monkeypatch):
    def never(*_):
        raise AssertionError("the other engine was used")

    long, short = "a" * 100_000, "ab\n" * 1000
    with monkeypatch.context() as patched:
        patched.setattr(Matcher, "_by_re", never)
        assert lines(Matcher(parse("(a+)+$")), long) == [long]
        assert lines(Matcher(parse("a.*b.*c")), long) == []
        assert len(lines(Matcher(parse("(a|b)(a|ab)*$")), short)) == 1000
    monkeypatch.setattr(Matcher, "_by_automaton", never)
    assert len(lines(Matcher(parse("a.*b")), short)) == 1000
    assert lines(Matcher(parse("a{1,20}$")), long) == [long]


def test_long_lines_among_short_ones_do_not_slow_the_short_ones():
    matcher = Matcher(parse(r"\d.*\d.*\d"))
    text = "1 2 3\n" + "1" * 20_000 + "\n4 5 6\n7\n8 9 0"
    pieces = list(matcher._stretches(text, len(text)))
    assert [quick for _, _, quick in pieces] == [True, False, True]
    assert len(lines(matcher, text)) == 4


def test_re_is_given_up_where_it_keeps_no_pace(monkeypatch):
    ticks = iter(range(0, 1000, 3))
    monkeypatch.setattr(matching, "perf_counter", lambda: next(ticks))
    matcher = Matcher(parse("[ab]x"))
    assert lines(matcher, "ax\n") == ["ax"]
    monkeypatch.setattr(Matcher, "_by_re", None)
    assert lines(matcher, "ax\nb\nbx\n") == ["ax", "bx"]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d$", "7", "٣"),
        (r"^\w+$", "naïve_日本2", "a-b"),
        (r"^\s$", "\u2003", "\x1c"),
        (r"^\W$", "-", "é"),
        (r"\bété\b", "l'été.", "étés"),
        (r"^\B$", "", "a"),
        (r"^.$", "😀", "ab"),
        (r"^.$", "\udcff", ""),
        (r"^[^a]$", "\udcff", "a"),
        ("[[:alpha:]][[:digit:]]", "a1", "é1"),
        ("[[:^alpha:]]", "1", "a"),
        ("[]a]", "]", "b"),
        ("[^]a]", "b", "]"),
        ("[a-]", "-", "b"),
        (r"[\]\-\d]", "-", "a"),
        ("[[]", "[", "]"),
        ("a{,2}b$", "b", "a"),
        ("fn main() {", "fn main {", "fn main() {"),
        (r"fn main\(\) {$", "fn main() {", "fn main"),
        ("{}", "{}", "{"),
        ("x{a}", "x{a}", "xa"),
        (r"\x41\u0042\x{43}", "ABC", "abc"),
        (r"\.\*\/\-\#\ ", ".*/-# ", "."),
        ("(?i)straße", "STRAßE", "STRASSE"),
        ("(?i)K", "k", "\u212a"),
        ("(?i)[a-c]É", "Bé", "dé"),
        ("(?i:a)b", "Ab", "aB"),
        ("a(?i)b|c", "C", "Ab c"[:1]),
        ("(?i)a(?-i:b)", "Ab", "aB"),
        ("(?P<name>a)(?<other>b)", "ab", "a"),
        ("a||b", "", None),
        ("", "", None),
        ("a*?b+?", "b", "a"),
        (r"\t", "\t", "t"),
    ],
)
def test_the_language_is_pinned_down(pattern, yes, no):
    assert matches(pattern, yes)
    assert no is None or not matches(pattern, no)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "at character 1: this group is not closed"),
        ("a)", "closes no group"),
        ("[a", "class is not closed"),
        ("[]", "class is not closed"),
        ("[z-a]", "range is not one"),
        (r"[\d-z]", "range is not one"),
        ("*a", "nothing to repeat"),
        ("(*a)", "nothing to repeat"),
        ("^*", "nothing to repeat"),
        ("a**", "a repeat is repeated"),
        ("a++", "possessive"),
        ("a{3,2}", "the wrong way round"),
        ("a{1001}", "counts to 1000"),
        ("a{99999999999}", "counts to 1000"),
        (r"(a)\1", "backreferences"),
        (r"\k<a>", "backreferences"),
        ("(?P=a)", "backreferences"),
        ("(?(1)a)", "backreferences"),
        ("(?=a)", "look-around"),
        ("(?<!a)", "look-around"),
        ("(?>a)", "atomic"),
        ("(?#a)", "comments"),
        ("(?s)a", r"only \(\?i\)"),
        ("(?i", r"only \(\?i\)"),
        ("(?<1>a)", "name of this group"),
        ("a\nb", "line by line"),
        (r"a\nb", "line by line"),
        ("[\n]", "line by line"),
        (r"\Aa", "for its ends"),
        (r"\p{L}", "Unicode properties"),
        (r"\<a", "edge of a word"),
        (r"\q", r"\\q has no meaning"),
        (r"\x4", "not the number"),
        (r"\x{110000}", "no line holds"),
        (r"\ud800", "no line holds"),
        ("[[:foo:]]", "is not a class"),
        ("a\\", "ends in a backslash"),
        ("[\\", "ends in a backslash"),
        ("(" * 60, "too deeply"),
        ("(a{1000}){1000}", "too large: 1001001 parts"),
        ("((((a{9}){9}){9}){9}){9}", "too large"),
        (f"a{{{MAX_SIZE // 2}}}" * 2, "too large"),
    ],
)
def test_what_is_not_of_the_language_is_refused_in_words(pattern, words):
    with pytest.raises(PatternError, match=words):
        parse(pattern)


@given(st.text(max_size=12))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_pattern_or_is_refused(text):
    try:
        node = parse(text)
    except PatternError:
        return
    re.compile(for_python(node), re.MULTILINE)


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8)
)
@settings(max_examples=100, deadline=None)
def test_a_literal_is_found_as_it_stands(text):
    assert lines(Matcher(literal(text)), f"\n<{text}>\n\n") == [f"<{text}>"]
    assert lines(Matcher(literal(text, fold=True)), f"\n<{text}>\n\n") == [f"<{text}>"]


def test_a_literal_of_two_lines_is_refused():
    with pytest.raises(PatternError, match="line break"):
        literal("a\nb")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"def \w+_of\(", {"def "}),
        ("(foo|bar+)baz", {"baz"}),
        ("foo|bar", {"foo", "bar"}),
        ("foo|b*", None),
        ("(abc){2,}x", {"abc"}),
        ("a*b?", None),
        ("(?i)Foo", {"foo"}),
        (r"\d+", None),
        ("é+", {"é"}),
    ],
)
def test_texts_that_every_match_holds_are_found(pattern, texts):
    found = required(parse(pattern))
    assert found == (texts and Required(tuple(sorted(texts, reverse=True)), "(?i)" in pattern))


@pytest.mark.parametrize("pattern", ["two$", "^$", "", "(?i)TWO", "(t|w)+o$"])
@pytest.mark.parametrize("text", ["", "\n", "two", "two\n", "\n\ntwo\n\n", "a\ntwo\nb"])
def test_a_line_feed_ends_a_line_and_begins_none(pattern, text):
    every = text.split("\n")[: None if text and not text.endswith("\n") else -1]
    assert lines(Matcher(parse(pattern)), text) == [x for x in every if matches(pattern, x)]
