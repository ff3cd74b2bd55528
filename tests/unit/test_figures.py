"""Claims of `sandbox_workers.tools.figures`: drawing never changes how a run ended."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from sandbox_workers.tools import figures


class Figure:
    def __init__(self, error):
        self.error = error

    def savefig(self, place, format):  # noqa: A002  # as matplotlib calls it
        Path(place).write_text(format)
        if self.error is not None:
            raise self.error


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Open figures: with None, or with what drawing one raises."""
    pyplot = ModuleType("matplotlib.pyplot")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    monkeypatch.setenv("TOOLCELL_OUTBOX", str(tmp_path))

    def draw(*errors):
        opened = {number: Figure(error) for number, error in enumerate(errors, 1)}
        pyplot.get_fignums = lambda: list(opened)
        pyplot.figure = opened.get
        pyplot.close = lambda figure: opened.pop(
            next(number for number, each in opened.items() if each is figure)
        )
        return opened

    return draw


def test_a_figure_that_cannot_be_drawn_is_told_closed_and_does_not_keep_the_others(
    drawn, tmp_path, capfd
):
    opened = drawn(None, ValueError("no\nformula"), None)
    figures.save_at_end()
    assert opened == {}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["figure-1.png", "figure-2.png"]
    assert capfd.readouterr().err == "[figure-2.png was not saved: ValueError: no formula]\n"


class Unsayable(Exception):  # noqa: N818
    def __str__(self):
        raise SystemExit(0)


@pytest.mark.attack
@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), Unsayable()])
def test_the_error_of_the_code_wins_over_whatever_drawing_raises(drawn, error, capfd):
    opened = drawn(error)

    def run():
        try:
            return 1 / 0
        finally:
            figures.save_at_end()

    with pytest.raises(ZeroDivisionError):
        run()
    assert opened == {}
    assert f"not saved: {type(error).__name__}" in capfd.readouterr().err
