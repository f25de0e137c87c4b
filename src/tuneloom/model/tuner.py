"""What a tuner is: a plug-in that gets data and returns data.

It never sees the store or the scheduler. Selecting and updating are methods of an
object with state, which lives in a tuner worker; building and profiling depend on
their arguments alone, so that any worker anywhere can run them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tuneloom.model.budget import MeasuringRules
from tuneloom.model.space import Lesson, Seed
from tuneloom.model.trial import Artifact, Candidate, Failure, Measurement, Task, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search needs besides its task; `extra` is for one tuner's own knobs.

    `seeds` are proposed before anything else, in their order; with `only_seeds` nothing
    is searched. `lessons` teach a cost model before the first measurement. A tuner that has
    no use for them may leave them. With `self_contained` no code is proposed that needs
    libraries at run time.
    """

    seed: int
    trials: int
    batch: int
    threads: int = 1
    seeds: tuple[Seed, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    only_seeds: bool = False
    self_contained: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


class Search(Protocol):
    """The state of one task's search; used by one thread."""

    def select(self, count: int) -> list[Candidate]:
        """Propose up to `count` candidates never proposed before; none: the space is spent."""

    def update(self, trials: Sequence[Trial]) -> None:
        """Learn from finished trials, failures among them."""


@runtime_checkable
class SeededSearch(Search, Protocol):
    """A search that takes seeds while it goes on."""

    def plant(self, seeds: Sequence[Seed]) -> None:
        """Propose these before anything else."""


class Tuner(Protocol):
    """How the tasks of one kind are searched, built and timed."""

    name: str

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
        """Start a search that already knows these trials and will not propose them again."""

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        """Compile one candidate; expected failure is a value."""

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        """Time one artifact on the device this process holds; `best_s` is the task's best so far."""


@runtime_checkable
class TaskSource(Protocol):
    """A tuner that finds the tasks of its models itself, so that `tuneloom tune NAME:MODEL` can use it."""

    def tasks(self, model: str) -> Sequence[Task]:
        """The tasks of a model, given as the text after `NAME:`; raises InputError for one it can't use."""
