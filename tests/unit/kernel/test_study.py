"""Replays are summarised as they were, and invented spaces can be searched."""

from math import inf

import pytest

from support.spaces import Recipe, invented, perfect_knowledge
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.replay.recording import Entry, Recording
from tuneloom.tuners.replay.study import arrival, replayed, summarised

RECORDING = Recording("three", ("a",), {(1,): Entry(1.0), (2,): Entry(1.04), (3,): Entry(2.0)})


def test_a_run_arrives_within_five_per_cent() -> None:
    assert arrival([None, 2.0, 1.04], 1.0) == 3
    assert arrival([None, 2.0], 1.0) == inf


def test_a_summary_counts_failures_as_evaluations() -> None:
    summary = summarised(RECORDING, "some", [[2.0, None, 1.0], [1.0, None, None], [None, None, 1.04]])
    assert summary.to_close == 3
    assert summary.arrived == 1
    assert summary.invalid_share == pytest.approx(5 / 9)
    assert summary.invalid_until_close == pytest.approx(3 / 7)
    assert summary.best[25] == 1.0


def test_a_replay_ends_when_the_space_is_spent() -> None:
    run = replayed(RECORDING, "guided", Terms(0, trials=50))
    assert sorted(t for t in run if t is not None) == [1.0, 1.04, 2.0]


def test_a_replay_can_end_on_arrival() -> None:
    run = replayed(RECORDING, "random", Terms(0, trials=50), until_close=True)
    assert arrival(run, 1.0) == len(run)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_an_invented_space_fails_about_as_often_as_asked(share: float) -> None:
    recording = invented(1, Recipe(sizes=4, choices=1, invalid_share=share, limits=2))
    assert abs(recording.invalid_share - share) < 0.3
    assert recording.entries == invented(1, Recipe(sizes=4, choices=1, invalid_share=share, limits=2)).entries


def test_perfect_knowledge_spends_nothing_on_failures() -> None:
    recording = invented(2, Recipe(sizes=3, choices=1, invalid_share=0.6))
    run = replayed(recording, "guided", Terms(0, trials=20, knowledge=perfect_knowledge(recording)))
    assert run.count(None) <= 1


def test_a_recipe_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="share below 1"):
        Recipe(invalid_share=1.0)
