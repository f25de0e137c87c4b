"""What one run of a search came to, as one line of a results file."""

import json
from math import inf, isfinite
from pathlib import Path
from typing import Any

from tuneloom.tuners.replay.recording import Entry, Recording
from tuneloom.tuners.replay.study import CHECKPOINTS, arrival

Run = list[Entry]
Line = dict[str, Any]
OURS, CEILING = "tuneloom", "tuneloom, validity known"
RANDOM_START, BLIND = "tuneloom, random start", "tuneloom, random start, no validity"
PRESAMPLED = "tuneloom, presampled"
OPTUNA = "optuna (TPE)"
STRESS = "+stress"
"""What a space is called in which every point of the grid that was not recorded fails."""


def measured(recording: Recording, search: str, seed: int, run: Run) -> Line:
    """The line of a run: when it was within 5 % (None: never), its best, relative, and its failures.

    A best is None at checkpoints that the run did not reach.
    """
    line = {"recording": recording.name, "invalid_share": round(recording.invalid_share, 4)}
    return line | {"search": search, "seed": seed} | told(run, recording.best_ms)


def told(run: Run, best_ms: float) -> Line:
    """What the entries of a run say; `spent_s` is what finding them out took until the run was close."""
    times = [entry.time_ms for entry in run]
    close = arrival(times, best_ms)
    until = run[: int(close)] if close < inf else run
    return {
        "close": int(close) if close < inf else None,
        "best": [_best(times, count, best_ms) for count in CHECKPOINTS],
        "evaluations": len(run),
        "failed": sum(time is None for time in times),
        "failed_until_close": sum(entry.time_ms is None for entry in until),
        "spent_s": round(sum(entry.cost_ms for entry in until) / 1e3, 3),
    }


def _best(times: list[float | None], count: int, best_ms: float) -> float | None:
    best = min((time for time in times[:count] if time is not None), default=inf) / best_ms
    return float(f"{best:.4g}") if len(times) >= count and isfinite(best) else None


def needed(line: Line) -> float:
    """Evaluations until within 5 %, infinite where that never was.

    Failures of the ceiling do not count: its first point is drawn by chance, and where nothing valid
    promises anything it tries what is known to fail, which teaches it nothing.
    """
    if line["close"] is None:
        return inf
    return float(line["close"] - (line["failed_until_close"] if line["search"] == CEILING else 0))


def keep(path: Path, line: Line) -> None:
    """Append a line."""
    with path.open("a") as out:
        out.write(json.dumps(line) + "\n")


def kept(path: Path) -> list[Line]:
    """All lines of a file; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
