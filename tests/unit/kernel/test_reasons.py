"""A search tells why it proposed a point, and a run tells where it was stuck."""

import pytest

from support.spaces import Recipe, invented
from tuneloom.cli.lab.kernel_explain import explained_json, explanation
from tuneloom.model import ProposalReason, Purpose, stalls
from tuneloom.tuners.kernel.search.searches import SEARCHES
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.replay.recording import Entry, Recording
from tuneloom.tuners.replay.study import ReplayedTrial, explained

RECORDING = invented(3, Recipe(sizes=3, choices=1, invalid_share=0.5))


def _trial(seconds: float | None, promise: float | None = None) -> ReplayedTrial:
    reason = ProposalReason(member="model", purpose=Purpose.IMPROVE, risk=0.0, promise=promise)
    return ReplayedTrial(point=(0,), reason=reason, seconds=seconds)


def test_the_start_is_told_from_what_a_model_chose() -> None:
    steps = explained(RECORDING, "guided", Terms(0, trials=12))
    reasons = [step.reason for step in steps if step.reason is not None]
    assert len(reasons) == len(steps) == 12
    assert reasons[0].purpose is Purpose.START
    assert reasons[0].promise is None
    assert reasons[-1].purpose is Purpose.IMPROVE
    assert reasons[-1].promise is not None
    assert reasons[-1].promise >= 0
    assert all(reason.risk is not None and 0 <= reason.risk <= 1 for reason in reasons)
    assert reasons[0].member == "random" and reasons[-1].member == "Gaussian process"


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_names_the_member_that_proposed_a_point(search: str) -> None:
    steps = explained(RECORDING, search, Terms(0, trials=80))
    assert all(step.reason is not None and step.reason.member for step in steps)


def test_members_of_a_search_are_told_apart() -> None:
    ranked = {
        step.reason.member for step in explained(RECORDING, "autotvm", Terms(0, trials=80)) if step.reason
    }
    assert ranked == {"random", "ranking trees, annealed"}
    walked = {
        step.reason.member for step in explained(RECORDING, "local", Terms(0, trials=40)) if step.reason
    }
    assert walked == {"random", "step to a neighbour"}


def test_a_reason_comes_back_from_plain_data_and_others_count_as_none() -> None:
    reason = ProposalReason(member="model", purpose=Purpose.IMPROVE, risk=0.5, promise=0.1)
    assert ProposalReason.of(reason.plain()) == reason
    assert ProposalReason.of(None) is None
    assert ProposalReason.of({"member": "model", "purpose": "unheard of"}) is None
    assert ProposalReason.of({**reason.plain(), "added_later": 1}) is None


def test_a_stretch_without_a_better_time_is_a_stall_with_what_was_promised() -> None:
    steps = [_trial(None), _trial(2.0), _trial(3.0, 0.25), _trial(None, 0.5), _trial(1.0), _trial(1.5)]
    (stall,) = stalls(steps, least=2)
    assert (stall.first, stall.last, stall.best_s, stall.failed) == (3, 4, 2.0, 1)
    assert stall.promised == 0.75


def test_a_run_that_ends_without_a_better_time_was_stuck_at_its_end() -> None:
    (stall,) = stalls([_trial(1.0), *[_trial(2.0)] * 5], least=5)
    assert (stall.first, stall.last) == (2, 6)


def test_an_explanation_has_a_line_for_every_trial_and_every_stall() -> None:
    recording = Recording("one", ("a",), {(1,): Entry(1000.0), (2,): Entry(2000.0)})
    lines = list(explanation(recording, [_trial(1.0), *[_trial(None, 0.01)] * 15]))
    assert "failed" in lines[2]
    assert lines[-1].startswith("stuck: trials 2 to 16 at 1000 ms (1.000 of the optimum); promised 15.0%")
    told = explained_json(recording, [_trial(1.0)])
    assert told["trials"][0]["point"] == {"a": 1}
    assert told["stuck"] == []
