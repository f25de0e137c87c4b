"""Events of a job can be resumed, and tell nothing of others."""

import asyncio
import json
from typing import Any

import pytest

from support.contracts.store import HERE, measured
from tuneloom.model import Task
from tuneloom.server.streams import events as server_events
from tuneloom.server.streams import open_streams
from tuneloom.server.streams.events import Mark, mark_of
from tuneloom.store import JobStatus, Page

from .conftest import Served

TASK = Task(key="k", name="conv", kernel_class="conv")
BUSY = {"name": "cpu0", "key": "cpu", "slots": 1, "taken": 1, "utilisation": 0.5, "queue": 0}


def submitted(served: Served) -> str:
    """A job with three trials and a view, that has ended."""
    asked = {"model": "mock:size=8", "trials": 8}
    job: str = served.client.post("/api/v1/jobs", headers=served.headers(), json=asked).json()["id"]
    served.store.add_tasks(f"{job}.1", [TASK], family=HERE.family, target=HERE.target)
    for number in range(3):
        served.store.add_trial(f"{job}.1", "k", measured(f"c{number}", 0.5), HERE)
    view = {"run": job, "resources": [BUSY | {"now": "build secret-net"}], "jobs": []}
    served.store.write_pages([Page(run=job, view=view)])
    served.store.set_job(f"{job}.1", JobStatus.FINISHED)
    return job


def events(served: Served, job: str, last: str | None = None) -> list[dict[str, Any]]:
    """All events of a job that has ended."""
    headers = served.headers() | ({"Last-Event-ID": last} if last else {})
    text = served.client.get(f"/api/v1/jobs/{job}/events", headers=headers).text
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "event" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


def test_a_stream_tells_everything_and_ends_with_the_job(served: Served) -> None:
    told = events(served, submitted(served))
    assert [event["event"] for event in told] == ["trials", "view", "end"]
    assert len(told[0]["data"]["trials"]) == 3
    assert told[2]["data"]["status"] == "finished"


def test_a_resumed_stream_repeats_nothing(served: Served) -> None:
    job = submitted(served)
    told = events(served, job)
    assert [event["event"] for event in events(served, job, told[1]["id"])] == ["end"]
    half = str(Mark(trial=told[0]["data"]["trials"][0]["id"]))
    rest = events(served, job, half)
    assert [len(event["data"]["trials"]) for event in rest if event["event"] == "trials"] == [2]


def test_what_resources_do_for_others_is_not_told(served: Served) -> None:
    job = submitted(served)
    text = json.dumps(events(served, job))
    shown = served.client.get(f"/api/v1/jobs/{job}", headers=served.headers()).text
    assert "secret-net" not in text + shown and '"busy"' in text + shown


def test_many_streams_are_told_more_rarely(served: Served) -> None:
    service = served.client.app.state.service  # type: ignore[attr-defined]
    pauses = []
    for count in (1, 100, 250):
        service.streams.watched["job"] = count
        pauses.append(service.streams.pause_s)
    del service.streams.watched["job"]
    assert pauses == [1.0, 1.0, 2.5]


def test_a_mark_that_is_not_ours_counts_as_none() -> None:
    assert mark_of("1'; DROP TABLE-x") == mark_of(None) == Mark()
    assert mark_of("12-0123456789ab") == Mark(12, "0123456789ab")


def test_an_event_is_made_once_for_all_who_listen(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    job, made = submitted(served), []
    service = served.client.app.state.service  # type: ignore[attr-defined]
    real = server_events._made

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return real(*arguments)

    async def heard() -> list[str]:
        return [event async for event in server_events.job_events(service.streams, job, Mark())]

    async def all_heard() -> list[list[str]]:
        return await asyncio.gather(*(heard() for _ in range(20)))

    monkeypatch.setattr(server_events, "_made", counted)
    monkeypatch.setattr(open_streams, "EVERY_S", 1e6)
    told = asyncio.run(all_heard())
    assert all(stream == told[0] for stream in told)
    assert [text.count("event: ") for text in told[0]] == [0, 3], "all that happened is sent at once"
    assert len(made) == 2, "one event with trials and one with the view"
