"""Energy of a model under several sets of shapes is that of one run under each, if all are known."""

import pytest

from tuneloom.model import CheckResult
from tuneloom.tuners.tvm.models.checking import added


def check(energy_j: float | None) -> CheckResult:
    return CheckResult(difference=0.0, tuned_s=(0.1,), untuned_s=(0.2,), energy_j=energy_j)


@pytest.mark.parametrize(("second", "together"), [(0.5, 0.75), (None, None)])
def test_energies_are_added(second: float | None, together: float | None) -> None:
    assert added([check(0.25), check(second)]).energy_j == together
