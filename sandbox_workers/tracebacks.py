"""Tracebacks as the author of the failing code needs them: their own frames, and their lines.

Frames of this package are not shown, and those of libraries are only counted, in every
exception of a chain or a group. Where a tool is itself a library, all of its frames are shown.

The launcher imports this module: it has to work where no file can be opened any more.
"""

import io
import linecache
import os
import sys
import traceback
from pathlib import Path

_OURS = str(Path(__file__).parent) + os.sep
_STANDARD = str(Path(os.__file__).parent) + os.sep
_LIBRARIES = ("/site-packages/", "/dist-packages/")
_LEFT_OUT = "<left out>"

_sources: dict[str, tuple[int, None, list[str], str]] = {}


def remember(name: str, source: str) -> None:
    """Keep source that is in no file, for the lines of tracebacks and for `inspect`."""
    lines = io.StringIO(source, newline=None).readlines()  # as the compiler counts them
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"  # the carets below a line count on its end
    _sources[name] = (len(source), None, lines, name)
    linecache.cache[name] = _sources[name]


def show(error: BaseException) -> None:
    """Print an exception and those that it came of or holds on standard error."""
    linecache.cache |= _sources  # the code may have emptied it
    try:
        print(text_of(error), file=sys.stderr, end="")
    except Exception:  # noqa: BLE001  # __str__ or the stream itself may be the tool's own
        os.write(2, f"{type(error).__name__} (that cannot be shown)\n".encode())


def text_of(error: BaseException) -> str:
    """The traceback as text, with a line break at its end."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    waiting, seen = [told], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            _shorten(each)
            waiting += [*filter(None, (each.__cause__, each.__context__)), *(each.exceptions or ())]
    return "".join(told.format())


class _Frames(traceback.StackSummary):
    """Frames, among them some that stand for several that are not shown."""

    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **options: object) -> str:
        if frame_summary.name == _LEFT_OUT:
            count = "1 frame" if frame_summary.lineno == 1 else f"{frame_summary.lineno} frames"
            return f"  ... {count} in {frame_summary.filename} ...\n"
        return super().format_frame_summary(frame_summary, **options)


def _shorten(told: traceback.TracebackException) -> None:
    frames = [frame for frame in told.stack if not frame.filename.startswith(_OURS)]
    if not all(map(_library, frames)):
        frames = _without_libraries(frames)
    # Without one, as of a syntax error, there is no heading either.
    told.stack = _Frames(frames) if frames else None  # type: ignore[assignment]


def _without_libraries(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    kept: list[traceback.FrameSummary] = []
    for frame in frames:
        library = _library(frame)
        if not library:
            kept.append(frame)
        elif kept and kept[-1].name == _LEFT_OUT and kept[-1].filename == library:
            kept[-1] = _left_out(library, (kept[-1].lineno or 0) + 1)
        else:
            kept.append(_left_out(library, 1))
    return kept


def _left_out(library: str, count: int) -> traceback.FrameSummary:
    return traceback.FrameSummary(library, count, _LEFT_OUT, lookup_line=False, line="")


def _library(frame: traceback.FrameSummary) -> str:
    """The package or module of a library that a frame is in; "" where it is in none."""
    path = frame.filename
    if path.startswith("<frozen "):
        return path[len("<frozen ") : -1].partition(".")[0]
    for place in _LIBRARIES:
        if place in path:
            return _top(path.rpartition(place)[2])
    return _top(path[len(_STANDARD) :]) if path.startswith(_STANDARD) else ""


def _top(path: str) -> str:
    return path.partition(os.sep)[0].removesuffix(".py")
