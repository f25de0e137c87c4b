"""How many requests one token may make."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

_MOST_KNOWN = 10_000


@dataclass(slots=True)
class Buckets:
    """A bucket for each name that fills at `rate` a second and holds `burst`.

    The names that were seen last are remembered, so memory is bounded whoever knocks.
    """

    rate: float
    burst: float
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, name: str, now_s: float) -> float:
        """Take one from the bucket of a name; 0, or how long to wait for the next."""
        with self._lock:
            level, at_s = self._levels.pop(name, (self.burst, now_s))
            level = min(self.burst, level + (now_s - at_s) * self.rate)
            enough = level >= 1
            self._levels[name] = (level - 1 if enough else level, now_s)
            if len(self._levels) > _MOST_KNOWN:
                self._levels.popitem(last=False)
        return 0.0 if enough else (1 - level) / self.rate
