r"""Regular expressions that cannot hang: one language, whatever engine looks for it.

A pattern is matched against one line at a time, and the only question is whether it is in it.

    text ─ parser ─► nodes ─┬─ rendering ─► source for `re`       the fast engine
                            ├─ rendering ─► source for ripgrep    which files are worth reading
                            ├─ literals ──► what a match holds    the same, in C
                            ├─ cost ──────► what `re` might take  where `re` may be used
                            └─ linear ────► an automaton          everywhere else

The language is what grep -E, ripgrep and Python have in common: characters, `.`, classes,
groups, alternatives, repeats (greedy or not), `^`, `$`, `\b`, `\B`, `(?i)`. Backreferences and
look-around are refused: they are what no automaton can do. Where engines differ, the nodes say
what is meant, and are rendered so that none can mean another thing:

    \d           0-9
    \w           letters and digits of every script, and the underscore
    \s           Unicode's White_Space, without the line feed
    [[:alpha:]]  POSIX classes, of ASCII
    .  [^x]  \W  never a line feed; a byte that is not UTF-8 counts as one character
    ^  $         ends of the line: before CR LF too, and after a byte-order mark
    (?i)         each character with its own upper and lower case, where those are one character
"""
