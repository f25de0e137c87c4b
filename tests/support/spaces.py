"""Invented spaces that behave like kernels, and what is known of recorded ones, for judging searches.

A configuration's time is the slowest of several pipelines, each a product of powers
of the knobs; crossing a hidden resource makes it slower by a step, crossing another
makes it fail; choices without order scale it. All of it is drawn from the seed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuneloom.model import FailureKind
from tuneloom.tuners.kernel.factors import Point, Points
from tuneloom.tuners.kernel.search.presampling import Presample, Presampling
from tuneloom.tuners.kernel.search.terms import Knowledge
from tuneloom.tuners.kernel.space import KnobValue, Space
from tuneloom.tuners.replay.recording import Entry, Recording, Row

Vector = NDArray[np.float64]
_PIPELINES = 3
_CLIFFS = 2


@dataclass(frozen=True, slots=True)
class Recipe:
    """How large an invented space is and how much of it fails."""

    sizes: int = 5
    choices: int = 2
    invalid_share: float = 0.5
    limits: int = 2

    def __post_init__(self) -> None:
        if self.sizes < 2 or not 0 <= self.invalid_share < 1 or self.limits < 1:
            raise ValueError(f"a recipe needs 2 sizes, a limit and a share below 1, got {self}")


def invented(seed: int, recipe: Recipe | None = None) -> Recording:
    """The recording of a whole invented space."""
    recipe = recipe or Recipe()
    rng = np.random.default_rng([seed, 97])
    space = Space(_knobs(recipe, rng))
    points = space.points()
    logs = np.column_stack(
        [np.log2(np.array(v, float))[points[:, i]] for i, v in enumerate(space.knobs.values())]
    )
    sizes = logs[:, : recipe.sizes]
    times = _times(sizes, points[:, recipe.sizes :], rng)
    failed = _failures(sizes, recipe, rng)
    entries: dict[Row, Entry] = {}
    for point, time, fails in zip(points, times, failed, strict=True):
        row = tuple(space.configuration(point).values())
        entries[row] = Entry(None, FailureKind.RUN_ERROR) if fails else Entry(float(time))
    return Recording(f"invented-{seed}-{recipe.invalid_share:g}", space.names, entries)


def _knobs(recipe: Recipe, rng: np.random.Generator) -> dict[str, list[KnobValue]]:
    knobs: dict[str, list[KnobValue]] = {}
    for i in range(recipe.sizes):
        count, first = int(rng.integers(3, 8)), int(rng.integers(0, 4))
        linear = rng.random() < 0.3
        step = 2**first
        knobs[f"size{i}"] = [step * (j + 1) if linear else step * 2**j for j in range(count)]
    for i in range(recipe.choices):
        knobs[f"choice{i}"] = list(range(1, int(rng.integers(2, 5)) + 1))
    return knobs


def _times(sizes: Vector, choices: NDArray[np.int64], rng: np.random.Generator) -> Vector:
    centred = sizes - sizes.mean(axis=0)
    slopes = rng.normal(0, 0.35, (sizes.shape[1], _PIPELINES))
    pipelines = np.exp2(centred @ slopes + rng.normal(0, 0.5, _PIPELINES))
    times = np.power((pipelines**4).sum(axis=1), 0.25)
    for _ in range(_CLIFFS):
        times *= np.where(_crossed(sizes, 0.7, rng), 1 + rng.random() * 1.5, 1.0)
    bumps = rng.normal(0, 0.25, (sizes.shape[1],))
    target = sizes[rng.integers(len(sizes))]
    times *= np.exp2(np.abs(sizes - target) @ np.abs(bumps))
    for column in choices.T:
        factors = np.exp2(rng.normal(0, 0.25, int(column.max()) + 1))
        twist = np.exp2(rng.normal(0, 0.08, (int(column.max()) + 1, sizes.shape[1])))
        times *= factors[column] * np.exp2(centred @ np.log2(twist).T)[np.arange(len(column)), column]
    return np.asarray(times * np.exp(rng.normal(0, 0.01, len(times))), dtype=np.float64)


def _crossed(sizes: Vector, quantile: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Points whose product or ratio of two or three knobs is beyond a quantile."""
    chosen = rng.choice(sizes.shape[1], size=min(sizes.shape[1], int(rng.integers(2, 4))), replace=False)
    signs = rng.choice([1.0, 1.0, -1.0], size=len(chosen))
    value = sizes[:, chosen] @ signs
    return np.asarray(value > np.quantile(value, quantile), dtype=bool)


def _failures(sizes: Vector, recipe: Recipe, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Failures by hidden limits, together about the recipe's share of the points."""
    failed = np.zeros(len(sizes), dtype=bool)
    if not recipe.invalid_share:
        return failed
    each = 1 - (1 - recipe.invalid_share) ** (1 / recipe.limits)
    for _ in range(recipe.limits):
        failed |= _crossed(sizes, 1 - each, rng)
    return failed if not failed.all() else np.zeros(len(sizes), dtype=bool)


def perfect_knowledge(recording: Recording) -> Knowledge:
    """The validity of every point as recorded: what no search can know."""

    def known(points: Points) -> Vector:
        return np.array(
            [1.0 if recording.at(point).time_ms is not None else 1e-12 for point in points.tolist()]
        )

    return known


def presampled(space: Space, builds: Callable[[Point], bool], seed: int, trials: int) -> list[Presample]:
    """All points that a presampling builds, with what became of them."""
    presampling, found = Presampling(space, seed, trials), []
    while batch := presampling.batch():
        samples = [Presample(point, builds(point)) for point in batch]
        presampling.learn(samples)
        found += samples
    return found
