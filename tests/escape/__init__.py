"""Attacks on the cell: what it has to stand, each with a control that it does not stop."""
