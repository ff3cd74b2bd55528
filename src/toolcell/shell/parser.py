"""From text to syntax tree: the `shfmt` program that the package shfmt-py installs, run once.

Only the program of that package is started, never one that PATH happens to name. It gets the
text on standard input and nothing else: no shell, no environment, no arguments of the text.
"""

import json
import os
import re
import subprocess
import sysconfig
import tempfile
import threading
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from toolcell.shell.facts import Unreadable

Node = dict[str, Any]

MAX_TEXT = 64 * 1024  # bytes of shell that are worth reading
MAX_TREE = 8 * 1024 * 1024  # bytes of JSON; a deep tree is indented, so it grows as a square
SECONDS = 2.0

_REMEDY = "install it with `pip install shfmt-py`"
_NAMES = ("shfmt", "shfmt.exe")
# shfmt takes a backslash at the end of a comment for a continued line; bash does not, and
# runs what stands on the next line. (Seen with shfmt 3.14.1.)
_CONTINUED_COMMENT = re.compile(r"(?:^|[\s;&|()<>`])#[^\n]*\\\n")
# Bash joins continued lines before it looks for "$(", for "((" and for the end of a
# here-document whose delimiter is not quoted; shfmt looks first. (Seen with shfmt 3.14.1.)
_SPLIT_EXPANSION = re.compile(r"\$(?:\\\n)+|\((?:\\\n)+\(")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\n")


def parse(text: str) -> Node:
    """Return bash's syntax tree of `text` as shfmt writes it; raises Unreadable."""
    source = _source(text)
    answer, complaint, code = _run(source)
    if code != 0:
        raise Unreadable(f"the line is not valid bash: {complaint or f'shfmt ended with {code}'}")
    try:
        tree = json.loads(answer)
    except RecursionError:
        raise Unreadable("the line is nested too deeply to be read") from None
    except ValueError:
        raise Unreadable(f"shfmt answered no syntax tree; {_REMEDY} again") from None
    if not isinstance(tree, dict):
        raise Unreadable(f"shfmt answered no syntax tree; {_REMEDY} again")
    if b"<<" in source:
        _check_documents(tree, source)
    return tree


def _check_documents(tree: Node, source: bytes) -> None:
    """Refuse a here-document that may end elsewhere for bash; raises Unreadable."""
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        inner = node.values() if isinstance(node, dict) else node
        waiting += [each for each in inner if isinstance(each, dict | list)]
        if isinstance(node, dict) and "Hdoc" in node:
            _check_document(node, source)


def _check_document(redirect: Node, source: bytes) -> None:
    delimiter = _span(redirect.get("Word", {}), source)
    if re.search(r"[\\'\"]", delimiter) and "\n" not in delimiter:
        return  # quoted: bash joins and expands nothing in it
    body = _span(redirect["Hdoc"], source)
    if "\n" in delimiter or _CONTINUED.search(body):
        raise Unreadable("the line has a here-document with continued lines")
    if any(each.lstrip("\t") == delimiter for each in body.split("\n")[:-1]):
        raise Unreadable("the line has a here-document that ends inside an expansion")


def _span(node: Node, source: bytes) -> str:
    start, end = (node.get(edge, {}).get("Offset", 0) for edge in ("Pos", "End"))
    return source[start:end].decode(errors="replace")


def _source(text: str) -> bytes:
    try:
        source = text.encode()
    except UnicodeEncodeError:
        raise Unreadable("the line has a character that is no text (a lone surrogate)") from None
    if len(source) > MAX_TEXT:
        raise Unreadable(f"the line is longer than {MAX_TEXT // 1024} KiB")
    if "\0" in text:
        raise Unreadable("the line has a NUL character")
    if "\r" in text:
        raise Unreadable("the line has a carriage return, which bash reads as part of a word")
    if _SPLIT_EXPANSION.search(text):
        raise Unreadable("the line is continued between a $ or a ( and what it begins")
    if _CONTINUED_COMMENT.search(text):
        raise Unreadable("the line has a comment that ends in a backslash")
    return source


def _run(source: bytes) -> tuple[bytes, str, int]:
    """Run the parser; returns its answer, the first line of its complaint and its exit code."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaint:
        given.write(source)
        given.seek(0)
        answer, code = _answer(given, complaint)
        complaint.seek(0)
        lines = complaint.read(1000).decode(errors="replace").splitlines()
    return answer, lines[0].removeprefix("<standard input>:") if lines else "", code


def _answer(given: IO[bytes], complaint: IO[bytes]) -> tuple[bytes, int]:
    try:
        process = subprocess.Popen(
            [program(), "--to-json", "-ln=bash"],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=complaint,
            env={},
            cwd=os.sep,
        )
    except OSError as error:
        raise Unreadable(
            f"the shell parser shfmt cannot be started ({error.strerror}); {_REMEDY} again",
            lasting=False,
        ) from None
    late = threading.Timer(SECONDS, process.kill)
    late.start()
    with process:
        stream = process.stdout
        answer = stream.read(MAX_TREE + 1) if stream else b""
        if len(answer) > MAX_TREE:
            process.kill()
    in_time = late.is_alive()
    late.cancel()
    if len(answer) > MAX_TREE:
        raise Unreadable("the line is too large to be read")
    if not in_time:
        raise Unreadable(f"the shell parser took longer than {SECONDS:g} s", lasting=False)
    return answer, process.returncode


@lru_cache(maxsize=1)
def program() -> str:
    """The path of shfmt; raises Unreadable where shfmt-py is not installed."""
    for path in _candidates():
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.resolve())
    raise Unreadable(f"the shell parser shfmt is not installed; {_REMEDY}", lasting=False)


def _candidates() -> list[Path]:
    try:
        files = metadata.files("shfmt-py") or []
    except metadata.PackageNotFoundError:
        files = []
    installed = [Path(str(file.locate())) for file in files if file.name in _NAMES]
    return installed + [Path(sysconfig.get_path("scripts"), name) for name in _NAMES]
