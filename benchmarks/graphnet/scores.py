"""ES(t), the score of GraphNet: the geometric mean of speed-ups, in which errors count as a slow-down.

At a tolerance t ≤ 0 a graph counts with its speed-up if its outputs are close enough, and with 0.1 if not.
From t = 1 on wrong outputs count as 1, from t = 3 on failures do, too.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

_COMPILERS = ("inductor", "reduce-overhead", "tuneloom")
TOLERANCES = range(-10, 5)
_FAILED = 0.1
_EXPONENTS = {"float16": 3 / 5, "bfloat16": 1.796 / 5, "float32": 5.886 / 5, "float64": 7 / 5}


def allowed(t: int, dtype: str) -> tuple[float, float]:
    """The relative and the absolute difference that a tolerance allows; none for whole numbers."""
    if dtype not in _EXPONENTS:
        return 0.0, 0.0
    exponent = _EXPONENTS[dtype]
    return 10.0 ** (t * exponent), 10.0 ** (t * (exponent if dtype == "float64" else 1))


def least_tolerance(found: Sequence[Any], expected: Sequence[Any]) -> int | None:
    """The least t at which outputs are close enough; None if they are not at any, 0 being the last."""
    import torch

    for t in (t for t in TOLERANCES if t <= 0):
        if all(_close(torch, one, other, t) for one, other in zip(found, expected, strict=True)):
            return t
    return None


def _close(torch: Any, one: Any, other: Any, t: int) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    relative, absolute = allowed(t, str(other.dtype).removeprefix("torch."))
    return bool(torch.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True))


def score(rows: Sequence[Mapping[str, Any]], compiler: str, t: int) -> float:
    """ES(t) of a compiler over the graphs that eager PyTorch runs."""
    speeds = [_speed(row[compiler], row["eager"]["seconds"], t) for row in rows]
    return math.exp(sum(map(math.log, speeds)) / len(speeds))


def _speed(own: Mapping[str, Any], eager_s: float, t: int) -> float:
    if "error" in own:
        return 1.0 if t >= 3 else _FAILED
    if own["tolerance"] is None:
        return 1.0 if t >= 1 else _FAILED
    return float(eager_s / own["seconds"]) if own["tolerance"] <= t else _FAILED


def compilers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those that all rows have: `reduce-overhead`, Inductor with CUDA graphs, is for GPUs."""
    return [name for name in _COMPILERS if all(name in row for row in rows)]


def line(row: Mapping[str, Any]) -> str:
    """What came of one graph, for people."""
    eager = row["eager"]
    if "error" in eager:
        return f"{row['sample']}: {eager['error']}"
    cells = [f"{name} {_cell(row[name], eager['seconds'])}" for name in compilers([row])]
    return f"{row['sample']}: eager {eager['seconds'] * 1e3:.2f} ms, {', '.join(cells)}"


def _cell(own: Mapping[str, Any], eager_s: float) -> str:
    return own.get("error") or f"{eager_s / own['seconds']:.2f} times as fast (t {own['tolerance']})"


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print ES(t) and the median speed-up of all compilers."""
    run = [row for row in rows if "error" not in row["eager"]]
    if not run:
        return
    names = compilers(run)
    print("t".rjust(8), *(name.rjust(16) for name in names))
    for t in TOLERANCES:
        print(f"{t:8}", *(f"{score(run, name, t):16.3f}" for name in names))
    for name in names:
        speeds = [row["eager"]["seconds"] / row[name]["seconds"] for row in run if "seconds" in row[name]]
        right = sum((row[name].get("tolerance") or 0) <= -3 for row in run)
        print(f"{name}: median {median(speeds or [0]):.2f}, {right} of {len(run)} right at t = -3")
