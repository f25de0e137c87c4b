"""The live view of a run: what every resource does, how far every job is."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tuneloom.app.runs.view import JobPicture, ResourcePicture, RunView
from tuneloom.report.drawing.units import clipped

GETTING_READY = "getting ready: starting workers and inspecting the models …"
REFRESH_S = 0.5
_WIDE = 100  # columns from which there is room for whole names and the time of day
_BAR = 12
_AROUND_JOBS = 6  # lines of a terminal that are not rows of jobs or resources
_FEWEST_JOBS = 4


@contextmanager
def display_for(*, quiet: bool) -> "Iterator[LiveDisplay | None]":
    """A live view on a terminal, nothing otherwise."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    console = Console(stderr=True)
    with Live(Text(GETTING_READY, style="dim"), console=console, auto_refresh=False, transient=True) as live:
        yield LiveDisplay(live, console)


class LiveDisplay:
    """Redraws twice a second."""

    every_s = REFRESH_S

    def __init__(self, live: Live, console: Console) -> None:
        self._live = live
        self._console = console

    def wait(self, words: str) -> None:
        self._live.update(Text(words, style="dim"), refresh=True)

    def show(self, view: RunView) -> None:
        rows = max(_FEWEST_JOBS, self._console.height - len(view.resources) - _AROUND_JOBS)
        self._live.update(picture(view, self._console.width, rows), refresh=True)


def picture(view: RunView, width: int, rows: int) -> RenderableType:
    """The whole view, for a terminal of this width with room for so many rows of jobs."""
    return Group(
        Text(f"{view.run} · {view.policy} · {clock(view.at_s)}", style="bold"),
        resources_table(view.resources, width),
        Text(),
        jobs_table(view.jobs, rows, time.time(), width),
        outlooks_text(view.jobs),
        failures_text(view.failures),
    )


def resources_table(resources: Sequence[ResourcePicture], width: int) -> Table:
    """What each resource runs now, how busy it was so far, and how many stages wait for it."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("resource", no_wrap=True)
    table.add_column("busy so far", width=_BAR, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("queue", justify="right", no_wrap=True)
    table.add_column("now", no_wrap=True, overflow="ellipsis")
    names = max((len(resource.name) for resource in resources), default=0)
    room = max(16, width - max(8, names) - _BAR - 20)
    for resource in resources:
        now = Text(clipped(resource.now, room), style="cyan" if resource.taken else "dim")
        busy = resource.utilisation
        table.add_row(resource.name, bar(busy), f"{busy:.0%}", str(resource.queue), now)
    return table


def bar(part: float) -> Text:
    """A part of the whole as a bar that needs no colour to be read."""
    full = round(part * _BAR)
    return Text.assemble(("█" * full, "green"), ("░" * (_BAR - full), "dim"))


def jobs_table(jobs: Sequence[JobPicture], rows: int, now: float, width: int = _WIDE) -> Table:
    """How far each job is and when it may end; those that go on come first if there are too many."""
    wide = width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2 if wide else 1, 0, 0))
    columns = ["job", "stage", "kernels", "trials", "best", "failed", "left", *(["ends"] if wide else [])]
    for column in columns:
        table.add_column(column, justify="left" if column in ("job", "stage") else "right", no_wrap=True)
    shown = sorted(jobs, key=lambda job: job.ended)[:rows] if len(jobs) > rows else jobs
    for job in shown:
        table.add_row(*_cells(job, now, wide), style="dim" if job.ended else "")
    if len(jobs) > len(shown):
        table.add_row(Text(f"and {len(jobs) - len(shown)} more", style="dim"))
    return table


def _cells(job: JobPicture, now: float, wide: bool) -> list[str]:
    left_s = job.left_s
    cells = [
        clipped(job.name, 20 if wide else 14),
        clipped(job.stage, 18 if wide else 16),
        f"{job.measured}/{job.kernels}" if job.kernels else "–",
        f"{job.spent}/{job.budget}",
        f"{job.best_s * 1e3:.2f} ms" if job.best_s is not None else "–",
        str(sum(job.failures.values())),
        clock(left_s) if left_s is not None else "–",
    ]
    if wide:
        cells.append(time.strftime("%H:%M", time.localtime(now + left_s)) if left_s is not None else "–")
    return cells


def outlooks_text(jobs: Sequence[JobPicture]) -> Text:
    """What is expected of goals and deadlines; nothing while there is nothing to say."""
    told = "\n".join(f"{job.name}: {job.outlook}" for job in jobs if job.outlook)
    return Text(f"\n{told}", style="yellow") if told else Text()


def failures_text(failures: Mapping[str, int]) -> Text:
    """All failures of the run by kind; nothing while there are none."""
    ordered = sorted(failures.items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{count} {kind}" for kind, count in ordered)
    return Text(f"\nfailed: {told}", style="yellow") if told else Text()


def clock(seconds: float) -> str:
    """`3:20`, or `1:02:45` from an hour on."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
