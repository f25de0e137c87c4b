"""Every search proposes each point once, the same for a seed, and ends when the space is spent."""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tuneloom.errors import InputError
from tuneloom.kernel import Space
from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.caution import Caution
from tuneloom.tuners.kernel.search.guided import GuidedSearch
from tuneloom.tuners.kernel.search.pool import as_point
from tuneloom.tuners.kernel.search.searches import SEARCHES, new_search
from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms

SPACE = Space({"a": [1, 2, 4, 8, 16], "b": range(1, 8), "c": [0, 1, 2]}, where=["a * b <= 64"])
SMALL = Space({"a": [2, 8, 16], "b": [1, 3, 5], "c": [0, 1]}, where=["a * b <= 64"])


def fate(space: Space, point: Point) -> float | None:
    """An invented kernel that fails where a hidden product is too large."""
    values = [float(v) for v in space.configuration(point).values()]
    if values[0] * values[1] > 40:
        return None
    return 1 + abs(math.log2(values[0]) - 3) + 0.3 * abs(values[1] - 4) + 0.5 * (values[2] != 1)


def proposals(
    name: str,
    seed: int,
    batch: int = 1,
    start: StartingPoint = StartingPoint.VALIDITY,
    space: Space = SPACE,
) -> Iterator[Point]:
    """What a search proposes while it is told how each point fared."""
    search = new_search(name, space, Terms(seed, start))
    while points := search.propose(batch):
        for point in points:
            search.learn(point, fate(space, point))
        yield from points


def run(name: str, seed: int, count: int, **options: Any) -> list[Point]:
    return list(islice(proposals(name, seed, **options), count))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_small_space_is_spent_cleanly(name: str) -> None:
    seen = list(proposals(name, 0, space=SMALL))
    assert len(seen) == len(set(seen)) == SMALL.size == 16
    assert SMALL.allows(np.array(seen)).all()


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_seed_proposes_the_same(name: str) -> None:
    assert run(name, 3, 25) == run(name, 3, 25)
    assert run(name, 3, 25) != run(name, 4, 25)


@pytest.mark.parametrize("name", SEARCHES)
def test_known_points_are_not_proposed_again(name: str) -> None:
    search = new_search(name, SPACE, Terms(0))
    known = [tuple(int(i) for i in point) for point in SPACE.points()[:60]]
    for point in known:
        search.learn(point, fate(SPACE, point))
    proposed: list[Point] = []
    while points := search.propose(8):
        proposed += points
        for point in points:
            search.learn(point, fate(SPACE, point))
    assert not set(known) & set(proposed)
    assert len(proposed) == SPACE.size - len(known)


@pytest.mark.parametrize("name", SEARCHES)
def test_points_that_do_not_build_are_never_proposed(name: str) -> None:
    search = new_search(name, SMALL, Terms(0))
    refused = [tuple(int(i) for i in point) for point in SMALL.points()[:5]]
    for point in refused:
        search.hear(point, builds=False)
    proposed: list[Point] = []
    while points := search.propose(1):
        proposed += points
        search.learn(points[0], 1.0)
    assert not set(refused) & set(proposed)
    assert len(proposed) == SMALL.size - len(refused)


def screened(space: Space, builds: Callable[[Point], bool]) -> GuidedSearch:
    """A search that heard of every third point whether it builds."""
    search = GuidedSearch(space, Terms(seed=3, screens=True))
    for row in space.points()[::3]:
        search.hear(as_point(row), builds(as_point(row)))
    return search


def test_a_search_that_screens_starts_in_the_middle_of_what_builds() -> None:
    space = Space({"x": list(range(9)), "y": list(range(9))})
    first = screened(space, lambda point: point[0] < 6).propose(1)[0]
    assert 1 <= first[0] <= 4 and 2 <= first[1] <= 6


def test_failures_to_build_are_learned_apart_from_failures_to_run() -> None:
    space = Space({"x": list(range(9)), "y": list(range(9))})
    search = screened(space, lambda point: point[0] < 6)
    for point, seconds in (((0, 0), None), ((1, 1), None), ((4, 6), 1.0), ((5, 8), 2.0), ((2, 7), 1.5)):
        search.hear(point, True)
        search.learn(point, seconds)
    small, large, unbuildable = search.validity(np.array([[0, 1], [4, 7], [8, 7]]))
    assert small < large and unbuildable < large


def test_the_guided_search_needs_fewer_evaluations_than_chance() -> None:
    best = min(time for point in SPACE.points() if (time := fate(SPACE, as_point(point))) is not None)

    def to_best(name: str, seed: int) -> int:
        times = (fate(SPACE, point) for point in proposals(name, seed))
        return next(count for count, time in enumerate(times) if time == best)

    guided = sum(to_best("guided", seed) for seed in range(7))
    chance = sum(to_best("random", seed) for seed in range(7))
    assert guided < chance / 2


def test_autotvm_plans_by_its_ranking_after_64_points() -> None:
    """Chance until then, better than chance afterwards."""

    def after_the_first_plan(name: str) -> float:
        times = [fate(SPACE, point) for seed in range(5) for point in run(name, seed, 80)[64:]]
        return sum(time is None for time in times) + sum(time or 0 for time in times)

    assert after_the_first_plan("autotvm") < after_the_first_plan("random")


