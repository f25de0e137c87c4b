"""Commands in Markdown pages, so that tests can run them.

Fenced blocks marked `console` hold commands after `$ ` and what they print, blocks marked
`sh` commands alone; blocks marked `python` are programs. A comment of the form
`<!-- test: … -->` concerns the commands below it:

- `"zoo:squeezenet" -> "net.onnx", "--trials 500" -> "--trials 6"`: put cheaper words in,
  until the end of the page or the next comment of this kind;
- `not run: REASON`: leave the next block out;
- `exits with 2`: what the commands of the next block should end with.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PIECE = re.compile(
    r"<!-- test: (?P<note>.*?) -->|^```(?P<kind>console|sh|python)\n(?P<body>.*?)^```$", re.S | re.M
)
_SWAP = re.compile(r'"([^"]+)"\s*->\s*"([^"]*)"')
_EXIT = re.compile(r"exits with (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: shell commands or a program, as they should be run."""

    line: int
    kind: str
    commands: tuple[str, ...]
    exit_code: int = 0


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that can be run, in order."""
    return list(_blocks(page.read_text()))


def _blocks(text: str) -> Iterator[Block]:
    swaps: dict[str, str] = {}
    skip, exit_code = False, 0
    for piece in _PIECE.finditer(text):
        note = piece["note"]
        if note is not None:
            skip = skip or note.startswith("not run:")
            exit_code = int(found[1]) if (found := _EXIT.match(note)) else exit_code
            swaps = dict(_SWAP.findall(note)) or swaps
            continue
        if not skip:
            line = text.count("\n", 0, piece.start()) + 1
            commands = tuple(_swapped(c, swaps) for c in _commands(piece["kind"], piece["body"]))
            yield Block(line=line, kind=piece["kind"], commands=commands, exit_code=exit_code)
        skip, exit_code = False, 0


def _commands(kind: str, body: str) -> Iterator[str]:
    if kind == "python":
        yield body
        return
    lines = body.replace("\\\n", " ").splitlines()
    if kind == "sh":
        yield from (line for line in lines if line.strip())
    else:
        yield from (line[2:] for line in lines if line.startswith("$ "))


def _swapped(command: str, swaps: dict[str, str]) -> str:
    for words, others in swaps.items():
        command = command.replace(words, others)
    return command
