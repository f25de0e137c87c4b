"""Invented spaces of different character, each made from a seed: what a search has to cope with.

A space is a character (what makes the times) and a way to fail (what does not run, and
how much of the space). Even seeds are for development, odd ones are kept for the final
check: methods are chosen without looking at them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuneloom.model import FailureKind
from tuneloom.tuners.kernel.space import KnobValue, Space
from tuneloom.tuners.replay.recording import Entry, Recording, Row

Vector = NDArray[np.float64]
Places = NDArray[np.int64]
Chance = np.random.Generator
INVALID = (0.0, 0.1, 0.5, 0.9, 0.99)
_SIZES, _NAMES = ((3, 8), (5, 11)), ("naive", "tiled", "packed", "shared", "vector", "async", "split", "tree")
_LARGEST, _SMALLEST = 24_000, 4_000
_LIMITS_TRIED = 1000


@dataclass(frozen=True, slots=True)
class Grid:
    """All points of a space: sizes as numbers from 0 to 1, choices as places."""

    sizes: Vector
    choices: Places

    @property
    def counted(self) -> list[int]:
        return [int(column.max()) + 1 for column in self.choices.T]


def _ridge(grid: Grid, rng: Chance) -> Vector:
    """Fast only along a narrow ridge across several knobs, and slowly faster along it."""
    across = rng.normal(0, 1, grid.sizes.shape[1])
    across /= np.abs(across).sum()
    value = grid.sizes @ across
    off = np.abs(value - np.quantile(value, rng.uniform(0.2, 0.8)))
    along = np.abs(grid.sizes - rng.random(grid.sizes.shape[1])).sum(axis=1)
    return np.asarray(6 * off + 0.35 * along + _chosen(grid, rng, 0.15))


def _plateaus(grid: Grid, rng: Chance) -> Vector:
    """Few different times, each over wide areas, as where only occupancy counts."""
    height = _bowl(grid, rng) + 0.6 * _waves(grid, rng, 1.5) + _chosen(grid, rng, 0.2)
    return np.asarray(np.floor(height / 0.18) * 0.18)


def _rugged(grid: Grid, rng: Chance) -> Vector:
    """Many local optima over a weak bowl."""
    return np.asarray(0.6 * _bowl(grid, rng) + 1.2 * _waves(grid, rng, 5.0) + _chosen(grid, rng, 0.2))


def _decoy(grid: Grid, rng: Chance) -> Vector:
    """A wide basin a fifth slower than the best, which lies in a narrow one elsewhere."""
    wide, narrow = (grid.sizes[rng.integers(len(grid.sizes))] for _ in range(2))
    to_wide = np.sqrt(((grid.sizes - wide) ** 2).mean(axis=1))
    to_narrow = np.sqrt(((grid.sizes - narrow) ** 2).mean(axis=1))
    basin = np.minimum(0.2 + 1.6 * to_wide**2, 4.5 * to_narrow)
    return np.asarray(basin + _chosen(grid, rng, 0.2) + 0.05 * _waves(grid, rng, 2.0))


def _choices(grid: Grid, rng: Chance) -> Vector:
    """Choices without order decide, also pairwise; sizes matter differently for each."""
    total = _chosen(grid, rng, 0.5) + 0.5 * _bowl(grid, rng)
    counts = grid.counted
    for i in range(len(counts)):
        for j in range(i):
            twist = rng.normal(0, 0.25, (counts[i], counts[j]))
            total += twist[grid.choices[:, i], grid.choices[:, j]]
        slopes = rng.normal(0, 0.3, (counts[i], grid.sizes.shape[1]))
        total += (slopes[grid.choices[:, i]] * (grid.sizes - 0.5)).sum(axis=1)
    return np.asarray(total)


def _epistasis(grid: Grid, rng: Chance) -> Vector:
    """Every knob's share is drawn anew for each combination with two others: nothing is smooth."""
    columns = [np.unique(column, return_inverse=True)[1] for column in grid.sizes.T] + list(grid.choices.T)
    total = np.zeros(len(grid.sizes))
    for i, column in enumerate(columns):
        alone = rng.normal(0, 0.25, int(column.max()) + 1)
        total += alone[column]
        j, k = rng.choice([n for n in range(len(columns)) if n != i], size=2, replace=False)
        shares = rng.normal(0, 0.12, tuple(int(columns[n].max()) + 1 for n in (i, j, k)))
        total += shares[column, columns[j], columns[k]]
    return total


