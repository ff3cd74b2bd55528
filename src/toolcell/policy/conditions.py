"""Conditions on arguments, compiled: does a value fit surely, or might it?

A path has two views (see `paths`), and a list has many elements. A rule that allows wants
every one of them to fit; a rule that asks or denies is content with one.
"""

import posixpath
import re
from collections.abc import Callable
from typing import Any

from toolcell.policy.patches import files_named
from toolcell.policy.paths import (
    PathGlobs,
    PatternError,
    Under,
    View,
    Workspace,
    glob_pattern,
)
from toolcell.policy.rules import Condition
from toolcell.policy.schemas import NOTHING, values_at

Test = Callable[[Any], bool]
_ONE_LINE = dict.fromkeys(map(ord, "\n\r\u2028\u2029"), " ")


class ArgumentTest:
    """The conditions on one argument, for a tool of which it is known whether it is a path."""

    def __init__(
        self,
        name: str,
        condition: Condition,
        workspace: Workspace,
        *,
        is_path: bool,
        is_patch: bool = False,
        default: Any = NOTHING,
        loose: bool = False,
    ) -> None:
        """Compile; raises PatternError.

        Of a patch the paths are those of the files that it names; other conditions are on its
        text. `default` is what the tool takes where the argument is not given. `loose` lets a
        regular expression take the end of a line for a space: what asks or denies must not be
        evaded by one.
        """
        self.name = name
        self._keys = name.split(".")
        self._workspace = workspace
        self._default = default
        self._is_patch = is_patch
        self.tests: list[tuple[str, Test]] = []
        self.path_tests: list[tuple[str, Callable[[View], bool]]] = []
        given = condition.model_fields_set
        for key in ("equals", "one_of", "regex", "min", "max"):
            if key in given:
                value = getattr(condition, key)
                self.tests.append((f"{key} = {value!r}", _test(key, value, loose=loose)))
        if condition.under:
            self.path_tests.append(
                (f"under = {_shown(condition.under)}", Under(condition.under, workspace))
            )
        self._compile_globs(condition, is_path=is_path, loose=loose)

    def _compile_globs(self, condition: Condition, *, is_path: bool, loose: bool) -> None:
        for key, globs in (("glob", condition.glob), ("not_glob", condition.not_glob)):
            if not globs:
                continue
            words = f"{key} = {_shown(globs)}"
            wanted = key == "glob"
            if is_path:
                self.path_tests.append((words, _path_glob(globs, wanted=wanted)))
            else:
                self.tests.append((words, _text_glob(globs, wanted=wanted, loose=loose)))

    def holds(self, arguments: dict[str, Any], *, every: bool) -> bool:
        """Whether the argument is there and fits."""
        return self.failing(arguments, every=every) is None

    def failing(self, arguments: dict[str, Any], *, every: bool) -> str | None:
        """Return what does not fit, in words, or None."""
        whole = arguments.get(self.name, self._default)
        given = self._given(arguments, whole)
        if not given:
            return f"the call has no argument `{self.name}`"
        quantifier = all if every else any
        for words, test in self.tests:
            as_one = isinstance(whole, list) and test(whole)
            if not (as_one or quantifier(map(test, given))):
                return f"`{self.name}` is {_brief(given)}, not {words}"
        for words, path_test in self.path_tests:
            paths = self._paths(given)
            if not quantifier(self._path(each, path_test, every) for each in paths):
                return f"`{self.name}` {self._verb} {_brief(paths)}, not {words}"
        return None

    @property
    def _verb(self) -> str:
        return "names" if self._is_patch else "is"

    def _paths(self, given: list[Any]) -> list[Any]:
        if not self._is_patch:
            return given
        named = [name for each in given if isinstance(each, str) for name in files_named(each)]
        return named or [None]

    def _given(self, arguments: dict[str, Any], whole: Any) -> list[Any]:
        if whole is NOTHING:
            return [*values_at(arguments, self._keys)]
        return [*values_at(whole, [])] if isinstance(whole, list) else [whole]

    def _path(self, value: Any, test: Callable[[View], bool], every: bool) -> bool:
        if not isinstance(value, str):
            # A file of a patch whose name cannot be read may be any; another value is no path.
            return self._is_patch and not every
        views = self._workspace.views(value)
        if views is None or value.startswith("~"):  # what it leads to cannot be said
            return not every
        return all(map(test, views)) if every else any(map(test, views))


def _test(key: str, expected: Any, *, loose: bool) -> Test:
    if key == "equals":
        return lambda value: _same(value, expected)
    if key == "one_of":
        return lambda value: any(_same(value, each) for each in expected)
    if key == "regex":
        return linear_regex(expected, loose=loose)
    if key == "min":
        return lambda value: _is_number(value) and bool(value >= expected)
    return lambda value: _is_number(value) and bool(value <= expected)


def _same(value: Any, expected: Any) -> bool:
    """Equality as JSON has it: true is not 1, and 1 is 1.0."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, list) and isinstance(expected, list | tuple):
        return len(value) == len(expected) and all(map(_same, value, expected))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_same(value[k], expected[k]) for k in value)
    return bool(value == expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _path_glob(globs: tuple[str, ...], *, wanted: bool) -> Callable[[View], bool]:
    match = PathGlobs(globs)
    return lambda view: match(view) is wanted


def _text_glob(globs: tuple[str, ...], *, wanted: bool, loose: bool) -> Test:
    """A text is compared as it is, and where a glob has directories, as a path made short too."""
    matches = [glob_pattern(each) for each in globs]
    as_path = any("/" in each for each in globs)
    quantifier = any if loose else all

    def fits(text: str) -> bool:
        return any(match(text) is not None for match in matches) is wanted

    def test(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        return quantifier(map(fits, (value, posixpath.normpath(value)) if as_path else (value,)))

    return test


def linear_regex(pattern: str, *, loose: bool = False) -> Test:
    """Compile a regular expression that has to match a whole text; raises PatternError.

    With `loose`, a line's end may be matched as a space is. The engine is that of Rust's regex
    crate, by way of jsonschema-rs: its time is linear in the length of the text, whatever the
    pattern.
    """
    import jsonschema_rs  # not before it is needed: most policies have none

    try:
        # Alone first: "a)|(b" is only balanced by what is put around it.
        for text in (pattern, rf"^(?:{pattern})$"):
            validator = jsonschema_rs.Draft202012Validator(
                {"type": "string", "pattern": text}, pattern_options=jsonschema_rs.RegexOptions()
            )
    except (jsonschema_rs.ValidationError, ValueError):
        raise PatternError(f"{pattern!r} is not a regular expression{_why(pattern)}") from None

    def matches(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        # The engine's dot is no line's end, whatever flag is set.
        return validator.is_valid(value) or (
            loose and validator.is_valid(value.translate(_ONE_LINE))
        )

    return matches


def _why(pattern: str) -> str:
    if re.search(r"\(\?[=!<]|\\[1-9]", pattern):
        return " of the linear engine: it has neither look-around nor back-references"
    try:
        re.compile(pattern)
    except re.error as error:
        return f": {error}"
    return ""


def _shown(texts: tuple[str, ...]) -> str:
    return repr(texts[0]) if len(texts) == 1 else repr(list(texts))


def _brief(given: list[Any]) -> str:
    text = repr(given[0] if len(given) == 1 else given)
    return text if len(text) <= 60 else text[:57] + "..."
