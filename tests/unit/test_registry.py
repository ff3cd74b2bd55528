"""Claims of `toolcell.registry`: specs from functions, refusals with remedies, no way to a handler."""

import functools
import sys
import types

import pytest

from toolcell.declare import tool
from toolcell.errors import DuplicateToolError, RegistrationError
from toolcell.model import ToolCall
from toolcell.registry import ToolRegistry, builtin_tools, define

from . import sample_tools
from .samples import inline, schema_tool

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


def test_the_schema_says_what_is_required_and_what_is_the_default():
    assert SCHEMA["required"] == ["place"]
    assert PROPERTIES["days"]["default"] == 3
    assert (PROPERTIES["days"]["minimum"], PROPERTIES["days"]["maximum"]) == (1, 7)
    assert PROPERTIES["unit"]["default"] == "celsius"
    assert PROPERTIES["note"]["default"] is None


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
    assert FORECAST.typed
    assert not define(sample_tools.add).typed


def test_a_handler_is_named_by_module_and_function():
    handler = FORECAST.handler
    assert (handler.module, handler.function) == (sample_tools.__name__, "forecast")
    assert sample_tools.__file__.startswith(str(handler.root))
    assert define(sample_tools.Holder.held).handler.function == "Holder.held"


def _lambda_tool():
    return lambda x: x


def _closure():
    def local(x: int) -> int:
        return x

    return local


def _notebook_cell():
    namespace = {"__name__": "a_notebook"}
    exec("def cell(x: int) -> int:\n    return x", namespace)
    return namespace["cell"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_lambda_tool(), "a lambda has no name"),
        (_closure(), "defined inside a function"),
        (_notebook_cell(), "notebook cell or an interactive session"),
        (sample_tools.unwrapped, "wrapped or replaced"),
        (sample_tools.Holder().bound, "wrapped or replaced"),
    ],
    ids=["lambda", "closure", "notebook", "wrapped", "bound method"],
)
def test_a_function_that_a_cell_cannot_import_is_refused_with_the_remedy(function, words):
    tool_of = tool(name="named")(function) if not hasattr(function, "__self__") else function
    with pytest.raises(RegistrationError, match=words) as caught:
        ToolRegistry([tool_of])
    assert "move it to the top level of a .py file" in str(caught.value)
    assert '@tool(isolation="inline")' in str(caught.value)


def test_an_interactive_main_is_refused_and_a_script_is_not(monkeypatch, tmp_path):
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec("def f(x: int) -> int:\n    return x", main.__dict__)
    with pytest.raises(RegistrationError, match="interactive session"):
        define(main.f)
    script = tmp_path / "my_tools.py"
    script.touch()
    (tmp_path / ".env").touch()
    main.__file__ = str(script)
    handler = define(main.f).handler
    assert (handler.module, handler.file, handler.code) == ("my_tools", str(script), (str(script),))


def test_the_wrapper_that_stands_in_the_module_is_welcome():
    assert define(sample_tools.inner).name == "inner"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (sample_tools.variadic, r"takes \*args"),
        (sample_tools.keywords, r"takes \*options"),
        (sample_tools.positional, "positional-only"),
        (sample_tools.bad_default, "default of `x`, None, does not fit"),
        (sample_tools.unknown_annotation, "cannot be resolved.*Nowhere"),
        (sample_tools.unwritable, "cannot be written in JSON"),
        (functools.partial(sample_tools.add), "cannot be resolved"),
    ],
)
def test_a_signature_that_no_schema_describes_is_refused_in_words(function, words):
    with pytest.raises(RegistrationError, match=words):
        define(function)


@pytest.mark.parametrize("name", ["", "two words", "x" * 65, "naïve", "a.b", "a\n"])
def test_a_name_that_a_provider_would_refuse_is_refused_here(name):
    def f(x: int) -> None: ...

    with pytest.raises(RegistrationError, match="cannot be a tool's name"):
        define(tool(name=name or " ", isolation="inline")(f))


def test_an_option_out_of_bounds_is_refused():
    def f(x: int) -> None: ...

    with pytest.raises(RegistrationError, match="`timeout`"):
        define(tool(isolation="inline", timeout=0)(f))


def test_a_name_is_registered_once():
    registry = ToolRegistry([sample_tools.add])
    with pytest.raises(DuplicateToolError, match="'sum-up' is registered already"):
        registry.register(sample_tools.add)
    assert len(registry) == 1


def test_from_module_takes_what_is_declared_and_nothing_else():
    registry = ToolRegistry.from_module(sample_tools)
    assert registry.list() == ["bare", "forecast", "sum-up"]
    with pytest.raises(RegistrationError, match="declares no tool"):
        ToolRegistry.from_module(types)


def test_tools_resolve_by_name_and_unknown_names_to_nothing():
    registry = ToolRegistry.builtin()
    assert registry.list() == sorted(tool.name for tool in builtin_tools())
    assert registry.resolve("echo").name == "echo"
    assert registry.resolve("nothing") is None
    assert "echo" in registry
    assert "nothing" not in registry


def test_no_handler_is_reachable_from_what_a_model_sees():
    def secret_host_code(x: int) -> int:
        return x

    registry = ToolRegistry([sample_tools.forecast, inline(secret_host_code), schema_tool({})])
    for spec in registry.specs():
        assert "handler" not in type(spec).model_fields
        text = spec.model_dump_json()
        assert sample_tools.__name__ not in text
        assert __name__ not in text
        assert not any(callable(value) for value in dict(spec).values())


def test_the_order_of_specs_does_not_depend_on_registration():
    one = ToolRegistry([sample_tools.add, sample_tools.forecast])
    two = ToolRegistry([sample_tools.forecast, sample_tools.add])
    assert one.specs() == two.specs()


async def test_dispatch_hands_the_call_to_the_controller():
    class Controller:
        async def handle(self, call):
            return ("handled", call)

    call = ToolCall(call_id="1", name="add")
    assert await ToolRegistry().dispatch(call, Controller()) == ("handled", call)
