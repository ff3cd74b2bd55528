"""`python -m toolcell`."""

import sys

# -m puts the current directory first, which may be a workspace that tools write in.
if not sys.flags.safe_path:
    del sys.path[0]

from toolcell.cli import main  # only after that

main()
