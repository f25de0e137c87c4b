"""The live view of a run: what every resource does, how far every job is."""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.kinds.results import failures
from tuneloom.app.runs.run import Display, TuningRun
from tuneloom.cli.live_jobs import JobLine, job_line
from tuneloom.report.units import clipped
from tuneloom.scheduling import CoreView, ResourceView, RunningView, view

GETTING_READY = "getting ready: starting workers and looking at the models …"
_REFRESH_S = 0.5
_WIDE = 100  # columns from which there is room for whole names and the time of day
_BAR = 12
_AROUND_JOBS = 6  # lines of a terminal that are not rows of jobs or resources
_FEWEST_JOBS = 4


@contextmanager
def display_for(*, quiet: bool) -> Iterator[Display | None]:
    """A live view on a terminal, nothing otherwise."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    console = Console(stderr=True)
    with Live(Text(GETTING_READY, style="dim"), console=console, auto_refresh=False, transient=True) as live:
        yield LiveDisplay(live, console)


class LiveDisplay:
    """Redraws twice a second."""

    def __init__(self, live: Live, console: Console) -> None:
        self._live = live
        self._console = console
        self._shown_s = -_REFRESH_S

    def show(self, run: TuningRun, now_s: float) -> None:
        if now_s - self._shown_s < _REFRESH_S:
            return
        self._shown_s = now_s
        core = view(run.conductor.core, now_s)
        rows = max(_FEWEST_JOBS, self._console.height - len(core.resources) - _AROUND_JOBS)
        self._live.update(picture(run, core, self._console.width, rows), refresh=True)


def picture(run: TuningRun, core: CoreView, width: int, rows: int) -> RenderableType:
    """The whole view, for a terminal of this width with room for so many rows of jobs."""
    states = {job.id: job for job in core.jobs}
    lines = [
        job_line(job, states.get(job.job), run.status_of(job.job), core.at_s) for job in run.jobs.values()
    ]
    return Group(
        Text(f"{run.run} · {run.policy} · {clock(core.at_s)}", style="bold"),
        resources_table(core, {job.job: job for job in run.jobs.values()}, width),
        Text(),
        jobs_table(lines, rows, time.time(), width),
        failures_text(run.jobs.values()),
    )


def resources_table(core: CoreView, jobs: dict[str, ModelJob], width: int) -> Table:
    """What each resource runs now, how busy it was so far, and how many stages wait for it."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("resource", no_wrap=True)
    table.add_column("busy so far", width=_BAR, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("queue", justify="right", no_wrap=True)
    table.add_column("now", no_wrap=True, overflow="ellipsis")
    names = max((len(resource.name) for resource in core.resources), default=0)
    room = max(16, width - max(8, names) - _BAR - 20)
    for resource in core.resources:
        share = utilisation(resource, core.at_s)
        now = Text(clipped(doing(resource, jobs), room), style="cyan" if resource.running else "dim")
        table.add_row(resource.name, bar(share), f"{share:.0%}", str(resource.queue), now)
    return table


def bar(share: float) -> Text:
    """A share as a bar that needs no colour to be read."""
    full = round(share * _BAR)
    return Text.assemble(("█" * full, "green"), ("░" * (_BAR - full), "dim"))


def utilisation(resource: ResourceView, at_s: float) -> float:
    """The share of its slots that were in use from the start until now."""
    return min(1.0, resource.busy_s / (resource.slots * at_s)) if at_s > 0 else 0.0


def doing(resource: ResourceView, jobs: dict[str, ModelJob]) -> str:
    """What runs on a resource, equal stages counted: `3 × build squeezenet conv2d_4`."""
    counted = Counter(stage_name(stage, jobs) for stage in resource.running)
    return ", ".join(f"{n} × {name}" if n > 1 else name for name, n in counted.items()) or "idle"


def stage_name(stage: RunningView, jobs: dict[str, ModelJob]) -> str:
    """A stage as people call it: what it does, for which job, on which kernel."""
    job = jobs.get(stage.job)
    name = job.spec.name if job is not None else stage.job
    return " ".join(filter(None, (stage.kind, name, kernel_name(stage, job))))


def kernel_name(stage: RunningView, job: ModelJob | None) -> str:
    """The kernel that a lane works on; lanes are called after the number of their task."""
    number = stage.lane.partition(".")[0]
    if job is None or job.tuning is None or not number.isdecimal():
        return ""
    return clipped(job.tuning.tasks[int(number)].task.name, 24)


def jobs_table(lines: Sequence[JobLine], rows: int, now: float, width: int = _WIDE) -> Table:
    """How far each job is and when it may end; those that go on come first if there are too many."""
    wide = width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2 if wide else 1, 0, 0))
    columns = ["job", "stage", "kernels", "trials", "best", "failed", "left", *(["ends"] if wide else [])]
    for column in columns:
        table.add_column(column, justify="left" if column in ("job", "stage") else "right", no_wrap=True)
    shown = sorted(lines, key=lambda line: line.ended)[:rows] if len(lines) > rows else lines
    for line in shown:
        table.add_row(*_cells(line, now, wide), style="dim" if line.ended else "")
    if len(lines) > len(shown):
        table.add_row(Text(f"and {len(lines) - len(shown)} more", style="dim"))
    return table


def _cells(line: JobLine, now: float, wide: bool) -> list[str]:
    left_s = line.left_s
    cells = [
        clipped(line.name, 20 if wide else 14),
        clipped(line.stage, 18 if wide else 16),
        f"{line.measured}/{line.kernels}" if line.kernels else "–",
        f"{line.spent}/{line.budget}",
        f"{line.best_s * 1e3:.2f} ms" if line.best_s is not None else "–",
        str(line.failed),
        clock(left_s) if left_s is not None else "–",
    ]
    if wide:
        cells.append(time.strftime("%H:%M", time.localtime(now + left_s)) if left_s is not None else "–")
    return cells


def failures_text(jobs: Iterable[ModelJob]) -> Text:
    """All failures of the run by kind; nothing while there are none."""
    counted: Counter[str] = Counter()
    for job in jobs:
        counted.update(failures(job))
    told = ", ".join(f"{count} {kind}" for kind, count in counted.most_common())
    return Text(f"\nfailed: {told}", style="yellow") if told else Text()


def clock(seconds: float) -> str:
    """`3:20`, or `1:02:45` from an hour on."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
