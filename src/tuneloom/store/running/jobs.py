"""Jobs and their tasks in the database, and wishes for jobs that nobody carries out yet."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from tuneloom.errors import StoreError
from tuneloom.model import Task
from tuneloom.store.database.encoding import from_json, from_row, pack, printable, to_json, unpack
from tuneloom.store.database.queries import Queries, announce, insert_new, insert_once
from tuneloom.store.database.tables import JOBS, RUNS, SUBMISSIONS, TASKS, WISHES, WORKLOADS
from tuneloom.store.records import EMPTY, JobRecord, JobStatus, Json, PlannedTask, RunStatus, WishKind
from tuneloom.store.running.wishes import insert_wish, require_open

PAYLOADS = TASKS.join(
    WORKLOADS,
    (TASKS.c.task_key == WORKLOADS.c.task_key) & (TASKS.c.tvm_version == WORKLOADS.c.tvm_version),
)


class JobQueries(Queries):
    """Jobs and their tasks."""

    def add_job(self, run: str, name: str, spec: Mapping[str, Json] = EMPTY) -> JobRecord:
        """Add a waiting job to a run and wish for it to be taken.

        Raises StoreError if the run has ended, or has a job of this name.
        """
        with self._database.writing() as connection:
            require_open(connection, run)
            job = insert_job(connection, run, name, spec, self._clock())
            insert_wish(connection, run, WishKind.ADD, job, {}, self._clock())
            return _record(_one(connection, job))

    def set_job(self, job: str, status: JobStatus, result: Mapping[str, Json] | None = None) -> None:
        """Move a job; running notes the start once, an ended status notes the end.

        A `result` replaces the earlier one; None keeps it.
        """
        change: dict[str, Any] = {"status": status.value, "ended": self._clock() if status.ended else None}
        if status is JobStatus.RUNNING:
            change["started"] = func.coalesce(JOBS.c.started, self._clock())
        if result is not None:
            change["result"] = to_json(dict(result))
        with self._database.writing() as connection:
            run = _one(connection, job).run
            self._guard(connection, run)
            connection.execute(update(JOBS).where(JOBS.c.id == job).values(**change))

    def set_priority(self, job: str, priority: int) -> None:
        """Give a job another priority, for whoever executes its run now or later."""
        with self._database.writing() as connection:
            row = _one(connection, job)
            self._guard(connection, row.run)
            change_priority(connection, row, priority)

    def jobs(self, run: str) -> list[JobRecord]:
        """The jobs of a run in the order in which they were added."""
        query = select(JOBS).where(JOBS.c.run == run).order_by(JOBS.c.number)
        return [_record(row) for row in self._all(query)]

    def job(self, job: str) -> JobRecord:
        """One job by its id; raises StoreError if there is none."""
        with self._database.reading() as connection:
            return _record(_one(connection, job))

    def add_tasks(
        self, job: str, tasks: Sequence[Task], *, family: str, target: str, tvm_version: str = ""
    ) -> None:
        """Add tasks to a job, and their workloads if nobody has added them before.

        Tasks the job has already are left as they are.
        """
        origin = {"family": family, "target": target, "tvm_version": tvm_version}
        with self._database.writing() as connection:
            self._guard(connection, _one(connection, job).run)
            described = [_described(task) for task in tasks]
            own = {"job": job, "tvm_version": tvm_version, "plan": "{}"}
            pairs = list(zip(described, tasks, strict=True))
            insert_new(connection, WORKLOADS, [d | origin | {"payload": pack(t.payload)} for d, t in pairs])
            insert_new(connection, TASKS, [d | own | {"weight": t.weight} for d, t in pairs])

    def set_plan(self, job: str, task_key: str, plan: Mapping[str, Json]) -> None:
        """Keep what was planned for a task, replacing an earlier plan."""
        ours = (TASKS.c.job == job) & (TASKS.c.task_key == task_key)
        with self._database.writing() as connection:
            self._guard(connection, job.rpartition(".")[0])
            change = update(TASKS).where(ours).values(plan=to_json(dict(plan)))
            if not connection.execute(change).rowcount:
                raise StoreError(f"job {job} has no task {task_key!r}: add its tasks first")

    def tasks(self, job: str) -> list[PlannedTask]:
        """The tasks of a job, payloads and all, in the order in which they were added."""
        query = select(TASKS, WORKLOADS.c.payload).select_from(PAYLOADS).where(TASKS.c.job == job)
        return [_planned(row) for row in self._all(query.order_by(TASKS.c.number))]


def insert_job(connection: Connection, run: str, name: str, spec: Mapping[str, Json], now: float) -> str:
    """Add a waiting job inside the caller's transaction; returns its id."""
    number = _next_number(connection, run)
    row = {
        "id": f"{run}.{number}",
        "run": run,
        "number": number,
        "name": printable(name),
        "spec": to_json(dict(spec)),
        "status": JobStatus.WAITING.value,
        "result": "{}",
        "created": now,
    }
    if not insert_once(connection, JOBS, row):
        raise StoreError(f"run {run} has a job {name!r} already: give this one another name")
    return f"{run}.{number}"


