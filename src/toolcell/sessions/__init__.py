"""Sessions: cells that live for many calls and keep what those did.

protocol   what is said between a session's host and the controller, without I/O
lane       pieces that are dealt with one after another
evidence   what came of a call: its streams, their tap, its files
running    one call that runs in a session: how much of it waits, why it is being ended
link       one cell: frames go, messages come in order, and it ends
session    that cell's branches: calls in them, interrupts, ends
names      which session a call means, and what is told of those that ended
answering  the tool `sessions`
manager    sessions by name: made, used, expired, forked, restarted, ended

The other side of the pipe is `sandbox_workers.session`.
"""

from toolcell.sessions.answering import SessionsAnswerer
from toolcell.sessions.manager import Sessions
from toolcell.sessions.names import Kind, SessionBounds, SessionFork, SessionInfo

__all__ = ["Kind", "SessionBounds", "SessionFork", "SessionInfo", "Sessions", "SessionsAnswerer"]
