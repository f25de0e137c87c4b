"""The model of time knows how often two divides a size, and uses it where measurements speak for it."""

import numpy as np
import pytest

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.encoding import Encoding
from tuneloom.tuners.kernel.search.evidence import TimeModel
from tuneloom.tuners.kernel.search.targets import Vector
from tuneloom.tuners.kernel.space import KnobValue, Space

STEPS = [*range(16, 400, 16)]
SPACE = Space({"width": STEPS, "height": STEPS})


def halvings(points: Points) -> Vector:
    """How often two divides what is chosen for each knob."""
    sizes = np.array(STEPS)[points]
    return np.asarray(np.log2(sizes & -sizes).sum(axis=1))


def standardised(values: Vector) -> Vector:
    return np.asarray((values - values.mean()) / values.std())


def asked_about(times: Vector, points: Points) -> TimeModel:
    """A model that has learned standardised times of some points."""
    model = TimeModel(SPACE)
    model.fit(points, standardised(times), 20)
    return model


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ([1, 2, 3, 4, 5, 6], 2),
        ([16, 32, 48, 64, 80], 2),
        ([1, 2, 4, 8, 16, 32], 1),  # their order says it
        ([1, 3, 5, 7, 9, 11], 1),  # nothing to tell apart
        ([1, 2, 3], 4),  # few values are choices anyway: their order, and one column for each
        ([0, 1, 2, 3, 4, 5], 1),
        ([0.5, 1.0, 1.5, 2.0, 2.5], 1),
        (["a", "b", "c", "d", "e"], 5),
    ],
)
def test_sizes_get_a_column_for_halves_that_they_do_not_say_themselves(
    values: list[KnobValue], columns: int
) -> None:
    encoding = Encoding.of(Space({"knob": values}), halved=True)
    assert encoding.smooth(np.array([[0]])).shape[1] == columns
    assert encoding.smooth(np.array([[0], [1]])).min() >= 0 and encoding.smooth_tables[0].max() <= 1


def test_times_that_halves_decide_are_foreseen() -> None:
    rng = np.random.default_rng(1)
    seen, others = SPACE.sample(60, rng), SPACE.sample(200, rng)
    model = asked_about(-halvings(seen), seen)
    assert np.corrcoef(model.predict(others)[0], -halvings(others))[0, 1] > 0.9


def test_smooth_times_are_foreseen_by_the_process_that_knows_less() -> None:
    rng = np.random.default_rng(2)
    seen, others = SPACE.sample(40, rng), SPACE.sample(200, rng)
    model = asked_about(np.abs(seen - 9.0).sum(axis=1), seen)
    plain = TimeModel(Space({"width": STEPS[:4], "height": STEPS[:4]}))
    assert model._asked is model._plain and plain._halved is None
    assert np.corrcoef(model.predict(others)[0], np.abs(others - 9.0).sum(axis=1))[0, 1] > 0.9


def test_relevance_counts_all_that_is_known_of_a_knob() -> None:
    rng = np.random.default_rng(3)
    seen = SPACE.sample(60, rng)
    sizes = np.array(STEPS)[seen[:, 1]]
    relevance = asked_about(-np.log2(sizes & -sizes).astype(float), seen).relevance()
    assert set(relevance) == {0, 1} and relevance[1] > relevance[0]
