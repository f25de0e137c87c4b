"""Runs and their notes in the database."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from tuneloom.errors import StoreError
from tuneloom.store.database.encoding import from_json, from_row, printable, to_json
from tuneloom.store.database.queries import announce, insert_once, insert_or_replace
from tuneloom.store.database.tables import JOBS, LEASES, NOTES, RUNS, TRIALS
from tuneloom.store.records import EMPTY, Json, RunRecord, RunStatus
from tuneloom.store.running.jobs import insert_job
from tuneloom.store.running.leases import LeaseQueries, is_free
from tuneloom.store.running.owner import this_process
from tuneloom.store.running.wishes import wished

ADJECTIVES = (
    "amber ashen brisk calm clear coral crisp dusky eager early fair fleet fresh gentle glad golden green "
    "hazel ivory jolly keen late level light lilac lively lucid mellow merry misty mossy neat noble olive "
    "opal pale plain proud quick quiet rapid rosy rustic sandy sharp silent silver sleek smooth snowy soft "
    "solar spry steady still sunny swift tidy tranquil vivid warm wide wild wise"
)
NOUNS = (
    "alder badger beaver birch bison bobbin brook cedar crane creek curlew dale dune egret elm falcon fern "
    "finch fjord flax fox glade grouse harbor hare hazel heron hill ibis iris jay juniper kestrel lake lark "
    "linden loom lotus lynx maple marten meadow merlin moor newt oak osprey otter owl pine plover quail "
    "raven reed robin shuttle spindle swan teal thistle thrush tern vale weaver willow wren yarrow"
)


def fresh_name() -> str:
    """A random name such as `amber-heron-42`; the caller makes sure that it is not taken."""
    adjective, noun = secrets.choice(ADJECTIVES.split()), secrets.choice(NOUNS.split())
    return f"{adjective}-{noun}-{secrets.randbelow(90) + 10}"


def owner_of(run: str) -> str:
    """The owner of the files that a run needs."""
    return f"run:{run}"


JOB_COUNT = select(func.count()).where(JOBS.c.run == RUNS.c.id).scalar_subquery()
TRIAL_COUNT = (
    select(func.count())
    .select_from(TRIALS.join(JOBS, TRIALS.c.job == JOBS.c.id))
    .where(JOBS.c.run == RUNS.c.id)
).scalar_subquery()
COUNTED = select(RUNS, JOB_COUNT.label("jobs"), TRIAL_COUNT.label("trials")).order_by(RUNS.c.number.desc())


STARTER = "bank: starter records"
"""How commands of runs begin that hold records which came with the program: they are nobody's last run."""


