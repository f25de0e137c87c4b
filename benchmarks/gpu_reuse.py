"""What records are worth on a GPU: for the same network, for other networks, and for the energy of a run.

    python benchmarks/gpu_reuse.py [--seconds 15] [--only again energy transfer share] [--out FILE.jsonl]

Needs an NVIDIA GPU, PyTorch, torchvision and Triton. `again`: two networks are tuned from empty stores for so
many seconds, then once more with 12 trials; both bundles are timed in turn within one process, which gives
`ratio`. `energy`: the first of them is tuned for energy, from its store.
`transfer`: a network that no store knows gets 40 trials from nothing, and 40 with the records of another one.
`share`: a network of many similar kernels gets 200 trials from nothing, with sharing and without. `ratio` is
the second bundle's time against the first's there, too.
Each run's line is appended as it comes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import from_nothing  # noqa: F401
from gpu_models import append, commit, require_gpu

RESULTS = Path(__file__).parent / "results" / "gpu_reuse.jsonl"
KNOWN = {"vit_s": "encoder_640", "resnet18": "resnet34"}
"""Networks that are tuned first, and those that get their records."""
SHARED = "resnet50"
"""A network of many kernels that are alike."""
PARTS = ["again", "energy", "transfer", "share"]
AGAIN, FEW, MANY = 12, 40, 200
"""Trials."""
LIMIT_S = 180.0
WARM_UPS, RUNS = 20, 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="seconds of tuning from nothing")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    require_gpu()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs = exported(folder)
        for number, (network, other) in enumerate(KNOWN.items()):
            parts = [part for part in options.only if part != "share" and (part != "energy" or not number)]
            if parts:
                with_records(network, other, programs, folder, parts, options)
        if "share" in options.only:
            sharing(programs[SHARED], folder, options)


def with_records(
    network: str, other: str, programs: dict[str, Path], folder: Path, parts: list[str], options: Any
) -> None:
    """Tune a network from nothing, and what its records are good for."""
    store, first = folder / f"{network}.db", folder / f"{network}.first"
    found = tuned(programs[network], store, trials=1000, seconds=options.seconds, out=first)
    tell(options, "again", "from nothing", found)
    if "again" in parts:
        bundle = folder / f"{network}.again"
        found = tuned(programs[network], store, trials=AGAIN, out=bundle)
        tell(options, "again", "the same network's records", found | {"ratio": in_turn(first, bundle)})
    if "energy" in parts:
        tell(options, "energy", "--goal energy", tuned(programs[network], store, trials=FEW, goal="energy"))
    if "transfer" in parts:
        bundles = [folder / f"{other}.{name}" for name in ("alone", "given")]
        empty = folder / f"{other}.db"
        found = tuned(programs[other], empty, trials=FEW, reuse="off", out=bundles[0])
        tell(options, "transfer", "from nothing", found)
        found = tuned(programs[other], store, trials=FEW, reuse="transfer", out=bundles[1])
        tell(options, "transfer", f"records of {network}", found | {"ratio": in_turn(*bundles)})


def sharing(program: Path, folder: Path, options: Any) -> None:
    """Tune a network of many similar kernels from nothing, with schedules shared among them and without."""
    bundles = [folder / f"{SHARED}.{reuse}" for reuse in ("off", "share")]
    for bundle in bundles:
        reuse = bundle.suffix[1:]
        found = tuned(program, bundle.with_suffix(f".{reuse}.db"), trials=MANY, reuse=reuse, out=bundle)
        found |= {"ratio": in_turn(*bundles)} if reuse == "share" else {}
        tell(options, "share", f"from nothing, --reuse {reuse}", found)


def exported(folder: Path) -> dict[str, Path]:
    """All networks in float16, with batch 1."""
    import torch
    import torchvision

    from gpu.networks import Encoder, Row, made, with_statistics

    torch.manual_seed(0)
    deeper, image = torchvision.models.resnet34(weights=None), (torch.randn(1, 3, 224, 224),)
    with_statistics(deeper, image)
    networks = {name: made(Row(name, "float16", 1)) for name in (*KNOWN, SHARED)}
    networks["encoder_640"] = Encoder(4, 640).eval().half(), (torch.randn(1, 192, 640).half(),)
    networks["resnet34"] = deeper.eval().half(), (image[0].half(),)
    paths = {name: folder / f"{name}.pt2" for name in networks}
    with torch.no_grad():
        for name, (module, inputs) in networks.items():
            torch.export.save(torch.export.export(module, inputs), paths[name])
    return paths


def tuned(program: Path, store: Path, **options: Any) -> dict[str, Any]:
    """Tune a program by the command line, in one layout, and return what came of it."""
    from tuneloom.store import open_existing

    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "tuneloom", "tune", str(program), "--target", "cuda", *words]
    command += ["--layout", "channels_last", "--store", str(store), "--json"]
    started = time.monotonic()
    # PyTorch's times are in another table.
    environment = os.environ | {"TORCH_COMPILE_DISABLE": "1"}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
    took_s = time.monotonic() - started
    with closing(open_existing(str(store))) as known:
        (job,) = known.jobs(known.runs(1)[0].id)
    names = ("trials", "latency_before_s", "latency_after_s", "energy_j")
    return {"network": program.stem, **{name: job.result.get(name) for name in names}, "took_s": took_s}


def in_turn(first: Path, again: Path) -> float:
    """What a run of the second bundle takes, as a multiple of the first's: the median of runs in turn."""
    import numpy as np

    from tuneloom.tuners.tvm.bundles.loading import load_bundle

    timers = []
    for bundle in (load_bundle(first), load_bundle(again)):
        inputs = [np.ones(info.shape, info.dtype) for info in bundle.inputs]
        timers.append(bundle.model.timer(inputs))
    times = [[timer() for timer in timers] for _ in range(WARM_UPS + RUNS)][WARM_UPS:]
    return median(again_s for _, again_s in times) / median(first_s for first_s, _ in times)


def tell(options: Any, what: str, how: str, found: dict[str, Any]) -> None:
    row = {"what": what, "how": how, **found, "commit": commit()}
    append(options.out, row)
    print(row, flush=True)


if __name__ == "__main__":
    main()
