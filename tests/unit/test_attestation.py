"""Claims of `toolcell.cells.attestation`: a launcher is used where each attempt was stopped."""

import os
import tempfile

import pytest

from sandbox_workers.tools import probe
from toolcell.cells import attestation
from toolcell.cells.attestation import ATTEMPTS, attest, probe_targets
from toolcell.errors import CellRefused
from toolcell.model import CellSettings, Guarantee, Report

from .samples import plan

ALL = [name for names in ATTEMPTS.values() for name in names]


class Launcher:
    """Hands over a cell whose probe ends with a given report; keeps what was tried."""

    def __init__(self, made, report):
        self.plan, self.report = made, report

    async def make(self):
        return self

    def supervisor(self, cell, limits, tap=None):
        return self

    async def run(self, prepared, stdin, wall):
        self.tried = prepared.arguments["attempts"]
        return self.report


@pytest.fixture
def tried(monkeypatch, workspace):
    """Attest a launcher whose probe gives a report, and return what was tried."""

    async def start(report, settings=None):
        launcher = Launcher(plan(workspace, settings), report)
        monkeypatch.setattr(attestation, "Supervisor", launcher.supervisor)
        await attest(launcher)
        return launcher.tried

    return start


def answer(**reached):
    return Report(exit=0, reply={"type": "reply", "value": dict.fromkeys(ALL) | reached})


async def test_where_every_attempt_was_stopped_the_launcher_is_used(tried):
    assert sorted(await tried(answer())) == sorted(ALL)


async def test_what_was_reached_is_refused_in_the_probes_words(tried):
    with pytest.raises(CellRefused, match="a probe mounted it; sent a signal") as caught:
        await tried(answer(mount="mounted it", signal_controller="sent a signal"))
    assert "report it as a security problem" in caught.value.remedy


async def test_what_the_policy_opens_is_not_tried(tried):
    names = await tried(answer(), CellSettings(network="host", require=()))
    assert sorted(names) == sorted(set(ALL) - set(ATTEMPTS[Guarantee.NETWORK]))


@pytest.mark.parametrize(
    "report",
    [
        Report(exit=1),
        Report(killed="wall"),
        Report(exit=0, bad_reply="not JSON"),
        Report(exit=0, reply={"type": "reply", "value": [None]}),
        Report(exit=0, reply={"type": "error", "kind": "exception", "message": "no"}),
    ],
    ids=str,
)
async def test_a_probe_that_did_not_answer_attests_nothing(tried, report):
    with pytest.raises(CellRefused, match="the walls could not be tried"):
        await tried(report)


async def test_a_probe_that_leaves_an_attempt_out_attests_nothing(tried):
    value = dict.fromkeys(ALL[1:])
    with pytest.raises(CellRefused):
        await tried(Report(exit=0, reply={"type": "reply", "value": value}))


def test_every_attempt_is_one_that_the_probe_knows():
    assert set(ALL) <= set(probe.ATTEMPTS)


def test_the_targets_can_be_reached_from_here_and_are_gone_afterwards():
    with probe_targets([]) as targets:
        assert probe._read_outside(targets), "the control"
        assert probe._write_outside(targets), "the control"
        assert probe._connect_tcp(targets), "the control"
        assert probe._connect_abstract(targets), "the control"
        assert probe._read_environment(targets), "the control"
    for attempt in (probe._read_outside, probe._connect_tcp, probe._connect_abstract):
        with pytest.raises(OSError, match=r"No such file|refused"):
            attempt(targets)


def test_the_secret_is_a_variable_of_this_process_that_the_cell_is_not_given(monkeypatch):
    for name in set(os.environ):
        monkeypatch.delenv(name)
    for name in ("A", "B"):
        monkeypatch.setenv(name, "")
    with probe_targets(["A"]) as targets:
        assert targets["variable"] == "B"
    with probe_targets(["A", "B"]) as targets:
        assert targets["variable"] is None


async def test_a_temporary_directory_that_every_cell_may_reach_is_named(
    tried, workspace, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(workspace))
    with pytest.raises(CellRefused, match="could not be tried: the temporary directory") as caught:
        await tried(answer())
    assert "TMPDIR" in caught.value.remedy
