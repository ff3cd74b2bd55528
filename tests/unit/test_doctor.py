"""Claims of `toolcell.doctor`: a wall is said to hold only where an attempt on it ended."""

from types import SimpleNamespace

import pytest

from toolcell import doctor
from toolcell.doctor import examine
from toolcell.model import STATUS_OF, Category, CellSettings, Enforcement, ErrorInfo, Guarantee
from toolcell.policy import ToolPolicy

from .samples import result

WALLS = Enforcement(rung="full", enforced=dict.fromkeys(Guarantee, "a wall"))
POLICY = ToolPolicy(allow=["*"], cell=CellSettings(require=("filesystem",)))
HELD = [name for names in doctor._WORDS.values() for name in names]


def failed(category, message="no", hint=""):
    error = ErrorInfo(category=category, message=message, hint=hint)
    return result(status=STATUS_OF[category], success=False, error=error, enforcement=WALLS)


class Answers:
    """What the cells of the doctor answer; `probe` reached nothing unless it says so."""

    def __init__(self):
        self.probe = result(structured=dict.fromkeys(HELD), enforcement=WALLS)
        self.exhaust = {name: result(enforcement=WALLS) for name in doctor._EXHAUST}
        self.exhaust[Guarantee.CPU] = failed(Category.CPU)

    def reached(self, **words):
        self.probe = result(structured=dict.fromkeys(HELD) | words, enforcement=WALLS)

    async def call(self, controller, name, arguments):
        if name == "exhaust":
            return self.exhaust[Guarantee(arguments["what"])]
        return self.probe


@pytest.fixture
def answers(monkeypatch):
    made = Answers()
    monkeypatch.setattr(doctor, "_call", made.call)
    return made


async def findings():
    return {finding.guarantee: finding for finding in (await examine(POLICY)).findings}


async def test_where_every_attempt_was_stopped_every_wall_held(answers):
    found = await findings()
    assert list(found) == list(Guarantee)
    assert {finding.state for finding in found.values()} == {"held"}
    assert [g for g, finding in found.items() if finding.required] == ["filesystem"]
    assert all(finding.tried and finding.mechanism == "a wall" for finding in found.values())


async def test_what_was_reached_is_told_and_breaks_its_own_wall_only(answers):
    answers.reached(mount="mounted a file system", write_outside="wrote a file")
    found = await findings()
    broken = found.pop(Guarantee.FILESYSTEM)
    assert broken.state == "broken"
    assert broken.detail == "wrote a file; mounted a file system"
    assert "report" in broken.fix
    assert {finding.state for finding in found.values()} == {"held"}


async def test_where_no_cell_could_be_made_nothing_is_said_to_hold(answers):
    answers.probe = failed(Category.CELL_SETUP, "no user namespaces", "switch them on")
    assert (await examine(POLICY)).rung is None
    for finding in (await findings()).values():
        assert finding.state == "not enforced"
        assert (finding.detail, finding.fix) == ("no user namespaces", "switch them on")


async def test_what_is_not_enforced_is_not_said_to_hold(answers):
    less = WALLS.model_copy(update={"enforced": {Guarantee.FILESYSTEM: "a wall"}})
    answers.probe = answers.probe.model_copy(update={"enforcement": less})
    found = await findings()
    assert found.pop(Guarantee.FILESYSTEM).state == "held"
    assert {finding.state for finding in found.values()} == {"not enforced"}


@pytest.mark.parametrize("guarantee", doctor._EXHAUST)
@pytest.mark.parametrize("category", [Category.CELL_SETUP, Category.EXCEPTION, Category.WALL])
async def test_an_attempt_on_a_limit_that_never_ran_or_failed_is_not_held(
    answers, guarantee, category
):
    answers.exhaust[guarantee] = failed(category, "it did not come to it")
    found = await findings()
    finding = found.pop(guarantee)
    assert finding.state != "held"
    assert finding.detail
    assert {other.state for other in found.values()} == {"held"}


async def test_an_attempt_that_the_probe_left_out_is_not_held(answers):
    answers.probe = result(structured=dict.fromkeys(HELD[1:]), enforcement=WALLS)
    assert (await findings())[Guarantee.FILESYSTEM].state != "held"


@pytest.mark.parametrize("guarantee", doctor._EXHAUST)
async def test_a_limit_that_was_passed_is_broken(answers, guarantee):
    answers.exhaust[guarantee] = result(output="took it all", enforcement=WALLS)
    assert (await findings())[guarantee].state == "broken"


async def test_an_end_at_the_memory_limit_is_a_wall_that_held(answers):
    answers.exhaust[Guarantee.MEMORY] = failed(Category.MEMORY)
    assert (await findings())[Guarantee.MEMORY].state == "held"


def test_a_daemon_is_found_by_its_mark(monkeypatch):
    lines = [None, ["python", "-c", "...", "the-mark"]]
    seen = [SimpleNamespace(info={"cmdline": line}) for line in lines]
    monkeypatch.setattr(doctor.psutil, "process_iter", lambda names: seen)
    assert doctor._daemon_left("the-mark") == "a process outlived its call"
    assert doctor._daemon_left("another") is None


def on(rung):
    return WALLS.model_copy(update={"rung": rung})


async def test_the_full_rung_leaves_nothing_more_open(answers, monkeypatch):
    monkeypatch.setattr(doctor, "capabilities", lambda: SimpleNamespace(groups="some"))
    found = await examine(POLICY)
    assert (found.rung, found.weaker, found.advice) == ("full", (), ())


async def test_a_weaker_rung_is_told_with_what_it_leaves_open_and_what_keeps_the_full_one_away(
    answers, monkeypatch
):
    monkeypatch.setattr(doctor, "capabilities", lambda: SimpleNamespace(groups="some"))
    answers.probe = result(structured=dict.fromkeys(HELD), enforcement=on("landlock"))
    call = answers.call

    async def refused_in_full(controller, name, arguments):
        if controller.policy.cell.isolation == "full":
            return failed(Category.CELL_SETUP, "no user namespaces", "switch them on")
        return await call(controller, name, arguments)

    monkeypatch.setattr(doctor, "_call", refused_in_full)
    found = await examine(POLICY)
    assert found.rung == "landlock"
    assert found.weaker == doctor.WEAKER["landlock"]
    assert found.advice == (("no user namespaces", "switch them on"),)
    named = POLICY.changed(cell={"isolation": "landlock"})
    assert (await examine(named)).advice == (), "the policy asks for no other"


async def test_memory_that_no_kernel_counts_is_told_with_what_would_count_it(answers, monkeypatch):
    monkeypatch.setattr(doctor, "capabilities", lambda: SimpleNamespace(groups=None))
    ((what, fix),) = (await examine(POLICY)).advice
    assert "no cgroup" in what
    assert "systemd-run" in fix


async def test_without_walls_nothing_is_tried_that_would_be_done_to_the_host(answers, monkeypatch):
    tried = []
    call = answers.call

    async def note(controller, name, arguments):
        tried.append(arguments.get("attempts"))
        return await call(controller, name, arguments)

    monkeypatch.setattr(doctor, "_call", note)
    answers.probe = result(structured={}, enforcement=on("none"))
    bare = POLICY.changed(cell={"isolation": "none", "require": []})
    assert (await examine(bare)).rung == "none"
    assert tried[0] == []
    tried.clear()
    await examine(POLICY)
    assert "mount" in tried[0], "the control"
