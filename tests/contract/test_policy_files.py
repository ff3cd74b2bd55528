"""Policy files of good and bad: what loads keeps loading, what is refused names file and line.

Each bad file opens with `# error: ` and what the message says after the file's path.
"""

from pathlib import Path

import pytest

from toolcell.errors import PolicyError
from toolcell.policy import load_policy

FILES = Path(__file__).parent / "policies"
GOOD = sorted((FILES / "good").glob("*.toml"))
BAD = sorted((FILES / "bad").glob("*.toml"))


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_a_good_policy_loads_and_decides(path):
    policy = load_policy(path)
    opening = path.read_text().splitlines()
    expected = [line.removeprefix("# decides: ").split() for line in opening if "# decides" in line]
    assert expected, "a good policy opens with what it decides"
    for tool, action in expected:
        assert policy.by_name(tool).action == action


@pytest.mark.parametrize("path", BAD, ids=name)
def test_a_bad_policy_is_refused_with_its_file_and_line(path):
    expected = path.read_text().splitlines()[0].removeprefix("# error: ")
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}:")
    assert expected in str(caught.value)


def test_there_are_files_of_both_kinds():
    assert len(GOOD) >= 5
    assert len(BAD) >= 15