def test_autotvm_starts_with_points_that_build_if_it_heard_of_any() -> None:
    search = new_search("autotvm", SPACE, Terms(0))
    built = {tuple(int(i) for i in point): i % 3 == 0 for i, point in enumerate(SPACE.points()[:45])}
    for point, builds in built.items():
        search.hear(point, builds)
    assert {built[point] for point in search.propose(15)} == {True}


def test_a_batch_holds_different_points() -> None:
    seen = run("guided", 1, 40, batch=8)
    assert len(set(seen)) == len(seen) == 40


def test_failures_before_anything_ran_do_not_make_the_search_cautious(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[int] = []
    after = Caution.after

    def noted(failed: int, trials: int, ordinary: Any) -> Caution:
        counted.append(failed)
        return after(failed, trials, ordinary)

    monkeypatch.setattr(Caution, "after", noted)
    search = GuidedSearch(SPACE, Terms(0))
    for place, point in enumerate(search.propose(8)):
        search.learn(point, None if place in (0, 1, 2, 6) else float(place))
    search.propose(1)
    assert counted == [1]


def test_the_model_guides_two_points_for_each_known_time_and_chance_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = GuidedSearch(SPACE, Terms(0))
    for point in search.propose(4):
        search.learn(point, fate(SPACE, point) or 9.0)
    guided: list[int] = []
    ask = GuidedSearch._guided
    monkeypatch.setattr(GuidedSearch, "_guided", lambda self, pool: guided.append(1) or ask(self, pool))
    assert len(set(search.propose(16))) == 16
    assert len(guided) == 9


def test_of_many_first_points_only_a_few_lie_in_corners() -> None:
    space = Space({f"k{i}": range(9) for i in range(4)})
    outward = [sum(abs(i - 4) for i in point) / 16 for point in GuidedSearch(space, Terms(0)).propose(24)]
    assert min(outward[1:4]) > 0.8
    assert sum(outward[4:]) / 20 == pytest.approx(5 / 9, abs=0.1)


@pytest.mark.parametrize("start", StartingPoint)
def test_every_start_arrives(start: StartingPoint) -> None:
    best = min(t for t in (fate(SPACE, p) for p in run("guided", 0, 40, start=start)) if t is not None)
    assert best < 1.5


def test_the_default_start_begins_with_first_values() -> None:
    assert run("guided", 0, 1, start=StartingPoint.DEFAULT) == [(0, 0, 0)]


def test_a_space_where_nothing_works_is_spent_without_an_error() -> None:
    space = Space({"a": range(5), "b": range(4)})
    search = GuidedSearch(space, Terms(0))
    count = 0
    while points := search.propose(3):
        count += len(points)
        for point in points:
            search.learn(point, None)
    assert count == 20


def test_equal_times_everywhere_are_no_problem() -> None:
    space = Space({"a": range(5), "b": range(4)})
    search = GuidedSearch(space, Terms(0))
    for _ in range(20):
        search.learn(search.propose(1)[0], 1.0)
    assert search.propose(1) == []


def test_a_space_of_one_point_is_proposed_once() -> None:
    search = GuidedSearch(Space({"a": [1]}), Terms(0))
    assert search.propose(4) == [(0,)]
    search.learn((0,), 1.0)
    assert search.propose(1) == []


def test_huge_spaces_are_searched_without_listing_them() -> None:
    space = Space({f"k{i}": range(1, 11) for i in range(12)}, where=["k0 * k1 <= 40"])
    search = GuidedSearch(space, Terms(0))
    best = math.inf
    for _ in range(40):
        point = search.propose(1)[0]
        seconds = 1 + sum(abs(i - 4) for i in point) / 10
        best = min(best, seconds)
        search.learn(point, seconds)
    drawn = space.sample(40, np.random.default_rng(0))
    assert best < min(1 + np.abs(drawn - 4).sum(axis=1) / 10)


def test_a_hundred_thousand_points_are_not_listed_for_a_proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space({f"k{i}": range(1, 11) for i in range(5)})
    monkeypatch.setattr(space, "points", lambda: pytest.fail("the space was listed"))
    search, seen = GuidedSearch(space, Terms(0)), set()
    for _ in range(25):
        point = search.propose(1)[0]
        seen.add(point)
        search.learn(point, None if sum(point) > 30 else 1.0 + sum(point))
    assert len(seen) == 25


def test_many_failures_before_the_first_time_do_not_end_the_search() -> None:
    space = Space({f"k{i}": range(1, 11) for i in range(5)})
    search = GuidedSearch(space, Terms(0))
    for point in {tuple(int(i) for i in p) for p in space.sample(300, np.random.default_rng(1))}:
        search.learn(point, None if max(point) > 2 else 1.0)
    seen = [search.propose(1)[0] for _ in range(3)]
    assert len(set(seen)) == 3
    assert space.allows(np.array(seen)).all()


def test_knobs_that_matter_are_told_from_those_that_do_not() -> None:
    space = Space({"matters": range(8), "idle": range(8)})
    search = GuidedSearch(space, Terms(0))
    for _ in range(25):
        point = search.propose(1)[0]
        search.learn(point, math.exp(0.3 * point[0]))
    shares = search.relevance()
    assert shares["matters"] > 2 * shares["idle"]
    assert sum(shares.values()) == pytest.approx(1)


def test_an_unknown_search_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no search 'best'; known: guided, autotvm, local, random"):
        new_search("best", SPACE, Terms(0))
