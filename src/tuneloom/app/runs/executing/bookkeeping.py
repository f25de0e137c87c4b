"""What a run writes into the store, and when; its resources as its note tells them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuneloom.app.bank.starter import provide
from tuneloom.app.runs.view import RunView
from tuneloom.engine.machine import Offer
from tuneloom.engine.sharing.locks import boot_id
from tuneloom.model import Artifact, Host, JobSpec, ModelSummary, Task, Trial
from tuneloom.scheduling.journal import CoreBegan, written, written_start
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import EventRecord, KeptTrial, Page, Provenance, SpanRecord, Store, taken_over

RESOURCES = "resources"
"""The name of the note."""


class ResourceList:
    """Keeps the list; what happened at a time of the executor is told `shift_s` later, on the run's clock."""

    def __init__(self, shift_s: float = 0.0) -> None:
        self._shift_s = shift_s
        self._entries: dict[str, dict[str, Any]] = {}
        self._changed = False

    def joined(self, offer: Offer, at_s: float) -> None:
        """A resource came, or came back."""
        resource = offer.resource
        if resource.name in self._entries:
            known = self._entry(resource.name)
            if known["away"]:
                known["away"][-1][1] = at_s + self._shift_s
            return
        slots = resource.slots if isinstance(resource, Host) else 1
        entry = self._entries[resource.name] = {"name": resource.name, "slots": slots}
        entry |= {"machine": resource.machine, "joined_s": at_s + self._shift_s}
        if not isinstance(resource, Host):
            entry["device_key"] = resource.key
        if offer.cores:
            entry["cores"] = sorted(offer.cores)
        self._entry(resource.name)["away"] = []

    def left(self, name: str, reason: str, at_s: float) -> None:
        """A resource went; `reason` says why, for people."""
        self._entry(name)["away"].append([at_s + self._shift_s, None])
        self._entry(name)["why_away"] = reason

    def disturbed(self, name: str, by: str, at_s: float) -> None:
        """Others use a resource, too, or do so no more."""
        self._entry(name).setdefault("disturbed", []).append([at_s + self._shift_s, by])

    def shared(self, name: str, by: str, at_s: float) -> None:
        """Another process measures on a resource in turn, or does so no more."""
        self._entry(name).setdefault("shared", []).append([at_s + self._shift_s, by])

    def waited_for(self, name: str, seconds: float) -> None:
        """A stage waited for another process before it got a resource."""
        entry = self._entry(name)
        entry["waits"] = entry.get("waits", 0) + 1
        entry["waited_s"] = entry.get("waited_s", 0.0) + seconds

    def note(self) -> list[dict[str, Any]]:
        """The list as plain data."""
        return list(self._entries.values())

    def news(self) -> dict[str, Any]:
        """The note, if it has changed since the last time."""
        changed, self._changed = self._changed, False
        return {RESOURCES: self.note()} if changed else {}

    def _entry(self, name: str) -> dict[str, Any]:
        self._changed = True
        return self._entries[name]


def present_keys(note: Iterable[Mapping[str, Any]] | None) -> list[str]:
    """The keys of the devices that are there now, as the note of a run tells."""
    return sorted({str(each["device_key"]) for each in note or () if each.get("device_key") and _here(each)})


def _here(entry: Mapping[str, Any]) -> bool:
    away = entry.get("away")
    return not away or away[-1][1] is not None


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
        self.resources = ResourceList(self._shift_s)

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
        provide(self._store, summary.family)
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

    def ran(self, span: SpanRecord) -> None:
        """Remember a span of the executor's clock until the next flush."""
        self._spans.append(span)

    def logged_with(self, other: str) -> None:
        """Note that what the core decides is logged with another run, at the next flush."""
        self._notes[LOGGED_WITH] = other

    def core_began(self, policy: str) -> None:
        """Log that a new core decides from here on, and note how."""
        self._notes["policy"] = policy
        self._events.append(written_start(CoreBegan(at_s=0.0, policy=policy)))

    def decided(self, event: Event, commands: Sequence[Command]) -> None:
        """Remember an event and what the core answered until the next flush."""
        self._events.append(written(event, commands))

    def page(self, view: RunView | None = None) -> Page:
        """What was remembered since the last page; whoever takes it writes it."""
        notes, self._notes = {**self._notes, **self.resources.news()}, {}
        spans, self._spans = tuple(self._spans), []
        events, self._events = tuple(self._events), []
        shown = view.to_json() if view is not None else None
        return Page(run=self.run, notes=notes, spans=spans, shift_s=self._shift_s, events=events, view=shown)

    def flush(self) -> None:
        """Write what was remembered; raises LeaseLost if another executor has the run."""
        for run in self._store.write_pages([self.page()]):
            raise taken_over(run)
