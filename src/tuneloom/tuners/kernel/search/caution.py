"""What a risk costs: failures have an allowance, and the more of it is spent, the dearer is the next.

Expected improvement is largest where nothing valid was ever seen, so on its own it would
buy one failure after the other there. And the best points often lie next to what can't
run, so a search that never fails does not find them. So failing has a price: nothing as
long as nothing failed, and rising with the square of how much of the allowance is spent.
What is learned early serves all later trials; hence the allowance is that of all trials
to come, and is not doled out as they pass.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_OF_CHANCE = 0.15  # the share of a random search's failures that is allowed; some more are spent in the end
_LESSON = 1  # a failure allowed besides: where limits lie has to be learned
_PRICE = 30.0  # of an ordinary risk when the allowance is spent, in logarithms of what a point promises
_LEAST_RISK = 1e-3


@dataclass(frozen=True, slots=True)
class Caution:
    """What certain failure costs a point, in units of the logarithm of its promise."""

    price: float

    @classmethod
    def after(cls, failed: int, trials: int, ordinary: Vector) -> "Caution":
        """The price after so many failures in a run of so many trials, by the chances of random points."""
        risk = max(1 - float(ordinary.mean()), _LEAST_RISK)
        allowed = _LESSON + _OF_CHANCE * risk * trials
        return cls(_PRICE * (failed / allowed) ** 2 / risk)

    def log_chance(self, validity: Vector) -> Vector:
        """Logarithm of the chance to be valid, less the price of the chance to fail."""
        return np.asarray(np.log(np.maximum(validity, 1e-12)) - self.price * (1 - validity))
