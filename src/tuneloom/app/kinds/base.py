"""What a kind of job is: one value that says how its jobs are checked, opened, run and shown.

Nothing else asks for a tuner's name. Kinds are found by entry points, ours like anybody's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tuneloom.app.conducting.programs import Program
from tuneloom.engine.calls import Call
from tuneloom.errors import BudgetError, TuneloomError
from tuneloom.model import Artifact, JobField, JobSpec, ModelSummary, Task, Trial
from tuneloom.report import Validity
from tuneloom.store import JobRecord, Share, Store, TrialRecord

Opened = Callable[[ModelSummary], dict[str, list[Trial]]]
"""Told of a model when its tasks are known; answers with the trials known from before."""

Keep = Callable[[Task, Trial, Artifact | None], None]
"""Commits a trial; when it returns, the trial survives anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """What a job works with: its spec, where its trials go, and how much may be in flight.

    `workers` is the number of processes that keep its searches, `device_cores` how many cores its
    device is made of: none for one that has its own. `model_worker` names the worker that read the
    model when the job was checked, if one did and no other job uses it. `share` is whose job it is.
    `is_only_job` says whether nobody else here works on this machine, the only one.
    """

    job: str
    spec: JobSpec
    store: Store
    opened: Opened
    keep: Keep
    lanes: int
    workers: int
    device_cores: int = 1
    model_worker: str = ""
    share: Share | None = None
    is_only_job: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far a job is; `left_s` is None while nobody can tell.

    `kernels` names what has to be tuned, in the order of their numbers; `measured` counts those
    with a good trial. `outlook` says in words what is expected of a goal or a deadline, if there
    is something to say.
    """

    kernels: tuple[str, ...] = ()
    measured: int = 0
    spent: int = 0
    best_s: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    left_s: float | None = None
    outlook: str = ""


class JobProgram(Program, Protocol):
    """The program of a job that an executor carries out and keeps the result of."""

    spec: JobSpec
    export_to: str | None
    failure: TuneloomError | None

    @property
    def canary_s(self) -> Sequence[tuple[float, float]]:
        """When the canary was timed, and what it took."""

    def progress(self, at_s: float) -> JobProgress:
        """How far it is."""

    def result(self) -> dict[str, Any]:
        """What came out so far, as plain data."""

    def settle(self) -> None:
        """Note what the records of others were worth; called once, at the end."""

    def complete(self, run: str) -> TuneloomError | None:
        """Put what was made where it should go, after the last step; an error is a value."""


def _nothing(_spec: JobSpec) -> None:
    return None


def _no_files(_spec: JobSpec) -> Sequence[Path]:
    return ()


def _as_given(spec: JobSpec, _values: Mapping[str, Any]) -> JobSpec:
    return spec


def _no_validity(_job: JobRecord, _records: Sequence[TrialRecord]) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One kind of job.

    - `name`: what jobs say as their tuner; also the scheme of models, as in `mock:size=8`.
    - `takes`: whether a model without a scheme belongs to this kind.
    - `check`: raises InputError for a job that is bound to fail, without starting anything.
    - `refusal`: a call for a worker that answers with an InputError or None, for checks that take
      long or read what somebody else wrote; None if there is nothing to ask. A worker that it names
      keeps what it read, and the job goes on there.
    - `aim`: a call for a worker beside a device, which answers with the job's target as it is meant
      there, in full; None for a kind whose targets are the same everywhere.
    - `program`: makes the program of a job.
    - `warm_up`: `package.module:function`, called once in the parent of all workers.
    - `environment`: variables for that parent, from the jobs that are known when it starts.
    - `filled_in`: a job with what only its model's own file or its target can say.
    - `fields`: what may be said of its jobs alone; the values come in their `extra`.
    - `paths`: whether its models are paths of files, unless they begin with a scheme.
    - `files`: what the job reads, so that another machine can be given it.
    - `named`: what people call a model of this kind.
    - `validity`: the section of the report about what failed where.
    - `ended`: told of a job that will not go on, to drop what was kept for it alone.
    - `comparable`: whether ONNX Runtime can run the model of a job where it is tuned.
    - `boards`: whether its candidates can be measured on boards, where only TVM's runtime is.
    - `knows`: whether a job without trials makes something of what is known.
    - `bundles`: whether its jobs can write a bundle. `records`: in which format its trials can be
      exported ("" for none).
    """

    name: str
    program: Callable[[JobContext], JobProgram]
    takes: Callable[[str], bool] = lambda _model: False
    check: Callable[[JobSpec], None] = _nothing
    refusal: Callable[[JobSpec], Call | None] = _nothing
    aim: Callable[[JobSpec], Call | None] = _nothing
    warm_up: str = ""
    environment: Callable[[Sequence[JobSpec]], Mapping[str, str]] = lambda _specs: {}
    filled_in: Callable[[JobSpec, Mapping[str, Any]], JobSpec] = _as_given
    files: Callable[[JobSpec], Sequence[Path]] = _no_files
    named: Callable[[str], str] = lambda model: Path(model).stem
    validity: Callable[[JobRecord, Sequence[TrialRecord]], Validity | None] = _no_validity
    ended: Callable[[JobSpec], None] = _nothing
    comparable: Callable[[JobSpec], bool] = lambda _spec: False
    fields: Sequence[JobField] = ()
    paths: bool = False
    boards: bool = False
    knows: bool = False
    bundles: bool = False
    records: str = ""

    def require(self, spec: JobSpec) -> None:
        """Raise InputError for a job that is bound to fail, without starting anything."""
        if not self.knows and not spec.budget.trials:
            raise BudgetError(f"trials of a {self.name} job must be at least 1, got 0", field="trials")
        self.check(spec)
