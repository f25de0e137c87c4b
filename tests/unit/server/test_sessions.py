"""Logging in: a cookie out of reach of scripts, and writes that only our own page can make."""

import pytest

from .conftest import Served

SESSION = "/api/v1/session"
JOB = {"model": "mock:size=8", "trials": 8}


def logged_in(served: Served, who: str = "weavers") -> str:
    """Log the client's browser in; returns the proof for its writes."""
    answer = served.client.post(SESSION, json={"token": served.tokens[who]})
    assert answer.status_code == 201
    return str(answer.json()["proof"])


def test_a_token_becomes_a_cookie_that_neither_scripts_nor_other_sites_can_use(served: Served) -> None:
    answer = served.client.post(SESSION, json={"token": f" {served.tokens['weavers']}\n".strip()})
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert served.tokens["weavers"] not in cookie + answer.text
    assert served.client.get("/api/v1/self").json()["tenant"] == "weavers"


def test_over_tls_the_cookie_is_secure_and_bound_to_its_host(served: Served) -> None:
    headers = {"Origin": "https://testserver"}
    answer = served.client.post(SESSION, json={"token": served.tokens["weavers"]}, headers=headers)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-tuneloom=") and "Secure" in cookie.split("; ")


def test_the_state_tells_who_is_logged_in_and_nothing_else(served: Served) -> None:
    assert served.client.get(SESSION).json()["session"] is None
    proof = logged_in(served, "reader")
    told = served.client.get(SESSION).json()["session"]
    assert (told["tenant"], told["role"], told["proof"]) == ("weavers", "reader", proof)


def test_a_write_needs_the_proof_of_its_session(served: Served) -> None:
    proof = logged_in(served)
    for given in ({}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": "é"}):
        headers = [(name.encode(), value.encode()) for name, value in given.items()]
        answer = served.client.post("/api/v1/jobs", json=JOB, headers=headers)
        assert (answer.status_code, answer.json()["field"]) == (403, "X-CSRF-Token")
    made = served.client.post("/api/v1/jobs", json=JOB, headers={"X-CSRF-Token": proof})
    assert made.status_code == 201


@pytest.mark.parametrize(
    "foreign",
    [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_another_site_can_neither_log_in_nor_write(served: Served, foreign: dict[str, str]) -> None:
    answer = served.client.post(SESSION, json={"token": served.tokens["weavers"]}, headers=foreign)
    assert answer.status_code == 403 and "set-cookie" not in answer.headers
    proof = logged_in(served)
    headers = foreign | {"X-CSRF-Token": proof}
    assert served.client.post("/api/v1/jobs", json=JOB, headers=headers).status_code == 403


def test_a_session_has_the_role_of_its_token(served: Served) -> None:
    proof = logged_in(served, "reader")
    answer = served.client.post("/api/v1/jobs", json=JOB, headers={"X-CSRF-Token": proof})
    assert answer.status_code == 403 and "submitter" in answer.json()["detail"]


def test_logging_out_ends_the_session_on_the_server(served: Served) -> None:
    proof = logged_in(served)
    cookie = served.client.cookies["tuneloom"]
    assert served.client.delete(SESSION).status_code == 403
    assert served.client.delete(SESSION, headers={"X-CSRF-Token": proof}).status_code == 204
    assert "tuneloom" not in served.client.cookies
    stolen = {"Cookie": f"tuneloom={cookie}"}
    assert served.client.get("/api/v1/self", headers=stolen).status_code == 401


def test_logging_in_again_ends_the_session_before(served: Served) -> None:
    logged_in(served)
    old = {"Cookie": f"tuneloom={served.client.cookies['tuneloom']}"}
    logged_in(served, "spinners")
    served.client.cookies.clear()
    assert served.client.get("/api/v1/self", headers=old).status_code == 401


def test_a_revoked_token_ends_its_sessions(served: Served) -> None:
    logged_in(served)
    served.store.revoke_token(served.tokens["weavers"].split("_")[1])
    answer = served.client.get("/api/v1/self")
    assert (answer.status_code, answer.json()["field"]) == (401, "Cookie")


def test_a_wrong_token_is_refused_without_a_cookie(served: Served) -> None:
    answer = served.client.post(SESSION, json={"token": "tl_nonsense"})
    assert (answer.status_code, answer.json()["field"]) == (401, "token")
    assert "set-cookie" not in answer.headers


def test_a_token_in_the_header_counts_more_than_a_cookie(served: Served) -> None:
    logged_in(served)
    told = served.client.get("/api/v1/self", headers=served.headers("spinners")).json()
    assert told["tenant"] == "spinners"


def test_who_logs_in_and_out_is_in_the_audit_log(served: Served) -> None:
    proof = logged_in(served)
    served.client.delete(SESSION, headers={"X-CSRF-Token": proof})
    assert [entry.action for entry in served.store.audit()] == ["log out", "log in"]
