"""How near networks come to what the machine can do: the share of its measured peak that each reaches.

    python benchmarks/roofline.py [--again] [--results against_onnxruntime.json]

Measures what one core does at best, with two loops in C: multiply-adds in registers, and a sum of two vectors
that are read and written, in buffers of several sizes. Then takes the kernels of networks that
`against_onnxruntime.py` measured on the same kind of CPU. A kernel can't be faster than its operations at the
peak, or than moving its inputs and outputs once at the rate of a buffer of that size; the sum of these bounds
over the time of the network is its share. With --again, shares are computed from peaks measured before.
Kernels keep their algorithm: a Winograd convolution is bounded by the operations that it makes.

Writes benchmarks/results/roofline.json.
"""

import argparse
import ctypes
import json
import math
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from against_onnxruntime import machine

FOLDER = Path(__file__).parent / "results"
RESULTS = FOLDER / "roofline.json"
SIZES = (1 << 15, 1 << 18, 1 << 20, 1 << 23, 1 << 27)
"""Bytes of all buffers together: caches of different levels, and memory."""
SECONDS, ROUND_S = 3.0, 2e-3
_BYTES = 4.0
_SOURCE = """
typedef float vector __attribute__((vector_size(WIDTH)));
float peak(long rounds) {
  vector sums[12], a, b;
  for (int i = 0; i < WIDTH / 4; ++i) a[i] = 1.0000001f, b[i] = 1e-9f;
  for (int n = 0; n < 12; ++n) sums[n] = a;
  for (long r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int n = 0; n < 12; ++n) {
      sums[n] += a * b;
      __asm__ volatile("" : "+REGISTER"(a));  // a product that is not known, so no compiler leaves it out
    }
  }
  for (int n = 1; n < 12; ++n) sums[0] += sums[n];
  return sums[0][0];
}
void triad(float *restrict to, const float *one, const float *other, long count, long rounds) {
  for (long r = 0; r < rounds; ++r) {
    for (long i = 0; i < count; ++i) to[i] = one[i] + 1.5f * other[i];
    __asm__ volatile("" ::: "memory");
  }
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--again", action="store_true", help="measure nothing")
    parser.add_argument("--results", default="against_onnxruntime.json")
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if options.again else measured()
    rows = json.loads((FOLDER / options.results).read_text())
    most = max(row["trials"] for row in rows if row["cores"] == 1)
    asked = [row for row in rows if (row["cores"], row["trials"], row["cpu"]) == (1, most, found["cpu"])]
    found["networks"] = sorted((network(row, found) for row in asked), key=lambda one: -one["share"])
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def measured() -> dict[str, Any]:
    """What one core of this machine does at best; the best of many short rounds, since others may disturb."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        width = 64 if "avx512f" in Path("/proc/cpuinfo").read_text() else 32 if _is_x86() else 16
        source, library = Path(folder) / "peak.c", Path(folder) / "peak.so"
        register = "x" if _is_x86() else "w"
        source.write_text(_SOURCE.replace("WIDTH", str(width)).replace("REGISTER", register))
        flags = ("-O3", "-march=native", "-ffast-math", "-funroll-loops", "-shared", "-fPIC")
        subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.peak.argtypes, loaded.peak.restype = [ctypes.c_long], ctypes.c_float
    flop = 2 * 12 * width / 4
    gflops = best_rate(loaded.peak, flop) / 1e9
    return {"cpu": machine()["cpu"], "gflops": gflops, "gb_s": [[n, _gb_s(loaded, n)] for n in SIZES]}


def _is_x86() -> bool:
    return os.uname().machine == "x86_64"


def _gb_s(loaded: Any, size: int) -> float:
    count = size // 12
    buffers = [(ctypes.c_float * count)() for _ in range(3)]
    return (
        best_rate(lambda rounds: loaded.triad(*buffers, ctypes.c_long(count), ctypes.c_long(rounds)), size)
        / 1e9
    )


def best_rate(run: Callable[[int], object], each: float) -> float:
    """The most of something in a second, `each` in a round."""
    rounds, took_s = 1, 0.0
    while took_s < ROUND_S:
        rounds *= 2
        took_s = _took_s(run, rounds)
    until, best_s = time.perf_counter() + SECONDS, math.inf
    while time.perf_counter() < until:
        best_s = min(best_s, _took_s(run, rounds))
    return each * rounds / best_s


def _took_s(run: Callable[[int], object], rounds: int) -> float:
    started = time.perf_counter()
    run(rounds)
    return time.perf_counter() - started


def network(row: Mapping[str, Any], peaks: Mapping[str, Any]) -> dict[str, Any]:
    """A network's rate, and how much of its time the machine needs at least."""
    kernels = row["kernels"]
    gflop = sum(kernel["gflops"] * kernel["total_s"] for kernel in kernels)
    bounds = [bound_s(kernel, peaks) for kernel in kernels]
    return {
        "model": row["model"],
        "ms": 1e3 * row["ours_s"],
        "gflop_s": gflop / row["ours_s"],
        "of_peak": gflop / row["ours_s"] / peaks["gflops"],
        "share": sum(map(max, bounds)) / row["ours_s"],
        "bound_by_memory": sum(memory for compute, memory in bounds if memory > compute)
        / sum(map(max, bounds)),
    }


def bound_s(kernel: Mapping[str, Any], peaks: Mapping[str, Any]) -> tuple[float, float]:
    """What a kernel's operations and its tensors take at least, all its calls together."""
    moved = _BYTES * sum(math.prod(map(int, shape)) for shape in shapes_of(kernel["shapes"]))
    compute_s = kernel["gflops"] * kernel["total_s"] / peaks["gflops"]
    return compute_s, kernel["calls"] * moved / rate_for(moved, peaks["gb_s"]) / 1e9


def shapes_of(text: str) -> list[list[str]]:
    """The shapes in words such as `1×3×8, 4×3 → 1×4`; a scalar has none."""
    return [re.findall(r"\d+", part) for part in re.split("[,→]", text)]


def rate_for(moved: float, gb_s: Sequence[Sequence[float]]) -> float:
    """GB/s of the smallest buffers that hold so much."""
    return next((rate for size, rate in gb_s if moved <= size), gb_s[-1][1])


if __name__ == "__main__":
    main()
