"""Where PyTorch computes convolutions in TF32 on a GPU, and whether Tuneloom does so in the same places.

    python benchmarks/gpu_tf32.py SAMPLES [--seeds 1 2 3] [--count 40] [--seconds 170] [--out FILE] [--again]

Every convolution of GraphNet's graphs (see `graphnet/run.py`) is computed with TF32 allowed, with it
forbidden, and in double precision, and timed with CUDA graphs. One whose error grows when TF32 is allowed
uses it. With --again nothing is measured: the rows of --out are compared with the rule of today.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphnet import samples
from sections.transforms import tf32

RESULTS = Path(__file__).parent / "results" / "gpu_tf32.jsonl"
_NAMES = ("image", "filters", "strides", "padding", "dilation", "turned", "more", "groups")
_RUNS, _TURNS = 10, 5


def main() -> None:
    parser = samples.asking(__doc__)
    parser.add_argument("--seconds", type=float, default=170.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="compare rows that are there")
    options = parser.parse_args()
    if not options.again:
        measure(options)
    print(tf32([json.loads(line) for line in options.out.read_text().splitlines()]))


def measure(options: Any) -> None:
    warnings.simplefilter("ignore")
    ends, known = time.monotonic() + options.seconds, set[str]()
    with torch.no_grad(), options.out.open("w") as file:
        for path in samples.picked(options):
            if time.monotonic() > ends:
                break
            for text in convolutions_of(path) - known:
                known.add(text)
                file.write(json.dumps(measured(json.loads(text))) + "\n")


class Convolutions(TorchDispatchMode):  # type: ignore[misc]
    """Notes the convolutions that a module computes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "convolution" in str(operator):
            image, filters, _, *more = args
            values = (list(image.shape), list(filters.shape), *more[: len(_NAMES) - 2])
            self.found.add(json.dumps(dict(zip(_NAMES, values, strict=True))))
        return operator(*args, **(kwargs or {}))


def convolutions_of(path: Path) -> set[str]:
    noting = Convolutions()
    try:
        model, inputs = samples.opened(path, device="cuda")
        with noting:
            model(*inputs)
    except Exception as error:
        print(f"{samples.title(path)}: {str(error)[:100]}", file=sys.stderr)
    return noting.found


def measured(one: dict[str, Any]) -> dict[str, Any]:
    """Relative error and milliseconds of a convolution with and without TF32."""
    image, filters = (torch.randn(one[name], device="cuda") for name in _NAMES[:2])
    rest = [one[name] for name in _NAMES[2:]]
    wanted = torch.ops.aten.convolution(image.double(), filters.double(), None, *rest)
    row: dict[str, Any] = dict(one)
    for precision in ("ieee", "tf32"):
        torch.backends.cudnn.conv.fp32_precision = precision
        found = torch.ops.aten.convolution(image, filters, None, *rest)
        row[precision] = {
            "error": float((found - wanted).norm() / wanted.norm()),
            "ms": timed(lambda: torch.ops.aten.convolution(image, filters, None, *rest)),
        }
    return row


def timed(run: Callable[[], Any]) -> float:
    for _ in range(3):
        run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_RUNS):
            run()
    times = []
    for _ in range(_TURNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / _RUNS)
    return float(min(times))


if __name__ == "__main__":
    main()
