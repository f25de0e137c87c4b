"""What every store must do; a store's author inherits from StoreContract and gives `open_again`.

```python
class TestMyStore(StoreContract):
    @pytest.fixture
    def open_again(self, tmp_path):
        return lambda: open_my_store(tmp_path)
```
"""

from dataclasses import replace

import pytest

from support.contracts.leases import BlobContract, LeaseContract, WishContract
from support.contracts.opened_store import OpenAgain, OpenedStore
from tuneloom.errors import StoreError
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, ProposalReason, Purpose, Task, Trial
from tuneloom.store import (
    EventRecord,
    JobStatus,
    Page,
    PlannedTask,
    Provenance,
    RunStatus,
    SpanRecord,
    Store,
    TrialRecord,
)

HERE = Provenance(
    family="llvm", target="llvm -mcpu=x", device_key="cpu", measuring="r3-m20-h3", tvm_version="0.27.0"
)
THERE = Provenance(family="cuda", target="cuda -arch=sm_90", device_key="h200", measuring="r3-m20-h3")
CONV = Task(
    key="c0ffee",
    name="fused_conv2d_relu",
    weight=4,
    gflop=0.23,
    shapes="1×64×56×56",
    kernel_class="conv2d→relu",
    payload=b"workload" * 400,
)
DENSE = Task(key="d15ea5e", name="dense", kernel_class="dense")


def measured(key: str, *seconds: float, configuration: str = "{}", origin: str = "search") -> Trial:
    """A trial that was measured."""
    candidate = Candidate(key=key, configuration=configuration, origin=origin)
    return Trial(candidate=candidate, outcome=Measurement(seconds=seconds, profile_s=0.25))


def failed(key: str, kind: FailureKind = FailureKind.BUILD_ERROR, message: str = "no such register") -> Trial:
    """A trial that failed."""
    candidate = Candidate(key=key, configuration="{}")
    return Trial(candidate=candidate, outcome=Failure(kind=kind, message=message))


def job_with_tasks(store: Store, name: str = "squeezenet", provenance: Provenance = HERE) -> str:
    """A job of a new run with two tasks; returns its id."""
    run = store.create_run("tune", {"trials": 64})
    job = store.add_job(run.id, name, {"target": "llvm"})
    version = provenance.tvm_version
    store.add_tasks(
        job.id, [CONV, DENSE], family=provenance.family, target=provenance.target, tvm_version=version
    )
    return job.id


def keys(records: list[TrialRecord]) -> list[str]:
    """The candidates of records, in their order."""
    return [record.trial.candidate.key for record in records]


