"""Draws the diagrams of the docs from what the code says: the states of a job, and the packages of `app`.

PYTHONPATH=src:tests python docs/figures/diagrams.py [-o docs/figures]

Only where boxes stand and how arrows bend is decided here. A move or a package that has no place yet is an
error, and a test compares the files with what is drawn.
"""

import argparse
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from html import escape
from pathlib import Path

from support.sources import SOURCE, children_imported
from tuneloom.scheduling import MOVES, JobState
from tuneloom.scheduling.moves import ENDS

STYLE = """
svg { background: #ffffff; font: 14px system-ui, sans-serif; }
text { fill: #1c1b19; text-anchor: middle; } .label, .detail { fill: #57534b; font-size: 13px; }
.label { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; } .name { font-weight: 600; }
.box { fill: #e4f2f0; stroke: #00796b; } .end { fill: #f4f1ea; stroke: #6c675e; }
.group { fill: none; stroke: #a8a294; stroke-dasharray: 5 4; }
.arrow { fill: none; stroke: #57534b; stroke-width: 1.3px; marker-end: url(#head); } .dot { fill: #1c1b19; }
"""
HEAD = (
    '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L10 5L0 10z" fill="#57534b"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Way:
    """How an arrow runs, as the data of an SVG path, and where the middle of its label stands."""

    path: str
    x: float
    y: float


W, R, P, Z, F = (
    JobState.WAITING,
    JobState.RUNNING,
    JobState.PAUSING,
    JobState.PAUSED,
    JobState.FINISHING,
)
STATES: Mapping[JobState, tuple[float, float]] = {
    W: (215, 165),
    R: (430, 165),
    Z: (215, 345),
    P: (430, 345),
    F: (645, 345),
    JobState.FINISHED: (850, 165),
    JobState.CANCELLED: (850, 345),
    JobState.REFUSED: (62, 345),
}
WAYS: Mapping[tuple[JobState | None, JobState], Way] = {
    (None, W): Way("M62 165H161", 106, 154),
    (None, JobState.REFUSED): Way("M62 165V325", 62, 245),
    (W, R): Way("M269 155H376", 322, 130),
    (R, W): Way("M376 175H269", 322, 200),
    (W, Z): Way("M203 185V325", 190, 275),
    (Z, W): Way("M227 325V185", 243, 242),
    (R, P): Way("M418 185V325", 405, 275),
    (P, R): Way("M442 325V185", 454, 242),
    (P, Z): Way("M376 345H269", 322, 370),
    (R, F): Way("M472 185L620 325", 540, 220),
    (P, F): Way("M484 345H591", 538, 370),
    (W, JobState.FINISHED): Way("M215 145C215 55 850 55 850 145", 532, 68),
    (R, JobState.FINISHED): Way("M484 160H796", 580, 150),
    (P, JobState.FINISHED): Way("M484 333L796 179", 654, 253),
    (F, JobState.FINISHED): Way("M665 325L830 185", 755, 258),
}
CANCELLABLE, CANCELLED = (148, 102, 566, 296), Way("M714 345H796", 753, 334)
"""The frame around the states that jobs can be cancelled in, and the one arrow that leaves it."""

PACKAGES: Mapping[str, tuple[int, int, str]] = {
    "runs": (2, 0, "submit, execute, leases"),
    "grids": (0, 1, "parameter combinations"),
    "hosting": (1, 1, "uploads, retention"),
    "farm": (2, 1, "the farm file, machines"),
    "requests": (1, 2, "jobs from files and HTTP"),
    "evaluating": (2, 2, "timing bundles"),
    "reports": (0, 3, "from the store"),
    "devices": (1, 3, "what a machine has"),
    "bank": (3, 3, "records of all runs"),
    "kinds": (1, 4, "models, kernels, mocks"),
    "finishing": (1, 5, "contests and verdicts"),
    "bundles": (2, 5, "folders to deploy"),
    "tuning": (1, 6, "lanes and allocation"),
    "reuse": (1, 7, "plans, donors, gifts"),
    "tasks": (1, 8, "progress and outcomes"),
    "conducting": (2, 8, "core, engine, programs"),
    "doctor": (3, 8, "checks of a machine"),
}
"""Column, row and what is in it."""
COLUMN, ROW, WIDE, HIGH = 212.0, 92.0, 192.0, 48.0


def states_diagram() -> str:
    """The legal moves of a job; cancelling is one arrow, from a frame around all unfinished states."""
    shared = {old for old, new in MOVES if new is JobState.CANCELLED}
    assert shared == set(JobState) - set(ENDS), "a job can no longer be cancelled in every state"
    single = {move: reason for move, reason in MOVES.items() if move[1] is not JobState.CANCELLED}
    assert single.keys() == WAYS.keys() and set(STATES) == set(JobState), "a state or move has no place"
    x, y, width, height = CANCELLABLE
    return _picture(
        (910, 405),
        [f'<rect class="group" x="{x}" y="{y}" width="{width}" height="{height}" rx="12"/>'],
        (
            _arrow(WAYS[old, new].path, f"{old or 'start'} to {new}: {why}")
            for (old, new), why in single.items()
        ),
        [_arrow(CANCELLED.path, "every state in the frame to cancelled: cancelled")],
        (_label(way, single[move]) for move, way in WAYS.items()),
        [_label(CANCELLED, "cancelled")],
        ['<circle class="dot" cx="62" cy="165" r="7"/>'],
        (_state(state, *place) for state, place in STATES.items()),
    )


def _state(state: JobState, x: float, y: float) -> str:
    look = "end" if state in ENDS else "box"
    inner = f'<rect class="{look}" x="{x - 51:g}" y="{y - 17:g}" width="102" height="34" rx="14"/>'
    outer = f'<rect class="{look}" x="{x - 54:g}" y="{y - 20:g}" width="108" height="40" rx="17"/>'
    return outer + (inner if state in ENDS else "") + _text("name", x, y + 4.5, state)


def packages_diagram() -> str:
    """Which packages of `app` import which; an import that others imply is left out."""
    imports = children_imported(SOURCE / "app")
    assert imports.keys() == PACKAGES.keys(), f"no place for {imports.keys() ^ PACKAGES.keys()}"
    arrows = sorted((name, other) for name in imports for other in _direct(imports, name))
    return _picture(
        (4 * COLUMN, 9 * ROW - HIGH + 20),
        (_arrow(_import_way(name, other), f"{name} imports {other}") for name, other in arrows),
        (_package(name) for name in PACKAGES),
    )


def _direct(imports: Mapping[str, Set[str]], name: str) -> set[str]:
    """What a package imports and none of its other imports reaches."""
    return {one for one in imports[name] if not any(one in _reached(imports, via) for via in imports[name])}


def _reached(imports: Mapping[str, Set[str]], name: str) -> set[str]:
    return set(imports[name]).union(*(_reached(imports, other) for other in imports[name]))


def _import_way(name: str, other: str) -> str:
    """Down to the next row in a curve; past several rows straight down the column of the imported package."""
    (x, top), (to_x, bottom) = _middle(name), _middle(other)
    top, bottom = top + HIGH / 2, bottom - HIGH / 2
    if x == to_x:
        return f"M{x:g} {top:g}V{bottom:g}"
    if bottom - top > ROW:
        side = WIDE / 2 if to_x > x else -WIDE / 2
        return f"M{x + side:g} {top - HIGH / 2:g}H{to_x:g}V{bottom:g}"
    half = (top + bottom) / 2
    return f"M{x:g} {top:g}C{x:g} {half:g} {to_x:g} {half:g} {to_x:g} {bottom:g}"


def _middle(name: str) -> tuple[float, float]:
    column, row, _ = PACKAGES[name]
    return (column + 0.5) * COLUMN, row * ROW + HIGH / 2 + 10


def _package(name: str) -> str:
    x, y = _middle(name)
    corner = f'x="{x - WIDE / 2:g}" y="{y - HIGH / 2:g}"'
    box = f'<rect class="box" {corner} width="{WIDE:g}" height="{HIGH:g}" rx="6"/>'
    return box + _text("name", x, y - 4, name) + _text("detail", x, y + 14, PACKAGES[name][2])


def _arrow(path: str, title: str) -> str:
    return f'<path class="arrow" d="{path}"><title>{escape(title)}</title></path>'


def _label(way: Way, words: str) -> str:
    """On one line, or on two if it is long."""
    if len(words) < 14:
        return _text("label", way.x, way.y, words)
    _, split = min((abs(n - len(words) / 2), n) for n, sign in enumerate(words) if sign == " ")
    upper, lower = words[:split], words[split + 1 :]
    return _text("label", way.x, way.y - 5, upper) + _text("label", way.x, way.y + 11, lower)


def _text(kind: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


def _picture(size: tuple[float, float], *parts: Iterable[str]) -> str:
    lines = "\n".join(line for part in parts for line in part)
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">\n'
        f"<style>{STYLE}</style>{HEAD}\n{lines}\n</svg>\n"
    )


DIAGRAMS = {"states.svg": states_diagram, "packages.svg": packages_diagram}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the diagrams of the docs.")
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/figures"))
    folder = parser.parse_args().out
    for name, draw in DIAGRAMS.items():
        (folder / name).write_text(draw())


if __name__ == "__main__":
    main()
