"""Tuning as one function: for the command line, the Python session and tests."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tuneloom.app.kinds.kernel.specs import drop_functions
from tuneloom.app.requests.sources import require_possible
from tuneloom.app.runs.preflight import require_usable
from tuneloom.app.runs.run import Display, TuningRun
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import CPU_KEY, Machine, this_machine
from tuneloom.engine.watch import MachineWatch
from tuneloom.errors import InputError, TuneloomError
from tuneloom.model import JobSpec
from tuneloom.model.numbers import COUNT
from tuneloom.scheduling import policy_named
from tuneloom.store import JobRecord, RunStatus, Store, open_existing, open_store
from tuneloom.tuners.kernel import FUNCTIONS
from tuneloom.tuners.kernel import NAME as KERNEL
from tuneloom.tuners.kernel.warmth import LOADED
from tuneloom.tuners.mock import MockTuner

WARM_UP = "tuneloom.tuners.tvm.warmth:warm_up"
WARM_UPS = {
    MockTuner.name: "tuneloom.tuners.mock.warmth:warm_up",
    KERNEL: "tuneloom.tuners.kernel.warmth:warm_up",
}
"""For runs in which one tuner is at work that needs no TVM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run works, apart from its jobs."""

    policy: str = "load-aware"
    store: str | None = None
    device_cores: int = 1

    def __post_init__(self) -> None:
        COUNT.require("device_cores", self.device_cores)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended: its jobs as the store has them, and the first error, if there was one."""

    run: str
    jobs: tuple[JobRecord, ...]
    failure: TuneloomError | None


def tune(
    specs: Sequence[JobSpec], settings: RunSettings, command: str = "", display: Display | None = None
) -> RunOutcome:
    """Tune models as jobs of one run; raises InputError before anything is started."""
    machine = _checked(specs, settings)
    with closing(_engine_for([spec.to_json() for spec in specs], _watch(machine, settings))) as engine:
        require_usable(engine, specs)
        with closing(open_store(settings.store)) as store:
            options: dict[str, Any] = {"policy": settings.policy, "device_cores": settings.device_cores}
            run = store.create_run(command or "tune", options).id
            for spec in specs:
                store.add_job(run, spec.name, spec.to_json())
            return _execute(store, run, engine, machine, settings.policy, display)


def resume(name: str, place: str | None = None, display: Display | None = None) -> RunOutcome:
    """Go on with a run that was interrupted, with what is left of its budget."""
    store = open_existing(place)
    try:
        record = store.run(name)
        if record.status is RunStatus.FINISHED:
            raise InputError(f"run {record.id} is finished; `tuneloom report {record.id}` shows it")
        if all(job.status.ended for job in store.jobs(record.id)):
            raise InputError(
                f"run {record.id} has no job left to go on with; `tuneloom report {record.id}` shows it"
            )
        options: Mapping[str, Any] = store.take_over_run(record.id).options
        settings = RunSettings(
            policy=str(options.get("policy", "load-aware")), device_cores=int(options.get("device_cores", 1))
        )
        machine = this_machine(device_cores=settings.device_cores)
        engine = _engine_for([job.spec for job in store.jobs(record.id)], _watch(machine, settings))
        return _execute(store, record.id, engine, machine, settings.policy, display)
    finally:
        store.close()


def note_on_run(run: str, key: str, value: Any, place: str | None = None) -> None:
    """Keep a value with a run."""
    store = open_existing(place)
    try:
        store.set_note(run, key, value)
    finally:
        store.close()


def _execute(
    store: Store, run: str, engine: LocalEngine, machine: Machine, policy: str, display: Display | None
) -> RunOutcome:
    tuning = TuningRun(store, run, engine, machine, policy, display)
    tuning.execute()
    failure = next(iter(tuning.failures.values()), None)
    jobs = tuple(store.jobs(run))
    drop_functions([job.spec for job in jobs])
    return RunOutcome(run=run, jobs=jobs, failure=failure)


def _watch(machine: Machine, settings: RunSettings) -> MachineWatch:
    """Notices GPUs that come and go while a run goes on."""
    return MachineWatch(machine, lambda: this_machine(device_cores=settings.device_cores))


def _engine_for(specs: Sequence[Mapping[str, Any]], watch: MachineWatch) -> LocalEngine:
    """An engine whose workers find imported what the jobs need, and no more."""
    tuners = {str(spec.get("tuner")) for spec in specs}
    warm_up = WARM_UPS.get(tuners.pop(), WARM_UP) if len(tuners) == 1 else WARM_UP
    files = [str(spec["model"]) for spec in specs if _is_light(spec)]
    return LocalEngine(warm_up, {LOADED: os.pathsep.join(files)} if files else None, watch)


def _is_light(spec: Mapping[str, Any]) -> bool:
    """Whether a job's functions may be loaded before workers are forked: not those that may touch a GPU."""
    return str(spec.get("model", "")).endswith(FUNCTIONS) and spec.get("device_key") == CPU_KEY


def _checked(specs: Sequence[JobSpec], settings: RunSettings) -> Machine:
    policy_named(settings.policy)
    machine = this_machine(device_cores=settings.device_cores)
    for spec in specs:
        require_possible(spec, machine.device_keys)
    return machine
