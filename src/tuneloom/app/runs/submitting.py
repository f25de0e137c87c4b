"""What is refused before a run begins: models that can't be opened, targets nobody knows.

Models are looked at in workers of the run's own engine, so a file that crashes the importer
is refused as well, and the wait is one that the run would have had anyway.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from tuneloom.app.conducting.calling import ends_of
from tuneloom.app.conducting.interruptions import Interruptions
from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.requests.sources import require_possible
from tuneloom.app.runs.files import kept_files, own_files
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.workforce import engine_for
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallResult, Lost, Returned
from tuneloom.errors import InputError, ModelError
from tuneloom.model import JobSpec
from tuneloom.scheduling import policy_named
from tuneloom.store import RunRecord, Store, open_store

_GLANCE_S = 0.25
_KEPT = 4

Tell = Callable[[str], None]
"""Takes a line about what is being done."""


def require_usable(engine: Engine, specs: Iterable[JobSpec], tell: Tell = lambda _words: None) -> None:
    """Raise the error of the first job whose model or target can't be used.

    While a model is imported, `tell` hears which and since when, a few times a second.

    The same question is asked once, and as many at a time as there are cores. The first models stay in
    their workers, where their jobs find them; the others are opened again.
    """
    asked = {}
    for spec in specs:
        call = kind_named(spec.tuner).refusal(spec)
        if call is not None:
            asked[call.function, repr(call.arguments)] = (spec, call)
    questions, at_once = list(asked.values()), len(os.sched_getaffinity(0))
    for first in range(0, len(questions), at_once):
        _require_good(engine, questions[first : first + at_once], max(_KEPT, at_once) - first, tell)


def _require_good(engine: Engine, questions: Sequence[tuple[JobSpec, Call]], kept: int, tell: Tell) -> None:
    """Ask some questions at a time; `kept` of the models stay open, and the first error is raised."""
    answers = _answers(
        engine, [call for _, call in questions], _progress([spec for spec, _ in questions], tell)
    )
    errors = [refused(spec, answer) for (spec, _), answer in zip(questions, answers, strict=True)]
    for number, ((_, call), error) in enumerate(zip(questions, errors, strict=True)):
        if call.worker is not None and (error is not None or number >= kept):
            engine.release(call.worker)
    for error in errors:
        if error is not None:
            raise error


def refused(spec: JobSpec, result: CallResult | Lost) -> InputError | None:
    """Why a job is refused, if it is; an importer that died refuses too."""
    if isinstance(result, Returned):
        error: InputError | None = result.value
        return error
    why = f"the process that read it was {result}" if str(result).startswith("killed") else str(result)
    return ModelError(
        f"{spec.model} can't be imported: {why}; the file may be damaged, export it again", field="model"
    )


def _progress(specs: Sequence[JobSpec], tell: Tell) -> Callable[[], None]:
    """Tells what is being imported, and for how long already."""
    name, began_s = Path(specs[0].model).name, time.monotonic()
    what = name if len(specs) == 1 else f"{name} and {len(specs) - 1} more"
    return lambda: tell(f"importing {what} … {time.monotonic() - began_s:.0f} s")


def _answers(
    engine: Engine, calls: Sequence[Call], glanced: Callable[[], None]
) -> Sequence[CallResult | Lost]:
    engine.prepare()
    with Interruptions() as interruptions:

        def check() -> None:
            interruptions.check()
            glanced()

        return ends_of(engine, calls, _GLANCE_S, check)


def submit(
    store: Store,
    specs: Sequence[JobSpec],
    settings: RunSettings,
    command: str = "",
    holder: str | None = None,
) -> RunRecord:
    """Leave jobs as one run for whoever executes it, or for the executor `holder`; nothing is started.

    The jobs must have been checked: see `require_possible`.
    """
    with kept_files(store, specs) as complete:
        jobs = [(spec.name, spec.to_json()) for spec in complete]
        run = store.submit_run(command or "tune", jobs, settings.options(), holder=holder)
        own_files(store, run.id, complete)
    return run


def detach(specs: Sequence[JobSpec], settings: RunSettings, command: str = "") -> str:
    """Check jobs and submit them as one run; an executor elsewhere carries it out. Returns its name."""
    policy_named(settings.policy)
    for spec in specs:
        require_possible(spec, ())
    with closing(engine_for(specs)) as engine:
        require_usable(engine, specs)
    with open_store(settings.store) as store:
        return submit(store, specs, settings, command).id
