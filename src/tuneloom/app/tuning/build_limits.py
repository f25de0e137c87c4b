"""How long a build may take, learned from the builds of its kind."""

from bisect import insort
from dataclasses import dataclass, field

_ENOUGH = 8  # builds of a class, before they speak for it
_HIGH = 0.9  # the quantile that stands for a slow build, not for a straggler
_FAR = 5.0  # times that: a build far beyond all others
_LATE = 2.0  # times that: too late when nothing else is left to do
_FLOOR_S = 6.0  # never less: a busy machine is no reason to give up a build
_LATE_FLOOR_S = 4.0  # nor is it at the end, where the machine may just have become busy


@dataclass(slots=True)
class BuildLimits:
    """What builds of one job took, by kernel class; `most_s` is the limit that the user gave."""

    most_s: float
    _all: list[float] = field(default_factory=list)
    _by_class: dict[str, list[float]] = field(default_factory=dict)

    def learn(self, kernel_class: str, seconds: float) -> None:
        """A build came to its end."""
        insort(self._all, seconds)
        insort(self._by_class.setdefault(kernel_class, []), seconds)

    def limit_s(self, kernel_class: str) -> float:
        """After so long a build is given up."""
        slow_s = self._slow_s(kernel_class)
        return self.most_s if slow_s is None else min(self.most_s, max(_FLOOR_S, _FAR * slow_s))

    def late_s(self, kernel_class: str) -> float:
        """After so long a build is given up if everything waits for it alone."""
        slow_s = self._slow_s(kernel_class)
        return self.most_s if slow_s is None else min(self.most_s, max(_LATE_FLOOR_S, _LATE * slow_s))

    def _slow_s(self, kernel_class: str) -> float | None:
        """What a slow build takes: of this class, or of any where the class has shown little."""
        own = self._by_class.get(kernel_class, [])
        seen = own if len(own) >= _ENOUGH else self._all
        return seen[int(_HIGH * (len(seen) - 1))] if len(seen) >= _ENOUGH else None
