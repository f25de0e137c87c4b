"""Leases are renewed as long as the executor makes progress."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tuneloom.app.runs.executing.heartbeat import STALLED_S, Heartbeat
from tuneloom.store import Lease, Store, open_store


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with closing(open_store(tmp_path / "store.db", clock=clock)) as opened:
        yield opened


@pytest.fixture
def lease(store: Store) -> Lease:
    return store.take_run(store.submit_run("tune", [("a", {})]).id, "me", 30.0)


def expires(store: Store, lease: Lease) -> float:
    standing = store.lease_of(lease.run)
    assert standing is not None
    return standing.expires


def test_an_executor_that_hangs_loses_its_leases_and_one_that_goes_on_keeps_them(
    store: Store, lease: Lease, clock: Clock
) -> None:
    heartbeat = Heartbeat(lambda: store, now_s=clock)
    heartbeat.watch(lease)
    with heartbeat.following_progress():
        clock.now += STALLED_S
        heartbeat.renew(store)
        assert expires(store, lease) == clock.now + 30.0
        clock.now += 10.0
        heartbeat.renew(store)
        assert expires(store, lease) == clock.now + 20.0, "nobody heard of progress"
        heartbeat.progressed()
        heartbeat.renew(store)
        assert expires(store, lease) == clock.now + 30.0


def test_an_executor_that_has_not_begun_yet_keeps_its_leases_however_long_it_prepares(
    store: Store, lease: Lease, clock: Clock
) -> None:
    heartbeat = Heartbeat(lambda: store, now_s=clock)
    heartbeat.watch(lease)
    clock.now += 10 * STALLED_S
    heartbeat.renew(store)
    assert expires(store, lease) == clock.now + 30.0
