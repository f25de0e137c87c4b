"""Rows of numbers that stand for configurations of several sketches."""

import json

import numpy as np
import pytest

from tuneloom.tuners.tvm.search.knobs import ChoiceKnob, TileKnob
from tuneloom.tuners.tvm.search.population import Population
from tuneloom.tuners.tvm.search.sketches import Sketch, decisions_in, key_of
from tuneloom.tuners.tvm.search.surrogate import Surrogate

SKETCHES = (
    Sketch(trace=None, kinds=("SamplePerfectTile",), knobs=(TileKnob(12, 2, 64),)),
    Sketch(
        trace=None,
        kinds=("SamplePerfectTile", "SampleCategorical"),
        knobs=(TileKnob(12, 2, 64), ChoiceKnob((0, 1, 2))),
    ),
)


@pytest.fixture
def population() -> Population:
    return Population(SKETCHES, np.random.default_rng(7))


def test_samples_come_from_every_sketch_and_stay_in_range(population: Population) -> None:
    rows = population.sample(200)
    assert {row[0] for row in rows} == {0, 1}
    for row in rows:
        knobs = SKETCHES[row[0]].knobs
        assert all(0 <= index < len(knob.values) for index, knob in zip(row[1:], knobs, strict=True))


def test_mutants_keep_their_sketch_and_stay_in_range(population: Population) -> None:
    rows = population.sample(100)
    assert len(rows) == 100
    for row in rows:
        mutant = population.mutate(row)
        assert mutant[0] == row[0]
        knobs = SKETCHES[row[0]].knobs
        assert all(0 <= index < len(knob.values) for index, knob in zip(mutant[1:], knobs, strict=True))


def test_children_take_every_knob_from_one_of_their_parents(population: Population) -> None:
    one, other = (1, 0, 0), (1, 3, 2)
    for _ in range(20):
        child = population.cross(one, other)
        assert all(value in pair for value, pair in zip(child, zip(one, other, strict=True), strict=True))


def test_parents_of_different_sketches_give_the_first(population: Population) -> None:
    assert population.cross((0, 1), (1, 3, 2)) == (0, 1)


def test_a_row_survives_the_way_through_its_decisions(population: Population) -> None:
    rows = population.sample(50)
    assert len(rows) == 50
    assert [population.row(SKETCHES[row[0]].kinds, population.decisions(row)) for row in rows] == list(rows)


def test_decisions_no_sketch_can_make_have_no_row(population: Population) -> None:
    assert population.row(("SamplePerfectTile",), [(5, 5)]) is None
    assert population.row(("SampleCategorical",), [0]) is None


def test_rows_are_told_apart_by_their_features(population: Population) -> None:
    rows = sorted(set(population.sample(300)))
    features = population.encode(rows)
    assert len({tuple(np.nan_to_num(row, nan=-9).tolist()) for row in features}) == len(rows)


def test_the_same_seed_gives_the_same_rows() -> None:
    first = Population(SKETCHES, np.random.default_rng(3)).sample(20)
    assert first == Population(SKETCHES, np.random.default_rng(3)).sample(20)


def test_the_surrogate_learns_which_rows_are_fast(population: Population) -> None:
    rows = sorted(set(population.sample(300)))
    features = population.encode(rows)
    seconds = np.asarray([1.0 + row[1] for row in rows])
    surrogate = Surrogate(seed=0)
    surrogate.fit(features, seconds)
    scores = surrogate.predict(features)
    fast, slow = seconds == 1.0, seconds == seconds.max()
    assert scores[fast].min() > scores[slow].max()


def test_failures_score_lowest(population: Population) -> None:
    rows = sorted(set(population.sample(300)))
    features = population.encode(rows)
    seconds = np.asarray([np.inf if row[0] == 0 else 1.0 for row in rows])
    surrogate = Surrogate(seed=0)
    surrogate.fit(features, seconds)
    scores = surrogate.predict(features)
    assert scores[np.isinf(seconds)].max() < scores[np.isfinite(seconds)].min()


def test_a_trace_is_known_by_its_decisions_before_postprocessing() -> None:
    instructions = [
        ["SamplePerfectTile", [], [], []],
        ["EnterPostproc", [], [], []],
        ["SampleCategorical", [], [], []],
    ]
    text = json.dumps([instructions, [[0, [3, 4]], [2, 1]]])
    assert decisions_in(text) == (("SamplePerfectTile()",), [(3, 4)])
    other = json.dumps([instructions[:1], [[0, [3, 4]]]])
    assert key_of(text) == key_of(other)
    assert key_of(text) != key_of(json.dumps([instructions[:1], [[0, [4, 3]]]]))


@pytest.mark.parametrize("text", ["", "no trace", "[]", "[1, 2]", '{"a": 1}', "[[[]], [[0]]]"])
def test_text_that_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a trace"):
        decisions_in(text)
