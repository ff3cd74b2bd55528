"""A plugin for pytest that tells, of each rung, how many attacks were made and how many held.

    python -m pytest tests -p tests.escape.report --attacks

runs every test that is marked `attack`, in whatever directory, and nothing else. A rung is
the test's parameter `rung`; a test without one is of the full rung. `attack(control=True)`
marks the same attempt without the wall: it shows that an attack can be made at all, and is
counted apart.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

_NAMED_AT_MOST = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer --attacks."""
    parser.addoption("--attacks", action="store_true", help="run the attacks, and count them")


def pytest_configure(config: pytest.Config) -> None:
    """Count where it was asked for."""
    if config.getoption("--attacks"):
        config.pluginmanager.register(_Count(), "toolcell-attacks")


@dataclass
class _Tally:
    """Attacks of one rung, or controls: names by outcome."""

    held: list[str] = field(default_factory=list)
    fell: list[str] = field(default_factory=list)
    untried: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def made(self) -> int:
        return len(self.held) + len(self.fell)


class _Count:
    def __init__(self) -> None:
        self._rungs: dict[str, str] = {}
        self._controls: set[str] = set()
        self._attacks: dict[str, _Tally] = defaultdict(_Tally)
        self._shown = _Tally()
        self._failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        chosen = []
        for item in items:
            mark = item.get_closest_marker("attack")
            if mark is None:
                continue
            chosen.append(item)
            if mark.kwargs.get("control"):
                self._controls.add(item.nodeid)
            else:
                given: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
                self._rungs[item.nodeid] = str(given.get("rung", "full"))
        if dropped := [item for item in items if item not in set(chosen)]:
            config.hook.pytest_deselected(items=dropped)
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid in self._controls:
            tally = self._shown
        elif report.nodeid in self._rungs:
            tally = self._attacks[self._rungs[report.nodeid]]
        else:
            return
        name = report.nodeid.removeprefix("tests/")
        if report.failed:
            if report.nodeid not in self._failed:
                self._failed.add(report.nodeid)
                tally.fell.append(name)
                if name in tally.held:
                    tally.held.remove(name)
        elif report.skipped:
            tally.untried[_reason(report)].append(name)
        elif report.when == "call":
            tally.held.append(name)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        who = "root" if os.geteuid() == 0 else "an ordinary user"
        terminalreporter.section("attacks")
        for rung, tally in sorted(self._attacks.items()):
            write(f"{rung} rung, as {who}: {tally.made} attacks, {len(tally.held)} held")
            for line in _lines("did not hold", {"": tally.fell}):
                write(line)
            for line in _lines("not tried", tally.untried):
                write(line)
        shown = self._shown
        write(
            f"controls, as {who}: {shown.made} made, {len(shown.held)} reached what the attack "
            "is held from"
        )
        for line in _lines("did not reach it", {"": shown.fell}):
            write(line)
        for line in _lines("could not be shown here", shown.untried):
            write(line)


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _lines(what: str, names: dict[str, list[str]]) -> Iterator[str]:
    """One line for each reason, and the names below it."""
    for reason, those in sorted(names.items()):
        if not those:
            continue
        yield f"    {what}: {len(those)}" + (f" ({reason})" if reason else "")
        shown = those if len(those) <= _NAMED_AT_MOST else those[:3]
        for name in shown:
            yield f"        {name}"
        if len(those) > len(shown):
            yield f"        and {len(those) - len(shown)} more"
