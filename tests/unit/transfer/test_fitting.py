"""Decisions fitted to other extents."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneloom.model import ChoiceDomain, TileDomain
from tuneloom.transfer import VARIANTS, DoesNotFit, fit_decisions


def tile(extent: int, parts: int = 2, innermost_max: int = 64) -> TileDomain:
    return TileDomain(extent=extent, parts=parts, innermost_max=innermost_max)


def test_a_copy_keeps_the_inner_factors_and_lets_the_outermost_take_the_rest() -> None:
    assert fit_decisions([(4, 2, 7)], [tile(112, 3)], "copy") == ((8, 2, 7),)


def test_a_copy_that_does_not_divide_is_a_value_with_the_reason() -> None:
    assert fit_decisions([(8, 7)], [tile(55)], "copy") == DoesNotFit("(7,) does not divide 55")


def test_the_nearest_divisor_is_nearest_by_ratio() -> None:
    assert fit_decisions([(8, 7)], [tile(55)], "nearest") == ((11, 5),)
    assert fit_decisions([(8, 7)], [tile(13)], "nearest") == ((1, 13),)


def test_inner_tiles_do_not_explode_when_nothing_divides() -> None:
    assert fit_decisions([(8, 4)], [tile(127)], "nearest") == ((127, 1),)


def test_a_scaled_fit_grows_all_factors_alike() -> None:
    assert fit_decisions([(4, 4)], [tile(64)], "scaled") == ((8, 8),)


def test_the_innermost_factor_stays_within_its_bound() -> None:
    assert fit_decisions([(2, 32)], [tile(64, innermost_max=8)], "nearest") == ((8, 8),)
    assert isinstance(fit_decisions([(2, 32)], [tile(64, innermost_max=8)], "copy"), DoesNotFit)


@pytest.mark.parametrize(("decision", "fitted"), [(2, 2), (9, 3), (-5, 0)])
def test_choices_are_kept_in_range(decision: int, fitted: int) -> None:
    assert fit_decisions([decision], [ChoiceDomain(low=0, count=4)], "copy") == (fitted,)


@pytest.mark.parametrize("decisions", [[], [(2, 2), (1, 1)], [3], [(2, 2, 2)]])
def test_decisions_of_another_form_do_not_fit(decisions: list[int | tuple[int, ...]]) -> None:
    assert isinstance(fit_decisions(decisions, [tile(4)], "nearest"), DoesNotFit)


@given(
    factors=st.lists(st.integers(1, 64), min_size=2, max_size=5).map(tuple),
    extent=st.integers(1, 4096),
    bound=st.integers(1, 64),
    variant=st.sampled_from(sorted(VARIANTS)),
)
def test_whatever_fits_is_a_split_of_the_extent_within_the_bound(
    factors: tuple[int, ...], extent: int, bound: int, variant: str
) -> None:
    fitted = fit_decisions([factors], [tile(extent, len(factors), bound)], variant)
    if not isinstance(fitted, DoesNotFit):
        (split,) = fitted
        assert isinstance(split, tuple)
        assert math.prod(split) == extent and split[-1] <= bound
