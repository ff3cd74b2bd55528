"""Every example of the README does what the README shows."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from toolcell.policy.file import parse_policy

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def sessions() -> list[tuple[str, str]]:
    """The commands of the console blocks, each with the output shown below it."""
    parts = "".join(blocks("console")).split("$ ")[1:]
    pairs = [part.split("\n", 1) for part in parts]
    return [(command, output) for command, output in pairs if command.startswith("toolcell ")]


def test_the_python_example_prints_what_a_model_reads(tmp_path: Path) -> None:
    (example,) = blocks("python")
    script = tmp_path / "example.py"
    script.write_text(example)
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == '{"words": 4, "letters": 9}\n'
    assert done.stderr == ""


@pytest.mark.parametrize(("command", "output"), sessions(), ids=lambda text: text[:40])
def test_a_command_prints_what_is_shown(command: str, output: str, tmp_path: Path) -> None:
    line = command.replace("toolcell", f"{sys.executable} -m toolcell", 1)
    done = subprocess.run(
        line,
        shell=True,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.stdout == output


def test_the_policy_example_is_a_policy() -> None:
    (example,) = blocks("toml")
    assert tomllib.loads(example)["version"] == 1
    policy = parse_policy(example, "README.md")
    assert policy.by_name("search_text").action == "allow"
    assert policy.by_name("write_file").reason == "it changes the project"
    assert policy.limits.memory == 512 * 1024**2
