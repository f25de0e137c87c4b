"""Memory of the whole program while it tunes ResNet-50: the highest sum over all its processes.

    python benchmarks/memory.py [--model resnet50] [--trials 200] [--out FILE]

Proportional set size (shared pages divided among those who share them), twice a second.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

import from_nothing  # noqa: F401


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/memory.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "tuneloom.cli.main", "tune", f"zoo:{options.model}"]
        command += ["--trials", str(options.trials), "--quiet"]
        process = subprocess.Popen(command, env={**os.environ, "TUNELOOM_HOME": home})
        peak, processes = watch(process)
    row = {"model": options.model, "trials": options.trials, "peak_bytes": peak, "processes": processes}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(row) + "\n")
    print(
        f"{options.model}, {options.trials} trials: at most {peak / 2**30:.2f} GiB in {processes} processes"
    )


def watch(process: "subprocess.Popen[bytes]") -> tuple[int, int]:
    """The highest sum seen and how many processes made it, until the program ends."""
    peak, most = 0, 0
    root = psutil.Process(process.pid)
    while process.poll() is None:
        sizes = [size for p in [root, *root.children(recursive=True)] if (size := _size(p))]
        if sum(sizes) > peak:
            peak, most = sum(sizes), len(sizes)
        time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"tuning ended with exit code {process.returncode}")
    return peak, most


def _size(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


if __name__ == "__main__":
    main()