def _cliffs(grid: Grid, rng: Chance) -> Vector:
    """The slowest of several pipelines, slower by steps wherever a hidden resource is crossed."""
    slopes = rng.normal(0, 1.6, (grid.sizes.shape[1], 3))
    total = (grid.sizes @ slopes + rng.normal(0, 0.3, 3)).max(axis=1)
    for _ in range(4):
        total += np.where(_beyond(grid.sizes, rng.uniform(0.4, 0.8), rng), rng.uniform(0.1, 0.6), 0.0)
    return np.asarray(total + _chosen(grid, rng, 0.25))


def _tails(grid: Grid, rng: Chance) -> Vector:
    """Times over four orders of magnitude with outliers at random, and noise of some per cent."""
    height = 3.0 * _bowl(grid, rng) ** 1.5 + 2.0 * np.maximum(_waves(grid, rng, 2.0), 0)
    outliers = np.where(rng.random(len(height)) < 0.08, rng.pareto(1.0, len(height)), 0.0)
    return np.asarray(
        height + np.log1p(outliers) + rng.normal(0, 0.03, len(height)) + _chosen(grid, rng, 0.3)
    )


def _periods(grid: Grid, rng: Chance) -> Vector:
    """Sizes are good where they are multiples of something: neighbours differ more than the far."""
    total = 0.8 * _bowl(grid, rng) + _chosen(grid, rng, 0.15)
    for column in grid.sizes.T:
        place = np.unique(column, return_inverse=True)[1]
        period, phase = int(rng.integers(2, 4)), int(rng.integers(0, 3))
        total += np.where((place + phase) % period == 0, 0.0, rng.uniform(0.05, 0.4))
    return np.asarray(total)


def _conditional(grid: Grid, rng: Chance) -> Vector:
    """Which sizes matter, and where their best is, depends on the choice of the first knob."""
    total, first = _chosen(grid, rng, 0.2), grid.choices[:, 0]
    for value in range(grid.counted[0]):
        here = first == value
        weights = rng.exponential(0.7, grid.sizes.shape[1]) * (rng.random(grid.sizes.shape[1]) < 0.6)
        total[here] += np.abs(grid.sizes[here] - rng.random(grid.sizes.shape[1])) @ weights
    return total


def _needles(grid: Grid, rng: Chance) -> Vector:
    """Nearly additive, but the best are a handful of points that two limits cut out of a wide slope."""
    total = grid.sizes @ rng.normal(0, 0.8, grid.sizes.shape[1]) + _chosen(grid, rng, 0.2)
    for _ in range(2):
        total += np.where(_beyond(grid.sizes, 0.5, rng), 0.0, 0.25)
    return np.asarray(total + 0.15 * _waves(grid, rng, 3.0))


CHARACTERS: dict[str, Callable[[Grid, Chance], Vector]] = {
    "ridge": _ridge,
    "plateaus": _plateaus,
    "rugged": _rugged,
    "decoy": _decoy,
    "choices": _choices,
    "epistasis": _epistasis,
    "cliffs": _cliffs,
    "tails": _tails,
    "periods": _periods,
    "conditional": _conditional,
    "needles": _needles,
}
SEEDS = range(4)
"""Of each character; the even ones are for development, the odd ones for the final check."""


def landscape(character: str, seed: int) -> Recording:
    """The whole space of a character and a seed."""
    rng = np.random.default_rng([seed, *map(ord, character)])
    space, choices = _space(rng, many_choices=character == "choices")
    points = space.points()
    sizes = points[:, : space.width - choices] / (np.array(space.shape[: space.width - choices]) - 1)
    grid = Grid(sizes, points[:, space.width - choices :])
    logs = CHARACTERS[character](grid, rng)
    share = INVALID[(seed + 2 * list(CHARACTERS).index(character)) % len(INVALID)]
    failed = _failures(sizes, share, rng)
    entries: dict[Row, Entry] = {}
    for point, log, fails in zip(points, _measured(logs, ~failed, rng), failed, strict=True):
        row = tuple(space.configuration(point).values())
        entries[row] = Entry(None, FailureKind.RUN_ERROR) if fails else Entry(float(np.exp(log)))
    return Recording(f"{character}-{seed}", space.names, entries)


