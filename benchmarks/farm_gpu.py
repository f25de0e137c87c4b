"""A GPU through Ray, against the same GPU without: latency of the tuned model and trials a minute.

Usage: python benchmarks/farm_gpu.py [--model zoo:squeezenet] [--trials 48] [--pairs 1] [--out FILE]

The first GPU of this machine (of CUDA_VISIBLE_DEVICES, if that is set) tunes the same model with the
same seed through `engine = "local"` and through `engine = "ray"` in turn. Ray is started here, nothing
is taken from a network. Prints its results as JSON; where there is no GPU, one line.
"""

import json
import sys
import tempfile
from pathlib import Path

from farm_against_local import known_pairs, pair_of, parsed, spec_of, told
from tuneloom.gpus import visible_gpus

OUT = Path(__file__).parent / "results" / "farm_gpu.json"
FARM = """\
engine = "{engine}"

[[devices]]
key = "cuda"
kind = "cuda"
index = 0
"""


def farms_in(folder: Path) -> dict[str, str | None]:
    """A farm file for each engine."""
    files: dict[str, str | None] = {}
    for engine in ("local", "ray"):
        path = folder / f"{engine}.toml"
        path.write_text(FARM.format(engine=engine))
        files[engine] = str(path)
    return files


def main() -> int:
    options = parsed(48, 1, OUT, __doc__)
    gpus = visible_gpus()
    if not gpus:
        print("farm_gpu.py needs an NVIDIA GPU; nvidia-smi shows none", file=sys.stderr)
        return 2
    pairs = known_pairs(options)
    with tempfile.TemporaryDirectory() as folder:
        sides = farms_in(Path(folder))
        for number in range(len(pairs), len(pairs) + options.pairs):
            spec = spec_of(options.model, options.trials, number, target="cuda")
            pairs.append(pair_of(spec, sides, number))
            found = {"device": gpus[0].name, **told(options.model, pairs)}
            options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
