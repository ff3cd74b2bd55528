"""Claims of `toolcell.bounds`: every limit is the smallest that anybody named, and says whose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.arguments import InvalidArguments
from toolcell.bounds import Bounds, bounds_of, check_limits
from toolcell.declare import tool
from toolcell.errors import RegistrationError
from toolcell.model import Limits
from toolcell.registry import define

from .samples import prepared

_ARGUMENTS = {"seconds": "wall", "ram": "memory", "most": "output", "tasks": "processes"}


@tool(isolation="inline", timeout=20, limit_arguments=_ARGUMENTS)
def work(
    seconds: float | None = None,
    ram: int | None = None,
    most: int | None = None,
    tasks: int | None = None,
) -> None:
    """Work."""


def bounds(limits=None, **arguments):
    return bounds_of(prepared(define(work), **arguments), Bounds(limits or Limits()))


@pytest.mark.parametrize(
    ("policy", "seconds", "wall", "whose"),
    [
        (30, None, 20, "the limit is the tool's own"),
        (30, 5, 5, "its argument `seconds` asked for this limit"),
        (
            30,
            25,
            20,
            "the limit is the tool's own; `seconds` asked for 25 seconds, and cannot widen it",
        ),
        (3, 5, 3, "the policy gives no more; `seconds` asked for 5 seconds, and cannot widen it"),
        (3, None, 3, None),
    ],
)
def test_of_policy_tool_and_argument_the_smallest_limit_is_in_force(policy, seconds, wall, whose):
    found = bounds(Limits(wall=policy), seconds=seconds)
    assert (found.limits.wall, found.whose.get("wall")) == (wall, whose)


@given(
    seconds=st.floats(min_value=1e-9, max_value=1e12),
    ram=st.integers(min_value=1, max_value=2**70),
    most=st.integers(min_value=1, max_value=2**70),
    tasks=st.integers(min_value=1, max_value=2**70),
)
def test_no_argument_widens_a_limit_or_makes_one_that_no_cell_can_have(**asked):
    given_ = Limits()
    narrowed = bounds(given_, **asked).limits
    for name in Limits.model_fields:
        assert getattr(narrowed, name) <= getattr(given_, name)
    Limits.model_validate(narrowed.model_dump())


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), True, "5", [5]])
def test_what_cannot_be_a_limit_is_an_invalid_argument(value):
    with pytest.raises(InvalidArguments, match="`seconds`: expected a number above 0"):
        check_limits(define(work), {"seconds": value})
    check_limits(define(work), {"seconds": 0.5})  # the control


def test_half_a_process_is_an_invalid_argument():
    with pytest.raises(InvalidArguments, match="`tasks`: expected a whole number"):
        check_limits(define(work), {"tasks": 1.5})


def declared(**limits):
    @tool(isolation="inline", limit_arguments=limits)
    def sort(ram: int) -> None:
        """Sort."""

    return define(sort)


def test_a_limit_of_an_argument_that_the_tool_does_not_take_is_refused():
    with pytest.raises(RegistrationError, match="'hours', which is not one of its"):
        declared(hours="wall")
    assert declared(ram="memory").limit_arguments == {"ram": "memory"}


def test_a_limit_of_no_known_kind_is_refused():
    with pytest.raises(RegistrationError, match="limit_arguments"):
        declared(ram="rage")
