"""Machines and containers that share a hostname leave each other's runs alone, on either database."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tuneloom.errors import StoreError
from tuneloom.store import RunStatus, Store, open_store

TTL_S = 30.0


@pytest.fixture(params=["boot_id", "pid_namespace"])
def twin(
    request: pytest.FixtureRequest, place: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Store, str]]:
    """A store, and a run that a living executor holds which has our hostname, but isn't visible from here."""
    with closing(open_store(place)) as store, closing(open_store(place)) as theirs:
        run = store.submit_run("tune", [("a", {})]).id
        with monkeypatch.context() as other:
            other.setattr(f"tuneloom.store.running.owner.{request.param}", lambda: "another")
            other.setattr("tuneloom.store.running.owner.start_of", lambda _pid: "777")
            theirs.take_run(run, "twin", TTL_S)
        yield store, run


def test_a_living_run_of_a_host_of_the_same_name_is_not_robbed(twin: tuple[Store, str]) -> None:
    store, run = twin
    assert store.run(run).status is RunStatus.RUNNING
    assert store.claim_run("me", TTL_S) is None
    with pytest.raises(StoreError, match="when its lease ends"):
        store.take_run(run, "me", TTL_S)


def test_a_run_of_a_host_of_the_same_name_is_free_when_its_lease_has_ended(twin: tuple[Store, str]) -> None:
    store, run = twin
    lease = store.lease_of(run)
    assert lease is not None
    store.renew_leases([lease], -1.0)
    assert store.run(run).status is RunStatus.INTERRUPTED
    claimed = store.claim_run("me", TTL_S)
    assert claimed is not None and claimed.run == run
