"""Claims of `toolcell.registry`: specs from functions, refusals with remedies."""

import functools
import sys
import types

import pytest
from pydantic import ValidationError

from toolcell.arguments import InvalidArguments, validate
from toolcell.declare import tool
from toolcell.errors import DuplicateToolError, RegistrationError
from toolcell.model import ToolCall
from toolcell.registry import ToolRegistry, builtin_tools, define

from . import sample_tools
from .samples import inline, schema_tool


def test_a_handler_is_named_by_module_and_function():
    handler = define(sample_tools.forecast).handler
    assert (handler.module, handler.function) == (sample_tools.__name__, "forecast")
    assert sample_tools.__file__.startswith(str(handler.root))
    assert define(sample_tools.Holder.held).handler.function == "Holder.held"


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
        (lambda x: x, "a lambda has no name"),
        (tool(name="named")(lambda x: x), "a lambda has no name"),
        (_closure(), "defined inside a function"),
        (_notebook_cell(), "notebook cell or an interactive session"),
        (sample_tools.unwrapped, "wrapped or replaced"),
        (sample_tools.Holder().bound, "wrapped or replaced"),
    ],
    ids=["lambda", "named lambda", "closure", "notebook", "wrapped", "bound method"],
)
def test_a_function_that_a_cell_cannot_import_is_refused_with_the_remedy(function, words):
    with pytest.raises(RegistrationError, match=words) as caught:
        ToolRegistry([function])
    assert "move it to the top level of a .py file" in str(caught.value)
    assert '@tool(isolation="inline")' in str(caught.value)


def test_an_interactive_main_is_refused_and_a_script_is_not(monkeypatch, tmp_path):
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec("def f(x: int) -> int:\n    return x", main.__dict__)
    with pytest.raises(RegistrationError, match="interactive session"):
        define(main.f)
    script = tmp_path / "my_tools.py"
    script.write_text("def f(x: int) -> int:\n    return x\nif True:\n    def g(): ...\n")
    (tmp_path / ".env").touch()
    main.__file__ = str(script)
    handler = define(main.f).handler
    assert (handler.module, handler.file, handler.code) == ("my_tools", str(script), (str(script),))
    exec("def g(x: int) -> int:\n    return x", main.__dict__)
    with pytest.raises(RegistrationError, match="not defined at the top level"):
        define(main.g)


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
        (sample_tools.calls_back, "cannot be written in JSON"),
        (sample_tools.default_of_no_type, "default of `x`, <object.*JSON"),
        (sample_tools.default_of_infinity, "default of `x`, inf,.*JSON"),
        (sample_tools.default_of_nan, "default of `x`, nan,.*JSON"),
        (functools.partial(sample_tools.add), "is not a function"),
        (sample_tools.CallableObject(), "is not a function"),
        (max, "is not a function"),
        (dict, "is not a function"),
    ],
)
def test_a_signature_that_no_schema_describes_is_refused_in_words(function, words):
    with pytest.raises(RegistrationError, match=words):
        define(function)


@pytest.mark.parametrize("name", [" ", "two words", "x" * 65, "naïve", "a.b", "a\n"])
def test_a_name_that_a_provider_would_refuse_is_refused_here(name):
    def f(x: int) -> None: ...

    with pytest.raises(RegistrationError, match="cannot be a tool's name"):
        define(tool(name=name, isolation="inline")(f))


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


def test_from_module_takes_a_function_once_even_under_two_names():
    module = types.ModuleType("two_names")
    module.take = module.alias = sample_tools.add
    assert ToolRegistry.from_module(module).list() == ["sum-up"]


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


def test_what_is_done_to_specs_does_not_change_a_tool():
    registry = ToolRegistry([sample_tools.forecast])
    (spec,) = registry.specs()
    spec.input_schema["properties"].clear()
    spec.input_schema["additionalProperties"] = True
    with pytest.raises(ValidationError):
        spec.description = "another"
    (fresh,) = registry.specs()
    assert fresh.input_schema["additionalProperties"] is False
    assert "place" in fresh.input_schema["properties"]
    with pytest.raises(InvalidArguments):
        validate(registry.resolve("forecast"), {"anything": 1})


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


def test_retries_of_a_tool_that_may_not_run_twice_are_refused():
    @tool(isolation="inline", retries=3)
    def pay() -> None:
        """Pay."""

    with pytest.raises(RegistrationError, match="pay: retries=3 needs idempotent=True"):
        define(pay)
    assert define(tool(isolation="inline", retries=3, idempotent=True)(pay)).retries == 3
