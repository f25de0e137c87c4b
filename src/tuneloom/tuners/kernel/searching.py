"""What a search's worker does besides selecting and updating: presampling, and telling what was learned."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tuneloom.model import Candidate, SearchOptions, Task, Trial
from tuneloom.tuners.kernel.cargo import space_of
from tuneloom.tuners.kernel.search.guided import GuidedSearch
from tuneloom.tuners.kernel.search.insight import pairs_told
from tuneloom.tuners.kernel.search.presampling import Presample, Presampling
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.kernel.tuner import KernelTuner, candidate_of

_presamplings: dict[str, Presampling] = {}
_DRAWN = 4000  # points that stand for all others of a pair of values


def presample(
    key: str, task: Task, options: SearchOptions, samples: Sequence[tuple[str, bool]]
) -> list[Candidate]:
    """What to build next to learn what builds; `samples` tell what became of the last batch.

    None when it does not pay any more, or when this process does not know the earlier batches.
    """
    space = space_of(task)
    if key not in _presamplings and samples:
        return []
    presampling = _presamplings.setdefault(key, Presampling(space, options.seed, options.trials))
    presampling.learn([Presample(space.point(json.loads(text)), builds) for text, builds in samples])
    return [candidate_of(space, point) for point in presampling.batch()]


def insight(task: Task, options: SearchOptions, trials: Sequence[Trial]) -> dict[str, Any]:
    """What failed where and what is expected elsewhere, and how much each knob matters; plain data."""
    space = space_of(task)
    search = KernelTuner().open(task, options, trials).points
    known = search if isinstance(search, GuidedSearch) else None
    expected = _Expected(space, known, options.seed)
    return {"pairs": pairs_told(space.knobs, trials, expected.of), "importance": search.relevance()}


class _Expected:
    """The chance to be valid of points drawn from the space, for averages over pairs of values."""

    def __init__(self, space: Space, search: GuidedSearch | None, seed: int) -> None:
        self._space = space
        self._points = space.sample(_DRAWN, np.random.default_rng([seed, 61]))
        self._chances = search.validity(self._points) if search is not None else None

    def of(self, first: str, i: int, second: str, j: int) -> float | None:
        """The mean chance where the knobs have these values; None if it is unknown."""
        if self._chances is None:
            return None
        one, other = self._space.names.index(first), self._space.names.index(second)
        here = np.logical_and(self._points[:, one] == i, self._points[:, other] == j)
        return float(self._chances[here].mean()) if here.any() else None
