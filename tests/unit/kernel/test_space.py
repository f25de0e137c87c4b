"""Spaces know what is allowed without listing it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneloom.errors import SpaceError
from tuneloom.kernel import Space
from tuneloom.tuners.kernel.factors import factorise


def test_the_size_counts_what_is_allowed() -> None:
    space = Space(
        {"block": [16, 32, 64, 128], "tile": range(1, 9), "unroll": [0, 1]}, where=["block * tile <= 512"]
    )
    expected = sum(b * t <= 512 for b, t, _ in product([16, 32, 64, 128], range(1, 9), [0, 1]))
    assert space.size == expected == len(space.points())
    assert space.allows(space.points()).all()


def test_points_and_configurations_are_each_others_inverse() -> None:
    space = Space({"a": [1, 2], "mode": ["x", "y", "z"], "flag": [True, False]})
    points = [tuple(point) for point in space.points()]
    assert len(points) == 12 and [space.point(space.configuration(point)) for point in points] == points


def test_samples_are_uniform_over_the_allowed_points() -> None:
    space = Space({"a": range(6), "b": range(6)}, where=["a + b <= 4"])
    drawn = space.sample(30_000, np.random.default_rng(0))
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == space.size == 15
    assert counts.min() > 0.85 * 2000 and counts.max() < 1.15 * 2000


def test_a_restriction_over_many_knobs_is_checked_when_drawing() -> None:
    knobs = {f"k{i}": range(20) for i in range(8)}
    space = Space(knobs, where=[" + ".join(knobs) + " <= 60"])
    drawn = space.sample(500, np.random.default_rng(1))
    assert len(drawn) == 500
    assert (drawn.sum(axis=1) <= 60).all()


def test_a_space_of_a_trillion_points_opens_and_draws_at_once() -> None:
    """Were they listed, this test would never end."""
    knobs = {f"k{i}": range(1, 11) for i in range(13)}
    space = Space(knobs, where=["k0 * k1 <= 40", "k2 % k3 == 0"])
    drawn = space.sample(1000, np.random.default_rng(0))
    assert space.size > 10**11
    assert space.allows(drawn).all()
    with pytest.raises(SpaceError, match="not listed"):
        space.points()


def test_neighbours_step_by_the_order_of_the_values() -> None:
    space = Space({"a": [8, 16, 64], "b": [1, 2, 3]}, where=["a * b <= 64"])
    around = {tuple(space.configuration(p).values()) for p in space.steps(space.point({"a": 16, "b": 2}))}
    assert around == {(8, 2), (16, 1), (16, 3)}


def test_variations_differ_in_one_knob() -> None:
    space = Space({"a": range(4), "b": range(3)}, where=["a + b != 3"])
    origin = np.array([[1, 1]])
    varied = space.variations(origin)
    assert ((varied != origin).sum(axis=1) == 1).all()
    assert {tuple(row) for row in varied.tolist()} == {(0, 1), (3, 1), (1, 0)}


def test_a_conditional_knob_rests_where_its_condition_fails() -> None:
    space = Space({"vector": [0, 1], "width": [1, 2, 4]}, when={"width": "vector == 1"})
    rows = {tuple(space.configuration(p).values()) for p in space.points()}
    assert rows == {(0, 1), (1, 1), (1, 2), (1, 4)}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1, unique=True))
def test_a_space_of_rows_holds_exactly_these(rows: list[tuple[int, int, int]]) -> None:
    space = Space.of_rows(("a", "b", "c"), rows)
    assert {tuple(space.configuration(p).values()) for p in space.points()} == set(rows)
    grid = np.array(list(product(*[range(n) for n in space.shape])))
    assert space.allows(grid).sum() == len(rows)


def test_points_outside_the_grid_are_not_allowed() -> None:
    space = Space({"a": [1, 2], "b": [1, 2]})
    assert not space.allows(np.array([[-1, 0], [0, 2]])).any()


@pytest.mark.parametrize(
    ("knobs", "where", "message"),
    [
        ({}, [], "at least one knob"),
        ({"a": []}, [], "no values"),
        ({"a": [1, 1]}, [], "twice"),
        ({"a b": [1]}, [], "identifier"),
        ({"a": [float("nan")]}, [], "not finite"),
        ({"a": [[1]]}, [], "numbers, text"),
        ({"a": "12"}, [], "list of values"),
        ({"a": [1, 2]}, ["a > 2"], "exclude every configuration"),
        ({"a": [1, 2]}, ["1 > 2"], "exclude every configuration"),
        ({"a": [1, 2]}, ["b > 2"], "unknown knob"),
    ],
)
def test_bad_input_is_refused_with_the_reason(
    knobs: dict[str, list[int]], where: list[str], message: str
) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(knobs, where)


def test_restrictions_that_exclude_all_are_noticed_without_listing() -> None:
    knobs = {f"k{i}": range(20) for i in range(8)}
    with pytest.raises(SpaceError, match="no configuration meets"):
        Space(knobs, [" + ".join(knobs) + " < 0"])


def test_conditions_must_speak_of_other_knobs() -> None:
    with pytest.raises(SpaceError, match="reads the knob itself"):
        Space({"a": [1, 2]}, when={"a": "a > 1"})
    with pytest.raises(SpaceError, match="unknown knob 'b'"):
        Space({"a": [1, 2]}, when={"b": "a > 1"})


def test_a_configuration_of_another_space_is_refused() -> None:
    space = Space({"a": [1, 2]})
    with pytest.raises(SpaceError, match="has no value 3"):
        space.point({"a": 3})
    with pytest.raises(SpaceError, match="differ in knobs: b"):
        space.point({"a": 1, "b": 2})


def test_a_join_that_would_be_too_large_stays_behind() -> None:
    from tuneloom.tuners.kernel.expressions import parse

    values = [np.arange(10.0), np.arange(10.0)]
    restriction = parse("a + b < 5", {"a": (), "b": ()})
    assert factorise(("a", "b"), values, [restriction], limit=99).residual == (restriction,)
    assert factorise(("a", "b"), values, [restriction], limit=100).size == 15
