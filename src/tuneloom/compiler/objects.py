"""Object files: a function under another name, so that kernels built alone can be linked into one model."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_SECTIONS_AT, _COUNT_AT = 0x28, 0x3A
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_SYMBOL_TABLE = 2


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def renamed(code: bytes, old: str, new: str) -> bytes | None:
    """An object file whose symbol `old` is called `new`; None if it has none, or is in another format."""
    if not code.startswith(_MAGIC):
        return None
    places = list(_places(code))
    sections = [_Section(*_SECTION.unpack_from(code, place)) for place in places]
    for table in (each for each in sections if each.kind == _SYMBOL_TABLE):
        names = sections[table.link]
        symbol = _symbol(code, table, names, old.encode())
        if symbol is not None:
            text = code[names.offset : names.offset + names.size] + new.encode() + b"\0"
            changed = bytearray(code + text)
            struct.pack_into("<I", changed, symbol, names.size)
            moved = names._replace(offset=len(code), size=len(text))
            _SECTION.pack_into(changed, places[table.link], *moved)
            return bytes(changed)
    return None


def _places(code: bytes) -> Iterator[int]:
    """Where the headers of sections are."""
    (start,) = struct.unpack_from("<Q", code, _SECTIONS_AT)
    size, count = struct.unpack_from("<HH", code, _COUNT_AT)
    yield from range(start, start + size * count, size)


def _symbol(code: bytes, table: _Section, names: _Section, wanted: bytes) -> int | None:
    """Where a symbol of this name is."""
    for place in range(table.offset, table.offset + table.size, _SYMBOL_BYTES):
        start = names.offset + struct.unpack_from("<I", code, place)[0]
        if code.startswith(wanted + b"\0", start):
            return place
    return None
