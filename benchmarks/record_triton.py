"""All blockings of the Triton matmul of examples/ measured once, as a recording to replay.

    python benchmarks/record_triton.py [--out benchmarks/recordings/matmul_triton_H200.csv.gz] [--seconds 520]

Needs a CUDA GPU, PyTorch and Triton. Processes compile side by side into Triton's cache, and
what is compiled is checked and timed one after the other: 1,280 configurations, of which the
order of blocks is not a part, in nine minutes on 16 cores. A build that takes longer than a
minute has failed. What is not measured when the time is over is left out.
"""

import argparse
import os
import random
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import active_children, get_context
from pathlib import Path

from tuneloom.kernel import TritonKernel
from tuneloom.model import FailureKind
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.recording import Entry, Recording, Row

EXAMPLE = Path(__file__).parents[1] / "examples" / "kernels" / "matmul_triton.py"
OUT = Path(__file__).parent / "recordings" / "matmul_triton_H200.csv.gz"
BLOCKS, DEPTHS, WARPS, STAGES = (32, 64, 128, 256), (16, 32, 64, 128), (2, 4, 8, 16), (1, 2, 3, 4, 5)
KNOBS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_warps", "num_stages", "TRANSPOSED_ORDER")
KERNEL = TritonKernel(str(EXAMPLE), "matmul", output=2, repeats=3, launches=10)
BUILD_S = 60


def rows() -> list[Row]:
    """All configurations, in an order that makes the first ones a fair sample."""
    every: list[Row] = [
        (m, n, k, 8, w, s, 0) for m, n, k, w, s in product(BLOCKS, BLOCKS, DEPTHS, WARPS, STAGES)
    ]
    random.Random(7).shuffle(every)
    return every


def built(row: Row) -> tuple[Row, FailureKind | None, float]:
    """Compile one configuration into Triton's cache: what failed, and how long it took."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(BUILD_S)
    began_s, failure = time.perf_counter(), None
    try:
        KERNEL.build(dict(zip(KNOBS, row, strict=True)))
    except TimeoutError:
        failure = FailureKind.BUILD_TIMEOUT
    except Exception:
        failure = FailureKind.BUILD_ERROR
    finally:
        signal.alarm(0)
    return row, failure, time.perf_counter() - began_s


def _too_long(_number: int, _frame: object) -> None:
    raise TimeoutError


def measured(row: Row, failure: FailureKind | None, build_s: float) -> Entry:
    """Check and time what was compiled."""
    began_s, time_ms = time.perf_counter(), None
    if failure is None:
        try:
            time_ms = sorted(KERNEL.run(dict(zip(KNOBS, row, strict=True))).seconds)[1] * 1e3
        except Exception:
            failure = FailureKind.RUN_ERROR
    return Entry(time_ms, failure, (build_s + time.perf_counter() - began_s) * 1e3)


def recorded(seconds: float) -> dict[Row, Entry]:
    """Everything that can be measured in time."""
    entries: dict[Row, Entry] = {}
    pool = ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 1), mp_context=get_context("spawn"))
    futures = [pool.submit(built, row) for row in rows()]
    try:
        for future in as_completed(futures, timeout=seconds):
            row, failure, build_s = future.result()
            entries[row] = measured(row, failure, build_s)
    except TimeoutError:
        pool.shutdown(wait=False, cancel_futures=True)
    return entries


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seconds", type=float, default=520.0)
    arguments = parser.parse_args()
    entries = recorded(arguments.seconds)
    files.write(Recording("matmul_triton", KNOBS, entries), arguments.out, "csv")
    failed = sum(entry.failure is not None for entry in entries.values())
    print(f"{len(entries)} configurations, {failed} failed: {arguments.out}")
    sys.stdout.flush()
    for process in active_children():  # a build that hangs must not outlive the recording
        process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
