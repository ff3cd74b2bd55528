"""Built-in commands that change what later commands of the line are: cd, export, alias, ..."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from toolcell.shell.facts import Unknown, Word, Words, listed
from toolcell.shell.options import Found, read, spec
from toolcell.shell.shells import is_harmless
from toolcell.shell.variables import HOLDS_CODE

DECLARING = frozenset(["declare", "typeset", "local", "export", "readonly", "nameref"])
# With these, an assignment before the command stays in some shells.
SPECIAL = listed(
    ": . eval exec export readonly return set shift source times trap unset break continue exit"
    " declare typeset local"
)
_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[(.*)\])?", re.ASCII | re.DOTALL)
_NAMED_LATE = "it sets a variable that is only named at run time, and may run code in the name"
_CODE_IN_NAME = "it is given the name of a variable that holds code"
# A variable, None where its name is not known, and its value: SAFE where it is made of others.
Set = tuple[str | None, Word]


@dataclass(slots=True)
class Effect:
    """What a built-in does: the variables it sets, why later commands are in doubt, ..."""

    sets: list[Set] = field(default_factory=list)
    evaluates: list[str] = field(default_factory=list)  # subscripts, which are arithmetic
    integers: list[str] = field(default_factory=list)
    maps: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)  # no maps, or no longer
    references: list[str] = field(default_factory=list)  # names for other variables
    exports: list[str] = field(default_factory=list)  # without a value of its own
    here: str = ""
    later: str = ""
    enters: Word | None = None
    forgets_functions: bool = False


def effect_of(words: Words, sets: list[Set] | None = None) -> Effect:
    """Return what a built-in changes: for other commands, nothing.

    `sets` are the assignments of a declaration where the parser has told them apart.
    """
    name = words[0] if isinstance(words[0], str) else ""
    if name in DECLARING:
        return _declared(words, sets)
    take = _EFFECTS.get(name)
    if take is None:
        return _NOTHING
    effect = take(words)
    if any(_runs_in_name(word) for word in words):  # an option may be made at run time
        effect.here = _CODE_IN_NAME
    return effect


def _names(words: list[Word], effect: Effect, value: Word = Unknown.ANY) -> None:
    """Note words that name variables."""
    for word in words:
        match = _NAME.fullmatch(word) if isinstance(word, str) else None
        if match is None:
            effect.here = _NAMED_LATE if isinstance(word, Unknown) else effect.here
            effect.sets += [(None, Unknown.ANY)] if isinstance(word, Unknown) else []
            continue
        effect.sets.append((match[1], value))
        if match[2] is not None:
            effect.evaluates.append(match[2])


def _runs_in_name(word: Word) -> bool:
    match = _NAME.fullmatch(word) if isinstance(word, str) else None
    return match is not None and HOLDS_CODE.search(match[2] or "") is not None


def _declared(words: Words, sets: list[Set] | None) -> Effect:
    texts = [word for word in words[1:] if isinstance(word, str)]
    flags = {letter for text in texts if re.match(r"[-+]\w", text) for letter in text[1:]}
    effect = Effect(sets=[*(sets or []), *(_set(text) for text in texts if "=" in text)])
    if sets is None and len(texts) < len(words) - 1:
        effect.sets.append((None, Unknown.ANY))
    if "f" in flags:
        effect.here = "it exports or changes functions" if "x" in flags else ""
    names = [name for name, _ in effect.sets if name]
    names += [text for text in texts if _NAME.fullmatch(text)]
    if any(name is None for name, _ in effect.sets):
        effect.here = _NAMED_LATE
    if "i" in flags:
        effect.integers = names
    if "A" in flags:
        effect.maps = names
    else:
        effect.plain = names
    if words[0] == "export" or "x" in flags:
        effect.exports = [text for text in texts if _NAME.fullmatch(text)]
    effect.evaluates += [match[2] for match in map(_subscripted, texts) if match]
    if "n" in flags or words[0] == "nameref":
        effect.references = names
        if any(_NAME.fullmatch(text) for text in texts):  # the next assignment names its target
            effect.sets.append((None, Unknown.ANY))
        for _, value in tuple(effect.sets):
            _names([value], effect)
    named = [*texts, *(value for _, value in effect.sets)]
    if any(map(_runs_in_name, named)) or _hides_code(texts, effect.sets, flags):
        effect.here = "bash runs what the value of such a declaration holds"
    return effect


def _subscripted(word: str) -> re.Match[str] | None:
    match = _NAME.fullmatch(word.partition("=")[0].rstrip("+"))
    return match if match and match[2] is not None else None


def _set(word: str) -> Set:
    name, _, value = word.partition("=")
    match = _NAME.fullmatch(name.rstrip("+"))
    return (match[1] if match else None), value


def _hides_code(texts: list[str], sets: list[Set], flags: set[str]) -> bool:
    """`declare -a "x=($(cmd))"` runs the command although it is quoted."""
    arrays = {"a", "A"} & flags
    if arrays and any(isinstance(value, Unknown) for _, value in sets):
        return True
    quoted = [text for text in texts if "=" in text and HOLDS_CODE.search(text)]
    return any(arrays or "[" in text.partition("=")[0] or "=(" in text for text in quoted)


def _read(words: Words) -> Effect:
    found = read(words[1:], spec("-ers -a: -d: -i: -n: -N: -p: -t: -u:"))
    effect = Effect()
    _names([*found.values("a"), *(found.operands or ["REPLY"])], effect)
    return effect


def _mapfile(words: Words) -> Effect:
    found = read(words[1:], spec("-t -d: -n: -O: -s: -u: -C: -c:"))
    effect = Effect()
    _names(found.operands[:1] or ["MAPFILE"], effect)
    return effect


def _printf(words: Words) -> Effect:
    effect = Effect()
    option = words[1] if len(words) > 1 else ""
    if option == "-v":
        _names(list(words[2:3]), effect)
    elif isinstance(option, str) and option.startswith("-v"):
        _names([option[2:]], effect)
    elif option is Unknown.ANY or (option is Unknown.ONE and isinstance(words[-1], str)):
        _names(list(words[2:3]), effect)  # it may be -v
    return effect


def _getopts(words: Words) -> Effect:
    effect = Effect(sets=[("OPTARG", Unknown.ANY)])
    _names(list(words[2:3]), effect)
    return effect


def _wait(words: Words) -> Effect:
    effect = Effect()
    _names(read(words[1:], spec("-fn -p:")).values("p"), effect, "0")
    return effect


def _test(words: Words) -> Effect:
    effect = Effect()
    for place, word in enumerate(words[1:-1], 1):
        if word in ("-v", "-R"):
            _names([words[place + 1]], effect)
    effect.sets = []
    return effect


def _unset(words: Words) -> Effect:
    found = read(words[1:], spec("-fvn"))
    effect = Effect(forgets_functions=not found.has("v"))
    if not found.has("f"):
        _names(found.operands, effect, "")
        effect.plain = [name for name, _ in effect.sets if name]
    return effect


def _cd(words: Words) -> Effect:
    found = read(words[1:], spec("-LPe@n"))
    operands = found.operands
    target: Word = operands[0] if operands else Unknown.ANY
    turns = isinstance(target, str) and re.fullmatch(r"[-+]\d+", target) is not None
    return Effect(enters=Unknown.ANY if found.unknown or turns else target)


def _popd(words: Words) -> Effect:
    return Effect(enters=Unknown.ANY)


def _alias(words: Words) -> Effect:
    makes = any(isinstance(word, Unknown) or "=" in word for word in words[1:])
    return Effect(later="an alias is made, so the command may be another" if makes else "")


def _hash(words: Words) -> Effect:
    if not read(words[1:], spec("-dlrt -p:")).has("p"):
        return Effect()
    return Effect(later="hash -p says where a command is, so it may be another program")


def _enable(words: Words) -> Effect:
    changes = len(words) > 1 and words[1] not in ("-p", "-a", "-s")
    return Effect(later="enable changes which commands are built in" if changes else "")


_CHANGES = "the shell is told to read commands in another way"


def _shopt(words: Words) -> Effect:
    found = read(words[1:], spec("-opqsu"))
    odd = [word for word in found.operands if not is_harmless(word)]
    return Effect(later=_CHANGES if odd and found.has("s", "u") else "")


def _set_options(words: Words) -> Effect:
    """`set -e`, `set -o pipefail`; -k would take every NAME=VALUE word as an assignment."""
    found: Found = read(words[1:], spec("-abefhmnptuvxBCEHPT -o?", plus=True))
    named = [word for word, before in zip(words[1:], words, strict=False) if _names_option(before)]
    odd = any(not is_harmless(word) for word in named)
    if found.unknown or odd or (found.computed and "--" not in words):
        return Effect(later=_CHANGES)
    return Effect()


def _names_option(word: Word) -> bool:
    return isinstance(word, str) and re.fullmatch(r"[-+][a-zA-Z]*o", word) is not None


_EFFECTS: dict[str, Callable[[Words], Effect]] = {
    "read": _read,
    **dict.fromkeys(["mapfile", "readarray"], _mapfile),
    "printf": _printf,
    "getopts": _getopts,
    "wait": _wait,
    **dict.fromkeys(["test", "["], _test),
    "unset": _unset,
    **dict.fromkeys(["cd", "chdir", "pushd"], _cd),
    "popd": _popd,
    "alias": _alias,
    "hash": _hash,
    "enable": _enable,
    "shopt": _shopt,
    "set": _set_options,
}
CHANGERS = frozenset(_EFFECTS) | DECLARING
_NOTHING = Effect()
