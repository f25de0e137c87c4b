"""Which schedules fail to build or to run, learned by the model of validity that all tuners share.

TVM's spaces filter most of what can't work before it is built, so this costs nothing until
the first trial fails. From then on it takes part in every choice.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuneloom.model import Trial
from tuneloom.tuners.tvm.search.knobs import Floats
from tuneloom.tuners.validity import ValidityModel, spread

Matrix = NDArray[np.float64]
_ABSENT = -1.0  # stands for what a sketch does not have; logarithms of sizes are not negative
_SPREAD = 32  # rows of a start that are chosen to lie apart
_AMONG = 256  # of the likeliest rows


class TrialValidity:
    """The probability that a trial succeeds; 1 for all until one failed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._tried: list[Matrix] = []
        self._worked: list[bool] = []
        self._model: ValidityModel | None = None

    @property
    def failing(self) -> bool:
        """Whether a trial failed."""
        return self._model is not None

    def take_in(self, features: Floats, trial: Trial) -> None:
        """Learn from a trial; one whose worker was lost says nothing."""
        if trial.lost:
            return
        worked = trial.seconds is not None
        self._tried.append(_numbers(features))
        self._worked.append(worked)
        if self._model is not None:
            self._model.observe(self._tried[-1], worked)
        elif not worked:
            self._model = self._taught(len(features))

    def _taught(self, width: int) -> ValidityModel:
        model = ValidityModel(width, self._seed)
        for row, worked in zip(self._tried, self._worked, strict=True):
            model.observe(row, worked)
        return model

    def probability(self, features: Floats) -> Matrix:
        """How likely each row is to succeed."""
        if self._model is None:
            return np.ones(len(features))
        return self._model.probability(_numbers(features))

    def apart(self, features: Floats, odds: Matrix) -> list[int]:
        """Places of rows for a start: first some that lie apart from all tried, then by their odds."""
        order = [int(place) for place in np.argsort(-odds, kind="stable")]
        among = order[:_AMONG]
        rows, tried = _alike(_numbers(features[among]), np.array(self._tried))
        first: list[int] = []
        while len(first) < min(_SPREAD, len(among)):
            place = spread(rows, tried, odds[among])
            first.append(place)
            tried = np.vstack([tried, rows[place]])
        chosen = list(dict.fromkeys(among[place] for place in first))
        return chosen + _without(order, chosen)


def _numbers(features: Floats) -> Matrix:
    return np.nan_to_num(features.astype(np.float64), nan=_ABSENT)


def _alike(rows: Matrix, tried: Matrix) -> tuple[Matrix, Matrix]:
    """Both with columns of comparable ranges."""
    together = np.vstack([rows, tried])
    low = together.min(axis=0)
    width = np.maximum(together.max(axis=0) - low, 1e-9)
    scaled = (together - low) / width
    return scaled[: len(rows)], scaled[len(rows) :]


def _without(order: Sequence[int], chosen: Sequence[int]) -> list[int]:
    taken = set(chosen)
    return [place for place in order if place not in taken]
