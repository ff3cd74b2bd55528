"""Cells: the controller's half. A plan becomes a launcher, a launcher makes cells, one a call.

plan         what the policy asks and this machine can give, or a refusal
process      the launcher and the cells as the controller holds them
conversation the protocol on a cell's reply pipe, without I/O
capture      output streams in bounded memory
pool         cells made ahead of time
supervisor   one call in one cell: feed, watch, kill, drain, report
"""
