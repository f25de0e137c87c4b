"""Which configurations will survive the postprocessors, learned from those that did not.

On a GPU one in a hundred random configurations has a sane number of threads and fits
into shared memory; replaying the other ninety-nine is what selecting would spend its
time on.
"""

from typing import Any

import numpy as np

from tuneloom.tuners.tvm.search.knobs import Floats

_MOST = 3000
_ROUNDS = 40
_FEW_REJECTED = 0.3  # where most survive there is nothing to learn
_PARAMETERS = {
    "objective": "binary:logistic",
    "max_depth": 5,
    "eta": 0.3,
    "subsample": 0.8,
    "nthread": 1,
    "verbosity": 0,
}


class Plausibility:
    """The probability that a row survives; 1 for all while too little was seen."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._features: list[Floats] = []
        self._survived: list[bool] = []
        self._booster: Any = None

    def observe(self, features: Floats, survived: bool) -> None:
        """One row was replayed."""
        self._features.append(features)
        self._survived.append(survived)

    def learn(self) -> None:
        """Learn from scratch if both kinds were seen and rejection is common."""
        good = sum(self._survived)
        if good < 2 or good > (1 - _FEW_REJECTED) * len(self._survived):
            return
        import xgboost

        kept = self._kept()
        labels = np.asarray([self._survived[i] for i in kept], dtype=np.float32)
        data = xgboost.DMatrix(np.stack([self._features[i] for i in kept]), label=labels)
        balance = float((1 - labels).sum() / max(labels.sum(), 1))
        parameters = {**_PARAMETERS, "seed": self._seed, "scale_pos_weight": balance}
        self._booster = xgboost.train(parameters, data, _ROUNDS)

    def probability(self, features: Floats) -> Floats:
        """How likely each row is to survive."""
        if self._booster is None:
            return np.ones(len(features), dtype=np.float32)
        return np.asarray(self._booster.inplace_predict(features), dtype=np.float32)

    def _kept(self) -> list[int]:
        """All survivors and the latest of the rejected."""
        rejected = [i for i, survived in enumerate(self._survived) if not survived][-_MOST:]
        return [i for i, survived in enumerate(self._survived) if survived] + rejected
