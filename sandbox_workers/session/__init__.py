"""The inside of a session: a cell that lives for many calls, and keeps what they did.

    worker = host ── executor of branch 0 ── what its calls start
                  ── executor of branch 1 (a fork of branch 0) ── ...

The cell is made like every other. Its worker is told to be a session: it becomes the *host*, one
thread around poll(2), which runs no code of the tool. *Executors* do, one a branch: a Python
interpreter with a namespace that stays (`interpreter`), or a bash (`shell`). A fork counts once
all of its copies are ready (`copying`). The host alone reads the cell's request pipe and writes
its standard output, in `records`.

For each call the host makes two pipes, and the executor opens them by the host's /proc entry,
which a bash can do as well, as its standard output and error for that call. What a call left
running keeps that call's pipes, so what it writes later is told apart exactly: it goes into a
buffer with a bound (`outputs`), and the next call's end carries it.

What a call leaves in the outbox goes behind its output, before its end is told (`leaving`): each
branch has an outbox of its own.

An executor says that a call is over, and then the host reads what is in the pipes at that
moment: all that the call itself wrote. All of this is one user in one cell, so the tool's code
can forge, stop or kill any of it: it then breaks its own session, and nothing else.

    controller:  {"type": "session", "kind", "limits"}
                 {"type": "call", "branch", "call", "code", "stdin"}    text; base64 or null
                 {"type": "interrupt", "call", "again"}
                 {"type": "hold", "call", "held"}                       read its output, or not
                 {"type": "fork", "branch", "copies", "reseed"}         numbers of new branches
                 {"type": "kill", "branch"}
    host:        {"type": "done", "branch", "call", "exit", "error", "earlier", "earlier_total",
                  "earlier_lines"}
                 {"type": "forked", "branch", "open_files"}
                 {"type": "unforked", "branch", "message"}
                 {"type": "ended", "branch", "exit", "why"}             the executor did
"""
