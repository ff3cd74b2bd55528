"""The siege: the controllers that attacks are made against, and how an attack is judged.

Two grounds of the same shape, so that a control, which does what it likes, leaves nothing
in the way of the cells: one of a cell's workspace and what lies around it, one for the
host's own attempts.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from escape.attacks import FULL, Attack
from escape.ground import Ground
from escape.host import OUTER_ID, Host
from toolcell import CellSettings, Limits, ToolCall, ToolPolicy, ToolRegistry, ToolResult
from toolcell.blocking import BlockingController

PROGRAMS = Path(__file__).parent / "programs"
_SECONDS = 20


class Siege:
    """All of it, for one run of the tests."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.secret = f"secret-{secrets.token_hex(12)}"
        place.chmod(0o755)
        self._stack = stack
        self._bin = place / "bin"
        self._bin.mkdir()
        self._built: dict[str, str] = {}
        self.inside = Ground(place / "cell", self.secret)
        self.control_ground = Ground(place / "control", self.secret)
        self.host = Host(place, self.secret, stack)
        self._controllers: dict[str, BlockingController] = {}
        self._calls = 0

    def program(self, name: str) -> Path:
        """Compile a program, once; skips without a compiler."""
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler")
        built = self._bin / name
        if name not in self._built:
            done = subprocess.run(
                [compiler, "-O1", "-w", "-o", built, PROGRAMS / f"{name}.c"],
                capture_output=True,
                text=True,
                timeout=60,
            )
            self._built[name] = done.stderr if done.returncode else ""
            if not done.returncode:
                built.chmod(0o755)
        if self._built[name]:
            pytest.fail(f"{name}.c cannot be compiled: {self._built[name]}")
        return built

    def controller(
        self,
        rung: str,
        cell: dict[str, Any] | None = None,
        protected: tuple[Path, ...] = (),
        workspace: Path | None = None,
    ) -> BlockingController:
        """The controller of a rung, started once for each setting of the cell."""
        settings = dict(cell or {})
        if "isolation" in CellSettings.model_fields:
            settings["isolation"] = rung
        elif rung != FULL:
            pytest.skip(f"this version has no {rung} rung")
        asked = [settings, [str(path) for path in protected], str(workspace)]
        key = json.dumps(asked, sort_keys=True)
        if key not in self._controllers:
            policy = ToolPolicy(
                name="siege",
                allow={"*": "an attack"},
                cell=CellSettings(**settings),
                limits=Limits(wall=15),
            )
            names = ("policy.toml", "events.jsonl")
            kept = protected or [self.inside.kept / name for name in names]
            # Only mounts protect a part of what may be written; without them such a plan is
            # refused, which has a test of its own.
            if workspace is not None or (rung != FULL and not protected):
                kept = []
            self._controllers[key] = self._stack.enter_context(
                BlockingController(
                    ToolRegistry.builtin(),
                    policy,
                    workspace or self.inside.workspace,
                    protected=kept,
                )
            )
        return self._controllers[key]

    def of_an_ordinary_user(self) -> Path:
        """A workspace whose owner is not root, and for root's tests the bystander's user."""
        place = self.inside.place.parent / "ordinary"
        place.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(place, OUTER_ID, OUTER_ID)
            user = {"user": OUTER_ID, "group": OUTER_ID, "extra_groups": []}
            try:
                subprocess.run([sys.executable, "-c", ""], cwd="/", check=True, **user)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("this Python lies where only root can read it")
        return place

    def call(self, controller: BlockingController, tool: str, **arguments: Any) -> ToolResult:
        """Make one call, which must come to a cell or be refused before it."""
        result = self.controller_call(controller, tool, **arguments)
        assert result.error is None or result.error.category != "cell_setup", result.for_llm()
        return result

    def controller_call(
        self, controller: BlockingController, tool: str, **arguments: Any
    ) -> ToolResult:
        """Make one call; return its result, whatever it is."""
        self._calls += 1
        call = ToolCall(call_id=f"attack-{self._calls}", name=tool, arguments=arguments)
        result = controller.handle(call)
        assert isinstance(result, ToolResult)
        return result

    def attack(self, rung: str, attack: Attack) -> None:
        """Make an attack on a cell, and fail where it reaches anything."""
        controller = self.controller(rung, attack.cell)
        ground = self.inside
        targets = self._prepared(attack, ground, own=rung != FULL)
        before = ground.snapshot()
        if attack.tool:
            name, arguments = attack.tool
            given = {key: value.format(**targets) for key, value in arguments.items()}
            result = self.call(controller, name, **given)
            text = result.for_llm()
            categories = ("tool_error", "invalid_arguments")
            tried, ended = True, result.error is not None and result.error.category in categories
        else:
            result = self._payload(controller, attack, targets)
            text = result.output
            tried, ended = "TRY" in text, "held:" in text or "done" in text.splitlines()
        assert result.enforcement.rung == rung, result.enforcement
        reached = self._reached(text, before, ground)
        assert not reached, f"REACHED on the {rung} rung, by {reached}:\n{text}"
        assert tried, f"it never was tried: {result.for_llm()}\n{result.metadata.stderr}"
        assert ended or self._killed(attack, result), (
            f"nothing held it, and it reached nothing: {result.for_llm()}\n{result.metadata.stderr}"
        )
        assert result.metadata.survivors_checked

    def control(self, attack: Attack) -> None:
        """Make the same attempt without a cell, which must reach its target."""
        if attack.root and os.geteuid() != 0:
            pytest.skip("the host lets only root do this")
        if reason := attack.unless():
            pytest.skip(reason)
        ground = self.control_ground
        ground.restore()
        targets = self._prepared(attack, ground, own=True)
        before = ground.snapshot()
        if attack.program or attack.shell:
            command = ["bash", "-c", attack.command(targets)]
        else:
            command = [sys.executable, "-c", attack.python(targets)]
        done = subprocess.run(
            [*self._within(attack.within), *command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            cwd=ground.workspace,
            env=os.environ | {"HOME": str(ground.home)},
            stdin=subprocess.DEVNULL,
        )
        if any(f"held: {number} " in done.stdout for number in attack.missing):
            pytest.skip("the host has no such thing, or lets nobody have it")
        reached = self._reached(done.stdout, before, ground)
        assert reached, f"the control was stopped: {done.stdout}\n{done.stderr}"

    def _prepared(self, attack: Attack, ground: Ground, *, own: bool) -> dict[str, Any]:
        ground.refresh()
        if attack.binary:
            shutil.copy(self.program(attack.binary), ground.workspace / attack.binary)
        targets = ground.targets() | self.host.named | {"pid": os.getpid()}
        text = (attack.code + attack.program + attack.shell).lower()
        if "bystander" in text:
            targets |= self.host.bystander(self.program("bystander"))
        if any(name in text for name in ("keeper", "launcher")):
            targets |= self._own_processes()
        # Where every process of the machine is seen, an attack must not touch those of others.
        known = {"pid", "bystander", "keeper", "launcher"} & targets.keys()
        targets["own"] = sorted(targets[name] for name in known) if own else []
        if attack.prepare:
            attack.prepare(ground)
        self.host.arrived()
        self.host.signalled()
        return targets

    def _own_processes(self) -> dict[str, int]:
        """A keeper and its launcher; where there is only one process of them, that one."""
        if not (found := self._keepers()):
            self.call(self.controller(FULL), "echo", text="here")
            found = self._keepers()
        keeper = found[0]
        launcher = next(iter(keeper.children()), keeper)
        return {"keeper": keeper.pid, "launcher": launcher.pid}

    @staticmethod
    def _keepers() -> list[psutil.Process]:
        children = psutil.Process().children()
        alive = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
        return [child for child in alive if "sandbox_workers" in " ".join(child.cmdline())]

    def _payload(
        self, controller: BlockingController, attack: Attack, targets: dict[str, Any]
    ) -> ToolResult:
        if attack.program or attack.shell:
            return self.call(controller, "shell", command=attack.command(targets))
        return self.call(controller, "python", code=attack.python(targets))

    def _reached(self, text: str, before: dict[str, tuple[Any, ...]], ground: Ground) -> str:
        if "BROKEN" in text:
            pytest.fail(f"the payload is broken: {text}")
        if "REACHED" in text.splitlines():
            return "its own word"
        if self.secret in text:
            return "the secret in its output"
        after = ground.snapshot()
        paths = before.keys() | after
        if changed := {path for path in paths if before.get(path) != after.get(path)}:
            return f"changes at {', '.join(sorted(changed))}"
        if self.host.arrived():
            return "what arrived at a socket or a terminal of the host"
        if self.host.signalled():
            return "a signal to a process of the host"
        return ""

    @staticmethod
    def _killed(attack: Attack, result: ToolResult) -> bool:
        number = signal.SIGSYS
        code = result.return_code
        return attack.deadly and (result.signal == number.name or code in (-number, 128 + number))

    @staticmethod
    def _within(kinds: str) -> list[str]:
        if not kinds:
            return []
        if not shutil.which("unshare"):
            pytest.skip("there is no unshare(1)")
        rights = "" if os.geteuid() == 0 and "U" not in kinds else "Ur"
        return ["unshare", f"-{rights}{kinds.replace('U', '')}", "--"]


def sieges(place: Path) -> Iterator[Siege]:
    """Make a siege, and take it down."""
    with ExitStack() as stack:
        yield Siege(place, stack)
