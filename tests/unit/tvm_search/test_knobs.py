"""Sampling decisions as numbered values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneloom.tuners.tvm.search.knobs import ChoiceKnob, TileKnob, divisors, factorisations


@given(st.integers(1, 400), st.integers(1, 4), st.integers(1, 64))
def test_factorisations_multiply_to_the_extent_and_respect_the_bound(
    extent: int, parts: int, bound: int
) -> None:
    found = factorisations(extent, parts, bound)
    assert len(found) > 0 or (parts == 1 and extent > bound)
    for factors in found:
        assert math.prod(factors) == extent
        assert len(factors) == parts
        assert factors[-1] <= bound


@given(st.integers(1, 400))
def test_factorisations_into_two_are_the_divisors(extent: int) -> None:
    firsts = sorted(first for first, _ in factorisations(extent, 2, 10**9))
    assert firsts == list(divisors(extent)) == [d for d in range(1, extent + 1) if extent % d == 0]


def test_a_step_moves_one_prime_from_one_part_to_another() -> None:
    knob = TileKnob(12, 2, 64)
    here = knob.values.index((2, 6))
    assert {knob.values[i] for i in knob.neighbours(here)} == {(1, 12), (4, 3), (6, 2)}


@given(st.sampled_from([8, 12, 56, 97, 360]), st.integers(2, 4))
def test_steps_go_both_ways_and_reach_every_value(extent: int, parts: int) -> None:
    knob = TileKnob(extent, parts, 10**9)
    reached, frontier = {0}, [0]
    while frontier:
        here = frontier.pop()
        for there in knob.neighbours(here):
            assert here in knob.neighbours(there)
            if there not in reached:
                reached.add(there)
                frontier.append(there)
    assert reached == set(range(len(knob.values)))


def test_choices_step_to_the_next_ones_in_order() -> None:
    knob = ChoiceKnob((0, 1, 2))
    assert [list(knob.neighbours(i)) for i in range(3)] == [[1], [0, 2], [1]]


@pytest.mark.parametrize("knob", [TileKnob(56, 4, 64), ChoiceKnob((0, 1, 2, 3))])
def test_different_values_have_different_features(knob: TileKnob | ChoiceKnob) -> None:
    table = knob.table
    assert table.shape[0] == len(knob.values)
    assert len(np.unique(table, axis=0)) == len(knob.values)
