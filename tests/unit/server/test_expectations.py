"""What may be expected of a job is told when it is submitted, from what earlier ones came to."""

from typing import Any

import pytest

from tuneloom.app.hosting.expecting import likely
from tuneloom.store import JobStatus

from .conftest import Served

JOB: dict[str, Any] = {"model": "mock:tasks=1,size=16", "trials": 8}


def finish_one(served: Served, after_ms: float, seconds: float = 40.0, **changes: Any) -> None:
    """An earlier job of the weavers that took so long and became so fast."""
    job = served.client.post("/api/v1/jobs", headers=served.headers(), json=JOB | changes).json()["id"]
    clock = served.store._clock  # type: ignore[attr-defined]
    started = clock()
    served.store._clock = lambda: started  # type: ignore[attr-defined]
    served.store.set_job(f"{job}.1", JobStatus.RUNNING)
    served.store._clock = lambda: started + seconds  # type: ignore[attr-defined]
    served.store.set_job(f"{job}.1", JobStatus.FINISHED, {"latency_after_s": after_ms / 1e3, "trials": 8})
    served.store._clock = clock  # type: ignore[attr-defined]


def expected(served: Served, who: str = "weavers", **changes: Any) -> Any:
    """What is expected of a job."""
    answer = served.client.post("/api/v1/jobs/expectation", headers=served.headers(who), json=JOB | changes)
    assert answer.status_code == 200
    return answer.json()


def test_without_earlier_jobs_nothing_is_expected_and_nothing_is_stored(served: Served) -> None:
    told = expected(served)
    assert (told["jobs"], told["latency_ms"], told["seconds"]) == (0, None, None)
    assert told["words"] == "nothing comparable was tuned before"
    assert served.store.runs() == []


def test_earlier_jobs_of_the_same_model_say_what_is_expected_and_how_surely(served: Served) -> None:
    for after_ms in (4.0, 4.4):
        finish_one(served, after_ms)
    told = expected(served, trials=16)
    assert told["jobs"] == 2 and told["known_ms"] == pytest.approx(4.0)
    assert told["latency_ms"]["low"] < 4.0 < told["latency_ms"]["expected"] < 4.4 < told["latency_ms"]["high"]
    assert told["seconds"]["expected"] == pytest.approx(80, rel=0.01)


def test_the_words_say_whether_goal_and_deadline_will_be_met(served: Served) -> None:
    finish_one(served, 4.0)
    assert "known already" in expected(served, goal_ms=4.5)["words"]
    assert "may be met" in expected(served, goal_ms=3.6)["words"]
    assert "will hardly be met" in expected(served, goal_ms=1)["words"]
    assert "will be missed" in expected(served, deadline_s=5)["words"]
    assert expected(served, deadline_s=500)["words"] == ""


def test_what_others_reached_is_not_told(served: Served) -> None:
    finish_one(served, 4.0)
    assert expected(served, "spinners")["jobs"] == 0


def test_the_answer_to_a_submission_says_what_is_expected(served: Served) -> None:
    finish_one(served, 4.0)
    told = served.client.post("/api/v1/jobs", headers=served.headers(), json=JOB).json()
    assert told["expectation"]["jobs"] == 1


def test_a_single_value_is_less_sure_than_three_that_agree() -> None:
    alone, agreed = likely([2.0]), likely([2.0, 2.01, 1.99])
    assert alone is not None and agreed is not None
    assert alone.high - alone.low > agreed.high - agreed.low
