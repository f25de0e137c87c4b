"""Joins the files of lanes of against_onnxruntime.py into one results file, and tells the means.

    python benchmarks/merge_lanes.py LANE.json… --into benchmarks/results/against_onnxruntime_server.json

Of rows for the same network, trials and cores the last one given counts. With --measured-only, rows that a
results file has without any kernels, so without proof of where they come from, are dropped.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

IDENTITY = ("model", "trials", "cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("lanes", nargs="*", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--measured-only", action="store_true")
    options = parser.parse_args()
    files = [path for path in (options.into, *options.lanes) if path.exists()]
    rows = merged(row for path in files for row in json.loads(path.read_text()))
    if options.measured_only:
        rows = [row for row in rows if row["kernels"]]
    options.into.write_text(json.dumps(rows, indent=1) + "\n")
    for kind in sorted({(row["cores"], row["trials"]) for row in rows}):
        print(summary(*kind, [row for row in rows if (row["cores"], row["trials"]) == kind]))


def merged(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every row once, the last of its kind, in an order that depends on nothing else."""
    last = {tuple(row[key] for key in IDENTITY): row for row in rows}
    return [last[key] for key in sorted(last)]


def summary(cores: int, trials: int, rows: list[Mapping[str, Any]]) -> str:
    """The means of the rows of one kind."""
    text = f"{cores} cores, {trials} trials: " + _mean("ratio", rows)
    for key, words in (("chosen_ratio", "with the choice"), ("against_openvino", "against OpenVINO")):
        some = [row for row in rows if key in row]
        text += f"; {words}: {_mean(key, some)}" if some else ""
    return text


def _mean(key: str, rows: list[Mapping[str, Any]]) -> str:
    ratios = [row[key] for row in rows]
    mean = np.exp(np.mean(np.log(ratios)))
    above = sum(ratio > 1.0 for ratio in ratios)
    return f"{mean:.2f} over {len(rows)}, {above} above 1.0, the highest {max(ratios):.2f}"


if __name__ == "__main__":
    main()
