"""How much risk a search takes: little, and less once it failed as often as it may."""

import numpy as np
import pytest

from tuneloom.tuners.kernel.caution import Caution


@pytest.mark.parametrize(("ordinary", "least"), [(0.95, 0.95), (0.5, 0.5), (0.1, 0.5)])
def test_a_point_should_rather_work_and_not_be_riskier_than_chance(ordinary: float, least: float) -> None:
    assert Caution.after(10, 1, np.full(10, ordinary)).least == pytest.approx(least)


def test_once_failures_are_used_up_only_a_quarter_of_the_risk_of_chance_is_taken() -> None:
    ordinary = np.full(10, 0.8)
    assert Caution.after(59, 5, ordinary).least == pytest.approx(0.95)
    assert Caution.after(61, 5, ordinary).least == pytest.approx(0.8)


def test_while_failures_are_allowed_a_great_promise_outweighs_a_risk() -> None:
    safe, risky, failing = Caution.after(10, 1, np.full(10, 0.95)).log_chance(np.array([0.96, 0.9, 0.4]))
    assert safe > risky + np.log(1000) and risky > failing + np.log(1000)
    assert risky + 20 > safe


def test_when_failures_are_used_up_no_promise_outweighs_a_risk() -> None:
    safe, risky, failing = Caution.after(10, 3, np.full(10, 0.8)).log_chance(np.array([0.96, 0.9, 0.4]))
    assert safe > risky + 1000 and risky > failing + 1000
