"""What a run writes into the store, and when."""

from collections.abc import Sequence
from typing import Any

from tuneloom.app.conducting.listening import Span
from tuneloom.app.runs.executing.resources import RESOURCES, ResourceList
from tuneloom.app.runs.view import RunView
from tuneloom.engine.machine import Offer
from tuneloom.engine.sharing.folder import boot_id
from tuneloom.model import Artifact, JobSpec, ModelSummary, Task, Trial
from tuneloom.scheduling.journal import CoreBegan, PlainEntry, written, written_start
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import EventRecord, KeptTrial, Page, Provenance, SpanRecord, Store, taken_over

LOGGED_WITH = "logged_with"
"""The note of a run whose decisions are in the log of another: that of its long-living executor."""

CLOCK = "clock"
"""The note that says what time the clock of the executor's machine showed when the run's showed 0."""


class Book:
    """What is to be written about one run: trials with the next commit, logs with the next page."""

    def __init__(self, store: Store, run: str, began_s: float = 0.0) -> None:
        """`began_s` is when the run was taken, on the executor's clock.

        The run's own clock goes on where it stopped when an earlier executor let go.
        """
        self._store = store
        self.run = run
        self._shift_s = store.clock_of(run) - began_s
        self._trials: list[KeptTrial] = []
        self._spans: list[SpanRecord] = []
        self._events: list[EventRecord] = []
        self._provenance: dict[str, Provenance] = {}
        self._notes: dict[str, Any] = {}
        self._resources = ResourceList()

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        """Note a resource at the next flush."""
        self._resources.joined(offer, self.on_run_clock(at_s))
        self._notes[RESOURCES] = self._resources.note()

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        """Note that a resource is gone at the next flush."""
        self._resources.left(name, reason, self.on_run_clock(at_s))
        self._notes[RESOURCES] = self._resources.note()

    def resource_disturbed(self, name: str, by: str, at_s: float) -> None:
        """Note who else uses a resource at the next flush."""
        self._resources.disturbed(name, by, self.on_run_clock(at_s))
        self._notes[RESOURCES] = self._resources.note()

    def resource_shared(self, name: str, by: str, at_s: float) -> None:
        """Note which other process measures on a resource in turn at the next flush."""
        self._resources.shared(name, by, self.on_run_clock(at_s))
        self._notes[RESOURCES] = self._resources.note()

    def resource_waited_for(self, name: str, seconds: float) -> None:
        """Note how long a stage waited for another process at the next flush."""
        self._resources.waited_for(name, seconds)
        self._notes[RESOURCES] = self._resources.note()

    def clock_set(self, zero_s: float) -> None:
        """Note how the run's clock stands to that of its machine, on which the executor's began at `zero_s`.

        With it, times of runs that went on side by side can be compared.
        """
        self._notes[CLOCK] = {"machine": boot_id(), "zero_s": zero_s - self._shift_s}

    def opened(self, job: str, spec: JobSpec, summary: ModelSummary) -> dict[str, list[Trial]]:
        """Keep a job's tasks; returns the trials it made before, by task key."""
        self._provenance[job] = Provenance(
            family=summary.family,
            target=summary.target,
            device_key=spec.device_key,
            measuring=spec.measuring.tag,
            tvm_version=summary.tvm_version,
        )
        self._store.add_tasks(
            job, summary.tasks, family=summary.family, target=summary.target, tvm_version=summary.tvm_version
        )
        known: dict[str, list[Trial]] = {}
        for record in self._store.trials(job):
            known.setdefault(record.task_key, []).append(record.trial)
        return known

    def keep(self, job: str, task: Task, trial: Trial, artifact: Artifact | None) -> None:
        """Take a trial that is to be committed before anything that follows from it is started."""
        self._trials.append(
            KeptTrial(
                job=job,
                task_key=task.key,
                trial=trial,
                provenance=self._provenance[job],
                build_s=artifact.build_s if artifact else 0.0,
                features=artifact.features if artifact else {},
            )
        )

    def take_trials(self) -> list[KeptTrial]:
        """The trials that were kept since the last time; whoever takes them commits them."""
        trials, self._trials = self._trials, []
        return trials

    def on_run_clock(self, at_s: float) -> float:
        """A time of the executor in seconds of the run."""
        return at_s + self._shift_s

    def ran(self, span: Span) -> None:
        """Remember a span until the next flush."""
        self._spans.append(
            SpanRecord(
                job=span.job,
                task=span.task,
                kind=span.kind,
                resource=span.resource,
                slots=span.slots,
                ready_s=self.on_run_clock(span.ready_s),
                start_s=self.on_run_clock(span.start_s),
                end_s=self.on_run_clock(span.end_s),
            )
        )

    def logged_with(self, other: str) -> None:
        """Note that what the core decides is logged with another run, at the next flush."""
        self._notes[LOGGED_WITH] = other

    def core_began(self, policy: str) -> None:
        """Log that a new core decides from here on, and note how."""
        self._notes["policy"] = policy
        self._log(written_start(CoreBegan(at_s=0.0, policy=policy)))

    def decided(self, event: Event, commands: Sequence[Command]) -> None:
        """Remember an event and what the core answered until the next flush."""
        self._log(written(event, commands))

    def _log(self, entry: PlainEntry) -> None:
        self._events.append(EventRecord(at_s=entry.at_s, kind=entry.kind, body=entry.body))

    def page(self, view: RunView | None = None) -> Page:
        """What was remembered since the last page; whoever takes it writes it."""
        notes, self._notes = self._notes, {}
        spans, self._spans = tuple(self._spans), []
        events, self._events = tuple(self._events), []
        shown = view.to_json() if view is not None else None
        return Page(run=self.run, notes=notes, spans=spans, events=events, view=shown)

    def flush(self) -> None:
        """Write what was remembered; raises LeaseLost if another executor has the run."""
        for run in self._store.write_pages([self.page()]):
            raise taken_over(run)