class RunContract(OpenedStore):
    """Runs and notes."""

    def test_a_new_run_belongs_to_this_process_and_runs(self, store: Store) -> None:
        run = store.create_run("tune squeezenet", {"trials": 600, "target": None})
        assert run.status is RunStatus.RUNNING
        assert (run.command, run.options) == ("tune squeezenet", {"trials": 600, "target": None})
        assert store.run(run.id) == run

    def test_many_runs_have_different_names(self, store: Store) -> None:
        assert len({store.create_run("tune").id for _ in range(40)}) == 40

    def test_a_finished_run_keeps_its_message_and_end(self, store: Store) -> None:
        run = store.create_run("tune")
        store.finish_run(run.id, RunStatus.FAILED, "disk full\x00")
        ended = store.run(run.id)
        assert (ended.status, ended.message) == (RunStatus.FAILED, "disk full\N{REPLACEMENT CHARACTER}")
        assert ended.ended is not None and ended.ended >= run.created

    def test_runs_come_newest_first_with_their_counts(self, store: Store) -> None:
        job = job_with_tasks(store)
        store.add_trial(job, CONV.key, measured("a", 1.0), HERE)
        newest = store.create_run("tasks")
        assert [(run.id, run.jobs, run.trials) for run in store.runs()] == [
            (newest.id, 0, 0),
            (store.job(job).run, 1, 1),
        ]
        assert [run.id for run in store.runs(limit=1)] == [newest.id]

    def test_a_run_is_found_by_its_beginning_and_as_last(self, store: Store) -> None:
        run = store.create_run("tune")
        assert store.run(run.id[:-1]).id == run.id
        assert store.run("last").id == run.id

    def test_an_unknown_run_is_an_error_that_names_the_known(self, store: Store) -> None:
        with pytest.raises(StoreError, match="no runs yet"):
            store.run("last")
        run = store.create_run("tune")
        with pytest.raises(StoreError, match=f"no run 'nonesuch'; the newest are {run.id}"):
            store.run("nonesuch")
        with pytest.raises(StoreError, match="no run 'gone'"):
            store.finish_run("gone", RunStatus.FINISHED)

    def test_a_percent_sign_is_no_wildcard(self, store: Store) -> None:
        store.create_run("tune")
        with pytest.raises(StoreError, match="no run '%'"):
            store.run("%")

    def test_an_ended_run_can_be_taken_over(self, store: Store) -> None:
        run = store.create_run("tune")
        store.finish_run(run.id, RunStatus.INTERRUPTED)
        store.take_run(run.id, "me", 30.0)
        again = store.run(run.id)
        assert (again.status, again.ended) == (RunStatus.RUNNING, None)

    def test_notes_are_replaced_and_keep_their_order(self, store: Store) -> None:
        run = store.create_run("tune").id
        store.set_note(run, "versions", {"tvm": "0.27"})
        store.set_note(run, "drift", [1.0, 1.02])
        store.set_note(run, "versions", {"tvm": "0.28"})
        assert list(store.notes(run).items()) == [("versions", {"tvm": "0.28"}), ("drift", [1.0, 1.02])]


class JobContract(OpenedStore):
    """Jobs and tasks."""

    def test_jobs_are_numbered_within_their_run(self, store: Store) -> None:
        run = store.create_run("tune").id
        ids = [store.add_job(run, name).id for name in ("a", "b")]
        assert ids == [f"{run}.1", f"{run}.2"]
        assert [job.name for job in store.jobs(run)] == ["a", "b"]

    def test_two_jobs_of_a_run_may_not_share_a_name(self, store: Store) -> None:
        run = store.create_run("tune").id
        store.add_job(run, "resnet18")
        with pytest.raises(StoreError, match="a job 'resnet18' already"):
            store.add_job(run, "resnet18")

    def test_a_job_notes_its_first_start_and_its_end(self, store: Store) -> None:
        job = store.add_job(store.create_run("tune").id, "a", {"trials": 3}).id
        store.set_job(job, JobStatus.RUNNING)
        started = store.job(job).started
        store.set_job(job, JobStatus.PAUSED)
        store.set_job(job, JobStatus.RUNNING)
        store.set_job(job, JobStatus.FINISHED, {"latency_after_s": 0.004})
        ended = store.job(job)
        assert ended.started == started is not None
        assert ended.ended is not None
        assert (ended.status, ended.result) == (JobStatus.FINISHED, {"latency_after_s": 0.004})

    def test_a_job_that_goes_on_has_no_end_and_keeps_its_result(self, store: Store) -> None:
        job = store.add_job(store.create_run("tune").id, "a").id
        store.set_job(job, JobStatus.FAILED, {"why": "nothing measured"})
        store.set_job(job, JobStatus.RUNNING)
        assert store.job(job).ended is None
        assert store.job(job).result == {"why": "nothing measured"}

    def test_an_unknown_job_is_an_error(self, store: Store) -> None:
        with pytest.raises(StoreError, match="no job 'nonesuch"):
            store.job("nonesuch.1")
        with pytest.raises(StoreError, match="no job 'nonesuch"):
            store.set_job("nonesuch.1", JobStatus.RUNNING)
        with pytest.raises(StoreError, match="no run 'x'"):
            store.add_job("x", "a")

    def test_tasks_come_back_whole_in_their_order(self, store: Store) -> None:
        job = job_with_tasks(store)
        tasks = [planned.task for planned in store.tasks(job)]
        assert tasks == [CONV, DENSE]
        assert tasks[0].payload == CONV.payload

    def test_tasks_added_twice_are_kept_once(self, store: Store) -> None:
        job = job_with_tasks(store)
        store.add_tasks(job, [DENSE], family="llvm", target=HERE.target, tvm_version=HERE.tvm_version)
        assert len(store.tasks(job)) == 2

    def test_a_plan_stays_with_its_task(self, store: Store) -> None:
        job = job_with_tasks(store)
        store.set_plan(job, DENSE.key, {"donors": ["x"], "trials": 8})
        assert store.tasks(job)[1] == PlannedTask(task=DENSE, plan={"donors": ["x"], "trials": 8})
        with pytest.raises(StoreError, match="no task 'other'"):
            store.set_plan(job, "other", {})


