"""Who may do what, and what other tenants see: nothing."""

import re
import time

import pytest
from fastapi import FastAPI

from tuneloom.server.access.credentials import bearer, make_token
from tuneloom.store import Role

from .conftest import Served

JOB = {"model": "mock:tasks=1,size=16", "trials": 8}


def operations(app: FastAPI) -> list[tuple[str, str]]:
    """Every method and path of the API."""
    paths = app.openapi()["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


def test_every_operation_but_health_and_logging_in_needs_a_token(served: Served) -> None:
    open_to_all = ("/healthz", "/readyz", "/api/v1/session")
    guarded = [one for one in operations(served.client.app) if one[1] not in open_to_all]  # type: ignore[arg-type]
    assert len(guarded) > 20
    for method, path in guarded:
        filled = re.sub(r"\{digest\}", "a" * 64, path).replace("{token}", "a" * 16)
        answer = served.client.request(method, re.sub(r"\{\w+\}", "amber-heron-42", filled))
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("change", ["wrong secret", "unknown id", "no token", "revoked", "expired", "empty"])
def test_a_token_that_is_none_opens_nothing(served: Served, change: str) -> None:
    record, text = make_token(
        served.store, "weavers", "t", Role.READER, time.time() - 1 if change == "expired" else None
    )
    if change == "revoked":
        served.store.revoke_token(record.id)
    swapped = text[:-1] + ("a" if text[-1] != "a" else "b")
    told = {"wrong secret": swapped, "unknown id": text.replace(record.id, "0" * 16), "no token": "hello"}
    given = {"empty": ""}.get(change, told.get(change, text))
    answer = served.client.get("/api/v1/self", headers={"Authorization": f"Bearer {given}"})
    assert answer.status_code == 401
    assert "token" in answer.json()["detail"]


def test_the_store_keeps_no_secret(served: Served) -> None:
    record, text = make_token(served.store, "weavers", "t", Role.READER)
    found = served.store.token_with_digest(record.id)
    assert found is not None and found[1] not in text and text.split("_", 2)[2] not in repr(found)
    assert bearer(served.store, text) == record


def test_a_reader_reads_and_submits_nothing(served: Served) -> None:
    headers = served.headers("reader")
    assert served.client.get("/api/v1/jobs", headers=headers).status_code == 200
    answer = served.client.post("/api/v1/jobs", headers=headers, json=JOB)
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        "this token is a reader's, a submitter's is needed",
    )


@pytest.mark.parametrize("path", ["/tenants", "/tokens", "/audit"])
def test_only_administrators_see_administration(served: Served, path: str) -> None:
    assert served.client.get(f"/api/v1{path}", headers=served.headers()).status_code == 403
    assert served.client.get(f"/api/v1{path}", headers=served.headers("root")).status_code == 200


def test_another_tenant_s_job_is_as_if_it_were_not_there(served: Served) -> None:
    job = served.client.post("/api/v1/jobs", headers=served.headers(), json=JOB).json()["id"]
    theirs = served.headers("spinners")
    missing = served.client.get("/api/v1/jobs/no-such-job", headers=theirs).json()["detail"]
    for method, path in operations(served.client.app):  # type: ignore[arg-type]
        if "{job}" not in path:
            continue
        body = {"priority": 1} if method == "patch" else None
        answer = served.client.request(method, path.replace("{job}", job), headers=theirs, json=body)
        assert answer.status_code == 404, (method, path)
        assert answer.json()["detail"] == missing.replace("no-such-job", job)
    assert served.client.get("/api/v1/jobs", headers=theirs).json()["jobs"] == []
    assert served.client.get("/api/v1/jobs?tenant=weavers", headers=theirs).status_code == 403
    assert served.store.open_wishes(job) == []


def test_administrators_make_tenants_and_tokens_that_work_once_shown(served: Served) -> None:
    root = served.headers("root")
    made = served.client.post("/api/v1/tenants", headers=root, json={"name": "dyers", "weight": 2.5})
    assert (made.status_code, made.json()["weight"]) == (201, 2.5)
    asked = {"tenant": "dyers", "name": "ci", "role": "submitter", "days": 30}
    token = served.client.post("/api/v1/tokens", headers=root, json=asked).json()
    mine = {"Authorization": f"Bearer {token['token']}"}
    assert served.client.get("/api/v1/self", headers=mine).json()["tenant"] == "dyers"
    assert token["token"] not in served.client.get("/api/v1/tokens", headers=root).text
    assert served.client.delete(f"/api/v1/tokens/{token['id']}", headers=root).status_code == 204
    assert served.client.get("/api/v1/self", headers=mine).status_code == 401
    actions = [
        entry["action"] for entry in served.client.get("/api/v1/audit", headers=root).json()["entries"]
    ]
    assert actions == ["revoke token", "make token", "make tenant"]


def test_limits_of_a_tenant_change_one_by_one(served: Served) -> None:
    root = served.headers("root")
    changed = served.client.patch("/api/v1/tenants/spinners", headers=root, json={"weight": 3}).json()
    assert (changed["weight"], changed["jobs_at_once"]) == (3, 5)
    assert served.client.patch("/api/v1/tenants/nobody", headers=root, json={}).status_code == 404
    again = served.client.post("/api/v1/tenants", headers=root, json={"name": "spinners"})
    assert (again.status_code, again.json()["field"]) == (409, "name")
