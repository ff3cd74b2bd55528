"""A module of tools, as a user would write one."""

import enum
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolcell.declare import tool

NOTHING = object()


class Unit(enum.Enum):
    """A unit of temperature."""

    CELSIUS = "celsius"
    KELVIN = "kelvin"


class Place(BaseModel):
    """A model inside the arguments."""

    city: str
    country: str | None = None


@dataclass
class Weather:
    """What is returned."""

    degrees: float


@tool(timeout=5, idempotent=True, retries=2, read_only=True)
def forecast(
    place: Place,
    days: Annotated[int, Field(ge=1, le=7)] = 3,
    unit: Unit = Unit.CELSIUS,
    detail: Literal["short", "long"] = "short",
    note: str | None = None,
) -> Weather:
    """Look up the weather.

    It is made up here.

    Args:
        place: Where, as precisely
            as it is known.
        days (int): How many days ahead.

    Returns:
        The weather.
    """
    return Weather(degrees=20.0)


@tool(name="sum-up", description="Add numbers.")
def add(numbers: list[int]) -> int:
    """Not what the model sees."""
    return sum(numbers)


@tool
def bare(schema, _private=1):
    return schema


def not_declared(x: int) -> int:
    """A function that `from_module` leaves alone."""
    return x


def inner(x: int) -> int:
    """A function that something else stands for in its module."""
    return x


unwrapped = inner
inner = functools.wraps(unwrapped)(lambda *args, **kwargs: unwrapped(*args, **kwargs))


class Holder:
    """A class with a function that can be found again by its dotted name."""

    @staticmethod
    def held(x: int) -> int:
        """Return it."""
        return x

    def bound(self, x: int) -> int:
        """Return it."""
        return x


def variadic(*args: int) -> None: ...


def keywords(**options: Any) -> None: ...


def positional(x: int, /) -> None: ...


def bad_default(x: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013


def default_of_no_type(x: Any = NOTHING) -> None: ...


def default_of_infinity(x: float = math.inf) -> None: ...


def default_of_nan(x: float = math.nan) -> None: ...


def unknown_annotation(x: "Nowhere") -> None: ...  # noqa: F821


def calls_back(x: Callable[[int], int]) -> None: ...


class CallableObject:
    """An object that can be called and is no function."""

    def __call__(self, x: int) -> None: ...


def unwritable(x: enum.EnumMeta) -> None: ...
