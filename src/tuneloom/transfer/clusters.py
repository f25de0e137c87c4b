"""Groups of tasks of which one is tuned for all: the published way and ours, side by side."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tuneloom.transfer.similarity import KernelProfile, Similarity, jaccard, same_sketch

_LINKED = 0.01  # as published
_LED = 0.3  # the nearest leader has to be at least this near


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCluster:
    """Keys of tasks; the representative is one of the members."""

    representative: str
    members: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.representative not in self.members:
            raise ValueError(f"{self.representative!r} is no member of its own cluster")


Clustering = Callable[[Sequence[KernelProfile]], list[TaskCluster]]


def cliques(kernels: Sequence[KernelProfile]) -> list[TaskCluster]:
    """As published: maximal cliques of linked tasks; a task in several goes to the most similar.

    The representative is the member with the largest sum of similarities.
    """
    near = _matrix(kernels, jaccard)
    links = {a: {b for b in near if b != a and near[a][b] >= _LINKED} for a in near}
    groups = list(maximal_cliques(links))
    homes: dict[int, list[str]] = {}
    for key in near:
        own = [n for n, group in enumerate(groups) if key in group]
        homes.setdefault(max(own, key=lambda n: (_pull(key, groups[n], near), -n)), []).append(key)
    return [_led_by_sum(members, near) for members in homes.values()]


def leaders(kernels: Sequence[KernelProfile]) -> list[TaskCluster]:
    """Ours: from the most important task on, each joins its nearest leader or becomes one."""
    led: dict[str, list[str]] = {}
    chosen: list[KernelProfile] = []
    for kernel in sorted(kernels, key=lambda each: (-each.importance, each.key)):
        nearness = [(same_sketch(kernel, leader), -n, leader) for n, leader in enumerate(chosen)]
        best = max(nearness, key=lambda each: each[:2], default=None)
        if best is not None and best[0] >= _LED:
            led[best[2].key].append(kernel.key)
        else:
            chosen.append(kernel)
            led[kernel.key] = [kernel.key]
    return [TaskCluster(representative=key, members=tuple(members)) for key, members in led.items()]


def maximal_cliques(links: dict[str, set[str]]) -> Iterator[frozenset[str]]:
    """All sets of nodes that are linked with each other and can't grow (Bron and Kerbosch, with a pivot)."""

    def grow(inside: frozenset[str], may: set[str], done: set[str]) -> Iterator[frozenset[str]]:
        if not may and not done:
            yield inside
            return
        pivot = max(sorted(may | done), key=lambda node: len(links[node] & may))
        for node in sorted(may - links[pivot]):
            yield from grow(inside | {node}, may & links[node], done & links[node])
            may = may - {node}
            done = done | {node}

    yield from grow(frozenset(), set(links), set())


def _matrix(kernels: Sequence[KernelProfile], similarity: Similarity) -> dict[str, dict[str, float]]:
    near: dict[str, dict[str, float]] = {kernel.key: {kernel.key: 1.0} for kernel in kernels}
    for n, one in enumerate(kernels):
        for other in kernels[n + 1 :]:
            near[one.key][other.key] = near[other.key][one.key] = similarity(one, other)
    return near


def _pull(key: str, group: frozenset[str], near: dict[str, dict[str, float]]) -> float:
    others = [near[key][other] for other in group if other != key]
    return sum(others) / len(others) if others else 0.0


def _led_by_sum(members: list[str], near: dict[str, dict[str, float]]) -> TaskCluster:
    best = max(members, key=lambda key: sum(near[key][other] for other in members))
    return TaskCluster(representative=best, members=tuple(members))


CLUSTERINGS: dict[str, Clustering] = {"cliques": cliques, "leaders": leaders}
"""Ways to group tasks by name; add your own function here."""
