"""A Triton matmul with seven knobs, tuned and compared with the vendor's library.

python examples/kernels/matmul_triton.py --trials 150
"""

import argparse
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from tuneloom.kernel import Kernel, Plan, Space, TritonKernel, tune
from tuneloom.model import Budget, MeasuringRules

SIZE = 4096
RULES = MeasuringRules(build_timeout_s=90, run_timeout_s=60)
SPACE = Space(
    {
        "BLOCK_M": [16, 32, 64, 128, 256],
        "BLOCK_N": [16, 32, 64, 128, 256],
        "BLOCK_K": [16, 32, 64, 128],
        "GROUP_M": [1, 4, 8, 16],
        "num_warps": [2, 4, 8, 16],
        "num_stages": [1, 2, 3, 4, 5],
        "TRANSPOSED_ORDER": [0, 1],
    }
)


@triton.jit
def matmul(
    a,
    b,
    c,
    size,
    BLOCK_M: tl.constexpr,  # noqa: N803
    BLOCK_N: tl.constexpr,  # noqa: N803
    BLOCK_K: tl.constexpr,  # noqa: N803
    GROUP_M: tl.constexpr,  # noqa: N803
    TRANSPOSED_ORDER: tl.constexpr,  # noqa: N803
):
    place = tl.program_id(0)
    rows = tl.cdiv(size, BLOCK_M)
    columns = tl.cdiv(size, BLOCK_N)
    if TRANSPOSED_ORDER:
        row = place % rows
        column = place // rows
    else:
        band = place // (GROUP_M * columns)
        height = tl.minimum(rows - band * GROUP_M, GROUP_M)
        row = band * GROUP_M + (place % (GROUP_M * columns)) % height
        column = (place % (GROUP_M * columns)) // height
    m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    left = a + m[:, None] * size + k[None, :]
    right = b + k[:, None] * size + n[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(tl.cdiv(size, BLOCK_K)):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BLOCK_K
        right += BLOCK_K * size
    tl.store(c + m[:, None] * size + n[None, :], total.to(tl.float16))


def arguments() -> list[Any]:
    """Two random matrices, room for the product, and the size."""
    torch.manual_seed(0)
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    return [a, b, torch.empty_like(a), SIZE]


def grid(configuration: dict[str, Any]) -> tuple[int]:
    """One program for each block of the product."""
    return (triton.cdiv(SIZE, configuration["BLOCK_M"]) * triton.cdiv(SIZE, configuration["BLOCK_N"]),)


def reference(values: Sequence[Any]) -> Any:
    """What the vendor's library computes."""
    return values[0] @ values[1]


def vendor_seconds(launches: int = 50) -> float:
    """The vendor's time for the same product."""
    a, b, *_ = arguments()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    a @ b
    first.record()
    for _ in range(launches):
        a @ b
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / launches


def kernel() -> Kernel:
    """What is tuned."""
    triton_kernel = TritonKernel(__file__, "matmul", output=2)
    return Kernel("matmul_triton", SPACE, triton_kernel.build, triton_kernel.run)


def main() -> None:
    """Tune and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=150)
    given = parser.parse_args()
    result = tune(kernel(), Plan(budget=Budget(trials=given.trials), measuring=RULES))
    flops, vendor = 2 * SIZE**3, vendor_seconds()
    failed = sum(result.failures.values())
    rate = flops / result.seconds / 1e12
    print(f"best {result.best}")
    print(f"{result.seconds * 1e3:.3f} ms, {rate:.0f} TFLOP/s, found in {result.elapsed_s:.0f} s")
    print(f"vendor {vendor * 1e3:.3f} ms; ours is {vendor / result.seconds:.2f} times as fast")
    print(f"{failed} of {len(result.trials)} trials failed: {dict(result.failures)}")


if __name__ == "__main__":
    main()
