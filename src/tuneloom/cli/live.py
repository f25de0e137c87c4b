"""The live view of a run: resources, jobs, trials, best so far."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tuneloom.app.model_job import ModelJob
from tuneloom.app.results import failures
from tuneloom.app.tuning_run import Display, TuningRun
from tuneloom.scheduling import CoreView, view

_REFRESH_S = 0.5


@contextmanager
def display_for(*, quiet: bool) -> Iterator[Display | None]:
    """A live view on a terminal, nothing otherwise."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield LiveDisplay(live)


class LiveDisplay:
    """Redraws twice a second."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._shown_s = -1.0

    def show(self, run: TuningRun, now_s: float) -> None:
        if now_s - self._shown_s < _REFRESH_S:
            return
        self._shown_s = now_s
        core = view(run.conductor.core, now_s)
        self._live.update(Group(resources_table(core), jobs_table(run, now_s)), refresh=True)


def resources_table(core: CoreView) -> Table:
    """What each resource runs now, how busy it was, and what waits for it."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("resource", "busy", "waiting", "now"):
        table.add_column(column, justify="right" if column in ("busy", "waiting") else "left", no_wrap=True)
    for resource in core.resources:
        share = resource.busy_s / (resource.slots * core.at_s) if core.at_s else 0.0
        now = ", ".join(f"{r.kind} {r.lane}" for r in resource.running) or "idle"
        table.add_row(resource.name, f"{share:.0%}", str(resource.queue), Text(now, style="cyan"))
    return table


def jobs_table(run: TuningRun, now_s: float) -> Table:
    """How far each job is and when it may end."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("job", "tasks", "trials", "model", "failed", "left"):
        table.add_column(column, justify="left" if column == "job" else "right", no_wrap=True)
    for job in run.jobs.values():
        table.add_row(*job_cells(job, now_s))
    return table


def job_cells(job: ModelJob, now_s: float) -> tuple[str, ...]:
    """One row: name, tasks begun, trials, latency by kernels, failures, time left."""
    tuning = job.tuning
    if tuning is None:
        return (job.spec.name, "importing", "", "", "", "")
    latency_s = tuning.latency_s
    return (
        job.spec.name,
        f"{sum(bool(t.trials) for t in tuning.tasks)}/{len(tuning.tasks)}",
        f"{tuning.spent}/{job.spec.budget.trials}",
        f"{latency_s * 1e3:.2f} ms" if latency_s is not None else "–",
        ", ".join(f"{count} {kind}" for kind, count in failures(job).items()) or "0",
        left_of(job, now_s),
    )


def left_of(job: ModelJob, now_s: float) -> str:
    """The time left by the pace so far, or what happens instead."""
    tuning = job.tuning
    if job.finish is not None:
        return "done" if job.done else "finishing"
    if tuning is None or tuning.started_s is None or not tuning.spent:
        return "–"
    pace_s = (now_s - tuning.started_s) / tuning.spent
    left_s = pace_s * (job.spec.budget.trials - tuning.spent)
    if job.spec.budget.seconds is not None:
        left_s = min(left_s, job.spec.budget.seconds - (now_s - tuning.started_s))
    minutes, seconds = divmod(max(0, round(left_s)), 60)
    return f"{minutes}:{seconds:02d}"
