r"""What a terminal would act on, as it stands in bytes: ECMA-48, xterm's additions, and Unicode's.

A control sequence begins with ESC or, in eight bits, with a C1 control, which is two bytes in
UTF-8. A string (OSC, DCS, SOS, PM, APC, and the title of screen) goes on to its terminator; one
that has none ends with its line, and each ends where the next sequence begins, so that the time
to find them is in proportion to the text.

Removed is what has an effect on a terminal and no meaning as text. Spelled (`\x00`, `\u202e`) is
what a reader has to know of and could not see: other control characters, what changes the
direction of text, and the tags and selectors in which text can be hidden.
"""

import re

# Every alternative begins with one byte of this class, and says behind it which one: so the
# engine looks for the class, which is fast, and tries the alternatives only there.
_BEGINNING = rb"[\x00-\x08\x0b-\x1f\x7f\xc2\xd8\xe2\xf3]"

_INSIDE = rb"[^\x07\x18\x1a\x1b\xc2]*+(?:\xc2(?![\x80-\x9f])[^\x07\x18\x1a\x1b\xc2]*+)*+"
_STRING = rb"(?:%b(?:\x07|\x1b\\|\xc2\x9c)|[^\n\x07\x18\x1a\x1b\xc2]*+)" % _INSIDE
_CONTROL = rb"[0-?]*+[ -/]*+[@-~]?"
_SEVEN_BITS = rb"(?<=\x1b)(?:[P\]X^_k]%b|\[%b|[ -/]*+[0-~]?)" % (_STRING, _CONTROL)
_EIGHT_BITS = rb"(?<=\xc2)(?:[\x90\x98\x9d-\x9f]%b|\x9b%b|[\x80-\x9f])" % (_STRING, _CONTROL)
_WITHOUT_MEANING = rb"(?<=[\x07\x0e\x0f\x7f])|(?<=\r)\r*+(?=\n)"
_CHARACTER = rb"(?<=[\x00-\x06\x08\x0b-\x0d\x10-\x1a\x1c-\x1f])"
# Marks and overrides of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069),
# tags (U+E0000 to U+E007F) and the selectors from U+E0100 on.
_UNSEEN = (
    rb"(?<=\xd8)\x9c|(?<=\xe2)(?:\x80[\x8e\x8f\xaa-\xae]|\x81[\xa6-\xa9])"
    rb"|(?<=\xf3)\xa0(?:[\x80\x81\x84-\x86][\x80-\xbf]|\x87[\x80-\xaf])"
)

SEQUENCE = re.compile(
    rb"%b(?:%b|%b|%b|(?P<spelled>%b|%b))"
    % (_BEGINNING, _SEVEN_BITS, _EIGHT_BITS, _WITHOUT_MEANING, _CHARACTER, _UNSEEN)
)
"""Whatever is removed, or spelled where the group `spelled` says so."""

MOVES_BACK = re.compile(rb"\x08|\r(?!\r*+\n)|(?:\x1b\[|\xc2\x9b)[0-9]*+[DG]")
"""What writes over a line that was begun; a return before the end of the line does not."""

_ASCII = bytes([*range(9), *range(11, 32), 127])


def none_in(data: bytes) -> bool:
    """Whether there is nothing to remove and nothing to spell."""
    if data.isascii():
        return len(data.translate(None, _ASCII)) == len(data)
    return not SEQUENCE.search(data)


def without(data: bytes) -> bytes:
    """Return bytes without what is removed or spelled."""
    if data.isascii() and b"\x1b" not in data:
        # Single characters: a flood of zero bytes takes no time this way.
        return data.translate(None, _ASCII)
    return SEQUENCE.sub(b"", data)


def spelled(character: bytes) -> bytes:
    r"""Return a character as `\x1b`, `\u202e` or `\U000e0041`, as `toolcell.visible` spells it."""
    number = ord(character.decode())
    if number < 0x100:
        return b"\\x%02x" % number
    return b"\\u%04x" % number if number < 0x10000 else b"\\U%08x" % number
