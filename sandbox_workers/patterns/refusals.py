"""What is not of the language, in words for whoever wrote the pattern."""

ESCAPES = {
    **dict.fromkeys("0123456789", "backreferences and octal numbers are not supported"),
    "k": "backreferences are not supported",
    "n": "a pattern is matched line by line, so it cannot hold a line break",
    **dict.fromkeys("AzZG", "each line is matched by itself: write ^ and $ for its ends"),
    **dict.fromkeys("pP", "Unicode properties are not supported: write a class such as [a-z]"),
    "<": r"write \b for the edge of a word, or < for the character",
    ">": r"write \b for the edge of a word, or > for the character",
}
GROUPS = {
    **dict.fromkeys(("?=", "?!", "?<=", "?<!"), "look-around is not supported"),
    **dict.fromkeys(("?P=", "?("), "backreferences are not supported"),
    "?>": "atomic groups are not supported",
    "?#": "comments are not supported",
}


class PatternError(Exception):
    """The pattern is not one of the language; the hint says what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
