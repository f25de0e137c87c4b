"""How many points of each Triton template's space fail to build, although the template did not refuse them.

    python benchmarks/claim_builds.py [--count 12] [--arch sm_90] [--seed 1] [--out FILE.json]

Needs Triton but no GPU. Points are drawn at random from the spaces of kernels of real networks, and of the
test suite where those have none of a template, and compiled one after another. What fails here would be
learned by presampling before trials; it costs a trial no device time either, since candidates are built
first.
"""

import argparse
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tests_on_path  # noqa: F401
from gpu_templates import problems
from support.kernels.cases import CASES
from tuneloom.backends.cuda.triton.claims import TritonClaim
from tuneloom.backends.cuda.triton.implementer import TEMPLATES, TritonImplementer, triton_claim
from tuneloom.model.trial import Failure

RESULTS = Path(__file__).parent / "results" / "claim_builds.json"
KERNELS, DRAWS = 3, 2000
"""Kernels of each template, and the points that are drawn from a space to see how many are refused."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=12, help="builds for a kernel")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    rows = []
    for name, claims in claims_by_template(options.arch).items():
        row = {"template": name, **sampled(claims, options.count, options.seed)}
        rows.append(row)
        print(row, flush=True)
        options.out.write_text(json.dumps({"arch": options.arch, "templates": rows}, indent=1) + "\n")


def claims_by_template(arch: str) -> dict[str, list[TritonClaim]]:
    """Some kernels of each template, real ones first, those far apart in the list."""
    found: dict[str, list[TritonClaim]] = {template.name: [] for template in TEMPLATES}
    for meanings in (problems().values(), (make() for _, make in CASES.values())):
        fresh: dict[str, list[TritonClaim]] = {name: [] for name, claims in found.items() if not claims}
        for meaning in meanings:
            claim = triton_claim(meaning, {"kind": "cuda", "arch": arch})
            if claim is not None and claim.template.name in fresh:
                fresh[claim.template.name].append(claim)
        found |= fresh
    return {name: claims[:: max(1, len(claims) // KERNELS)][:KERNELS] for name, claims in found.items()}


def sampled(claims: list[TritonClaim], count: int, seed: int) -> dict[str, Any]:
    """What became of points of some kernels' spaces."""
    implementer, source = TritonImplementer(), random.Random(seed)
    drawn = refused = built = 0
    failed: Counter[str] = Counter()
    started = time.perf_counter()
    for claim in claims:
        points = [point for _, point in zip(range(DRAWS), points_of(claim, source), strict=False)]
        allowed = [point for point in points if not claim.refusal(point)]
        drawn, refused = drawn + len(points), refused + len(points) - len(allowed)
        for point in list({str(point): point for point in allowed}.values())[:count]:
            made = implementer.build(claim, point)
            built += 1
            if isinstance(made, Failure):
                failed[made.message[:80]] += 1
    took_s = time.perf_counter() - started
    return {
        "kernels": len(claims), "refused": refused / drawn, "built": built, "failed": failed.total(),
        "build_s": took_s / max(built, 1), "why": dict(failed),
    }  # fmt: skip


def points_of(claim: TritonClaim, source: random.Random) -> Iterator[Mapping[str, int]]:
    """Points of a space at random, valid or not."""
    while True:
        yield {name: source.choice(values) for name, values in claim.space.knobs.items()}


if __name__ == "__main__":
    main()
