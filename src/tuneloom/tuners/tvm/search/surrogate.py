"""A cost model on decisions: cheap enough to score thousands of configurations in milliseconds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.tvm.search.knobs import Floats

_ROUNDS = 80
_PARAMETERS = {
    "objective": "reg:squarederror",
    "max_depth": 6,
    "eta": 0.15,
    "subsample": 0.8,
    "colsample_bynode": 0.7,
    "min_child_weight": 1,
    "lambda": 1.0,
    "nthread": 1,
    "verbosity": 0,
}


class Surrogate:
    """Predicts how good a configuration is (0 to 1, the best seen is 1) from its features."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._booster: Any = None

    @property
    def trained(self) -> bool:
        return self._booster is not None

    def fit(self, features: Floats, seconds: NDArray[np.float64]) -> None:
        """Learn from scratch; an infinite time is a failure."""
        import xgboost

        best = seconds.min()
        scores = np.where(np.isfinite(seconds), best / seconds, 0.0)
        # Being right matters near the top: a poor configuration only has to look poor.
        weights = 0.1 + scores
        data = xgboost.DMatrix(features, label=scores, weight=weights)
        self._booster = xgboost.train({**_PARAMETERS, "seed": self._seed}, data, _ROUNDS)

    def predict(self, features: Floats) -> Floats:
        """Scores, higher is better."""
        return np.asarray(self._booster.inplace_predict(features), dtype=np.float32)
