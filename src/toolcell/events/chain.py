"""The chain: what ties each event to all those before it, and the seal over its head.

A row of the log is a sequence number, an event as JSON, and a hash. As a line of JSON it is

    {"seq":7,"v":1,"at":"...", ... ,"data":{...},"hash":"<64 hexadecimal digits>"}

and its hash is SHA-256 (FIPS 180-4) over the hash of the event before it, as those 64
digits, followed by the line as it would be without its hash: `{"seq":7, ... ,"data":{...}}`.
Before event 1 there are 64 zeros. A line is ASCII, all else is escaped as JSON escapes it. So
anybody can follow an exported chain, without parsing it: cut the last 75 bytes of a line off,
put `}` back, hash.

A chain alone can be recomputed by whoever edits it. Therefore its head, which says how far
the chain goes, and its anchor, which says where it begins, carry an HMAC (RFC 2104) under a
key that is kept beside the log.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import PydanticSerializationError

from toolcell.events.record import Event

GENESIS = "0" * 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Head:
    """How far a log goes and where it begins: its last event, and the last that was pruned.

    Sequence numbers have no gaps and begin with 1, so that the anchor's is also the number of
    events that were ever pruned.
    """

    sequence: int = 0
    hash: str = GENESIS
    anchor_sequence: int = 0
    anchor_hash: str = GENESIS


@dataclass(frozen=True, slots=True)
class Row:
    """One event as it is stored: `body` is its JSON, `columns` repeat what is searched by."""

    sequence: int
    body: str
    hash: str
    columns: tuple[Any, ...]

    @property
    def line(self) -> str:
        """The row as one line of JSON, as it is exported."""
        return f'{_unhashed(self.sequence, self.body)[:-1]},"hash":"{self.hash}"}}'

    @property
    def event(self) -> Event:
        """The event; raises ValueError where the row was edited into something else."""
        return Event.model_validate_json(self.body)


def body_of(event: Event) -> str:
    """Return an event as it is stored; lone surrogates, which are no characters, are spelled."""
    try:
        return event.model_dump_json(ensure_ascii=True)
    except PydanticSerializationError:
        event = event.model_copy(update={"data": _storable(event.data)})
        return event.model_dump_json(ensure_ascii=True)


def columns_of(event: Event) -> tuple[int, str, str, str, str, str]:
    """Return what is searched by: microseconds since 1970, kind, run, key, call_id, tool_name."""
    at = microseconds(event.at)
    return at, str(event.kind), event.run, event.key, event.call_id, event.tool_name


def microseconds(at: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def link(previous: str, sequence: int, body: str) -> str:
    """Return the hash of an event after one with the hash `previous`."""
    text = previous + _unhashed(sequence, body)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def seal(key: bytes, head: Head) -> str:
    """Return the HMAC over a head and its anchor."""
    fields = (head.sequence, head.hash, head.anchor_sequence, head.anchor_hash)
    text = "toolcell events 1\n" + "\n".join(map(str, fields))
    return hmac.digest(key, text.encode("utf-8", "surrogateescape"), "sha256").hex()


def key_id(key: bytes) -> str:
    """Return what tells a key from others and gives nothing of it away."""
    return hashlib.sha256(b"toolcell events key\n" + key).hexdigest()[:16]


def fault(previous: str, row: Row) -> str:
    """Return what is wrong with a row that follows the hash `previous`; empty where nothing is."""
    if link(previous, row.sequence, row.body) != row.hash:
        return "it does not fit the chain: it was changed, or put in this place"
    try:
        columns = columns_of(row.event)
    except (ValueError, OverflowError):
        return "it is not an event"
    return "" if columns == row.columns else "what it is searched by was changed"


def _unhashed(sequence: int, body: str) -> str:
    return f'{{"seq":{sequence},{body[1:]}'


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return "(nested too deeply to be kept)"
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_storable(k): _storable(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item, depth + 1) for item in value]
    return value
