"""Lines of bash, read and not run: the commands that one may run, and the files that it may write.

    text -> words (plain) or a tree (parser) -> reading: commands, wrappers, doubts, writes -> Line

`lines` is the door. `parser`, `nodes`, `words`, `arithmetic`, `expansions`, `redirections` and
`tree` know the syntax; `reading` gathers facts and knows none (`given` is what stands around a
command, `around` what stands around the line). Behind commands that start others look `behind`,
`wrappers`, `launch`, `launchers`, `feeders` and `shells`; `effects`, `variables`, `doubts`,
`telling`, `git` and `scripts` know what makes a command do another thing than its words say;
`written`, `copied`, `downloads`, `packed`, `versioned`, `places`, `directories` and `writing` where
it writes. Whatever is not understood is
said, and never left out.
"""

from toolcell.shell.around import Around
from toolcell.shell.facts import Command, Line, Write, listed
from toolcell.shell.lines import read_in_thread, read_line

__all__ = ["Around", "Command", "Line", "Write", "listed", "read_in_thread", "read_line"]