class TrialContract(OpenedStore):
    """Trials of one job."""

    def test_a_trial_comes_back_as_it_went_in(self, store: Store) -> None:
        job = job_with_tasks(store)
        long = measured(
            "k1", 0.1, 0.30000000000000004, configuration='{"tile": [4, 8]}' * 99, origin="donor:x"
        )
        assert store.add_trial(job, CONV.key, long, HERE, build_s=1.5, features={"registers": 40.0})
        (record,) = store.trials(job, CONV.key)
        assert (record.trial, record.provenance) == (long, HERE)
        assert (record.build_s, record.features, record.profile_s) == (1.5, {"registers": 40.0}, 0.25)
        assert (record.job, record.task_key, record.kernel_class) == (job, CONV.key, CONV.kernel_class)

    def test_what_a_device_counted_comes_back_apart_from_what_the_compiler_revealed(
        self, store: Store
    ) -> None:
        job, trial = job_with_tasks(store), measured("k1", 0.1)
        assert isinstance(trial.outcome, Measurement)
        counted = replace(trial, outcome=replace(trial.outcome, counters={"cycles": 1e5, "load busy": 0.5}))
        store.add_trial(job, CONV.key, counted, HERE, features={"registers": 40.0})
        (record,) = store.trials(job, CONV.key)
        assert (record.trial, record.features) == (counted, {"registers": 40.0})

    def test_the_reason_for_a_trial_comes_back_apart_from_what_the_compiler_revealed(
        self, store: Store
    ) -> None:
        job, trial = job_with_tasks(store), measured("k1", 0.1)
        reason = ProposalReason(member="model", purpose=Purpose.IMPROVE, risk=0.25, promise=0.1)
        told = replace(trial, candidate=replace(trial.candidate, reason=reason))
        store.add_trial(job, CONV.key, told, HERE, features={"registers": 40.0})
        store.add_trial(job, CONV.key, measured("k2", 0.1), HERE)
        first, second = store.trials(job, CONV.key)
        assert (first.trial.candidate.reason, first.features) == (reason, {"registers": 40.0})
        assert second.trial.candidate.reason is None

    def test_a_failure_comes_back_with_its_kind_and_message(self, store: Store) -> None:
        job = job_with_tasks(store)
        trial = failed("k1", FailureKind.RUN_TIMEOUT, "10 s ⌛ \x00 \ud800")
        store.add_trial(job, CONV.key, trial, HERE)
        (record,) = store.trials(job)
        outcome = record.trial.outcome
        assert isinstance(outcome, Failure)
        assert outcome.kind is FailureKind.RUN_TIMEOUT
        assert outcome.message == "10 s ⌛ \N{REPLACEMENT CHARACTER} ?"
        assert (record.seconds, record.profile_s) == (None, 0.0)

    def test_the_same_candidate_is_kept_once_per_job_and_task(self, store: Store) -> None:
        job, other = job_with_tasks(store), job_with_tasks(store)
        assert store.add_trial(job, CONV.key, measured("k", 2.0), HERE)
        assert not store.add_trial(job, CONV.key, measured("k", 1.0), HERE)
        assert store.add_trial(job, DENSE.key, measured("k", 3.0), HERE)
        assert store.add_trial(other, CONV.key, measured("k", 4.0), HERE)
        assert [record.seconds for record in store.trials(job)] == [2.0, 3.0]
        assert (store.trial_count(job), store.trial_count(other)) == (2, 1)

    def test_trials_come_in_the_order_of_commitment(self, store: Store) -> None:
        job = job_with_tasks(store)
        for key in ("c", "a", "b"):
            store.add_trial(job, CONV.key, measured(key, 1.0), HERE)
        records = store.trials(job)
        assert keys(records) == ["c", "a", "b"]
        assert [record.id for record in records] == sorted(record.id for record in records)

    def test_many_trials_are_added_at_once_and_counted(self, store: Store) -> None:
        job = job_with_tasks(store)
        store.add_trial(job, CONV.key, measured("k1", 1.0), HERE)
        many = [measured(f"k{i}", 1.0 + i) for i in range(5)] + [failed("k9")]
        assert store.add_trials(job, CONV.key, many, HERE) == 5
        assert store.trial_count(job) == 6

    def test_a_trial_of_an_unknown_task_is_refused(self, store: Store) -> None:
        job = job_with_tasks(store)
        with pytest.raises(StoreError, match="no task 'other'"):
            store.add_trial(job, "other", measured("k", 1.0), HERE)

    def test_what_one_connection_commits_another_sees(self, store: Store, open_again: OpenAgain) -> None:
        job = job_with_tasks(store)
        other = open_again()
        store.add_trial(job, CONV.key, measured("k", 1.0), HERE)
        assert keys(other.trials(job)) == ["k"]
        assert not other.add_trial(job, CONV.key, measured("k", 9.0), HERE)
        other.close()


