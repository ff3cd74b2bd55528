"""Claims of `toolcell.arguments`: nothing coerced, nothing unknown, every problem in words."""

import socket
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from toolcell.arguments import InvalidArguments, check_schema, validate
from toolcell.errors import RegistrationError
from toolcell.registry import ToolRegistry

from .samples import inline, schema_tool


class Shade(Enum):
    RED = "red"
    BLUE = "blue"


class Open(BaseModel):
    """A model that by itself would let unknown fields pass."""

    model_config = ConfigDict(extra="allow")
    width: int


@dataclass
class Corner:
    x: int
    open: Open | None = None


def paint(
    text: str,
    count: int = 1,
    ratio: float = 0.5,
    loud: bool = False,
    shade: Shade = Shade.RED,
    mode: Literal["fast", "slow"] = "fast",
    corners: list[Corner] | None = None,
) -> None: ...


PAINT = inline(paint)


def problems(arguments: Any, definition: Any = PAINT) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        validate(definition, arguments)
    return caught.value.problems


def test_defaults_are_filled_in_and_the_form_is_canonical():
    assert validate(PAINT, {"text": "a", "corners": [{"x": 1}], "ratio": 1}) == {
        "text": "a",
        "count": 1,
        "ratio": 1.0,
        "loud": False,
        "shade": "red",
        "mode": "fast",
        "corners": [{"x": 1}],  # as sent: the cell builds the objects
    }


def test_json_text_and_a_dictionary_mean_the_same():
    assert validate(PAINT, '{"text": "é"}') == validate(PAINT, {"text": "é"})


def test_canonical_arguments_validate_to_themselves():
    once = validate(PAINT, {"text": "a", "shade": "blue", "corners": [{"x": 1}]})
    assert validate(PAINT, once) == once


class Area(BaseModel):
    """A model whose own JSON has more fields than it takes."""

    width: int

    @computed_field
    @property
    def doubled(self) -> int:
        return 2 * self.width


class Renamed(BaseModel):
    """A model whose own JSON has another name for its field than it takes."""

    x: int = Field(serialization_alias="y")


@pytest.mark.parametrize(
    ("kind", "sent"), [(Area, {"width": 2}), (Renamed, {"x": 2}), (set[int], [8, 0])]
)
def test_an_argument_that_the_cell_builds_stays_as_it_was_sent(kind, sent):
    def take(value: kind) -> None: ...

    once = validate(inline(take), {"value": sent})
    assert once == {"value": sent}
    assert validate(inline(take), once) == once


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"text": 123}, "`text`: expected a string, got 123"),
        ({"text": None}, "`text`: expected a string, got null"),
        ({"count": "1"}, '`count`: expected an integer, got "1"'),
        ({"count": True}, "`count`: expected an integer, got true"),
        ({"count": 1.0}, "`count`: expected an integer, got 1.0"),
        ({"ratio": "0.5"}, '`ratio`: expected a number, got "0.5"'),
        ({"ratio": True}, "`ratio`: expected a number, got true"),
        ({"loud": 1}, "`loud`: expected true or false, got 1"),
        ({"loud": "yes"}, '`loud`: expected true or false, got "yes"'),
        ({"shade": "green"}, "`shade`: expected 'red' or 'blue', got \"green\""),
        ({"mode": "FAST"}, "`mode`: expected 'fast' or 'slow', got \"FAST\""),
        ({"corners": {}}, "`corners`: expected an array, got {}"),
        ({"corners": [{"x": 1}, {}]}, "`corners[1].x`: is required"),
        ({"corners": [7]}, "`corners[0]`: expected an object, got 7"),
    ],
)
def test_nothing_is_coerced_and_the_problem_names_path_and_value(change, problem):
    assert problems({"text": "a"} | change) == [problem]


def test_the_problem_of_an_argument_that_narrows_a_limit_names_its_unit():
    shell = ToolRegistry.builtin().resolve("shell")
    assert problems({"command": "ls", "memory": "64MiB", "timeout": "30s"}, shell) == [
        '`timeout`: expected a number (seconds), got "30s"',
        '`memory`: expected an integer (bytes), got "64MiB"',
    ]


