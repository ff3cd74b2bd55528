"""shell: the worker becomes the shell, so nothing stands between it and its exit code."""

import os
import signal
from pathlib import Path
from typing import NoReturn

from sandbox_workers.tools import surroundings

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


def shell(
    command: str,
    input: str | None = None,  # noqa: A002  # what a model calls it
    directory: str = ".",
    environment: dict[str, str] | None = None,
    *,
    separate: bool = True,
    **_limits: object,  # which the controller keeps
) -> NoReturn:
    """Run a command line with bash, or with sh where there is no bash."""
    surroundings.enter(directory, environment or {}, input, separate=separate)
    path = next((path for path in _SHELLS if Path(path).exists()), "/bin/sh")
    # The interpreter ignores these, and an ignored signal stays ignored across execve.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(path, [Path(path).name, "-c", command])  # noqa: S606  # it is the shell