class BankContract(OpenedStore):
    """Records across jobs."""

    def test_the_best_of_a_workload_come_fastest_first(self, store: Store) -> None:
        first, second = job_with_tasks(store), job_with_tasks(store, "other")
        store.add_trials(first, CONV.key, [measured("slow", 3.0), measured("fast", 1.0), failed("bad")], HERE)
        store.add_trial(second, CONV.key, measured("middle", 2.0), HERE)
        store.add_trial(second, DENSE.key, measured("alien", 0.1), HERE)
        assert keys(store.workload_trials(CONV.key, "llvm", 9)) == ["fast", "middle", "slow"]
        assert keys(store.workload_trials(CONV.key, "llvm", 2)) == ["fast", "middle"]

    def test_another_family_is_no_donor(self, store: Store) -> None:
        here, there = job_with_tasks(store), job_with_tasks(store, "gpu", THERE)
        store.add_trial(here, CONV.key, measured("cpu", 3.0), HERE)
        store.add_trial(there, CONV.key, measured("gpu", 1.0), THERE)
        assert keys(store.workload_trials(CONV.key, "llvm", 9)) == ["cpu"]
        assert keys(store.workload_trials(CONV.key, "cuda", 9)) == ["gpu"]

    def test_every_workload_of_a_class_gives_its_few_best(self, store: Store) -> None:
        job = job_with_tasks(store)
        wide = Task(key="a1", name="wide", kernel_class=CONV.kernel_class)
        store.add_tasks(job, [wide], family="llvm", target=HERE.target)
        store.add_trials(job, CONV.key, [measured(f"c{i}", 1.0 + i) for i in range(4)], HERE)
        store.add_trials(job, wide.key, [measured(f"w{i}", 9.0 - i) for i in range(4)], HERE)
        assert keys(store.donors(CONV.kernel_class, "llvm", 2)) == ["w3", "w2", "c0", "c1"]

    def test_a_workload_is_shared_by_all_runs(self, store: Store) -> None:
        job_with_tasks(store)
        job_with_tasks(store, "again")
        (known,) = store.workloads(CONV.kernel_class, "llvm")
        assert (known.key, known.shapes, known.target) == (CONV.key, CONV.shapes, HERE.target)
        whole = store.workload(CONV.key, HERE.tvm_version)
        assert whole == known and whole.payload == CONV.payload
        assert store.workload("other") is None
        assert store.workload(CONV.key, "0.1") is None

    def test_the_classes_of_a_family_are_told_once_each(self, store: Store) -> None:
        job_with_tasks(store)
        job_with_tasks(store, "again")
        assert store.kernel_classes("llvm") == sorted({CONV.kernel_class, DENSE.kernel_class})
        assert store.kernel_classes("cuda") == []

    def test_the_bank_is_counted_by_class_and_family(self, store: Store) -> None:
        job = job_with_tasks(store)
        store.add_trials(job, CONV.key, [measured("a", 1.0), failed("b"), failed("c")], HERE)
        (row,) = store.bank()
        assert (row.kernel_class, row.family) == (CONV.kernel_class, "llvm")
        assert (row.workloads, row.measured, row.failed) == (1, 1, 2)

    def test_all_trials_are_walked_in_order(self, store: Store) -> None:
        job = job_with_tasks(store)
        store.add_trials(job, CONV.key, [measured(f"{i}", 1.0) for i in range(2100)], HERE)
        assert keys(list(store.all_trials())) == [f"{i}" for i in range(2100)]
        assert list(store.all_trials("cuda")) == []

    def test_pruning_keeps_the_fastest_and_all_of_a_run_that_may_go_on(self, store: Store) -> None:
        ended, open_job = job_with_tasks(store), job_with_tasks(store, "other")
        many = [measured("a", 1.0), measured("b", 2.0), measured("c", 3.0), failed("d")]
        store.add_trials(ended, CONV.key, many, HERE)
        store.add_trials(open_job, CONV.key, many, HERE)
        store.finish_run(store.job(ended).run, RunStatus.FINISHED)
        assert store.prune_bank(keep_per_workload=1) == 3
        assert keys(store.trials(ended)) == ["a"]
        assert store.trial_count(open_job) == 4


