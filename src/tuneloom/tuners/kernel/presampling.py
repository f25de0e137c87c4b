"""Finding out which points build before any device time is spent, stopped when it stops paying.

Around a point that builds its neighbours are queued (one knob, one step in the order
of its values); a point that does not build queues a random one. A batch pays if the
model of validity was surprised by it: when its predictions come true, more building
teaches nothing that running candidates would not teach as well.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuneloom.tuners.kernel.encoding import Encoding
from tuneloom.tuners.kernel.guided import Point
from tuneloom.tuners.kernel.pool import open_points, unseen
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.validity import ValidityModel

_BATCH = 16
_MOST = 1000
_SURPRISE = 0.25  # mean squared error under which predictions have come true; 0.25 is a coin


@dataclass(frozen=True, slots=True)
class Presample:
    """One point that was built, and whether that worked."""

    point: Point
    builds: bool


def presampled(space: Space, builds: Callable[[Point], bool], seed: int) -> list[Presample]:
    """Build batches of points until nothing fails, predictions come true, or the limit is reached."""
    rng = np.random.default_rng([seed, 53])
    encoding = Encoding.of(space)
    model = ValidityModel(encoding.plain(space.sample(1, rng)).shape[1], seed)
    found: dict[Point, bool] = {}
    queue: list[Point] = []
    while len(found) < min(_MOST, space.size):
        batch = _drawn(space, queue, found, rng)
        if not batch:
            break
        said = model.probability(encoding.plain(np.array(batch)))
        error = 0.0
        for point, chance in zip(batch, said, strict=True):
            found[point] = builds(point)
            error += (float(chance) - found[point]) ** 2 / len(batch)
            model.observe(encoding.plain(np.array([point]))[0], found[point])
            if found[point]:
                queue += [_tuple(step) for step in space.steps(point)]
        if all(found.values()) or (model.decided and error < _SURPRISE / 4):
            break
    return [Presample(point, worked) for point, worked in found.items()]


def _drawn(
    space: Space, queue: list[Point], found: dict[Point, bool], rng: np.random.Generator
) -> list[Point]:
    """Half of a batch from the queue, the rest at random."""
    fresh = list(dict.fromkeys(point for point in queue if point not in found))
    queue[:] = fresh
    order = rng.permutation(len(fresh))[: _BATCH // 2]
    batch = [fresh[i] for i in order]
    pool = unseen(open_points(space, found, rng), dict.fromkeys(batch))
    batch += [_tuple(pool[i]) for i in rng.permutation(len(pool))[: _BATCH - len(batch)]]
    return batch


def _tuple(point: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Point:
    return tuple(int(i) for i in point)
