"""GraphNet's own driver with Tuneloom among its compilers; needs a clone of GraphNet on the path.

python benchmarks/graphnet/driver.py --compiler tuneloom --model-path samples/timm/resnet18 --device cpu
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from graph_net_bench import path_utils
from graph_net_bench.torch import test_compiler

sys.path.insert(0, str(Path(__file__).parents[1]))
import tuneloom
from graphnet.samples import GraphNetModel


class TuneloomBackend:
    """Compiles a model for the weights of its first call; `config` has options of `tuneloom.compile`."""

    version = tuneloom.__version__

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = {"mode": "wait", "trials": 60, **config}

    def __call__(self, model: Any) -> Any:
        made: list[Any] = []

        def run(**values: Any) -> Any:
            with torch.no_grad():
                if not made:
                    bound = GraphNetModel(model, values).eval()
                    inputs = [values[name] for name in bound.inputs]
                    made.extend((tuneloom.compile(bound, inputs, **self.config), bound.inputs))
                fast, names = made
                return fast(*(values[name] for name in names))

        return run

    def synchronize(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model-path", required=True, help="the folder of one sample")
    parser.add_argument("--compiler", default="tuneloom")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--warmup", type=int, default=6)
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--log-prompt", default="graph-net-test-compiler-log")
    parser.add_argument("--config", help="options as JSON in base 64")
    parser.set_defaults(allow_list=None, model_path_prefix=None, kernel_time=False)
    test_compiler.compiler_backend_name2class["tuneloom"] = TuneloomBackend
    options = parser.parse_args()
    if not path_utils.is_single_model_dir(options.model_path):  # its loop would start processes without us
        parser.error(f"{options.model_path} is no sample: it lacks graph_net.json or model.py")
    test_compiler.main(args=options)


if __name__ == "__main__":
    main()
