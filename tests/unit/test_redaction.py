"""Claims of `toolcell.redaction`: secrets go, whatever form they have; what is none stays."""

import base64
import json
import random
import re
import string
import tomllib
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.errors import PolicyError
from toolcell.redaction import Redactor, no_redaction
from toolcell.redaction.known import forms
from toolcell.redaction.shapes import SHAPES

CORPUS = Path(__file__).parent.parent / "contract" / "redaction"
ROOT = Path(__file__).parent.parent.parent
KINDS = {
    "alnum": string.ascii_letters + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "base64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "_-",
    "hex": "0123456789abcdef",
    "digit": string.digits,
}
SECRET = 'hunter2/"ä+&b'
TOKENS = Redactor()


def filled(template: str) -> str:
    """Put random characters in the places of a template; the same each time."""
    chance = random.Random(template)

    def characters(kind: str, count: int) -> str:
        return "".join(chance.choices(KINDS[kind], k=count))

    def fill(place: re.Match[str]) -> str:
        kind, _, count = place[1].partition(":")
        if kind == "lines":
            return "\n".join(characters("base64", 64) for _ in range(int(count)))
        return characters(kind, int(count))

    jose = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()
    basic = base64.b64encode(f"me:{characters('alnum', 10)}".encode()).decode()
    text = template.replace("{dashes}", "-" * 5).replace("{jose}", jose)
    text = text.replace("{basic}", basic)
    return re.sub(r"\{(\w+:\d+)\}", fill, text)


def corpus(name: str) -> list:
    return tomllib.loads((CORPUS / f"{name}.toml").read_text())["cases"]


TRUE = [(kind, filled(template)) for kind, template in corpus("true")]
FALSE = [filled(template) for template in corpus("false")]


def plain(text: str) -> str:
    return text.replace("⟨", "").replace("⟩", "")


def expected(text: str, kind: str) -> str:
    return re.sub("⟨.*?⟩", lambda _: f"[redacted: {kind}]", text, flags=re.DOTALL)


@pytest.mark.parametrize(("kind", "text"), TRUE)
def test_a_token_is_replaced_by_what_it_is_and_nothing_else(kind, text):
    assert TOKENS.text(plain(text)) == expected(text, kind)
    assert no_redaction.text(plain(text)) == plain(text)


@pytest.mark.parametrize(("kind", "text"), TRUE)
@pytest.mark.parametrize("wrap", ["{}", "before\n{}\nafter", "({}", '"{}', "a,{}", "\0{}"])
def test_a_token_is_found_wherever_a_word_may_begin(kind, text, wrap):
    found = wrap.format(plain(text))
    assert TOKENS.text(found) == wrap.format(expected(text, kind))


@pytest.mark.parametrize(("kind", "text"), TRUE)
def test_a_token_is_found_in_json_too(kind, text):
    written = json.dumps({"log": f"first\n{plain(text)}"}, ensure_ascii=False)
    assert TOKENS.text(written) == json.dumps(
        {"log": f"first\n{expected(text, kind)}"}, ensure_ascii=False
    )


@pytest.mark.parametrize("text", FALSE)
def test_what_is_no_secret_stays_as_it_is(text):
    assert TOKENS.text(text) == text
    assert TOKENS.value({"text": text, text: [text]}) == {"text": text, text: [text]}


def test_each_shape_has_a_true_case():
    assert {kind for kind, _ in TRUE} == {shape.label for shape in SHAPES}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.label)
def test_what_is_looked_for_first_is_in_lower_case(shape):
    assert all(trigger == trigger.lower() for trigger in shape.triggers)


def test_nothing_in_this_projects_own_text_is_taken_for_a_secret():
    places = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    texts = {path: path.read_text() for path in [*places, *ROOT.glob("sandbox_workers/**/*.py")]}
    assert len(texts) > 50
    assert [path for path, text in texts.items() if TOKENS.text(text) != text] == []


ENCODED = {
    "itself": SECRET,
    "JSON": json.dumps(SECRET),
    "JSON beyond ASCII": json.dumps(SECRET, ensure_ascii=False),
    "a URL": quote(SECRET, safe=""),
    "a path": quote(SECRET),
    "a form": quote_plus(SECRET),
    "lower-case percents": re.sub("%..", lambda found: found[0].lower(), quote(SECRET)),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64url": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "base64 without padding": base64.b64encode(SECRET.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", ENCODED)
def test_a_known_value_is_found_in_each_form(form):
    redactor = Redactor({"DB_PASSWORD": SECRET}, shapes=False)
    written = ENCODED[form]
    inner = written[1:-1] if written.startswith('"') else written
    text = f"the value is {written}, no more"
    assert redactor.text(text) == text.replace(inner, "[redacted: DB_PASSWORD]")
    assert no_redaction.text(text) == text


