"""Mutated model files, imported and lowered by workers as those of users are, some uploaded to a server.

    python benchmarks/hostile_files.py [--files 300] [--seconds S] [--uploads 30] [--seed 1] [--keep FOLDER]

Every file has to end in a model or in one line that says what is wrong. A worker may die or be stopped at
its limits, since that is what it is there for, but not often. An internal error, or more than one line, is
a failure: it is printed, and with --keep its file is kept. A worker opens many files; if one of them ends it,
halves are opened again, down to single files. Uploads go to a server that listens, which has to accept them
or say in one line what is wrong. Programs of PyTorch are read where that is installed. Writes a row to
benchmarks/results/hostile_files.json or --results, one per seed; exits with 1 if something failed.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import tuneloom.tuners.tvm.warmth
from mutations import mutated
from seed_models import seeds
from tuneloom.app.conducting.calling import ends_of
from tuneloom.engine.calls import Call, CallResult, Lost, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.errors import InputError, ServiceError
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models.making.made import MODELS
from tuneloom.tuners.tvm.models.opening import open_model

RESULTS = Path(__file__).parent / "results" / "hostile_files.json"
LIMIT_S, MEMORY = 120.0, 4 << 30
BATCH = 25
_LONGEST = 1000
Verdict = tuple[str, str]
"""How an import ended, and what is wrong with that; nothing if it ended as it should."""


def warm_up() -> None:
    """What the parent of all workers imports, PyTorch too if it is there: that takes longer than a file."""
    tuneloom.tuners.tvm.warmth.warm_up()
    if sys.modules.get("torch", sys) is None:
        del sys.modules["torch"]
    with suppress(ImportError):
        import torch.export  # noqa: F401


def all_opened(paths: Sequence[str]) -> list[Verdict]:
    """Open files as jobs do; runs in a worker."""
    return [_opened(path) for path in paths]


def _opened(path: str) -> Verdict:
    recipe = ModelRecipe(key=path, source=path, shapes={}, target="cpu")
    try:
        told = open_model(recipe)
    except Exception as error:  # what a worker would raise
        return "raised", f"{type(error).__name__}: {error}"
    finally:
        MODELS.forget(recipe)
    if not isinstance(told, InputError):
        return "imported", ""
    text = str(told)
    return "rejected", text if "\n" in text or len(text) > _LONGEST else ""


def verdicts(engine: LocalEngine, paths: Sequence[Path]) -> list[Verdict]:
    """How all of these ended; if one of them ends a worker, each half gets its own, down to single files."""
    (result,) = ends_of(engine, [call(paths)])
    if isinstance(result, Returned):
        found: list[Verdict] = result.value
        return found
    if len(paths) == 1:
        return [_ended(result)]
    half = len(paths) // 2
    return [*verdicts(engine, paths[:half]), *verdicts(engine, paths[half:])]


def _ended(result: CallResult | Lost) -> Verdict:
    kind = type(result).__name__.lower()
    return kind, str(result) if kind == "raised" else ""


def call(paths: Sequence[Path]) -> Call:
    names = [str(path) for path in paths]
    return Call(
        function="hostile_files:all_opened", arguments=(names,), timeout_s=LIMIT_S, memory_bytes=MEMORY
    )


def files(count: int, seed: int, folder: Path) -> Iterator[Path]:
    """Mutated files, each with a name of its own."""
    known = seeds(folder)
    for number in range(count):
        chance = random.Random(f"{seed}.{number}")
        name = chance.choice(list(known))
        path = folder / f"{seed}-{number}-{name}"
        path.write_bytes(mutated(chance, name, known[name]))
        yield path


def uploads(paths: Sequence[Path]) -> Iterator[tuple[Path, Verdict]]:
    """What a server says to these files."""
    from serving import team  # needs what only a server has installed

    with team("sqlite") as made:
        made.serve()
        with made.client() as client:
            for path in paths:
                try:
                    client.upload(path)
                    yield path, ("accepted", "")
                except ServiceError as error:
                    yield path, ("broken", str(error))
                except InputError as error:
                    yield path, ("refused", str(error) if "\n" in str(error) else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="open no more files after these")
    parser.add_argument("--uploads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    here = Path(__file__).parent
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(here), str(here.parent / "tests"), os.environ.get("PYTHONPATH", "")]
    )
    began = time.monotonic()
    counts: Counter[str] = Counter()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, (kind, wrong) in all_verdicts(options, Path(folder)):
            counts[kind] += 1
            failed += bool(wrong)
            if wrong:
                print(f"{path.name}: {wrong[:300]}", flush=True)
            if options.keep is not None and (wrong or kind in ("died", "timedout")):
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{kind}-{path.name}").write_bytes(path.read_bytes())
            path.unlink()
    opened = counts.total() - counts["accepted"] - counts["refused"] - counts["broken"]
    row = {"seed": options.seed, "files": opened, **counts, "failed": failed}
    row["seconds"] = round(time.monotonic() - began)
    known = json.loads(options.results.read_text()) if options.results.exists() else []
    others = [each for each in known if each["seed"] != options.seed]
    options.results.write_text(json.dumps([*others, row], indent=1))
    print(row)
    return int(bool(failed))


def all_verdicts(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Path, Verdict]]:
    engine = LocalEngine("hostile_files:warm_up")
    ends = time.monotonic() + options.seconds
    try:
        made = files(options.files, options.seed, folder)
        while time.monotonic() < ends and (paths := list(islice(made, BATCH))):
            yield from zip(paths, verdicts(engine, paths), strict=True)
    finally:
        engine.close()
    if options.uploads:
        yield from uploads(list(files(options.uploads, options.seed, folder)))


if __name__ == "__main__":
    sys.exit(main())
