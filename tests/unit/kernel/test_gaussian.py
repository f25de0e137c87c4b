"""The model of time: consistent with itself, and quick to see what single knobs do."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from tuneloom.tuners.kernel.search.covariance import Covariance, Likeness
from tuneloom.tuners.kernel.search.encoding import Encoding
from tuneloom.tuners.kernel.search.gaussian import GaussianProcess
from tuneloom.tuners.kernel.space import Space

SPACE = Space(
    {
        "block": [16, 32, 64, 128, 256],
        "tile": [1, 2, 3],
        "method": ["shared", "direct", "texture"],
        "unroll": [0, 1],
        "precision": [32],
    }
)


def test_points_are_as_alike_as_themselves_by_either_way_of_asking() -> None:
    covariance = Covariance(Encoding.of(SPACE))
    points = SPACE.sample(20, np.random.default_rng(1))
    likeness = Likeness(np.linspace(0.3, 2, covariance.scales), 0.7, 0.4)
    among = covariance.among(points).under(likeness).matrix
    np.testing.assert_allclose(covariance.towards(points, likeness).of(points), among, atol=1e-6)
    np.testing.assert_allclose(np.diag(among), likeness.variance)


def test_scales_are_improved_along_the_true_gradient() -> None:
    rng = np.random.default_rng(2)
    process, points = GaussianProcess(Encoding.of(SPACE)), SPACE.sample(15, rng)
    targets, spacing = rng.normal(size=len(points)), Covariance(process.encoding).among(points)
    theta = process._theta + rng.normal(0, 0.3, len(process._theta))
    _, gradient = process._misfit(theta, spacing, targets)
    steps = approx_fprime(theta, lambda at: process._misfit(at, spacing, targets)[0], 1e-6)
    np.testing.assert_allclose(gradient, steps, atol=1e-3)


def test_what_knobs_do_apart_is_learned_from_few_points() -> None:
    space = Space({f"knob{n}": [1, 2, 4, 8] for n in range(8)})
    rng = np.random.default_rng(3)
    effects = rng.normal(size=(8, 4))
    seen, others = space.sample(40, rng), space.sample(300, rng)
    truth = effects[np.arange(8), seen].sum(axis=1), effects[np.arange(8), others].sum(axis=1)
    process = GaussianProcess(Encoding.of(space))
    process.fit(seen, (truth[0] - truth[0].mean()) / truth[0].std(), 30)
    assert np.corrcoef(process.predict(others)[0], truth[1])[0, 1] > 0.9


@pytest.mark.parametrize("count", [1, 2])
def test_a_point_that_was_seen_is_predicted_as_it_was(count: int) -> None:
    process, points = GaussianProcess(Encoding.of(SPACE)), SPACE.points()[[0, -1]][:count]
    process.fit(points, np.array([-1.0, 1.0])[:count], 0)
    mean, deviation = process.predict(points)
    np.testing.assert_allclose(mean, [-1.0, 1.0][:count], atol=0.02)
    assert (deviation < 0.2).all()


def test_a_prediction_that_is_no_number_is_an_error() -> None:
    process, points = GaussianProcess(Encoding.of(SPACE)), SPACE.points()[:3]
    process.fit(points, np.array([-1.0, 0.0, 1.0]), 0)
    process._weights[1] = np.nan
    with pytest.raises(FloatingPointError, match="predicts no number"):
        process.predict(points)


def test_what_points_have_to_themselves_counts_as_doubt() -> None:
    space = Space({f"knob{n}": list(range(1, 9)) for n in range(3)})
    rng, points = np.random.default_rng(4), space.points()
    times = points.sum(axis=1) / 4 + rng.normal(0, 0.5, len(points))
    targets, order = (times - times.mean()) / times.std(), rng.permutation(len(points))
    seen, others = order[:150], order[150:]
    process = GaussianProcess(Encoding.of(space))
    process.fit(points[seen], targets[seen], 50)
    mean, deviation = process.predict(points[others])
    assert (np.abs(targets[others] - mean) < 2 * deviation).mean() > 0.9
