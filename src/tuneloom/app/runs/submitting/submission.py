"""Submitting runs: jobs are checked and left in the store for whoever executes them."""

from collections.abc import Sequence
from contextlib import closing

from tuneloom.app.requests.sources import require_possible
from tuneloom.app.runs.engines import engine_for
from tuneloom.app.runs.files import kept_files, own_files
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.submitting.preflight import require_usable
from tuneloom.model import JobSpec
from tuneloom.scheduling import policy_named
from tuneloom.store import RunRecord, Store, open_store


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
    with closing(open_store(settings.store)) as store:
        return submit(store, specs, settings, command).id
