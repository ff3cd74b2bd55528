"""The command line. Data on stdout, talk on stderr; exit codes in `cli.exits`."""

import os
import sys
import traceback
from typing import NoReturn

from toolcell.errors import StoreError, ToolcellError


def main() -> NoReturn:
    """Run the command line; the entry point of the `toolcell` script."""
    from toolcell.cli.app import app  # typer and rich load with the first use
    from toolcell.cli.exits import INTERRUPTED, OWN_FAULT, USAGE

    try:
        app(prog_name="toolcell")
    except StoreError as error:
        print(f"toolcell: {error}", file=sys.stderr)
        sys.exit(OWN_FAULT)
    except ToolcellError as error:
        print(f"toolcell: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        print("toolcell: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _leave_quietly()
        sys.exit(OWN_FAULT)
    except OSError as error:
        print(f"toolcell: {error.strerror or error}", file=sys.stderr)
        _leave_quietly()
        sys.exit(OWN_FAULT)
    except Exception:  # noqa: BLE001  # a defect of ours: shown whole, and told apart by its code
        traceback.print_exc()
        print("toolcell: this is a defect in toolcell; please report it", file=sys.stderr)
        sys.exit(OWN_FAULT)
    sys.exit(0)


def _leave_quietly() -> None:
    """Whoever reads standard output is gone or full: the interpreter must not flush to it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
