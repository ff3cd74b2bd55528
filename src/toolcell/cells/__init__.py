"""Cells: the controller's half. A plan becomes a launcher, a launcher makes cells, one a call.

capabilities what this machine can give, and what a failed attempt means
leftovers    what controllers that were killed left behind
cgroup       memory limits on whole trees, where groups can be made
seccomp      the system call filter, compiled (its numbers are in `syscalls`)
landlock     the ruleset, a second wall around files
lending      what is mounted in a cell, and what stays read-only there
workspace    which directories may be lent to be changed
plan         what the policy asks and this machine can give, or a refusal
process      the launcher as the controller holds it
cell         a cell as the controller holds it
conversation the protocol on a cell's reply pipe, without I/O
account      what init tells of a call's end
refusals     which system calls were refused, in words
tree         a call's processes, seen from outside
capture      output streams in bounded memory
supervisor   one call in one cell: feed, watch, kill, drain, report
attestation  a launcher's walls, tried from inside before it is used
pool         cells made ahead of their calls
"""
