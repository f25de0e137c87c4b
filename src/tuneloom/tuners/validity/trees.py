"""Random trees over signed sums of the inputs: they catch what no set of limits explains."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Matrix
from tuneloom.tuners.validity.rules import Flags

_TRIED = 0.3  # share of the directions that a node looks at
_MOST_TRIED = 200


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes in arrays; a leaf has no direction (-1) and holds the share of valid points."""

    direction: NDArray[np.int64]
    threshold: Matrix
    left: NDArray[np.int64]
    valid: Matrix
    depth: int


class TreeEnsemble:
    """Extremely randomised trees; those that a new point contradicts are renewed."""

    def __init__(self, directions: Matrix, members: int, rng: np.random.Generator) -> None:
        self._directions, self._rng, self._count = directions, rng, members
        self._trees: list[Tree] = []
        self._turn = 0

    def learn(self, along: Matrix, valid: Flags) -> None:
        """Take in points by their values along all directions; the last one is new."""
        if not self._trees:
            self._trees = [_grow(along, valid, self._rng) for _ in range(self._count)]
            return
        self._turn = (self._turn + 1) % self._count
        everything = np.arange(along.shape[1])
        for place, tree in enumerate(self._trees):
            said = _descend(tree, along[-1:], everything)[0]
            if (said >= 0.5) != bool(valid[-1]) or place == self._turn:
                self._trees[place] = _grow(along, valid, self._rng)

    def probability(self, inputs: Matrix) -> NDArray[np.float64]:
        """The mean share of valid points in the leaves that the inputs reach."""
        used = np.unique(np.concatenate([tree.direction for tree in self._trees]))
        used = used[used >= 0]
        along = inputs @ self._directions[:, used]
        total = np.zeros(len(inputs))
        for tree in self._trees:
            total += _descend(tree, along, used)
        return total / len(self._trees)


def _descend(tree: Tree, along: Matrix, used: NDArray[np.int64]) -> Matrix:
    column = np.searchsorted(used, np.maximum(tree.direction, 0))
    column = np.minimum(column, max(len(used) - 1, 0))
    node = np.zeros(len(along), dtype=np.int64)
    rows = np.arange(len(along))
    for _ in range(tree.depth):
        inner = tree.direction[node] >= 0
        right = along[rows, column[node]] > tree.threshold[node]
        node = np.where(inner, tree.left[node] + right, node)
    return np.asarray(tree.valid[node], dtype=np.float64)


def _grow(along: Matrix, valid: Flags, rng: np.random.Generator) -> Tree:
    tried = max(1, min(_MOST_TRIED, int(_TRIED * along.shape[1])))
    nodes: list[tuple[int, float, int, float]] = [(-1, 0.0, 0, 0.0)]
    open_ = [(0, np.arange(len(valid)), 0)]
    depth = 0
    while open_:
        place, rows, level = open_.pop()
        depth = max(depth, level)
        share = float(valid[rows].mean())
        split = None if share in (0.0, 1.0) else _split(along, valid, rows, tried, rng)
        if split is None:
            nodes[place] = (-1, 0.0, 0, share)
            continue
        direction, threshold = split
        right = along[rows, direction] > threshold
        nodes[place] = (direction, threshold, len(nodes), share)
        open_ += [(len(nodes), rows[~right], level + 1), (len(nodes) + 1, rows[right], level + 1)]
        nodes += [(-1, 0.0, 0, 0.0)] * 2
    columns = list(zip(*nodes, strict=True))
    return Tree(np.array(columns[0]), np.array(columns[1]), np.array(columns[2]), np.array(columns[3]), depth)


def _split(
    along: Matrix, valid: Flags, rows: NDArray[np.int64], tried: int, rng: np.random.Generator
) -> tuple[int, float] | None:
    """The purest of some random cuts, or None where the points can't be told apart."""
    chosen = rng.integers(along.shape[1], size=tried)
    values = along[np.ix_(rows, chosen)]
    low, high = values.min(axis=0), values.max(axis=0)
    cut = low + (high - low) * rng.random(tried)
    right = values > cut
    count = right.sum(axis=0)
    good = (right & valid[rows][:, None]).sum(axis=0)
    score = _impurity(good, count) + _impurity(valid[rows].sum() - good, len(rows) - count)
    score = np.where((high > low) & (count > 0) & (count < len(rows)), score, np.inf)
    best = int(np.argmin(score))
    return None if not np.isfinite(score[best]) else (int(chosen[best]), float(cut[best]))


def _impurity(good: NDArray[np.int64], count: NDArray[np.int64]) -> Matrix:
    return np.asarray(good * (count - good) / np.maximum(count, 1), dtype=np.float64)