def change_priority(connection: Connection, job: Row[Any], priority: int) -> None:
    """Give a job another priority inside the caller's transaction."""
    spec = to_json(from_json(job.spec) | {"priority": priority})
    connection.execute(update(JOBS).where(JOBS.c.id == job.id).values(spec=spec))
    connection.execute(update(SUBMISSIONS).where(SUBMISSIONS.c.run == job.run).values(priority=priority))


def _next_number(connection: Connection, run: str) -> int:
    return 1 + connection.execute(select(func.count()).where(JOBS.c.run == run)).scalar_one()


def _one(connection: Connection, job: str) -> Row[Any]:
    row = connection.execute(select(JOBS).where(JOBS.c.id == job)).first()
    if row is None:
        raise StoreError(f"no job {job!r}; `tuneloom runs` lists what there is")
    return row


def _record(row: Row[Any]) -> JobRecord:
    return from_row(
        JobRecord,
        row,
        spec=from_json(row.spec),
        status=JobStatus(row.status),
        created=row.created or 0.0,
        result=from_json(row.result),
    )


def _described(task: Task) -> dict[str, Any]:
    return {
        "task_key": task.key,
        "name": printable(task.name),
        "gflop": task.gflop,
        "shapes": printable(task.shapes),
        "kernel_class": task.kernel_class,
    }


def _planned(row: Row[Any]) -> PlannedTask:
    task = from_row(Task, row, key=row.task_key, payload=unpack(row.payload))
    return PlannedTask(task=task, plan=from_json(row.plan))


_ENDED = tuple(status.value for status in JobStatus if status.ended)


class WaitingQueries(Queries):
    """Wishes for runs that wait."""

    def change_waiting(self, run: str, kind: WishKind, job: str, body: Mapping[str, Json] = EMPTY) -> bool:
        """Pause, resume, cancel or prioritise a job of a run that waits, at once.

        False, and nothing is changed, if an executor has the run or the job has ended. A run whose
        last job is cancelled ends.
        """
        with self._database.writing() as connection:
            # An executor that is about to take the run skips it while we hold the row, or had it first.
            query = select(RUNS.c.status).where(RUNS.c.id == run).with_for_update()
            if connection.execute(query).scalar() != RunStatus.WAITING.value or _wished(connection, run):
                return False
            row = connection.execute(select(JOBS).where(JOBS.c.id == job, JOBS.c.run == run)).first()
            if row is None or row.status in _ENDED:
                return False
            self._change(connection, row, kind, body)
        return True

    def _change(
        self, connection: Connection, job: Row[Any], kind: WishKind, body: Mapping[str, Json]
    ) -> None:
        match kind:
            case WishKind.PAUSE:
                _set(connection, job.id, status=JobStatus.PAUSED.value)
            case WishKind.UNPAUSE:
                _set(connection, job.id, status=JobStatus.WAITING.value)
                announce(connection)
            case WishKind.CANCEL:
                _set(connection, job.id, status=JobStatus.CANCELLED.value, ended=self._clock())
                self._end_if_done(connection, job.run)
            case WishKind.PRIORITY:
                change_priority(connection, job, int(body["priority"]))
            case WishKind.ADD:
                raise ValueError("a job is added with add_job")

    def _end_if_done(self, connection: Connection, run: str) -> None:
        query = select(func.count()).where(JOBS.c.run == run, JOBS.c.status.not_in(_ENDED))
        if not connection.execute(query).scalar_one():
            change = {"status": RunStatus.FINISHED.value, "message": "", "ended": self._clock()}
            connection.execute(update(RUNS).where(RUNS.c.id == run).values(**change))


def _wished(connection: Connection, run: str) -> bool:
    """Whether somebody wanted something before us, when an executor had the run: wishes keep their order."""
    query = select(WISHES.c.number).where(WISHES.c.run == run, WISHES.c.applied.is_(None))
    return connection.execute(query.where(WISHES.c.kind != WishKind.ADD.value).limit(1)).first() is not None


def _set(connection: Connection, job: str, **columns: Any) -> None:
    connection.execute(update(JOBS).where(JOBS.c.id == job).values(**columns))
