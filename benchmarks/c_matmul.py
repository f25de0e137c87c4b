"""The blocked matmul in C: how long tuning takes, and how much faster it is than its naive form.

    python benchmarks/c_matmul.py --out benchmarks/results/kernel_c_matmul.json

Both forms are compiled with the same flags and timed the same way: the naive one by this process, the tuned
one by workers on the machine's last core. Leave the machine quiet.
"""

import argparse
import json
import tempfile
from pathlib import Path

from tuneloom.kernel import CBuilder, Plan, tune
from tuneloom.model import Budget
from tuneloom.tuners.kernel.description import described
from tuneloom.tuners.kernel.languages.c import CRunner

EXAMPLE = Path(__file__).parents[1] / "examples" / "kernels" / "matmul_c" / "matmul.toml"


def main() -> None:
    """Time the naive form, tune the blocked one, print and keep both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=120)
    parser.add_argument("--seconds", type=float, default=290.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    kernel = described(EXAMPLE).kernel
    build, run = kernel.build, kernel.run
    assert isinstance(build, CBuilder) and isinstance(run, CRunner)
    naive = min(CRunner("matmul_naive", run.arguments)(build({}).payload).seconds)
    budget = Budget(trials=arguments.trials, seconds=arguments.seconds)
    with tempfile.TemporaryDirectory() as folder:
        result = tune(kernel, Plan(budget=budget), store=f"{folder}/store.db")
    found = {
        "naive_ms": naive * 1e3,
        "tuned_ms": result.seconds * 1e3,
        "times_faster": naive / result.seconds,
        "tuning_s": result.elapsed_s,
        "trials": len(result.trials),
        "failures": {kind.value: count for kind, count in result.failures.items()},
        "best": result.best,
    }
    print(json.dumps(found, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
