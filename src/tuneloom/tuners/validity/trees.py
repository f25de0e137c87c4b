"""Random trees over products, ratios and sums of sizes: they catch what no set of limits explains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Directions, Matrix, picked
from tuneloom.tuners.validity.rules import Flags

_TRIED = 0.3  # share of the directions that a node looks at
_MOST_TRIED = 200


@dataclass(frozen=True, slots=True)
class Trees:
    """Nodes of one or more trees in arrays; right of a node's left child stands its right one.

    A leaf is its own left child, and nothing lies beyond its threshold.
    """

    roots: NDArray[np.int64]
    direction: NDArray[np.int64]
    threshold: Matrix
    left: NDArray[np.int64]
    valid: Matrix
    depth: int

    @classmethod
    def joined(cls, trees: Sequence["Trees"]) -> "Trees":
        """Single trees one after the other, so that rows go down all of them at once."""
        roots = np.cumsum([0, *(len(tree.left) for tree in trees[:-1])])
        return cls(
            roots,
            np.concatenate([tree.direction for tree in trees]),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate([tree.left + root for tree, root in zip(trees, roots, strict=True)]),
            np.concatenate([tree.valid for tree in trees]),
            max(tree.depth for tree in trees),
        )

    def reached(self, along: Matrix) -> Matrix:
        """The share of valid points in the leaf that each row reaches in each tree."""
        node = np.tile(self.roots, (len(along), 1))
        first = np.arange(len(along))[:, None] * along.shape[1]
        for _ in range(self.depth):
            right = along.take(first + self.direction.take(node)) > self.threshold.take(node)
            node = self.left.take(node) + right
        return np.asarray(self.valid[node], dtype=np.float64)


_NO_NODE = (0, float("inf"), 0, 0.0)


class TreeEnsemble:
    """Extremely randomised trees; those that a new point contradicts are renewed."""

    def __init__(self, directions: Directions, members: int, rng: np.random.Generator) -> None:
        self._directions, self._rng, self._count = directions, rng, members
        self._trees: list[Trees] = []
        self._turn = 0
        self._used = np.empty(0, dtype=np.int64)

    def learn(self, along: Matrix, valid: Flags) -> None:
        """Take in points by their values along all directions; the last one is new."""
        if not self._trees:
            self._trees = [_grow(along, valid, self._rng) for _ in range(self._count)]
        else:
            self._turn = (self._turn + 1) % self._count
            wrong = (self._forest.reached(along[-1:, self._used])[0] >= 0.5) != bool(valid[-1])
            wrong[self._turn] = True
            for place in np.flatnonzero(wrong):
                self._trees[place] = _grow(along, valid, self._rng)
        self._join()

    def _join(self) -> None:
        """Keep the trees as they are asked: all at once, and by the directions that they use."""
        trees = Trees.joined(self._trees)
        self._used, place = np.unique(trees.direction, return_inverse=True)
        self._forest, self._asked = replace(trees, direction=place), self._directions.only(self._used)

    def probability(self, rows: Matrix) -> NDArray[np.float64]:
        """The mean share of valid points in the leaves that rows reach."""
        return np.asarray(self._forest.reached(self._asked.along(rows)).mean(axis=1))


def _grow(along: Matrix, valid: Flags, rng: np.random.Generator) -> Trees:
    tried = max(1, min(_MOST_TRIED, int(_TRIED * along.shape[1])))
    nodes = [_NO_NODE]
    open_ = [(0, np.arange(len(valid)), 0)]
    depth = 0
    while open_:
        place, rows, level = open_.pop()
        depth = max(depth, level)
        share = float(valid[rows].mean())
        split = None if share in (0.0, 1.0) else _split(along, valid, rows, tried, rng)
        if split is None:
            nodes[place] = (0, np.inf, place, share)
            continue
        along_which, cut = split
        right = along[rows, along_which] > cut
        nodes[place] = (along_which, cut, len(nodes), share)
        open_ += [(len(nodes), rows[~right], level + 1), (len(nodes) + 1, rows[right], level + 1)]
        nodes += [_NO_NODE] * 2
    direction, threshold, left, valid_share = (np.array(column) for column in zip(*nodes, strict=True))
    return Trees(np.zeros(1, np.int64), direction, threshold, left, valid_share, depth)


def _split(
    along: Matrix, valid: Flags, rows: NDArray[np.int64], tried: int, rng: np.random.Generator
) -> tuple[int, float] | None:
    """The purest of some random cuts, or None where the points can't be told apart."""
    chosen = rng.integers(along.shape[1], size=tried)
    values = picked(along, rows, chosen)
    low, high = values.min(axis=0), values.max(axis=0)
    cut = low + (high - low) * rng.random(tried)
    known = np.stack([np.ones(len(rows)), valid[rows]])  # a product counts faster than sums of flags
    count, good = known @ (values > cut).astype(np.float64)
    score = _impurity(good, count) + _impurity(known[1].sum() - good, len(rows) - count)
    score = np.where((high > low) & (count > 0) & (count < len(rows)), score, np.inf)
    best = int(np.argmin(score))
    return None if not np.isfinite(score[best]) else (int(chosen[best]), float(cut[best]))


def _impurity(good: Matrix, count: Matrix) -> Matrix:
    return np.asarray(good * (count - good) / np.maximum(count, 1), dtype=np.float64)
