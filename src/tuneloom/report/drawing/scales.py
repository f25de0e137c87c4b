"""From values to pixels, and where the ticks go."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Linear:
    """Equal steps take equal space."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        """Round values in range, roughly this many."""
        step = nice_step((self.high - self.low) / max(1, about))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """Equal ratios take equal space; values are positive."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = math.log(self.high / self.low) or 1.0
        return self.start + math.log(value / self.low) / span * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        """Powers of ten in range, with 2 and 5 between them, or finer, where those are too few."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)):
            found = [s * 10.0**e for e in range(first, last + 1) for s in steps]
            inside = [tick for tick in found if self.low * 0.9999 <= tick <= self.high * 1.0001]
            if len(inside) >= min(3, about):
                return inside[:: max(1, math.ceil(len(inside) / (about + 1)))]
        return Linear(self.low, self.high, self.start, self.end).ticks(about)


def nice_step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `rough`."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999999)


def nice_seconds(rough: float) -> float:
    """A step for a time axis: also quarters and halves of minutes and hours."""
    if rough <= 5:
        return nice_step(rough)
    steps = (10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
    return float(next((step for step in steps if step >= rough), 86400 * math.ceil(rough / 86400)))


def around(values: list[float], margin: float = 1.08) -> tuple[float, float]:
    """The range of positive values with a margin, for a logarithmic axis."""
    low, high = min(values), max(values)
    if high / low < 1.02:
        low, high = low / 1.25, high * 1.25
    return low / margin, high * margin
