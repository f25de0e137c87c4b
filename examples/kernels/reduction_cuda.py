"""A sum in CUDA C with five knobs, through NVRTC, compared with the vendor's library.

Blocks that are not powers of two break the tree of one variant, and blocks beyond
1024 threads do not start: nobody tells the search.

    python examples/kernels/reduction_cuda.py --trials 120
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.kernel import Array, CudaBuilder, CudaRunner, Kernel, Number, Plan, Space, tune
from tuneloom.model import Budget, MeasuringRules

COUNT, BLOCKS = 1 << 26, 4096
RULES = MeasuringRules(run_timeout_s=60, build_timeout_s=60)
SOURCE = Path(__file__).with_name("reduction.cu").read_text()
SPACE = Space(
    {
        "BLOCK": [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048],
        "GRID": [64, 132, 264, 528, 1056, 2112, 4096],
        "VECTOR": [1, 2, 4],
        "ITEMS": [1, 2, 4, 8, 16],
        "SHUFFLE": [0, 1],
    }
)
ARGUMENTS = (
    Array("float32", (COUNT,), "ones"),
    Array("float32", (BLOCKS,), "zeros", output=True),
    Number("int32", COUNT),
)


class SumRunner(CudaRunner):
    """Judges the sum of the blocks' results, since how many there are is a knob."""

    def _check(self, device: Any) -> None:
        from tuneloom.kernel import WrongResult

        total = float(np.sum(device.download()[1], dtype=np.float64))
        if abs(total - COUNT) > 1e-4 * COUNT:
            raise WrongResult(f"the sum is {total}, not {COUNT}")


def vendor_seconds(launches: int = 50) -> float:
    """The vendor's time for the same sum."""
    import torch

    x = torch.ones(COUNT, device="cuda")
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    x.sum()
    first.record()
    for _ in range(launches):
        x.sum()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / launches


def kernel() -> Kernel:
    """What is tuned."""
    runner = SumRunner(ARGUMENTS, ("GRID",), ("BLOCK",))
    return Kernel("reduction_cuda", SPACE, CudaBuilder(SOURCE, "reduction"), runner)


def main() -> None:
    """Tune and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=120)
    given = parser.parse_args()
    result = tune(kernel(), Plan(budget=Budget(trials=given.trials), measuring=RULES))
    vendor = vendor_seconds()
    gigabytes = 4 * COUNT / 1e9
    print(f"best {result.best}")
    print(f"{result.seconds * 1e6:.1f} us, {gigabytes / result.seconds:.0f} GB/s in {result.elapsed_s:.0f} s")
    print(f"vendor {vendor * 1e6:.1f} us; ours is {vendor / result.seconds:.2f} times as fast")
    print(f"{sum(result.failures.values())} of {len(result.trials)} trials failed: {dict(result.failures)}")


if __name__ == "__main__":
    main()
