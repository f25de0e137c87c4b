"""What the page follows: the overview, a job's timeline and log, and devices over time."""

import asyncio
import json
from typing import Any

from support.contracts.store import HERE, failed
from tuneloom.model import FailureKind, Task
from tuneloom.server.streams.events import overview_events
from tuneloom.store import JobStatus, Page, SpanRecord

from .conftest import Served

TASK = Task(key="k", name="conv", kernel_class="conv")
CPU = {"name": "cpu0", "key": "cpu", "slots": 1, "taken": 1, "utilisation": 0.5, "queue": 2}


def submitted(served: Served, who: str = "weavers") -> str:
    asked = {"model": "mock:size=8", "trials": 8}
    job: str = served.client.post("/api/v1/jobs", headers=served.headers(who), json=asked).json()["id"]
    return job


def held(served: Served, job: str) -> None:
    """Let an executor carry the job out, as far as the store can tell."""
    served.store.take_run(job, "box-1-aa", 60.0)
    picture = {"stage": "build", "spent": 3, "budget": 8, "best_s": 0.002, "left_s": 9.0}
    view = {"run": job, "resources": [CPU | {"now": "build secret-net"}], "jobs": [picture]}
    served.store.write_pages([Page(run=job, view=view)])


def first_event(served: Served, name: str, known: str = "") -> dict[str, Any]:
    """The first event of an overview after a digest."""

    async def listening() -> dict[str, Any]:
        service = served.client.app.state.service  # type: ignore[attr-defined]
        stream = overview_events(service.streams, name, known)
        assert "retry" in await anext(stream)
        text = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        assert service.streams.count == 0
        lines = dict(line.split(": ", 1) for line in text.strip().splitlines())
        return {"id": lines["id"], **json.loads(lines["data"])}

    return asyncio.run(listening())


def test_an_overview_has_jobs_with_progress_counts_and_devices(served: Served) -> None:
    job = submitted(served)
    held(served, job)
    told = first_event(served, "weavers")
    assert told["counts"] == {"waiting": 1}
    assert [(each["id"], each["progress"]["best_ms"]) for each in told["jobs"]] == [(job, 2.0)]
    assert [(each["name"], each["queue"], each["now"]) for each in told["devices"]] == [("cpu0", 2, "busy")]


def test_an_overview_tells_nothing_of_other_tenants(served: Served) -> None:
    held(served, submitted(served))
    told = first_event(served, "spinners")
    assert told["jobs"] == [] and told["counts"] == {} and "secret-net" not in json.dumps(told)
    assert "secret-net" in json.dumps(first_event(served, "!*"))


def test_a_resumed_overview_begins_with_a_change(served: Served) -> None:
    known = first_event(served, "weavers")["id"]
    submitted(served)
    assert len(first_event(served, "weavers", known)["jobs"]) == 1


def test_only_administrators_watch_other_tenants(served: Served) -> None:
    answer = served.client.get("/api/v1/events?tenant=*", headers=served.headers())
    assert (answer.status_code, answer.json()["field"]) == (403, "tenant")


def test_a_timeline_is_told_piece_by_piece(served: Served) -> None:
    job = submitted(served)
    span = SpanRecord(job=f"{job}.1", task="k", kind="build", resource="host", start_s=0.0, end_s=1.0)
    served.store.write_pages([Page(run=job, spans=(span, span))])
    served.store.set_note(job, "resources", [{"name": "host", "slots": 2, "machine": "", "joined_s": 0.0}])
    address = f"/api/v1/jobs/{job}/timeline"
    told = served.client.get(address, headers=served.headers()).json()
    assert (len(told["spans"]), told["resources"][0]["slots"], told["complete"]) == (2, 2, True)
    after = told["spans"][0]["id"]
    assert len(served.client.get(f"{address}?after={after}", headers=served.headers()).json()["spans"]) == 1


def test_a_log_has_states_requests_failures_and_lost_devices(served: Served) -> None:
    job = submitted(served)
    served.client.post(f"/api/v1/jobs/{job}/pause", headers=served.headers())
    served.store.add_tasks(f"{job}.1", [TASK], family=HERE.family, target=HERE.target)
    served.store.add_trial(f"{job}.1", "k", failed("c", FailureKind.RUN_TIMEOUT, "no result"), HERE)
    away = {"name": "cpu0", "device_key": "cpu", "away": [[1.0, 4.0]], "why_away": "unplugged"}
    served.store.set_note(job, "resources", [away])
    entries = served.client.get(f"/api/v1/jobs/{job}/log", headers=served.headers()).json()["entries"]
    told = {(entry["kind"], entry["text"]) for entry in entries}
    assert {
        ("state", "submitted"),
        ("request", "pause job"),
        ("failure", "run timeout in conv"),
        ("device", "cpu0 was lost"),
        ("device", "cpu0 returned"),
    } <= told
    assert [entry["at"] for entry in entries] == sorted((entry["at"] for entry in entries), reverse=True)


def test_provenance_names_what_was_reused_and_how_it_was_measured(served: Served) -> None:
    job = submitted(served)
    served.store.add_tasks(f"{job}.1", [TASK], family=HERE.family, target=HERE.target)
    gift = {"donor": "other", "source": "resnet", "after_s": 0.001, "used": True}
    served.store.set_plan(f"{job}.1", "k", {"gifts": [gift]})
    served.store.set_note(job, "canary", [[0.5, 1.01]])
    told = served.client.get(f"/api/v1/jobs/{job}/provenance", headers=served.headers()).json()
    assert (told["reused"][0]["kernel"], told["reused"][0]["after_ms"]) == ("conv", 1.0)
    assert told["canary"] == [[0.5, 1.01]]


def test_devices_have_a_history_of_their_canary_and_their_absences(served: Served) -> None:
    job = submitted(served)
    away = {"name": "cpu0", "device_key": "cpu", "away": [[1.0, None]], "why_away": "unplugged"}
    served.store.set_note(job, "resources", [away])
    served.store.set_job(f"{job}.1", JobStatus.RUNNING)
    (told,) = served.client.get("/api/v1/devices/history", headers=served.headers()).json()["devices"]
    assert (told["key"], told["names"]) == ("cpu", ["cpu0"])
    assert (told["absences"][0]["until"], told["absences"][0]["reason"]) == (None, "unplugged")
