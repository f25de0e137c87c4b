"""What a risk costs a search: nothing before it failed, more the more of its allowance is spent."""

import numpy as np
import pytest

from tuneloom.tuners.kernel.search.caution import Caution

MOSTLY_VALID = np.full(10, 0.9)


def test_before_a_failure_a_risk_costs_no_more_than_the_chance_it_takes() -> None:
    chances = np.array([1.0, 0.5, 0.1])
    assert Caution.after(0, 200, MOSTLY_VALID).log_chance(chances) == pytest.approx(np.log(chances))


def test_the_price_rises_with_the_square_of_the_failures() -> None:
    one, three = (Caution.after(failed, 200, MOSTLY_VALID).price for failed in (1, 3))
    assert three == pytest.approx(9 * one)


def test_a_long_run_may_learn_from_more_failures_than_a_short_one() -> None:
    assert Caution.after(2, 400, MOSTLY_VALID).price < Caution.after(2, 40, MOSTLY_VALID).price


def test_when_the_allowance_is_spent_the_risk_of_a_random_point_outweighs_a_large_promise() -> None:
    spent = 1 + 3  # one to learn from, and 15 % of the 20 that chance would cost
    safe, ordinary = Caution.after(spent, 200, MOSTLY_VALID).log_chance(np.array([1.0, 0.9]))
    assert safe > ordinary + np.log(1000)


def test_where_most_fails_the_same_risk_costs_less() -> None:
    assert Caution.after(3, 200, np.full(10, 0.2)).price < Caution.after(3, 200, MOSTLY_VALID).price


def test_where_nothing_seems_to_fail_the_price_is_still_a_number() -> None:
    assert np.isfinite(Caution.after(3, 200, np.ones(10)).price)
