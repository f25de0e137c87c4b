"""The page of what was measured on the VTA accelerator."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import geometric_mean, mean, median
from typing import Any

from kernel_tables import table

Line = dict[str, Any]
Runs = Mapping[str, Mapping[str, list[Line]]]
AUTOTVM = "autotvm"

INTRODUCTION = """\
# Search on the VTA accelerator

Measurements until the best that AutoTVM's own search finds in {budget}, on {accelerator}; medians and
quartiles over seeds. A measurement is one trial, also if it fails to build, except after presampling:
there a candidate that fails to build costs a build and no measurement, as in kernel jobs with `--presample`.
"Device" counts measurements that got past building, "built" points that were only built. "Failed" is the
share of measurements that failed until the goal, and of those on the device. Runs that missed the goal count
as the full budget.

`autotvm` ranks by boosted trees (features are the knobs) and plans 64 points at a time by simulated
annealing; `autotvm+start` builds up to 1000 points first and starts from those, as published; `tuneloom`
is the guided search, `tuneloom+presampled` the same after building a few points, with builds learned from
apart from runs.

Measured by `python benchmarks/vta_search.py`, drawn again with `--report`.
"""


def page(lines: Sequence[Line], searches: Sequence[str], budget: int) -> str:
    """The spaces, a row for each layer and search, and the ratios to AutoTVM's search."""
    layers = _measured_spaces(lines)
    runs: dict[str, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if "fates" in line:
            runs[line["layer"]][line["search"]].append(line)
    present = [name for name in searches if all(runs[layer][name] for layer in layers)]
    parts = [
        INTRODUCTION.format(budget=budget, accelerator=lines[0]["accelerator"]),
        _spaces(list(layers.values())),
        _measurements(runs, present, budget),
        _ratios(runs, present, budget),
    ]
    return "\n".join(parts)


def _measured_spaces(lines: Sequence[Line]) -> dict[str, Line]:
    """Each layer's space, which is measured anew for every few seeds; the time is the median of all."""
    times: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if "points" in line:
            times[line["layer"]].append(line)
    return {
        layer: listed[0] | {"spent_s": median(line["spent_s"] for line in listed)}
        for layer, listed in times.items()
    }


def _spaces(layers: Sequence[Line]) -> str:
    rows = []
    for line in layers:
        kinds = ", ".join(f"{kind} {count}" for kind, count in line["failures"].items())
        rate = line["measured"] / line["spent_s"]
        valid = f"{100 - 100 * line['invalid_share']:.1f} %"
        rows.append((line["layer"], line["points"], valid, kinds, f"{line['best_ms']:.3f}", f"{rate:.0f}"))
    valid_shares = [1 - line["invalid_share"] for line in layers]
    told = f"Valid on average: {100 * mean(valid_shares):.1f} %.\n"
    columns = ("layer", "points", "valid", "failures", "best ms", "built and run a second, one core")
    return table(columns, rows) + "\n" + told


def _measurements(runs: Runs, searches: Sequence[str], budget: int) -> str:
    rows = []
    for layer, by_search in runs.items():
        goal = _goal(by_search)
        for name in searches:
            needed = [_needed(line, goal, budget) for line in by_search[name]]
            low, high = _quartiles(needed)
            spent = f"{median(needed):g} ({low:g} to {high:g})"
            device = median(_device(line, goal, budget) for line in by_search[name])
            built = median(line["builds"] for line in by_search[name])
            failed = f"{100 * _failed(by_search[name], goal, budget):.0f} %"
            failed += f", {100 * _failed_there(by_search[name], goal, budget):.0f} % on the device"
            arrived = sum(_arrived(line, goal) for line in by_search[name])
            rows.append((layer, name, f"{arrived}/{len(needed)}", spent, f"{device:g}", failed, f"{built:g}"))
    return table(("layer", "search", "arrived", "measurements", "device", "failed", "built"), rows)


def _ratios(runs: Runs, searches: Sequence[str], budget: int) -> str:
    told = []
    for name in searches:
        measured, device, failed, there, wide = [], [], [], [], 0
        for by_search in runs.values():
            goal, ours, theirs = _goal(by_search), by_search[name], by_search[AUTOTVM]
            measured.append(_ratio(_needed, ours, theirs, goal, budget))
            device.append(_ratio(_device, ours, theirs, goal, budget))
            failed.append(_failed(ours, goal, budget) / max(_failed(theirs, goal, budget), 1e-9))
            there.append(_failed_there(ours, goal, budget) / max(_failed(theirs, goal, budget), 1e-9))
            wide += _width(ours, goal, budget) < _width(theirs, goal, budget)
        each = ", ".join(f"{ratio:.2f}" for ratio in measured)
        told.append(
            f"- `{name}`: measurements {median(measured):.2f} (median of layers), "
            f"{geometric_mean(measured):.2f} (geometric mean; {each}); device {median(device):.2f}; "
            f"share of failures {median(failed):.2f}, on the device {median(there):.2f} of all of AutoTVM's; "
            f"quartiles closer on {wide} of {len(measured)} layers"
        )
    return "Relative to `autotvm`:\n\n" + "\n".join(told) + "\n"


def _ratio(count: Any, ours: Sequence[Line], theirs: Sequence[Line], goal: float, budget: int) -> float:
    one, other = (median(count(line, goal, budget) for line in lines) for lines in (ours, theirs))
    return float(max(one, 1) / max(other, 1))


def _goal(by_search: Mapping[str, Sequence[Line]]) -> float:
    return float(min(line["bests"][-1][1] for line in by_search[AUTOTVM] if line["bests"]))


def _arrived(line: Line, goal: float) -> bool:
    return bool(line["bests"]) and line["bests"][-1][1] <= goal


def _needed(line: Line, goal: float, budget: int) -> int:
    return next((number for number, best in line["bests"] if best <= goal), budget)


def _until(line: Line, goal: float, budget: int) -> str:
    return str(line["fates"][: _needed(line, goal, budget)])


def _device(line: Line, goal: float, budget: int) -> int:
    fates = _until(line, goal, budget)
    return len(fates) - fates.count("b")


def _failed(lines: Sequence[Line], goal: float, budget: int) -> float:
    fates = "".join(_until(line, goal, budget) for line in lines)
    return 1 - fates.count("v") / len(fates)


def _failed_there(lines: Sequence[Line], goal: float, budget: int) -> float:
    fates = "".join(_until(line, goal, budget) for line in lines)
    return fates.count("r") / max(len(fates) - fates.count("b"), 1)


def _quartiles(values: Sequence[int]) -> tuple[int, int]:
    ordered = sorted(values)
    return ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]


def _width(lines: Sequence[Line], goal: float, budget: int) -> int:
    low, high = _quartiles([_needed(line, goal, budget) for line in lines])
    return high - low