class RunQueries(LeaseQueries):
    """Runs and their notes."""

    def create_run(self, command: str, options: Mapping[str, Json] = EMPTY) -> RunRecord:
        """Begin a run owned by this process, under a new short id such as `amber-heron-42`."""
        with self._database.writing() as connection:
            run = self._insert(connection, command, options, RunStatus.RUNNING)
            return self._record(connection, _one(connection, run))

    def submit_run(
        self,
        command: str,
        jobs: Sequence[tuple[str, Mapping[str, Json]]],
        options: Mapping[str, Json] = EMPTY,
        *,
        holder: str | None = None,
        ttl_s: float = 30.0,
    ) -> RunRecord:
        """Leave a run with its jobs for an executor to take; all of it is written or nothing.

        With a `holder`, that executor has it from the very beginning.
        """
        with self._database.writing() as connection:
            run = self._insert(connection, command, options, RunStatus.WAITING)
            for name, spec in jobs:
                insert_job(connection, run, name, spec, self._clock())
            if holder is not None:
                self._taken(connection, run, holder, self._now(connection) + ttl_s)
            return self._record(connection, _one(connection, run))

    def finish_run(
        self, run: str, status: RunStatus, message: str = "", *, unless_wished: bool = False
    ) -> bool:
        """End a run and its lease; `message` is one line for people.

        With `unless_wished` nothing happens, and the answer is False, while somebody wants
        something of the run: a job that is added at the last moment is never missed.
        """
        change = {"status": status.value, "message": printable(message), "ended": self._clock()}
        with self._database.writing() as connection:
            connection.execute(select(RUNS.c.id).where(RUNS.c.id == run).with_for_update())
            self._guard(connection, run)
            if unless_wished and wished(connection, run):
                return False
            _change(connection, run, change)
            connection.execute(delete(LEASES).where(LEASES.c.run == run))
        self._held.pop(run, None)
        return True

    def runs(self, limit: int | None = None) -> list[RunRecord]:
        """Runs, newest first; one that nobody carries out any more counts as interrupted."""
        with self._database.reading() as connection:
            return [self._record(connection, row) for row in connection.execute(COUNTED.limit(limit)).all()]

    def has_run(self, command: str) -> bool:
        """Whether a run of this very command has finished."""
        finished = RUNS.c.status == RunStatus.FINISHED.value
        return bool(self._all(select(RUNS.c.id).where(RUNS.c.command == command, finished).limit(1)))

    def run(self, name: str) -> RunRecord:
        """The run with this id, an unambiguous beginning of it, or the newest for `last`.

        Raises StoreError naming the newest runs if there is no such run.
        """
        with self._database.reading() as connection:
            found = _matching(connection, name)
            if len(found) != 1:
                raise StoreError(_which(connection, name, [row.id for row in found]))
            return self._record(connection, found[0])

    def set_note(self, run: str, key: str, value: Json) -> None:
        """Keep a value with the run, replacing an earlier one of this key."""
        row = {"run": run, "name": printable(key), "content": to_json(value)}
        with self._database.writing() as connection:
            _one(connection, run)
            self._guard(connection, run)
            insert_or_replace(connection, NOTES, row, ("run", "name"))

    def notes(self, run: str) -> dict[str, Json]:
        """All notes of a run, in the order in which their keys were first set."""
        query = select(NOTES.c.name, NOTES.c.content).where(NOTES.c.run == run).order_by(NOTES.c.number)
        return {row.name: from_json(row.content) for row in self._all(query)}

    def _insert(
        self, connection: Connection, command: str, options: Mapping[str, Json], status: RunStatus
    ) -> str:
        row = {
            "created": self._clock(),
            "command": printable(command),
            "options": to_json(dict(options)),
            "status": status.value,
            "message": "",
            **asdict(this_process()),
        }
        if status is RunStatus.WAITING:
            announce(connection)
        name = fresh_name()
        while not insert_once(connection, RUNS, {"id": name, **row}):
            name = fresh_name()
        return name

    def _record(self, connection: Connection, row: Row[Any]) -> RunRecord:
        status = RunStatus(row.status)
        if status is RunStatus.RUNNING and is_free(connection, row, self._now(connection)):
            status = RunStatus.INTERRUPTED
        return from_row(RunRecord, row, options=from_json(row.options), status=status)


def _matching(connection: Connection, name: str) -> list[Row[Any]]:
    if name == "last":
        own = COUNTED.where(~RUNS.c.command.startswith(STARTER))
        return list(connection.execute(own.limit(1)))
    exact = list(connection.execute(COUNTED.where(RUNS.c.id == name)))
    if exact or not name:
        return exact
    return list(connection.execute(COUNTED.where(RUNS.c.id.startswith(name, autoescape=True)).limit(5)))


def _one(connection: Connection, run: str) -> Row[Any]:
    row = connection.execute(COUNTED.where(RUNS.c.id == run)).first()
    if row is None:
        raise StoreError(_which(connection, run, []))
    return row


def _which(connection: Connection, name: str, found: list[str]) -> str:
    if found:
        return f"{name!r} may be any of the runs {', '.join(found)}: give more of its id"
    newest = connection.execute(select(RUNS.c.id).order_by(RUNS.c.number.desc()).limit(5)).scalars().all()
    return f"no run {name!r}; " + (
        f"the newest are {', '.join(newest)}" if newest else "the store has no runs yet"
    )


def _change(connection: Connection, run: str, change: Mapping[str, Any]) -> None:
    if not connection.execute(update(RUNS).where(RUNS.c.id == run).values(**change)).rowcount:
        raise StoreError(_which(connection, run, []))
