"""`python -m toolcell`."""

from toolcell.cli import main

main()
