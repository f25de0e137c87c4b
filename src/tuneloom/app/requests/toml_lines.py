"""Where things stand in a TOML file, so that an error can name the line.

The standard library reads TOML but forgets the lines. This scan knows just enough of the
syntax to find headers and keys: strings, comments, brackets and nothing else.
"""

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_QUOTES = ('"""', "'''", '"', "'")


class TomlLines:
    """The line of every table and key of a TOML text that parses."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        table: Path = ()
        for number, line in _statements(text):
            if header := _HEADER.match(line):
                table = self._opened(_parts(header[2]), repeated=header[1] == "[[")
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._note(table + _parts(key[1]), number, len(table))

    def of(self, *path: str | int) -> int:
        """The line of a key or table; of the nearest thing around it if it has none of its own."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _opened(self, names: Path, *, repeated: bool) -> Path:
        """A header's table with the numbers of the lists it lies in."""
        table: Path = ()
        for place, name in enumerate(names):
            table += (name,)
            last = place == len(names) - 1
            if last and repeated:
                self._counts[table] = self._counts.get(table, -1) + 1
            if table in self._counts:
                table += (self._counts[table],)
        return table

    def _note(self, path: Path, number: int, known: int) -> None:
        for length in range(known + 1, len(path) + 1):
            self._lines.setdefault(path[:length], number)


def _parts(text: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(text))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines on which something begins, with their numbers."""
    depth, quote = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if not depth and not quote:
            yield number, line
        depth, quote = _after(line, depth, quote)


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How deep in brackets, and in which string, a line ends."""
    place = 0
    while place < len(line):
        if quote:
            if line[place] == "\\" and quote[0] == '"':
                place += 2
                continue
            if line.startswith(quote, place):
                place += len(quote)
                quote = ""
                continue
        elif line[place] == "#":
            break
        else:
            quote = next((q for q in _QUOTES if line.startswith(q, place)), "")
            depth += (line[place] in "[{") - (line[place] in "]}")
            place += max(0, len(quote) - 1)
        place += 1
    return depth, quote if len(quote) == 3 else ""