class LogContract(OpenedStore):
    """Spans and events."""

    def test_spans_come_by_their_start(self, store: Store) -> None:
        run = store.create_run("tune").id
        late = SpanRecord(job="j", task="t", kind="profile", resource="cpu:1", start_s=3.5, end_s=4.0)
        early = SpanRecord(
            job="j", task="t", kind="build", resource="host", start_s=1.0, end_s=3.5, ready_s=0.5, slots=2
        )
        store.write_pages([Page(run=run, spans=(late, early)), Page(run=run)])
        assert store.spans(run) == [early, late]
        assert store.spans("other") == []

    def test_events_come_as_they_were_logged(self, store: Store) -> None:
        run = store.create_run("tune").id
        first = EventRecord(at_s=0.5, kind="JobSubmitted", body={"job": "j", "ready": [1, 2]})
        second = EventRecord(at_s=0.5, kind="StageFinished")
        store.write_pages([Page(run=run, events=(first,))])
        store.write_pages([Page(run=run, events=(second,))])
        assert store.events(run) == [first, second]

    def test_spans_of_an_unknown_run_are_refused(self, store: Store) -> None:
        span = SpanRecord(job="j", task="t", kind="build", resource="host", start_s=0.0, end_s=1.0)
        with pytest.raises(StoreError):
            store.write_pages([Page(run="nonesuch", spans=(span,))])


class StoreContract(
    RunContract,
    LeaseContract,
    WishContract,
    BlobContract,
    JobContract,
    TrialContract,
    BankContract,
    LogContract,
):
    """All of it."""
