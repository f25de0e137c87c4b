"""What every store must do where tenants share executors and records: turns, use, privacy, changes."""

from collections.abc import Callable, Iterator

import pytest

from support.contracts.opened_store import OpenAgain, OpenedStore
from support.contracts.service import submission
from support.contracts.store import CONV, HERE, measured
from tuneloom.store import JobStatus, RunStatus, Store, TenantLimits, WishKind

TTL_S = 30.0


class _OfTenants(OpenedStore):
    @pytest.fixture
    def store(self, open_again: OpenAgain) -> Iterator[Store]:
        """A store with two tenants."""
        opened = open_again()
        opened.add_tenant("weavers", TenantLimits())
        opened.add_tenant("spinners", TenantLimits(weight=3.0))
        yield opened
        opened.close()

    @pytest.fixture
    def submit(self, store: Store) -> Callable[..., str]:
        """Submits a job of a tenant; returns the name of its run."""

        def submitted(tenant: str, priority: int = 0) -> str:
            spec = {"trials": 8, "priority": priority}
            return store.submit_job(submission(tenant, spec=spec), {})[0].id

        return submitted


class TurnContract(_OfTenants):
    """Whose run is taken next."""

    def claimed(self, store: Store, count: int) -> list[str]:
        leases = [store.claim_run("executor", TTL_S) for _ in range(count)]
        shares = [store.share_of(lease.run) if lease else None for lease in leases]
        return [share.tenant if share else "" for share in shares]

    def test_nobody_waits_behind_all_jobs_of_another(self, store: Store, submit: Callable[..., str]) -> None:
        for tenant in ("weavers",) * 5 + ("spinners",):
            submit(tenant)
        assert self.claimed(store, 3) == ["weavers", "spinners", "weavers"]

    def test_tenants_have_runs_in_proportion_to_their_weights(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        for _ in range(6):
            submit("weavers")
            submit("spinners")
        assert sorted(self.claimed(store, 8)) == ["spinners"] * 6 + ["weavers"] * 2

    def test_priority_and_then_age_decide_among_the_jobs_of_one_tenant(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        runs = [submit("weavers", priority) for priority in (0, 0, 4)]
        taken = [store.claim_run("executor", TTL_S) for _ in range(3)]
        assert [lease.run for lease in taken if lease] == [runs[2], runs[0], runs[1]]

    def test_runs_without_a_tenant_have_their_turn_too(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        submit("weavers")
        submit("weavers")
        store.submit_run("tune", [("own", {})])
        assert self.claimed(store, 3) == ["weavers", "", "weavers"]

    def test_who_is_full_takes_only_tenants_that_have_nothing_there(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        first, _ = submit("weavers"), submit("weavers")
        store.take_run(first, "executor", TTL_S)
        assert store.claim_run("executor", TTL_S, beside=[first]) is None
        other = submit("spinners")
        lease = store.claim_run("executor", TTL_S, beside=[first])
        assert lease is not None and lease.run == other

    def test_what_executors_used_adds_up(self, store: Store, open_again: OpenAgain) -> None:
        other = open_again()
        store.add_use({("weavers", "cpu"): 1.5, ("spinners", "cpu"): 1.0})
        assert other.add_use({("weavers", "cpu"): 0.5}) == {("weavers", "cpu"): 2.0, ("spinners", "cpu"): 1.0}
        assert store.add_use({}) == other.add_use({})
        other.close()


class WaitingContract(_OfTenants):
    """Jobs that wait are changed at once."""

    def test_a_waiting_job_is_paused_and_taken_by_nobody_until_it_is_resumed(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        run = submit("weavers")
        assert store.change_waiting(run, WishKind.PAUSE, f"{run}.1")
        assert store.job(f"{run}.1").status is JobStatus.PAUSED
        assert store.claim_run("executor", TTL_S) is None
        assert store.change_waiting(run, WishKind.UNPAUSE, f"{run}.1")
        lease = store.claim_run("executor", TTL_S)
        assert lease is not None and lease.run == run

    def test_a_waiting_job_that_is_cancelled_ends_with_its_run(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        run = submit("weavers")
        assert store.change_waiting(run, WishKind.CANCEL, f"{run}.1")
        assert store.job(f"{run}.1").status is JobStatus.CANCELLED
        assert store.run(run).status is RunStatus.FINISHED and store.claim_run("executor", TTL_S) is None
        assert not store.change_waiting(run, WishKind.CANCEL, f"{run}.1")

    def test_a_waiting_job_that_becomes_urgent_goes_first(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        _, late = submit("weavers"), submit("weavers")
        assert store.change_waiting(late, WishKind.PRIORITY, f"{late}.1", {"priority": 7})
        assert store.job(f"{late}.1").spec["priority"] == 7
        lease = store.claim_run("executor", TTL_S)
        assert lease is not None and lease.run == late

    def test_what_an_executor_has_is_left_to_it(self, store: Store, submit: Callable[..., str]) -> None:
        run = submit("weavers")
        store.take_run(run, "executor", TTL_S)
        assert not store.change_waiting(run, WishKind.PAUSE, f"{run}.1")
        assert store.job(f"{run}.1").status is JobStatus.WAITING

    def test_a_wish_that_came_before_is_not_overtaken(self, store: Store, submit: Callable[..., str]) -> None:
        run = submit("weavers")
        store.add_wish(run, WishKind.UNPAUSE, f"{run}.1")
        assert not store.change_waiting(run, WishKind.PAUSE, f"{run}.1")


class PrivacyContract(_OfTenants):
    """Records reach other tenants only where their owner allows it."""

    @pytest.fixture
    def known(self, store: Store, submit: Callable[..., str]) -> Store:
        """A store with a record of the weavers and one that no tenant made."""
        own, foreign = f"{submit('weavers')}.1", store.add_job(store.create_run("tune").id, "net").id
        for job, key, seconds in ((own, "secret", 0.1), (foreign, "public", 0.2)):
            store.add_tasks(job, [CONV], family=HERE.family, target=HERE.target)
            store.add_trial(job, CONV.key, measured(key, seconds), HERE)
        return store

    def seen(self, store: Store, reader: str | None) -> list[str]:
        records = store.workload_trials(CONV.key, HERE.family, 9, reader=reader)
        return [record.trial.candidate.key for record in records]

    def test_records_are_private_unless_their_tenant_shares_them(self, known: Store) -> None:
        assert self.seen(known, "weavers") == self.seen(known, None) == ["secret", "public"]
        assert self.seen(known, "spinners") == ["public"]
        known.change_tenant("weavers", TenantLimits(shares_records=True))
        assert self.seen(known, "spinners") == ["secret", "public"]
        known.change_tenant("weavers", TenantLimits())
        assert self.seen(known, "spinners") == ["public"]

    def test_statistics_and_search_tell_a_tenant_what_it_may_read(self, known: Store) -> None:
        assert [row.measured for row in known.bank(reader="spinners")] == [1]
        assert [row.measured for row in known.bank(reader="weavers")] == [2]
        (kernel,) = known.known_kernels(reader="spinners")
        assert (kernel.key, kernel.best_s, kernel.measured) == (CONV.key, 0.2, 1)
        assert [kernel.best_s for kernel in known.known_kernels(text=CONV.name[:4])] == [0.1]
        assert known.known_kernels(text="nonesuch") == known.known_kernels(after=CONV.key) == []

    def test_a_workload_that_only_others_know_is_not_there(
        self, store: Store, submit: Callable[..., str]
    ) -> None:
        job = f"{submit('weavers')}.1"
        store.add_tasks(job, [CONV], family=HERE.family, target=HERE.target)
        store.add_trial(job, CONV.key, measured("secret", 0.1), HERE)
        assert store.workloads(CONV.kernel_class, HERE.family, reader="spinners") == []
        assert len(store.workloads(CONV.kernel_class, HERE.family, reader="weavers")) == 1
