"""Runs that this process executes itself: for the command line, the Python session and tests."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from tuneloom.app.devices.describing import MachineOrder, describe, require_cores
from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.requests.sources import require_possible, where_possible
from tuneloom.app.runs.executing.executor import Display, Executor, Patient
from tuneloom.app.runs.executing.heartbeat import Heartbeat
from tuneloom.app.runs.executing.held_run import TrialListener
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.submitting import require_usable, submit
from tuneloom.app.runs.workforce import Workforce, workforce_for
from tuneloom.engine.api import Engine
from tuneloom.engine.machine import Fleet
from tuneloom.errors import InputError, LeaseLost, TuneloomError
from tuneloom.model import JobSpec
from tuneloom.scheduling import policy_named
from tuneloom.store import JobRecord, RunStatus, Store, open_existing, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended: its jobs as the store has them, and the first error, if there was one."""

    run: str
    jobs: tuple[JobRecord, ...]
    failure: TuneloomError | None


def tune(
    specs: Sequence[JobSpec],
    settings: RunSettings,
    command: str = "",
    display: Display | None = None,
    on_trial: TrialListener | None = None,
) -> RunOutcome:
    """Submit jobs as one run and execute it; raises InputError before anything is started."""
    policy_named(settings.policy)
    if settings.farm is None:
        require_cores(settings.device_cores)
        fleet = describe(MachineOrder(device_cores=settings.device_cores)).fleet
        specs = [where_possible(spec, fleet.device_keys) for spec in specs]
        _require_possible(specs, fleet)
    force = workforce_for(specs, settings)
    with closing(force.engine) as engine:
        jobs = [force.aimed(spec) for spec in specs]
        _require_possible(jobs, force.resources)
        require_usable(engine, jobs, display.wait if isinstance(display, Patient) else lambda _words: None)
        with open_store(settings.store) as store:

            def submitted(holder: str) -> str:
                return submit(store, jobs, settings, command, holder).id

            return _executed(store, submitted, force, settings, display, on_trial)


def resume(
    name: str, place: str | None = None, display: Display | None = None, farm: str | None = None
) -> RunOutcome:
    """Go on with a run that was interrupted, on any host, with what is left of its budget.

    A run on a farm goes on there, or on the one of the file `farm`.
    """
    with open_existing(place) as store:
        record = store.run(name)
        if record.status is RunStatus.FINISHED:
            raise InputError(f"run {record.id} is finished; `tuneloom report {record.id}` shows it")
        jobs = [job for job in store.jobs(record.id) if not job.status.ended]
        if not jobs:
            raise InputError(
                f"run {record.id} has no unfinished jobs; `tuneloom report {record.id}` shows it"
            )
        settings = RunSettings.of_run(record.options, place)
        settings = replace(settings, farm=farm) if farm is not None else settings
        force = workforce_for(_readable(jobs), settings)
        return execute(store, record.id, force.engine, force.resources, settings, display)


def execute(
    store: Store,
    run: str,
    engine: Engine,
    machine: Fleet,
    settings: RunSettings,
    display: Display | None = None,
) -> RunOutcome:
    """Carry out one run in this process; closes the engine.

    Raises StoreError if another executor has it, LeaseLost if one took it meanwhile.
    """
    force = Workforce(engine=engine, resources=machine)
    return _executed(store, lambda _holder: run, force, settings, display)


def _executed(
    store: Store,
    found: Callable[[str], str],
    force: Workforce,
    settings: RunSettings,
    display: Display | None = None,
    on_trial: TrialListener | None = None,
) -> RunOutcome:
    with Heartbeat(lambda: open_store(settings.store)) as heartbeat:
        executor = Executor(
            store,
            force.engine,
            force.resources,
            settings.policy,
            heartbeat,
            display=display,
            on_trial=on_trial,
        )
        run = found(executor.holder)
        held = executor.take(run)
        executor.execute()
    if run in executor.failures:
        raise executor.failures[run]
    if run in executor.lost:
        raise LeaseLost(f"run {run} was taken over by another executor; `tuneloom runs` shows it", run)
    failure = next(iter(held.failures.values()), None)
    return RunOutcome(run=run, jobs=tuple(store.jobs(run)), failure=failure)


def _readable(jobs: Sequence[JobRecord]) -> list[JobSpec]:
    """The jobs that can be taken; any other fails by itself later."""
    specs = []
    for job in jobs:
        try:
            spec = JobSpec.from_json(dict(job.spec))
            kind_named(spec.tuner)
        except Exception:
            continue
        specs.append(spec)
    return specs


def _require_possible(specs: Sequence[JobSpec], resources: Fleet) -> None:
    for spec in specs:
        require_possible(spec, resources.device_keys)
