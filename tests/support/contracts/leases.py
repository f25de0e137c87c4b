"""What every store must do for executors: leases, and wishes for whoever holds one."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from support.contracts.opened_store import OpenAgain, OpenedStore
from tuneloom.errors import LeaseLost, StoreError
from tuneloom.model import Candidate, Measurement, Task, Trial
from tuneloom.store import (
    EventRecord,
    JobStatus,
    KeptTrial,
    Page,
    Provenance,
    RunStatus,
    SpanRecord,
    Store,
    WishKind,
)

TTL_S = 30.0


def kept(run: str, key: str) -> KeptTrial:
    """A trial of the task `t` of the first job of a run."""
    candidate = Candidate(key=key, configuration="{}")
    return KeptTrial(
        job=f"{run}.1",
        task_key="t",
        trial=Trial(candidate=candidate, outcome=Measurement(seconds=(1.0,))),
        provenance=Provenance(family="llvm", target="llvm", device_key="cpu"),
        build_s=1.5,
        features={"registers": 40.0},
    )


class LeaseContract(OpenedStore):
    """Runs and who carries them out."""

    def test_a_submitted_run_waits_with_its_jobs_until_somebody_claims_it(self, store: Store) -> None:
        run = store.submit_run("tune", [("a", {"model": "x"}), ("b", {})], {"policy": "load-aware"})
        assert (run.status, run.jobs) == (RunStatus.WAITING, 2)
        assert store.open_wishes(run.id) == []
        lease = store.claim_run("me", TTL_S)
        assert lease is not None and (lease.run, lease.holder) == (run.id, "me")
        assert store.run(run.id).status is RunStatus.RUNNING
        assert store.claim_run("other", TTL_S) is None

    def test_the_oldest_waiting_run_is_claimed_first(self, store: Store) -> None:
        runs = [store.submit_run("tune", [("a", {})]).id for _ in range(3)]
        claimed = [store.claim_run("me", TTL_S) for _ in range(3)]
        assert [lease.run for lease in claimed if lease is not None] == runs

    def test_a_run_that_is_being_carried_out_is_refused_to_others(self, store: Store) -> None:
        run = store.submit_run("tune", [("a", {})]).id
        first = store.take_run(run, "me", TTL_S)
        with pytest.raises(StoreError, match=f"run {run} is being worked on by process"):
            store.take_run(run, "other", TTL_S)
        assert store.take_run(run, "me", TTL_S).epoch > first.epoch

    def test_a_lease_that_was_given_back_can_be_taken_again_and_its_epoch_grows(self, store: Store) -> None:
        run = store.submit_run("tune", [("a", {})]).id
        first = store.take_run(run, "me", TTL_S)
        store.release_run(first, RunStatus.WAITING, "drained")
        assert (store.run(run).status, store.run(run).message) == (RunStatus.WAITING, "drained")
        second = store.take_run(run, "other", TTL_S)
        assert second.epoch > first.epoch
        with pytest.raises(LeaseLost, match=f"run {run} was taken over"):
            store.release_run(first, RunStatus.WAITING)
        assert store.renew_leases([first], TTL_S) == [run]
        assert store.renew_leases([second], TTL_S) == store.renew_leases([], TTL_S) == []

    def test_whoever_lost_a_run_can_write_nothing_for_it(self, store: Store, open_again: OpenAgain) -> None:
        run = store.submit_run("tune", [("a", {})]).id
        (job,) = store.jobs(run)
        store.take_run(run, "me", TTL_S)
        store.add_tasks(job.id, [Task(key="t", name="dense")], family="llvm", target="llvm")
        thief = open_again()
        lease = thief.lease_of(run)
        assert lease is not None
        thief.release_run(lease, RunStatus.INTERRUPTED)
        thief.take_run(run, "other", TTL_S)
        writes: list[Callable[[], object]] = [
            lambda: store.set_job(job.id, JobStatus.RUNNING),
            lambda: store.set_note(run, "x", 1),
            lambda: store.set_plan(job.id, "t", {"donors": 1}),
            lambda: store.set_priority(job.id, 7),
            lambda: store.finish_run(run, RunStatus.FINISHED),
        ]
        for write in writes:
            with pytest.raises(LeaseLost):
                write()
        span = SpanRecord(job=job.id, task="t", kind="build", resource="host", start_s=0.0, end_s=1.0)
        assert store.write_pages([Page(run=run, spans=(span,), view={})]) == [run]
        assert (store.spans(run), store.view(run)) == ([], None)
        assert store.jobs(run)[0].status is JobStatus.WAITING
        assert (store.tasks(job.id)[0].plan, store.job(job.id).spec) == ({}, {})
        thief.set_job(job.id, JobStatus.RUNNING)
        thief.close()

    def test_what_was_noted_about_several_runs_is_written_at_once(
        self, store: Store, open_again: OpenAgain
    ) -> None:
        kept, lost = (store.submit_run("tune", [("a", {})]).id for _ in range(2))
        for run in (kept, lost):
            store.take_run(run, "me", TTL_S)
        thief = open_again()
        lease = thief.lease_of(lost)
        assert lease is not None
        thief.release_run(lease, RunStatus.INTERRUPTED)
        spans = (
            SpanRecord(job=f"{kept}.1", task="t", kind="build", resource="host", start_s=0.0, end_s=3.0),
        )
        events = (EventRecord(at_s=1.0, kind="JobSubmitted"),)
        page = Page(run=kept, notes={"policy": "fifo"}, spans=spans, events=events, view={"at_s": 1.0})
        assert store.write_pages([page, Page(run=lost, view={}), Page(run=kept)]) == [lost]
        assert (store.spans(kept), store.events(kept)) == (list(spans), list(events))
        assert (store.notes(kept), store.view(kept)) == ({"policy": "fifo"}, {"at_s": 1.0})
        assert (store.clock_of(kept), store.clock_of(lost), store.view(lost)) == (3.0, 0.0, None)
        thief.close()

    def test_trials_of_several_runs_are_committed_at_once_but_for_those_of_a_run_that_was_lost(
        self, store: Store, open_again: OpenAgain
    ) -> None:
        runs = [store.submit_run("tune", [("a", {})]).id for _ in range(3)]
        for run in runs:
            store.take_run(run, "me", TTL_S)
            store.add_tasks(f"{run}.1", [Task(key="t", name="dense")], family="llvm", target="llvm")
        thief = open_again()
        lease = thief.lease_of(runs[1])
        assert lease is not None
        thief.release_run(lease, RunStatus.INTERRUPTED)
        assert store.keep_trials([kept(run, key) for key in ("a", "b") for run in runs]) == [runs[1]]
        counts = [[record.trial.candidate.key for record in store.trials(f"{run}.1")] for run in runs]
        assert counts == [["a", "b"], [], ["a", "b"]]
        assert store.keep_trials([kept(runs[0], "b"), kept(runs[0], "c")]) == []
        assert store.trial_count(f"{runs[0]}.1") == 3
        (first, *_) = store.trials(f"{runs[0]}.1")
        assert (first.build_s, first.features) == (1.5, {"registers": 40.0})
        thief.close()

    def test_one_trial_that_can_not_be_committed_keeps_its_transaction_from_being_committed(
        self, store: Store
    ) -> None:
        run = store.submit_run("tune", [("a", {})]).id
        store.add_tasks(f"{run}.1", [Task(key="t", name="dense")], family="llvm", target="llvm")
        with pytest.raises(StoreError, match="has no task 'other'"):
            store.keep_trials([kept(run, "a"), replace(kept(run, "b"), task_key="other")])
        assert store.trial_count(f"{run}.1") == 0

    def test_the_log_of_an_executor_is_claimed_by_nobody(self, store: Store) -> None:
        own = store.submit_run("executor", [], holder="me", ttl_s=-1.0)
        assert own.status is RunStatus.RUNNING
        assert store.claim_run("other", TTL_S) is None

    def test_a_finished_run_has_no_lease(self, store: Store) -> None:
        run = store.submit_run("tune", [("a", {})]).id
        store.take_run(run, "me", TTL_S)
        assert store.finish_run(run, RunStatus.FINISHED)
        assert store.lease_of(run) is None
        assert store.claim_run("other", TTL_S) is None


class WishContract(OpenedStore):
    """What others want of a run."""

    def test_wishes_are_applied_in_the_order_in_which_they_came(self, store: Store) -> None:
        run = store.submit_run("tune", [("a", {})]).id
        kinds = [WishKind.PAUSE, WishKind.UNPAUSE, WishKind.PRIORITY, WishKind.CANCEL]
        for kind in kinds:
            store.add_wish(run, kind, f"{run}.1", {"priority": 3})
        wishes = store.open_wishes(run)
        assert [wish.kind for wish in wishes] == kinds
        assert (wishes[2].job, wishes[2].body) == (f"{run}.1", {"priority": 3})
        for wish in wishes[:2]:
            store.close_wish(wish)
        assert [wish.kind for wish in store.open_wishes(run)] == kinds[2:]

    def test_an_added_job_is_a_wish_too(self, store: Store) -> None:
        run = store.submit_run("tune", []).id
        job = store.add_job(run, "late")
        (wish,) = store.open_wishes(run)
        assert (wish.kind, wish.job) == (WishKind.ADD, job.id)

    def test_a_run_does_not_end_while_somebody_wants_something_of_it(self, store: Store) -> None:
        run = store.submit_run("tune", []).id
        store.take_run(run, "me", TTL_S)
        store.add_job(run, "late")
        assert not store.finish_run(run, RunStatus.FINISHED, unless_wished=True)
        assert store.run(run).status is RunStatus.RUNNING
        store.close_wish(store.open_wishes(run)[0])
        assert store.finish_run(run, RunStatus.FINISHED, unless_wished=True)

    def test_an_ended_run_takes_neither_wishes_nor_jobs(self, store: Store) -> None:
        run = store.submit_run("tune", []).id
        store.finish_run(run, RunStatus.FINISHED)
        with pytest.raises(StoreError, match=f"run {run} is finished; start another"):
            store.add_wish(run, WishKind.CANCEL)
        with pytest.raises(StoreError, match="is finished"):
            store.add_job(run, "late")

    def test_the_newest_view_is_kept(self, store: Store) -> None:
        run = store.submit_run("tune", []).id
        assert store.view(run) is None
        for at_s in (1.0, 2.0):
            assert store.write_pages([Page(run=run, view={"at_s": at_s})]) == []
        assert store.view(run) == {"at_s": 2.0}


class BlobContract(OpenedStore):
    """Files by digest."""

    def test_a_file_is_found_by_its_digest_wherever_the_store_is_opened(
        self, store: Store, open_again: OpenAgain
    ) -> None:
        content = bytes(range(256)) * 10_000
        digest = store.put_blob([content[:7], content[7:2_000_000], content[2_000_000:]], "run:a")
        assert digest == hashlib.sha256(content).hexdigest()
        other = open_again()
        assert other.has_blob(digest) and b"".join(other.blob(digest)) == content
        other.close()

    def test_an_empty_file_is_a_file(self, store: Store) -> None:
        assert b"".join(store.blob(store.put_blob([], "run:a"))) == b""

    def test_a_file_goes_with_its_last_owner(self, store: Store) -> None:
        digest = store.put_blob([b"weights"], "run:a")
        assert store.put_blob([b"weights"], "run:b") == digest
        store.use_blob(digest, "model:1")
        assert [store.drop_blobs(owner) for owner in ("run:a", "run:b", "run:b")] == [0, 0, 0]
        assert store.has_blob(digest)
        assert store.drop_blobs("model:1") == 1
        assert not store.has_blob(digest)

    def test_what_is_not_there_is_named(self, store: Store) -> None:
        for name in ("0" * 64, "../../etc/passwd", ""):
            assert not store.has_blob(name)
            with pytest.raises(StoreError, match="no file with digest"):
                store.blob(name)

    def test_a_source_that_breaks_off_leaves_nothing(self, store: Store) -> None:
        def broken() -> Iterator[bytes]:
            yield b"half of it"
            raise OSError("the other end is gone")

        with pytest.raises((OSError, StoreError)):
            store.put_blob(broken(), "run:a")
        assert store.drop_blobs("run:a") == 0
