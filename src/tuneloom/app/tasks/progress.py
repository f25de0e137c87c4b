"""How the origin of a candidate tells whether another task gave it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Task, Trial

TRANSFER, SHARE = "transfer:", "share:"
"""How origins of borrowed candidates begin: from the bank, from a task of the same job."""


def is_borrowed(origin: str) -> bool:
    """Whether a candidate with this origin came from another task."""
    return origin.startswith((TRANSFER, SHARE))


def record_of(origin: str) -> int | None:
    """The number of the record that a candidate with this origin came from; None if it came from none."""
    kind, _, number = origin.partition(":")
    return int(number) if f"{kind}:" == TRANSFER and number.isdecimal() else None


DEFAULT = "default"
_CONTENDERS = 3


@dataclass(slots=True)
class Contender:
    """A good trial and, unless it has to be built again, what was built for it."""

    trial: Trial
    artifact: Artifact | None = None
    seconds: float = field(init=False)

    def __post_init__(self) -> None:
        assert self.trial.seconds is not None
        self.seconds = self.trial.seconds


@dataclass(slots=True)
class TaskProgress:
    """The trials of a task so far, its best few, and what is under way.

    `own` is the best that neither is the default nor was given by another task.
    `waits_for` is the task from whose best this one goes on after its first batch, once
    that has made `lend_after` trials; `seeded` says that it was given them. `quota` is the most
    trials it gets (None: no limit of its own). `bare` is the task without its payload, as it travels to
    stages for which the candidate carries everything.
    """

    index: int
    task: Task
    bare: Task = field(init=False)
    trials: list[Trial] = field(default_factory=list)
    best: list[Contender] = field(default_factory=list)
    default: Contender | None = None
    own: Contender | None = None
    failures: Counter[FailureKind] = field(default_factory=Counter)
    first_error: str = ""
    curve: list[tuple[int, float]] = field(default_factory=list)
    in_flight: int = 0
    lanes: int = 0
    batches: int = 0
    exhausted: bool = False
    opened: bool = False
    waits_for: "TaskProgress | None" = field(default=None, repr=False)
    lend_after: int = 0
    seeded: bool = False
    quota: int | None = None
    _seen: set[str] = field(default_factory=set)
    _gains: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bare = replace(self.task, payload=b"")

    @property
    def best_s(self) -> float | None:
        """The fastest time seen, of the default schedule too."""
        best_s = self.best[0].seconds if self.best else None
        default_s = self.default.seconds if self.default is not None else None
        if best_s is None or default_s is None:
            return default_s if best_s is None else best_s
        return default_s if default_s < best_s else best_s

    @property
    def due(self) -> int:
        """Trials that are still missing until others may borrow."""
        return 0 if self.exhausted else max(0, self.lend_after - len(self.trials) - self.in_flight)

    @property
    def gives(self) -> bool:
        """Whether others may borrow: it has made its first trials, or there is nothing more to measure."""
        return self.exhausted or len(self.trials) >= self.lend_after

    @property
    def waits(self) -> bool:
        """Whether the task it will borrow from is not done yet."""
        return self.waits_for is not None and not self.waits_for.gives

    @property
    def owed(self) -> bool:
        """Whether it may borrow now, and has not yet."""
        return self.waits_for is not None and self.waits_for.gives and not self.seeded

    @property
    def open_to_more(self) -> bool:
        """Whether another batch may start now; the first one never waits."""
        full = self.quota is not None and len(self.trials) + self.in_flight >= self.quota
        return not (self.exhausted or full or (self.waits and self.batches > 0))

    @property
    def measured(self) -> int:
        return len(self.trials) - sum(self.failures.values())

    def tried(self, candidate: Candidate) -> bool:
        """Whether a trial was spent on a configuration, whoever proposed it."""
        return any(trial.candidate.configuration == candidate.configuration for trial in self.trials)

    def unseen(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Of freshly proposed candidates those nobody proposed before, in flight or finished.

        A search that was opened again does not know what its predecessor had in flight.
        """
        fresh = [c for c in {c.key: c for c in candidates}.values() if c.key not in self._seen]
        self._seen.update(c.key for c in fresh)
        return fresh

    def add(self, trial: Trial, artifact: Artifact | None) -> None:
        """Count a finished trial and keep it if it is among the best."""
        self.trials.append(trial)
        self._seen.add(trial.candidate.key)
        if isinstance(trial.outcome, Failure):
            self.failures[trial.outcome.kind] += 1
            self.first_error = self.first_error or trial.outcome.message
            return
        contender = Contender(trial, artifact)
        if trial.candidate.origin == DEFAULT:
            self.default = contender
        else:
            self._add_tuned(contender)
        best_s = self.best_s
        if best_s is not None and (not self.curve or best_s < self.curve[-1][1]):
            self.curve.append((len(self.trials), best_s))

    def _add_tuned(self, contender: Contender) -> None:
        if not is_borrowed(contender.trial.candidate.origin):
            if self.best and contender.seconds < self.best[0].seconds:
                self._gains.append((len(self.trials), self.best[0].seconds - contender.seconds))
            if self.own is None or contender.seconds < self.own.seconds:
                self.own = contender
        self.best = sorted([*self.best, contender], key=lambda c: c.seconds)[:_CONTENDERS]

    def gained_s(self, trials: int) -> float:
        """By how much the search lowered the best time over the last so many trials.

        The step from the default to the first schedule does not count, nor do gifts: they
        say nothing about what searching on will find.
        """
        since = len(self.trials) - trials
        return sum(gain for count, gain in self._gains if count > since)