def _measured(logs: Vector, valid: NDArray[np.bool_], rng: Chance) -> Vector:
    """Heights so flat that six points to 0.6 % of those that run are within 5 % of the best, as recorded."""
    ran = np.sort(logs[valid] - logs[valid].min())
    close = int(np.exp(rng.uniform(np.log(6), np.log(max(0.006 * len(ran), 8)))))
    return np.asarray((logs - logs[valid].min()) * min(1.0, np.log(1.05) / max(ran[close], 1e-9)))


def _space(rng: Chance, many_choices: bool) -> tuple[Space, int]:
    """Knobs of a few thousand points: sizes, then choices without order."""
    while True:
        choices = int(rng.integers(3, 5)) if many_choices else int(rng.integers(1, 3))
        sizes = int(rng.integers(3, 5)) if many_choices else int(rng.integers(4, 7))
        knobs: dict[str, list[KnobValue]] = {f"size{i}": _values(rng) for i in range(sizes)}
        for i in range(choices):
            count = int(rng.integers(3, 9)) if many_choices else int(rng.integers(2, 5))
            knobs[f"choice{i}"] = list(rng.choice(_NAMES, size=count, replace=False).tolist())
        if _SMALLEST <= np.prod([len(values) for values in knobs.values()]) <= _LARGEST:
            return Space(knobs), choices


def _values(rng: Chance) -> list[KnobValue]:
    linear = rng.random() < 0.4
    low, high = _SIZES[int(linear)]
    count, first = int(rng.integers(low, high)), 2 ** int(rng.integers(0, 5))
    return [first * (j + 1) if linear else first * 2**j for j in range(count)]


def _bowl(grid: Grid, rng: Chance) -> Vector:
    """Slower with the distance from a centre, by each size differently."""
    centre, weights = rng.random(grid.sizes.shape[1]), rng.exponential(1.0, grid.sizes.shape[1])
    return np.asarray(((grid.sizes - centre) ** 2) @ weights)


def _waves(grid: Grid, rng: Chance, frequency: float) -> Vector:
    """A smooth random field: the mean of waves in random directions."""
    directions = rng.normal(0, frequency, (grid.sizes.shape[1], 12))
    return np.asarray(np.cos(grid.sizes @ directions + rng.uniform(0, 2 * np.pi, 12)).mean(axis=1))


def _chosen(grid: Grid, rng: Chance, strength: float) -> Vector:
    """What each choice costs for itself."""
    total = np.zeros(len(grid.sizes))
    for column, count in zip(grid.choices.T, grid.counted, strict=True):
        total += rng.normal(0, strength, count)[column]
    return total


def _beyond(sizes: Vector, quantile: float, rng: Chance) -> NDArray[np.bool_]:
    """Points where a combination of two or three sizes is beyond a quantile."""
    chosen = rng.choice(sizes.shape[1], size=int(rng.integers(2, 4)), replace=False)
    value = sizes[:, chosen] @ rng.choice([1.0, 1.0, -1.0], size=len(chosen))
    return np.asarray(value > np.quantile(value, quantile))


def _failures(sizes: Vector, share: float, rng: Chance) -> NDArray[np.bool_]:
    """About this share fails: by hidden limits, and some at random."""
    failed = np.zeros(len(sizes), dtype=bool)
    if not share:
        return failed
    tolerance = 0.3 * min(share, 1 - share)
    for _ in range(_LIMITS_TRIED):
        if failed.mean() >= share - tolerance:
            return failed | (rng.random(len(sizes)) < 0.05 * share)
        rest = 1 - (1 - share) / (1 - failed.mean())
        more = failed | _beyond(sizes, 1 - min(rest, 0.6), rng)
        failed = more if more.mean() <= share + tolerance else failed
    raise ValueError(f"these sizes allow no limits that {share:.0%} of the points exceed; take another seed")
