"""Claims of `toolcell.policy.prefixes`: exact is enough to allow, likely or possible to ask."""

import pytest

from toolcell.policy.prefixes import Fit, fit, matched
from toolcell.policy.rules import Rule


def prefix(written):
    rule = Rule(id="r", tool="shell", decision="allow", command=written)
    assert rule.command
    return rule.command


@pytest.mark.parametrize(
    ("written", "words", "expected"),
    [
        (["git", "status"], "git status", Fit.EXACT),
        (["git", "status"], "git status -s --porcelain", Fit.EXACT),
        ("git status", "git status", Fit.EXACT),
        (["git", ["status", "diff"]], "git diff HEAD", Fit.EXACT),
        ([["git", "hg"], "status"], "hg status", Fit.EXACT),
        (["npm", "run", "test*"], "npm run test:unit", Fit.EXACT),
        (["git", "status"], "/usr/bin/git status", Fit.EXACT),
        (["git", "status"], "/tmp/git status", Fit.LIKELY),
        (["git", "status"], "./git status", Fit.LIKELY),
        (["git", "status"], "bin/git status", Fit.LIKELY),
        (["/opt/git", "status"], "/opt/git status", Fit.EXACT),
        (["/opt/git", "status"], "git status", Fit.LIKELY),
        (["git", "status"], "git", Fit.NO),
        (["git", "status"], "git commit -m status", Fit.NO),
        (["git", "status"], "hg status", Fit.NO),
        (["git", "status"], "gitk status", Fit.NO),
        (["git", "push"], "git -C /elsewhere push", Fit.LIKELY),
        (["git", "push"], "git -c a.b=c --no-pager push", Fit.LIKELY),
        (["git", "push"], "git --git-dir=/x push", Fit.LIKELY),
        (["git", "push"], "git --git-dir /x push", Fit.LIKELY),
        (["git", "push"], "git log push", Fit.NO),
        (["git", "push"], "git ?", Fit.POSSIBLE),
        (["git", "push"], "? push", Fit.POSSIBLE),
        (["git", "push"], "git -C ? status", Fit.POSSIBLE),
        (["git", "push"], "git status ?", Fit.NO),
        (["git", "status"], "git status ?", Fit.EXACT),
        (["rm", "-rf"], "rm -rf x", Fit.EXACT),
        (["rm", "-rf"], "rm -r -f x", Fit.LIKELY),
        (["rm", "-rf"], "rm x -fvr", Fit.LIKELY),
        (["rm", "-rf"], "rm -r x", Fit.NO),
        (["rm", "-rf"], "rm ? x", Fit.POSSIBLE),
        (["git", "push", "--force"], "git push origin --force", Fit.LIKELY),
        (["git", "push", "--force"], "git push origin --forc", Fit.LIKELY),
        (["git", "push", "--force"], "git push origin --force=yes", Fit.LIKELY),
        (["git", "push", ["--force", "-f"]], "git push -f", Fit.EXACT),
        (["git", "push", ["--force", "-f"]], "git push origin -vf", Fit.LIKELY),
        (["git", "push", "--force"], "git push origin main", Fit.NO),
        (["git", "push", "--force"], "git push --follow-tags", Fit.NO),
        (["*"], "anything at all", Fit.EXACT),
        (["*"], "./anything", Fit.LIKELY),
    ],
)
def test_a_command_fits_as_surely_as_its_words_say(written, words, expected):
    read = tuple(None if word == "?" else word for word in words.split())
    assert fit(prefix(written), read) is expected


def test_closeness_counts_the_elements_that_a_command_begins_with():
    assert matched(prefix("git push origin"), ("git", "push", "backup")) == 2
    assert matched(prefix("git push"), ("hg", "push")) == 0
