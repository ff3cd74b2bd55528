"""Claims of `toolcell.registry.signature`: the spec that a typed function and its words give."""

import types
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import Field

from toolcell.arguments import InvalidArguments, validate
from toolcell.declare import tool
from toolcell.registry import define

from . import sample_tools
from .samples import inline

FORECAST = define(sample_tools.forecast)
SCHEMA = FORECAST.spec.input_schema
PROPERTIES = SCHEMA["properties"]


def test_a_declared_function_stays_the_plain_function_that_it_was():
    def plain(x: int) -> int:
        return x + 1

    assert tool(plain) is plain
    assert tool(name="other")(plain) is plain
    assert plain(1) == 2
    assert isinstance(sample_tools.forecast, types.FunctionType)


def test_the_description_is_the_docstring_without_its_argument_list():
    assert FORECAST.spec.description == "Look up the weather.\n\nIt is made up here."


def test_arguments_get_their_words_from_the_docstring():
    assert PROPERTIES["place"]["description"] == "Where, as precisely as it is known."
    assert PROPERTIES["days"]["description"] == "How many days ahead."


def test_sphinx_docstrings_work_too():
    def f(x: int) -> None:
        """Do it.

        :param x: How many.
        """

    spec = inline(f).spec
    assert spec.input_schema["properties"]["x"]["description"] == "How many."
    assert spec.description == "Do it."


def test_numpy_docstrings_work_too():
    def f(x: int) -> None:
        """Do it.

        Parameters
        ----------
        x : int
            How many.
        """

    spec = inline(f).spec
    assert spec.input_schema["properties"]["x"]["description"] == "How many."
    assert spec.description == "Do it."


def test_the_schema_says_what_is_required_and_what_is_the_default():
    assert SCHEMA["required"] == ["place"]
    assert PROPERTIES["days"]["default"] == 3
    assert (PROPERTIES["days"]["minimum"], PROPERTIES["days"]["maximum"]) == (1, 7)
    assert PROPERTIES["unit"]["default"] == "celsius"
    assert PROPERTIES["note"]["default"] is None


def test_a_field_as_the_default_keeps_its_default_and_bounds():
    def f(x: int = Field(5, ge=1)) -> None: ...

    definition = inline(f)
    schema = definition.spec.input_schema["properties"]["x"]
    assert schema == {"type": "integer", "default": 5, "minimum": 1}
    assert validate(definition, {}) == {"x": 5}
    with pytest.raises(InvalidArguments, match="greater than or equal to 1"):
        validate(definition, {"x": 0})


@pytest.mark.parametrize(
    "default", [{"properties": 5}, {"title": "hi"}, {"properties": {"title": "x"}}], ids=str
)
def test_a_default_is_data_and_stands_in_the_schema_as_it_is(default):
    def f(options: dict[str, Any] = default) -> None: ...

    assert inline(f).spec.input_schema["properties"]["options"]["default"] == default


def test_enums_literals_optionals_and_models_are_written_out():
    assert SCHEMA["$defs"]["Unit"]["enum"] == ["celsius", "kelvin"]
    assert PROPERTIES["detail"]["enum"] == ["short", "long"]
    assert {"type": "null"} in PROPERTIES["note"]["anyOf"]
    assert PROPERTIES["place"]["$ref"] == "#/$defs/Place"


def test_every_object_of_the_schema_is_closed():
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["$defs"]["Place"]["additionalProperties"] is False


def test_a_structured_return_gives_an_output_schema_and_text_gives_none():
    assert FORECAST.spec.output_schema is not None
    assert FORECAST.spec.output_schema["properties"]["degrees"]["type"] == "number"
    assert define(sample_tools.add).spec.output_schema is None


class Opaque:
    """A type that has no schema."""


@dataclass
class Handle:
    inner: Opaque


def test_a_returned_structure_that_has_no_schema_gives_none():
    def f() -> Handle: ...

    assert inline(f).spec.output_schema is None


def test_options_of_the_declaration_reach_the_definition():
    assert (FORECAST.timeout, FORECAST.retries, FORECAST.idempotent) == (5, 2, True)
    assert FORECAST.spec.annotations.read_only is True
    spec = define(sample_tools.add).spec
    assert (spec.name, spec.description) == ("sum-up", "Add numbers.")


def test_a_function_without_annotations_takes_anything_under_any_name():
    definition = define(sample_tools.bare)
    assert list(definition.spec.input_schema["properties"]) == ["schema", "_private"]
    assert definition.spec.description == "Call bare."


def test_a_field_named_title_keeps_its_name():
    def f(title: str) -> None: ...

    assert inline(f).spec.input_schema["properties"] == {"title": {"type": "string"}}


def test_only_what_json_cannot_be_itself_is_rebuilt_in_the_cell():
    def f(names: dict[int, str], notes: dict[str, str]) -> None: ...

    assert FORECAST.typed == ("place", "unit")
    assert define(sample_tools.add).typed == ()
    assert inline(f).typed == ("names",)
