"""The report tells what a search chose and why, from the trials alone."""

import pytest

from tuneloom.model import (
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    Outcome,
    ProposalReason,
    Purpose,
    Trial,
)
from tuneloom.report import ReportData, SearchStory, render_report, story_of

START = ProposalReason(member="random", purpose=Purpose.START, risk=0.5)


def trial(seconds: float | None, reason: ProposalReason | None) -> Trial:
    broken = Failure(kind=FailureKind.RUN_ERROR)
    outcome: Outcome = broken if seconds is None else Measurement(seconds=(seconds,))
    return Trial(candidate=Candidate(key="k", configuration="{}", reason=reason), outcome=outcome)


def chosen(promise: float) -> ProposalReason:
    return ProposalReason(
        member="model", purpose=Purpose.IMPROVE, risk=0.1, expected_s=1e-3, error=0.2, promise=promise
    )


def story(*trials: Trial) -> SearchStory:
    found = story_of("amber.1", "levels", "levels", trials)
    assert found is not None
    return found


def page_of(*stories: SearchStory) -> str:
    return render_report(ReportData(run="amber-heron-42", stories=stories))


def test_members_are_counted_with_what_they_promised_and_gained() -> None:
    found = story(
        trial(None, START),
        trial(4e-3, START),
        trial(2e-3, chosen(0.25)),
        trial(None, chosen(0.25)),
        trial(3e-3, chosen(0.1)),
    )
    first, second = found.members
    assert (first.name, first.chosen, first.failed, first.improved, first.promised) == (
        "random",
        2,
        1,
        0,
        None,
    )
    assert (second.name, second.chosen, second.failed, second.improved) == ("model", 3, 1, 1)
    assert (second.best_s, second.gained) == (2e-3, 0.5)
    assert second.promised == pytest.approx(0.6)


def test_trials_without_reasons_count_as_trials_but_tell_nothing() -> None:
    found = story(trial(2e-3, None), trial(1e-3, chosen(0.1)))
    assert found.trials == 2
    assert [choice.trial for choice in found.choices] == [2]
    assert found.choices[0].gain == 0.5


def test_a_job_of_an_older_version_has_no_such_section() -> None:
    assert story_of("amber.1", "levels", "levels", [trial(1e-3, None)]) is None
    assert "What the search chose" not in page_of()


def test_the_page_shows_members_promises_and_where_it_was_stuck() -> None:
    page = page_of(story(trial(1e-3, START), *[trial(2e-3, chosen(0.05))] * 20))
    assert "<h2>What the search chose</h2>" in page
    assert "promised 5.0 %, improved by 0.0 %" in page
    assert "stuck: trials 2 to 21 at 1.00 ms\npromised 100 % in all, 0 failed" in page
    assert "2 to 21</td>" in page


def test_a_search_of_which_nothing_ran_still_has_its_table() -> None:
    page = page_of(story(trial(None, START)))
    assert "What the search chose" in page and "random</td>" in page


def test_many_searches_are_shown_on_request() -> None:
    page = page_of(*[story(trial(1e-3, START))] * 5)
    assert "Show all 5 searches" in page and page.count('class="late"') == 2
