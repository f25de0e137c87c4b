"""Jobs come in checked, once, and within what a tenant may have."""

from typing import Any

import pytest

from tuneloom.store import JobStatus, RunStatus, WishKind

from .conftest import Served

JOB: dict[str, Any] = {"model": "mock:tasks=1,size=16", "trials": 8}


def submit(served: Served, who: str = "weavers", key: str | None = None, **changes: Any) -> Any:
    """The answer to a submission."""
    headers = served.headers(who) | ({"Idempotency-Key": key} if key else {})
    return served.client.post("/api/v1/jobs", headers=headers, json=JOB | changes)


def test_a_submitted_job_waits_in_the_store(served: Served) -> None:
    answer = submit(served, name="loom", goal_ms=3.5, priority=2)
    assert answer.status_code == 201
    told = answer.json()
    assert (told["status"], told["name"], told["goal_ms"], told["priority"]) == ("waiting", "loom", 3.5, 2)
    assert answer.headers["location"] == f"/api/v1/jobs/{told['id']}"
    assert served.store.run(told["id"]).status is RunStatus.WAITING
    assert served.client.get(answer.headers["location"], headers=served.headers()).json() == told


def test_installed_packages_are_looked_through_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(**_: Any) -> Any:
        raise AssertionError("reading the metadata of all packages takes longer than all else")

    assert submit(served).status_code == 201
    monkeypatch.setattr("tuneloom.app.kinds.registering.entry_points", looked)
    assert submit(served).status_code == 201


def test_the_same_key_makes_one_job(served: Served) -> None:
    first, again = submit(served, key="k1"), submit(served, key="k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert len(served.store.submitted_jobs("weavers")) == 1
    other = submit(served, key="k1", trials=9)
    assert (other.status_code, other.json()["field"]) == (409, "Idempotency-Key")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"trials": 0}, "trials"),
        ({"trials": 2**40}, "trials"),
        ({"trials": "8"}, "trials"),
        ({"seconds": -1}, "seconds"),
        ({"goal_ms": 0}, "goal_ms"),
        ({"priority": 6}, "priority"),
        ({"model": "/etc/passwd"}, "model"),
        ({"model": "../net.onnx"}, "model"),
        ({"model": "f" * 64}, "model"),
        ({"model": "zoo:nonesuch"}, None),
        ({"tuner": "kernel", "model": "mock:size=4"}, "tuner"),
        ({"out": "/tmp/x"}, "out"),
        ({"name": "a\nb"}, "name"),
        ({"reuse": "everything"}, "reuse"),
        ({"nonsense": 1}, "nonsense"),
        ({"shapes": {"x": [0]}}, "shapes.x"),
        ({"shapes": {"x": [[1, 2], [True, 2]]}}, "shapes.x"),
        ({"shapes": {"x": [[1, 2], [3]]}}, "shapes"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(
    served: Served, changes: dict[str, Any], field: str | None
) -> None:
    answer = submit(served, **changes)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field or field is None
    assert served.store.runs() == []


def test_a_kernel_s_own_code_is_not_accepted(served: Served) -> None:
    answer = submit(served, model="kernel:x.toml")
    assert answer.status_code == 422 and served.store.runs() == []


def test_a_tenant_with_too_many_jobs_has_to_wait(served: Served) -> None:
    for _ in range(5):
        assert submit(served).status_code == 201
    refused = submit(served)
    assert (refused.status_code, refused.json()["field"]) == (403, "jobs_at_once")
    assert submit(served, "spinners").status_code == 201


def test_jobs_are_listed_by_pages_and_states(served: Served) -> None:
    ids = [submit(served, name=f"net{n}").json()["id"] for n in range(3)]
    served.store.set_job(f"{ids[0]}.1", JobStatus.FAILED, {"failure": "no luck"})
    page = served.client.get("/api/v1/jobs?limit=2", headers=served.headers()).json()
    assert [job["id"] for job in page["jobs"]] == [ids[2], ids[1]]
    rest = served.client.get(f"/api/v1/jobs?before={page['next']}", headers=served.headers()).json()
    assert ([job["failure"] for job in rest["jobs"]], rest["next"]) == (["no luck"], None)
    failed = served.client.get("/api/v1/jobs?status=failed&status=finished", headers=served.headers())
    assert [job["id"] for job in failed.json()["jobs"]] == [ids[0]]
    assert served.client.get("/api/v1/jobs?limit=501", headers=served.headers()).status_code == 422


def test_a_job_that_waits_is_changed_at_once(served: Served) -> None:
    job = submit(served).json()["id"]
    change = served.client.patch(f"/api/v1/jobs/{job}", headers=served.headers(), json={"priority": 4})
    assert (change.status_code, change.json()["priority"]) == (200, 4)
    for action, status in (("pause", "paused"), ("resume", "waiting"), ("cancel", "cancelled")):
        answer = served.client.post(f"/api/v1/jobs/{job}/{action}", headers=served.headers())
        assert (answer.status_code, answer.json()["status"]) == (202, status)
    assert served.store.run(job).status is RunStatus.FINISHED


def test_wishes_for_a_job_that_is_carried_out_are_left_for_its_executor(served: Served) -> None:
    job = submit(served).json()["id"]
    served.store.take_run(job, "executor", 30.0)
    for action in ("pause", "cancel"):
        answer = served.client.post(f"/api/v1/jobs/{job}/{action}", headers=served.headers())
        assert answer.status_code == 202
    answer = served.client.patch(f"/api/v1/jobs/{job}", headers=served.headers(), json={"priority": 4})
    assert answer.status_code == 200
    wishes = served.store.open_wishes(job)
    assert [wish.kind for wish in wishes] == [WishKind.PAUSE, WishKind.CANCEL, WishKind.PRIORITY]
    assert wishes[2].body == {"priority": 4}


def test_nothing_can_be_wished_of_a_job_that_has_ended(served: Served) -> None:
    job = submit(served).json()["id"]
    served.store.set_job(f"{job}.1", JobStatus.FINISHED)
    for action in ("pause", "resume", "cancel"):
        answer = served.client.post(f"/api/v1/jobs/{job}/{action}", headers=served.headers())
        assert (answer.status_code, "finished" in answer.json()["detail"]) == (409, True)
    bundle = served.client.get(f"/api/v1/jobs/{job}/bundle", headers=served.headers())
    assert (bundle.status_code, "no bundle" in bundle.json()["detail"]) == (404, True)
