"""Statistics of a log: how long tools and stages take, and why calls do not succeed."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import Field

from toolcell.events.record import Event, EventKind
from toolcell.events.timeline import PERSON, STAGES, call_of, steps
from toolcell.model.base import SCHEMA_VERSION, Frozen

_NO_FAILURE = {"succeeded", "waiting"}


class Spread(Frozen):
    """How many there are, and their percentiles by nearest rank, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    total_ms: float


class ToolStatistics(Frozen):
    """One tool: its finished calls, how many of them failed, and their time.

    The time is that from RECEIVED to FINISHED without the waiting for a person; it is known of
    the calls whose beginning is among the events.
    """

    tool: str
    calls: int
    failed: int
    time: Spread | None = None


class CategoryStatistics(Frozen):
    """Why calls did not succeed: how many, and the share of all finished calls."""

    category: str
    calls: int
    rate: float


class StageStatistics(Frozen):
    """One stage of the path, and the time that calls spent in it."""

    stage: str
    time: Spread


class Statistics(Frozen):
    """What the events of a log say of its calls; tools come slowest first.

    `waiting` of the calls finished without being done, and were not settled by a later one.
    """

    v: int = SCHEMA_VERSION
    calls: int
    unfinished: int
    waiting: int = 0
    tools: tuple[ToolStatistics, ...] = Field(default=())
    categories: tuple[CategoryStatistics, ...] = Field(default=())
    stages: tuple[StageStatistics, ...] = Field(default=())


@dataclass(slots=True)
class _Tool:
    calls: int = 0
    failed: int = 0
    seconds: list[float] = field(default_factory=list)


def statistics(events: Iterable[Event]) -> Statistics:
    """Count over events in their order."""
    tools: defaultdict[str, _Tool] = defaultdict(_Tool)
    categories: Counter[str] = Counter()
    stages: defaultdict[str, list[float]] = defaultdict(list)
    open_calls: dict[tuple[str, ...], list[Event]] = {}
    finished: set[tuple[str, ...]] = set()
    waiting: set[tuple[str, ...]] = set()
    for event in events:
        call = call_of(event)
        if call is None:
            continue
        if event.kind is EventKind.RECEIVED:
            finished.discard(call)  # providers repeat their ids, where there is no key
        if event.kind is EventKind.SETTLED and call in waiting:
            waiting.discard(call)
            _count_end(event, tools[event.tool_name], categories)
            continue
        if call in finished:
            continue  # an answer that came too late
        open_calls.setdefault(call, []).append(event)
        if event.kind is EventKind.FINISHED:
            finished.add(call)
            if event.data.get("status") == "waiting":
                waiting.add(call)
            _count(open_calls.pop(call), tools, categories, stages)
    calls = sum(tool.calls for tool in tools.values())
    return Statistics(
        calls=calls,
        unfinished=len(open_calls),
        waiting=len(waiting),
        tools=_by_time(tools),
        categories=tuple(
            CategoryStatistics(category=name, calls=count, rate=count / calls)
            for name, count in categories.most_common()
        ),
        stages=tuple(
            StageStatistics(stage=name, time=_spread(stages[name]))
            for name in STAGES
            if name in stages
        ),
    )


def _count(
    events: list[Event],
    tools: defaultdict[str, _Tool],
    categories: Counter[str],
    stages: defaultdict[str, list[float]],
) -> None:
    tool = tools[events[-1].tool_name]
    tool.calls += 1
    _count_end(events[-1], tool, categories)
    spent: defaultdict[str, float] = defaultdict(float)
    for step in steps(events):
        spent[step.stage] += step.took
    for name, seconds in spent.items():
        if name:
            stages[name].append(seconds)
    if events[0].kind is EventKind.RECEIVED:
        tool.seconds.append(sum(spent.values()) - spent[PERSON])


def _count_end(event: Event, tool: _Tool, categories: Counter[str]) -> None:
    data = event.data
    if data.get("status") not in _NO_FAILURE:
        tool.failed += 1
        categories[str(data.get("category") or data.get("status") or "unknown")] += 1


def _by_time(tools: dict[str, _Tool]) -> tuple[ToolStatistics, ...]:
    found = [
        ToolStatistics(
            tool=name,
            calls=tool.calls,
            failed=tool.failed,
            time=_spread(tool.seconds) if tool.seconds else None,
        )
        for name, tool in tools.items()
    ]
    return tuple(sorted(found, key=lambda tool: -(tool.time.p50_ms if tool.time else 0)))


def _spread(seconds: list[float]) -> Spread:
    ordered = sorted(seconds)
    return Spread(
        count=len(ordered),
        p50_ms=_percentile(ordered, 0.50),
        p95_ms=_percentile(ordered, 0.95),
        max_ms=_milliseconds(ordered[-1]),
        total_ms=_milliseconds(sum(ordered)),
    )


def _percentile(ordered: list[float], share: float) -> float:
    return _milliseconds(ordered[math.ceil(share * len(ordered)) - 1])


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
