"""Which sizes of a dimension that varies were asked for, counted in a file of the bundle."""

import atexit
import json
from contextlib import suppress
from pathlib import Path

ASKED = "asked.log"
"""Which sizes were asked for, if a dimension varies: in each line, sizes and how often."""
ASKED_ELSEWHERE = "asked.json"
"""Says in which file they are, if a bundle is one file."""


class SizeLog:
    """How often each size was asked for: counted here, and appended to the bundle's log now and then."""

    def __init__(self, folder: Path) -> None:
        place = folder / ASKED_ELSEWHERE
        self._path = Path(json.loads(place.read_text())) if place.is_file() else folder / ASKED
        self._counts: dict[int, int] = {}
        self._runs, self._next = 0, 1

    def note(self, size: int) -> None:
        """Count one run; what is counted is written after 1, 2, 4, … runs, and when the process ends."""
        if not self._runs:
            atexit.register(self.write)
        self._counts[size] = self._counts.get(size, 0) + 1
        self._runs += 1
        if self._runs >= self._next:
            self._next *= 2
            self.write()

    def write(self) -> None:
        """Append what was counted since; nothing where the folder can't be written to."""
        counts, self._counts = self._counts, {}
        with suppress(OSError):
            if counts:
                with self._path.open("a") as file:
                    file.write(json.dumps(counts) + "\n")

    def read(self) -> dict[int, int]:
        """What all processes have written so far; lines that can't be read are left out."""
        total: dict[int, int] = {}
        with suppress(OSError):
            for line in self._path.read_text().splitlines():
                with suppress(ValueError, AttributeError, TypeError):
                    for size, count in json.loads(line).items():
                        total[int(size)] = total.get(int(size), 0) + int(count)
        return total
