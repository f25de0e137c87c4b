"""How values become columns and rows records: JSON as text, long text and payloads compressed."""

import json
import zlib
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Row

from tuneloom.store.records import Json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
PLAIN, ZLIB = b"\x00", b"\x01"
WORTH_COMPRESSING = 256
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def to_json(value: Json) -> str:
    """JSON in ASCII, which every database and encoding carries; NaN and infinity are kept."""
    return _ENCODER.encode(value)


def from_json(text: str) -> Json:
    """The value `to_json` was given, tuples as lists."""
    return json.loads(text)


def pack(data: bytes) -> bytes:
    """Bytes behind a mark that says whether they are compressed; short ones are not."""
    if len(data) < WORTH_COMPRESSING:
        return PLAIN + data
    return ZLIB + zlib.compress(data, 6)


def unpack(data: bytes) -> bytes:
    """What `pack` was given."""
    return zlib.decompress(data[1:]) if data[:1] == ZLIB else data[1:]


def pack_text(text: str) -> bytes:
    """Text as packed bytes; even text that is no valid Unicode comes back as it was."""
    return pack(text.encode("utf-8", "surrogatepass"))


def unpack_text(data: bytes) -> str:
    """What `pack_text` was given."""
    return unpack(data).decode("utf-8", "surrogatepass")


def printable(text: str) -> str:
    """Text for people that every database accepts: NUL and broken Unicode are replaced.

    Compilers and crashed kernels write anything into their messages, and a message must
    not cost a trial.
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\N{REPLACEMENT CHARACTER}")


def from_row(kind: type[Record], row: Row[Any], /, **given: Any) -> Record:
    """The record with the columns of a row as its fields, but for those that are given."""
    own = {name: getattr(row, name) for name in _names(kind) if name not in given}
    return kind(**own, **given)


@cache
def _names(kind: type[Record]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
