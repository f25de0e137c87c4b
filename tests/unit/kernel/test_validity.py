"""The model of validity learns hidden limits from failures."""

import numpy as np
import pytest

from tuneloom.tuners.validity import ValidityModel, spread
from tuneloom.tuners.validity.calibration import Calibration
from tuneloom.tuners.validity.directions import MOST_DIRECTIONS, Directions, picked


def trained(count: int, seed: int = 0) -> tuple[ValidityModel, np.random.Generator]:
    """A model that saw `count` random points of a space where a product must not exceed 2**6."""
    rng = np.random.default_rng(seed)
    model = ValidityModel(4, seed)
    for row in rng.integers(0, 6, (count, 4)).astype(float):
        model.observe(row, bool(row[0] + row[1] <= 6))
    return model, rng


def test_a_hidden_product_limit_is_learned_from_forty_points() -> None:
    model, rng = trained(40)
    rows = rng.integers(0, 6, (400, 4)).astype(float)
    truth = rows[:, 0] + rows[:, 1] <= 6
    right = (model.probability(rows) > 0.5) == truth
    assert right.mean() > 0.9


def test_before_the_first_failure_everything_is_taken_to_be_valid() -> None:
    model = ValidityModel(2, 0)
    model.observe(np.zeros(2), True)
    assert (model.probability(np.ones((3, 2))) == 1).all()
    assert not model.decided and model.failures == 0


def test_before_the_first_valid_point_all_are_equally_likely() -> None:
    model = ValidityModel(2, 0)
    model.observe(np.zeros(2), False)
    assert len(set(model.probability(np.eye(2)))) == 1
    assert model.failures == 1


def test_the_same_seed_gives_the_same_probabilities() -> None:
    rows = np.random.default_rng(5).random((20, 4))
    assert (trained(30)[0].probability(rows) == trained(30)[0].probability(rows)).all()


def test_a_failure_lowers_the_chance_of_its_place_at_once() -> None:
    model, _ = trained(40)
    row = np.array([[1.0, 1.0, 5.0, 5.0]])
    before = model.probability(row)[0]
    for _ in range(3):
        model.observe(row[0], False)
    assert model.probability(row)[0] < before


def test_probabilities_stay_between_zero_and_one() -> None:
    model, rng = trained(60)
    chance = model.probability(rng.normal(0, 20, (200, 4)))
    assert (chance >= 0).all() and (chance <= 1).all()


def test_predictions_that_were_too_bold_are_toned_down() -> None:
    calibration = Calibration()
    for place in range(60):
        calibration.record(0.8, place % 5 == 0)
    assert calibration.corrected(np.array([0.8]))[0] == pytest.approx(0.2, abs=0.12)


def test_without_a_past_predictions_stand() -> None:
    assert Calibration().corrected(np.array([0.3]))[0] == pytest.approx(0.3)


def test_directions_are_products_and_ratios_and_sums_with_factors() -> None:
    two = Directions.over(2)
    assert two.weights.shape == (2 + 1, 4 + 4 + 1)
    assert two.knobs.tolist() == [1] * 4 + [2] * 4 + [2]
    assert Directions.over(3).knobs.max() == 3 and Directions.over(4).knobs.max() == 4


@pytest.mark.parametrize("width", [1, 12, 60])
def test_directions_are_never_too_many(width: int) -> None:
    found = Directions.over(width)
    assert 2 * width <= found.weights.shape[1] <= MOST_DIRECTIONS
    assert found.extended(np.ones((5, width))).shape == (5, found.weights.shape[0])


def test_sums_that_no_direction_uses_are_not_computed() -> None:
    assert len(Directions.over(12).pairs) == 66 and len(Directions.over(60).pairs) == 0


@pytest.mark.parametrize("some", [[], [0], [3, 40, 3], list(range(0, 90, 7))])
def test_some_directions_need_their_own_sums_only_and_mean_the_same(some: list[int]) -> None:
    every, rows = Directions.over(5), np.random.default_rng(2).random((6, 5))
    chosen = every.only(np.array(some, dtype=np.int64))
    assert len(chosen.pairs) <= len(some)
    np.testing.assert_allclose(chosen.along(rows), every.along(rows)[:, some], rtol=1e-12)


def test_what_is_picked_stands_in_these_rows_and_columns() -> None:
    table, rows, columns = np.arange(20.0).reshape(4, 5), np.array([3, 0]), np.array([4, 4, 1])
    np.testing.assert_array_equal(picked(table[:4], rows, columns), table[np.ix_(rows, columns)])


@pytest.mark.parametrize("count", [63, 64, 65, 130])
def test_a_model_forgets_nothing_when_it_needs_more_room(count: int) -> None:
    rows = np.random.default_rng(3).integers(0, 9, (count, 3)).astype(float)
    model = ValidityModel(3, 0)
    for row in rows:
        model.observe(row, bool(row.sum() <= 12))
    assert ((model.probability(rows) > 0.5) == (rows.sum(axis=1) <= 12)).mean() > 0.95


def test_the_memory_of_two_tiles_is_learned_as_a_sum() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 8, (460, 5)).astype(float)
    takes = np.log2(2 ** rows[:, 0] + 2 ** rows[:, 1]) + rows[:, 2]
    model = ValidityModel(5, 0)
    for row, valid in zip(rows[:60], takes[:60] <= 9.5, strict=True):
        model.observe(row, bool(valid))
    right = (model.probability(rows[60:]) > 0.5) == (takes[60:] <= 9.5)
    assert right.mean() > 0.9


def test_the_spread_start_takes_the_farthest_likely_point() -> None:
    candidates = np.array([[0.0], [0.5], [1.0]])
    assert spread(candidates, np.array([[0.0]]), np.ones(3)) == 2
    assert spread(candidates, np.array([[0.0]]), np.array([1.0, 1.0, 0.0])) == 1
    assert spread(candidates, np.empty((0, 1)), np.array([0.1, 0.9, 0.2])) == 1