def test_an_unknown_argument_is_refused_with_those_that_exist():
    (problem,) = problems({"text": "a", "texxt": "b"})
    assert problem.startswith("`texxt`: unknown argument; the tool takes `text`, `count`")


def test_unknown_fields_are_refused_at_depth_even_where_the_model_is_open():
    corners = [{"x": 1, "y": 2}, {"x": 1, "open": {"width": 1, "depth": 2}}]
    first, second = problems({"text": "a", "corners": corners})
    assert first.startswith("`corners[0].y`: unexpected")
    assert second == "`corners[1].open.depth`: unknown argument"


def test_every_problem_is_named_at_once():
    assert len(problems({"count": "1", "loud": 1, "more": 2})) == 4


def test_a_flood_of_problems_is_capped_and_counted():
    listed = problems({"text": "a", "corners": [1] * 500})
    assert listed[-1] == "and 480 more problems"


def test_a_value_that_fits_no_member_of_a_union_is_one_problem_at_the_path_that_was_sent():
    def take(x: int | str) -> None: ...

    assert problems({"x": [1]}, inline(take)) == ["`x`: expected an integer or a string, got [1]"]


def test_a_long_value_is_shown_shortened():
    (problem,) = problems({"text": ["x" * 10_000]})
    assert len(problem) < 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("hello", "not valid JSON"),
        ('{"text": "a"', "not valid JSON"),
        ('{"text": "a", "text": "b"}', "'text' stands twice"),
        ('{"text": "a", "ratio": NaN}', "NaN is not JSON"),
        ('{"text": "a", "ratio": 1e999}', "out of range"),
        (r'{"text": "\ud800"}', "lone surrogate"),
        ('{"text": "\ud800"}', "lone surrogate"),
        ("[" * 1000, "deeper than 60"),
        ('["text"]', 'must be a JSON object such as {"text": "..."}, got ["text"]'),
        ("null", 'must be a JSON object such as {"text": "..."}, got null'),
        ({"text": "\udfff"}, "lone surrogate"),
        ({"text": "a", "ratio": float("nan")}, "not valid JSON"),
        ({"text": object()}, "not valid JSON"),
    ],
    ids=lambda value: str(value)[:25],
)
def test_what_is_not_a_json_object_is_invalid_arguments_and_no_crash(text, words):
    (problem,) = problems(text)
    assert words in problem


SCHEMA = schema_tool(
    {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string", "pattern": "^(a+)+$"}},
        "required": ["n"],
        "additionalProperties": False,
    }
)


def test_a_tool_with_a_schema_of_its_own_is_checked_by_it():
    assert validate(SCHEMA, '{"n": 1, "s": "aa"}') == {"n": 1, "s": "aa"}
    listed = problems({"n": "1", "m": 2}, SCHEMA)
    assert any(problem.startswith("`n`: ") for problem in listed)
    assert any("'m' was unexpected" in problem for problem in listed)


@pytest.mark.parametrize(
    ("definition", "arguments"),
    [
        (SCHEMA, {"n": "x" * 100_000}),
        (SCHEMA, {"n": 1, "x" * 100_000: 1}),
        (PAINT, {"text": "a", "x" * 100_000: 1}),
    ],
    ids=["value by schema", "key by schema", "key by annotation"],
)
def test_a_problem_never_repeats_a_whole_value_or_key(definition, arguments):
    (problem,) = problems(arguments, definition)
    assert len(problem) < 1000


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "http://127.0.0.1:1/x.json"}, "cannot fetch"),
        ({"type": "nonsense"}, '"nonsense" is not valid'),
        ({"properties": {"a": {"pattern": "("}}}, 'is not a "regex"'),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_in_words(schema, words):
    with pytest.raises(RegistrationError, match=f"input schema cannot be used: .*{words}"):
        check_schema(schema_tool(schema))


def test_a_pattern_that_would_backtrack_for_years_answers_at_once():
    (problem,) = problems({"n": 1, "s": "a" * 50_000 + "!"}, SCHEMA)
    assert problem.startswith("`s`: ")


def test_a_remote_reference_is_refused_and_never_fetched():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        with pytest.raises(RegistrationError, match=r"127\.0\.0\.1"):
            validate(schema_tool({"$ref": url}), {})
        with pytest.raises(BlockingIOError):  # nobody knocked
            server.accept()
