"""What one proposal of the guided search costs: processor time of proposing and learning.

    python benchmarks/kernel_proposals.py

Spaces of 100,000 and of 10**12 points, with few failures and with many; linear algebra on
one thread, as in the workers that searches run in.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from threadpoolctl import threadpool_limits

from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.guided import GuidedSearch
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.kernel.space import Space

RESULTS = Path(__file__).parent / "results" / "kernel_proposals.json"
SPACES = {
    "100,000 points": Space({f"k{i}": range(1, 11) for i in range(5)}),
    "10^12 points": Space({f"k{i}": range(1, 11) for i in range(12)}, where=["k0 * k1 <= 40"]),
}
FATES: dict[str, Callable[[Point], bool]] = {
    "nothing fails": lambda point: False,
    "most fail": lambda point: point[0] + point[1] + point[2] > 8,
}


@threadpool_limits.wrap(limits=1, user_api="blas")
def course(space: Space, fails: Callable[[Point], bool], trials: int) -> list[float]:
    """Milliseconds of each proposal, its result learned."""
    search, spent = GuidedSearch(space, Terms(0, trials=trials)), []
    for _ in range(trials):
        began = time.process_time()
        point = search.propose(1)[0]
        search.learn(point, None if fails(point) else 1.0 + sum(abs(i - 4) for i in point))
        spent.append(1e3 * (time.process_time() - began))
    return spent


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = []
    for size, space in SPACES.items():
        for fate, fails in FATES.items():
            spent = course(space, fails, arguments.trials)
            row = {"space": size, "failures": fate, "proposals": len(spent)}
            rows.append(row | {"median ms": median(spent), "last 20 ms": median(spent[-20:])})
            print(rows[-1], flush=True)
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
