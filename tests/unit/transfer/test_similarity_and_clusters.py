"""Who is like whom, and who is tuned for whom."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.samples.traces import tiled_space
from tuneloom.model import ChoiceDomain, TileDomain
from tuneloom.transfer import CLUSTERINGS, SIMILARITIES, KernelProfile, TaskCluster
from tuneloom.transfer.clusters import maximal_cliques
from tuneloom.transfer.similarity import shared_values, splits


def kernel(key: str, *extents: int, kernel_class: str = "conv2d", importance: float = 1.0) -> KernelProfile:
    return KernelProfile(
        key=key, kernel_class=kernel_class, space=tiled_space(key, *extents), importance=importance
    )


def test_splits_are_counted_as_if_listed() -> None:
    assert splits(12, 2, 64) == 6
    assert splits(12, 2, 3) == 3
    assert splits(8, 3, 64) == 10


def test_values_are_shared_as_published_with_the_outermost_factor_free() -> None:
    one = TileDomain(extent=12, parts=2, innermost_max=64)
    other = TileDomain(extent=8, parts=2, innermost_max=64)
    assert shared_values(one, other) == pytest.approx(3 / 7)  # 1, 2, 4 of 1, 2, 3, 4, 6, 8, 12
    assert shared_values(one, ChoiceDomain(low=0, count=2)) == 0.0
    assert shared_values(ChoiceDomain(low=0, count=2), ChoiceDomain(low=1, count=2)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
def test_a_kernel_is_most_like_itself_and_similarity_is_mutual(name: str) -> None:
    similarity = SIMILARITIES[name]
    one, near, far = kernel("a", 64, 56), kernel("b", 64, 28), kernel("c", 3, 13)
    assert similarity(one, one) == 1.0
    assert similarity(one, near) == similarity(near, one)
    assert 1.0 > similarity(one, near) > similarity(one, far)


def test_the_published_measure_wants_the_same_operators_ours_the_same_anchor() -> None:
    one, other = kernel("a", 64), kernel("b", 64, kernel_class="conv2d_add_relu")
    assert SIMILARITIES["jaccard"](one, other) == 0.0
    assert SIMILARITIES["sketch"](one, other) == 1.0
    assert SIMILARITIES["sketch"](one, kernel("c", 64, kernel_class="max_pool2d")) == 0.0


@pytest.mark.parametrize("name", sorted(CLUSTERINGS))
def test_every_task_is_in_one_cluster_and_alien_ones_stay_alone(name: str) -> None:
    kernels = [kernel("a", 64, 56), kernel("b", 64, 28), kernel("c", 64, 56, kernel_class="dense")]
    clusters = CLUSTERINGS[name](kernels)
    assert sorted(member for cluster in clusters for member in cluster.members) == ["a", "b", "c"]
    assert TaskCluster(representative="c", members=("c",)) in clusters
    assert len(clusters) == 2


def test_our_representative_is_the_most_important_of_its_kind() -> None:
    kernels = [kernel("small", 64, 28), kernel("large", 64, 56, importance=9.0)]
    assert CLUSTERINGS["leaders"](kernels) == [
        TaskCluster(representative="large", members=("large", "small"))
    ]


def test_the_published_representative_is_most_similar_to_the_others() -> None:
    (cluster,) = CLUSTERINGS["cliques"]([kernel("a", 48), kernel("b", 24), kernel("c", 12)])
    assert cluster.representative == "b"


def test_nothing_to_cluster_gives_no_cluster() -> None:
    assert all(clustering([]) == [] for clustering in CLUSTERINGS.values())


@given(st.integers(0, 6), st.data())
@settings(deadline=None)
def test_cliques_are_linked_throughout_and_cannot_grow(count: int, data: st.DataObject) -> None:
    names = [f"n{i}" for i in range(count)]
    links: dict[str, set[str]] = {name: set() for name in names}
    for a, b in combinations(names, 2):
        if data.draw(st.booleans()):
            links[a].add(b)
            links[b].add(a)
    found = list(maximal_cliques(links))
    assert len(found) == len(set(found)) and set(names) == {n for clique in found for n in clique}
    for clique in found:
        assert all(b in links[a] for a, b in combinations(sorted(clique), 2))
        assert not any(clique <= links[name] for name in set(names) - clique)