@given(st.text(min_size=6, max_size=40), st.binary(max_size=9), st.binary(max_size=9))
def test_a_known_value_is_found_in_base64_of_whatever_surrounds_it(value, before, after):
    raw = value.strip().encode("utf-8", "surrogateescape" if value.isascii() else "ignore")
    value = raw.decode().strip()
    if len(value.encode()) < 6:
        return
    redactor = Redactor({"KEY": value}, shapes=False)
    raw = value.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = redactor.text(encode(before + raw + after).decode())
        left = max(shown.partition("[redacted: KEY]")[::2], key=len)
        assert "[redacted: KEY]" in shown
        # At most what the neighbours share with it: a digit on each side.
        assert len(left) <= (max(len(before), len(after)) * 8 + 5) // 6 + 4


@given(st.text(min_size=6, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_part_of_any_text_keeps_a_known_value(value, before, after):
    try:
        redactor = Redactor({"KEY": value})
    except (PolicyError, UnicodeEncodeError):
        return
    hidden = value.strip()
    shown = redactor.text(f"{before}{hidden}{after}")
    assert hidden == "" or hidden not in shown.replace("[redacted: KEY]", "\0")


def test_a_value_that_contains_another_is_named_after_the_longer_one():
    redactor = Redactor({"INNER": "swordfish", "OUTER": "my-swordfish-2"})
    assert redactor.text("my-swordfish-2 swordfish") == "[redacted: OUTER] [redacted: INNER]"


def test_values_that_overlap_are_both_gone():
    redactor = Redactor({"A": "abcdefgh", "B": "efghijkl"})
    assert redactor.text("<abcdefghijkl>") == "<[redacted: A]>"
    assert redactor.text("abcdefghabcdefgh") == "[redacted: A]"
    assert Redactor({"A": "abcabcab"}).text("abcabcabcabc") == "[redacted: A]c"


def test_a_known_token_has_its_variables_name():
    _, token = TRUE[[kind for kind, _ in TRUE].index("model provider key")]
    value = token.partition("⟨")[2].partition("⟩")[0]
    assert Redactor({"MY_KEY": value}).text(f"key {value}") == "key [redacted: MY_KEY]"


def test_a_long_value_is_found_whole_and_in_large_parts():
    value = "".join(random.Random(1).choices(KINDS["alnum"], k=10_000))
    redactor = Redactor({"LONG": value}, shapes=False)
    assert redactor.text(f"<{value}>") == "<[redacted: LONG]>"
    assert redactor.text(value[:5000]) == f"[redacted: LONG]{value[4096:5000]}"
    assert max(len(form) for form in forms("LONG", value)) <= 4096


def test_blank_space_around_a_value_is_no_part_of_it():
    assert Redactor({"KEY": " swordfish\n"}).text("swordfish") == "[redacted: KEY]"


@pytest.mark.parametrize("value", ["", "  \n"])
def test_an_empty_value_hides_nothing(value):
    assert Redactor({"KEY": value}).text("a b") == "a b"


@pytest.mark.parametrize("value", ["x", "12345", "äö "])
def test_a_value_that_stands_in_ordinary_text_is_refused_by_name(value):
    with pytest.raises(PolicyError, match="the value of MY_KEY cannot be redacted: it has"):
        Redactor({"MY_KEY": value})


def test_values_come_from_the_environment_as_far_as_they_are_set():
    environment = {"SET": "swordfish", "OTHER": "elephants"}
    redactor = Redactor.from_environment(["SET", "UNSET"], environment)
    assert redactor.text("swordfish elephants") == "[redacted: SET] elephants"


# Fragments of which text is made that is hard to redact: secrets, parts of them, what stands
# before and after, and what redaction itself leaves.
KNOWN = {"KEY": "swordfish", "TWICE": "abcabcab", "CLOSING": "]: swordfish", "WORD": "redacted"}
FRAGMENTS = st.sampled_from(
    [
        *[plain(text) for _, text in TRUE],
        *KNOWN.values(),
        *[fragment for value in KNOWN.values() for fragment in (value[:4], value[4:])],
        *[trigger.decode() for shape in SHAPES for trigger in shape.triggers],
        *["[redacted: KEY]", "[redacted: jwt]", "[redacted: ", "]", "[", " ", "\n", '"', "\\n"],
        *["=", ": ", "@", "://", ".", "-", "a", "A1b2C3d4E5f6G7h8I9j0", "é", "\ud800", "\0"],
    ]
)
SOUP = st.lists(FRAGMENTS | st.text(max_size=6), max_size=12).map("".join)
BOTH = Redactor(KNOWN)


@given(SOUP)
def test_to_redact_twice_is_to_redact_once(text):
    once = BOTH.text(text)
    assert BOTH.text(once) == once


def test_what_an_earlier_redaction_left_does_not_end_a_token():
    # Followed by more, these are none; and then a part of that was replaced.
    longer = [plain(text).rstrip() + "swordfish" for _, text in TRUE]
    for text in [*longer, filled("aws_secret_access_key={base64:40}swordfish")]:
        assert BOTH.text(BOTH.text(text)) == BOTH.text(text)


@given(SOUP)
def test_text_grows_by_no_more_than_its_markers(text):
    assert len(BOTH.text(text)) <= 8 * len(text) + 1


@given(SOUP)
def test_what_is_found_is_in_order_and_apart(text):
    data = text.encode("utf-8", "surrogatepass")
    ends = [edge for span in BOTH.find(data) for edge in (span.start, span.end)]
    assert ends == sorted(ends)
    assert all(0 <= edge <= len(data) for edge in ends)


@given(st.binary())
def test_any_bytes_can_be_redacted(data):
    assert BOTH.data(data + b" swordfish").endswith(b"[redacted: KEY]")


HOSTILE = ["{0}", "{0}A1b2C3d4E5f6G7h8I9j0", " {0}a:", "{0}: '", "-{0}.", "{0}\n", "{0}-----\n"]


@pytest.mark.timeout(20)  # each takes a fraction of a second, or minutes where work is squared
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.label)
def test_no_text_takes_longer_than_its_length(shape):
    for trigger in shape.triggers[:3]:
        for pattern in HOSTILE:
            unit = pattern.format(trigger.decode().upper() + trigger.decode())
            BOTH.text(unit * (200_000 // len(unit)), cut=True)
            BOTH.text(trigger.decode() + pattern.format("") * 100_000, cut=True)


def cut_off(text: str, redactor: Redactor = BOTH) -> str:
    return redactor.text(text, cut=True)


def test_the_beginning_of_a_secret_at_a_cut_is_gone_too():
    assert cut_off("the key is swordf") == "the key is [redacted: cut off]"
    assert BOTH.text("the key is swordf") == "the key is swordf"
    assert cut_off("Bearer A1b2C3") == "[redacted: cut off]"
    assert cut_off("see postgres://me:swo") == "see postgres[redacted: cut off]"


def test_what_cannot_be_a_part_of_a_secret_stays_at_a_cut():
    for text in ("compiling", "the end.\n", "see https://example.com/a", "swo", "sk-a done"):
        assert cut_off(text) == text


@given(st.data(), st.sampled_from(TRUE))
def test_no_cut_through_a_token_shows_a_part_of_it(data, case):
    _, text = case
    start, secret = text.index("⟨"), text.partition("⟨")[2].partition("⟩")[0]
    shown = data.draw(st.integers(min(24, len(secret) - 1), len(secret)))
    assert secret[:shown][-8:] not in cut_off(plain(text)[: start + shown])


def test_a_json_value_keeps_its_shape():
    value = {
        "a": ["swordfish", 1, None, True, 0.5, {"b": "x swordfish"}],
        "swordfish": "key",
        "n": {},
    }
    assert BOTH.value(value) == {
        "a": ["[redacted: KEY]", 1, None, True, 0.5, {"b": "x [redacted: KEY]"}],
        "[redacted: KEY]": "key",
        "n": {},
    }
    assert no_redaction.value(value) is value


def test_a_value_without_secrets_is_given_back_itself():
    value = {"command": "ls -l", "of": ["a", 1]}
    assert BOTH.value(value) is value


def test_keys_that_become_the_same_lose_nothing():
    value = {filled("AKIA{base32:16}" + " " * number).strip(): number for number in range(3)}
    assert TOKENS.value(value) == {
        "[redacted: aws access key id]": 0,
        "[redacted: aws access key id] (2)": 1,
        "[redacted: aws access key id] (3)": 2,
    }


def test_a_key_tells_what_its_text_is():
    secret = filled("{base64:40}")
    value = {"Credentials": {"SecretAccessKey": secret, "Other": secret}}
    assert TOKENS.value(value) == {
        "Credentials": {"SecretAccessKey": "[redacted: aws secret access key]", "Other": secret}
    }


def test_a_number_that_is_a_known_value_is_gone():
    pin = Redactor({"PIN": "12345678"})
    assert pin.value([12345678, 1234567, -12345678, True]) == [
        "[redacted: PIN]",
        1234567,
        "-[redacted: PIN]",
        True,
    ]
    assert pin.value([10**5000, "12345678"]) == [10**5000, "[redacted: PIN]"]


def test_a_value_of_any_depth_and_kind_can_be_redacted():
    deep: list = ["swordfish"]
    for _ in range(100_000):
        deep = [deep]
    made = BOTH.value(deep)
    for _ in range(200):
        (made,) = made
    assert made == "[redacted: nested too deeply]"
    strange = {1: {"swordfish"}, ("a",): "swordfish", None: b"swordfish", "\ud800": "swordfish"}
    assert BOTH.value(strange)[("a",)] == "[redacted: KEY]"
    assert BOTH.value(strange)["\ud800"] == "[redacted: KEY]"


JSON = st.recursive(
    SOUP | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SOUP, inner, max_size=4),
    max_leaves=8,
)


@given(JSON)
def test_no_text_anywhere_in_a_value_keeps_a_secret(value):
    made = BOTH.value(value)
    assert BOTH.value(made) == made
    for text in texts_in(made):
        assert "swordfish" not in text
        assert BOTH.text(text) == text


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from [*texts_in(key), *texts_in(item)]
