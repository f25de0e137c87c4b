"""Finding out which points build before any device time is spent, stopped when it stops paying.

Around a point that builds its neighbours are queued (one knob, one step in the order
of its values); a point that does not build queues a random one. A batch pays if the
model of validity was surprised by it: when its predictions come true, more building
teaches nothing that running candidates would not teach as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.encoding import Encoding
from tuneloom.tuners.kernel.search.pool import as_point, open_points, unseen
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.validity import ValidityModel

_BATCH = 16
_FEW = 64  # always worth it, however few trials follow
_SURPRISE = 0.25  # mean squared error under which predictions have come true; 0.25 is a coin


@dataclass(frozen=True, slots=True)
class Presample:
    """One point that was built, and whether that worked."""

    point: Point
    builds: bool


class Presampling:
    """Batches of points to build, until nothing fails, predictions come true, or there are too many.

    No more are built than trials follow, a few aside: a trial that fails to build costs one build, too.
    """

    def __init__(self, space: Space, seed: int, trials: int) -> None:
        self._most = min(max(_FEW, trials), space.size)
        self._space, self._rng = space, np.random.default_rng([seed, 53])
        self._encoding = Encoding.of(space)
        width = self._encoding.plain(space.sample(1, self._rng)).shape[1]
        self._model = ValidityModel(width, seed)
        self._found: dict[Point, bool] = {}
        self._queue: list[Point] = []
        self._pays = True

    def batch(self) -> list[Point]:
        """The points to build next; none when building more does not pay."""
        if not self._pays or len(self._found) >= self._most:
            return []
        return _drawn(self._space, self._queue, self._found, self._rng)[: self._most - len(self._found)]

    def learn(self, samples: Sequence[Presample]) -> None:
        """Take in what became of a batch."""
        if not samples:
            return
        said = self._model.probability(self._encoding.plain(np.array([s.point for s in samples])))
        error = 0.0
        for sample, chance in zip(samples, said, strict=True):
            error += (float(chance) - sample.builds) ** 2 / len(samples)
            self._take_in(sample)
        self._pays = not (all(self._found.values()) or (self._model.decided and error < _SURPRISE / 4))

    def _take_in(self, sample: Presample) -> None:
        self._found[sample.point] = sample.builds
        self._model.observe(self._encoding.plain(np.array([sample.point]))[0], sample.builds)
        if sample.builds:
            self._queue += [as_point(step) for step in self._space.steps(sample.point)]


def _drawn(
    space: Space, queue: list[Point], found: dict[Point, bool], rng: np.random.Generator
) -> list[Point]:
    """Half of a batch from the queue, the rest at random."""
    fresh = list(dict.fromkeys(point for point in queue if point not in found))
    queue[:] = fresh
    order = rng.permutation(len(fresh))[: _BATCH // 2]
    batch = [fresh[i] for i in order]
    pool = unseen(open_points(space, found, rng), dict.fromkeys(batch))
    batch += [as_point(pool[i]) for i in rng.permutation(len(pool))[: _BATCH - len(batch)]]
    return batch
