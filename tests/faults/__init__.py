"""Faults that users of other tool runners report most, through a real cell."""
