"""`tuneloom tasks|run|evaluate|zoo`: models and bundles without tuning."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneloom.cli.job_options import add_job_options, fields_named, shapes_of
from tuneloom.cli.parsing import Commands, add_command, count, positive, print_rows, tell

if TYPE_CHECKING:
    from tuneloom.app.bundles.models import KnownTask

TASKS = """\
List the kernels that would be tuned, each once, with its weight (how often the model runs
it), its floating-point operations, its shapes, and the records of earlier runs. Nothing is
measured.

  tuneloom tasks zoo:squeezenet
  tuneloom tasks net.onnx --shape input=1,3,224,224 --json
"""
RUN = """\
Run a bundle once: one NumPy file for each input, in the model's order, and one for each
output. Either all outputs are written or none.

  tuneloom run fast/ --input x.npy --output y.npy
"""
EVALUATE = """\
Time a bundle: the median of many runs and their spread. It runs on as many cores
as it was tuned on.

  tuneloom evaluate fast/
  tuneloom evaluate fast/ --seconds 10 --json
  tuneloom evaluate fast/ --against                  (every runtime that is installed)
  tuneloom evaluate fast/ --against onnxruntime      (both in turn; outputs compared)
  tuneloom evaluate fast/ --against torch            (eager and compiled)
"""
ZOO = """\
List the models that can be tuned without a file, as zoo:NAME. Their weights are random.
"""
COLUMNS = ("kernel", "weight", "GFLOP", "records", "best", "shapes")


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    tasks = add_command(subparsers, "tasks", TASKS, show_tasks, store=True, json="print JSON")
    tasks.add_argument("model", metavar="MODEL", help="a model file, or zoo:NAME")
    add_job_options(tasks, fields_named("target", "shapes"))
    _add_bundle_parsers(subparsers)
    add_command(subparsers, "zoo", ZOO, show_zoo, json="print JSON")


def _add_bundle_parsers(subparsers: Commands) -> None:
    run = add_command(subparsers, "run", RUN, run_files)
    run.add_argument("bundle", type=Path, metavar="BUNDLE", help="a folder that `tuneloom tune --out` wrote")
    run.add_argument(
        "--input", type=Path, nargs="+", required=True, metavar="X.npy", help="one file per input"
    )
    run.add_argument(
        "--output", type=Path, nargs="+", required=True, metavar="Y.npy", help="one file per output"
    )
    evaluate = add_command(subparsers, "evaluate", EVALUATE, evaluate_it, json="print JSON")
    evaluate.add_argument(
        "bundle", type=Path, metavar="BUNDLE", help="a folder that `tuneloom tune --out` wrote"
    )
    evaluate.add_argument(
        "--seconds", type=positive, default=3.0, metavar="S", help="how long to measure (default: 3)"
    )
    evaluate.add_argument(
        "--device-cores",
        type=count,
        metavar="N",
        help="number of cores to use (default: as when it was tuned)",
    )
    evaluate.add_argument(
        "--against",
        nargs="?",
        const="best",
        choices=("best", "onnxruntime", "openvino", "tflite", "torch"),
        help="also time the model in another runtime, in turn on the same cores, and compare outputs "
        "(default: the fastest installed one)",
    )
    evaluate.add_argument(
        "--farm", type=Path, metavar="FILE", help="time it on a board of this farm and compare outputs"
    )
    evaluate.add_argument(
        "--device", metavar="KEY", help="key of the board (default: the one it was tuned on)"
    )


def show_tasks(options: argparse.Namespace) -> int:
    """Print the tasks of a model."""
    from tuneloom.app.bundles.models import list_tasks
    from tuneloom.app.requests.job_specs import shape_sets
    from tuneloom.app.requests.sources import located

    sets = shape_sets(shapes_of(options.shapes))
    tasks = list_tasks(located(options.model), options.target or "cpu", sets, options.store)
    if options.json:
        print(json.dumps([_task_json(known) for known in tasks], indent=2))
    else:
        rows = [_task_cells(known) for known in tasks]
        print_rows(COLUMNS, rows, numbers=("weight", "GFLOP", "records", "best"))
    return 0


def _task_json(known: "KnownTask") -> dict[str, object]:
    task = asdict(known.task)
    del task["payload"]
    return {**task, "records": known.records, "best_s": known.best_s}


def _task_cells(known: "KnownTask") -> tuple[str, ...]:
    task = known.task
    best = f"{known.best_s * 1e3:.3f} ms" if known.best_s else "–"
    return (task.name, str(task.weight), f"{task.gflop:.3f}", str(known.records), best, task.shapes)


def run_files(options: argparse.Namespace) -> int:
    """Run a bundle once."""
    from tuneloom.app.bundles.models import run_bundle

    run_bundle(options.bundle, options.input, options.output)
    return 0


def evaluate_it(options: argparse.Namespace) -> int:
    """Time a bundle and print the result."""
    from tuneloom.app.evaluating import evaluate_bundle

    if options.farm is not None:
        return evaluate_there(options)
    if options.against:
        return compare_it(options)
    result = evaluate_bundle(options.bundle, options.seconds, options.device_cores)
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{result['name']}: {result['median_s'] * 1e3:.3f} ms {_spread(result)}{_device(result)}")
    return 0


def _device(result: Mapping[str, Any]) -> str:
    """What the device told of itself, if it did."""
    told, energy_j = result["conditions"], result["energy_j"]
    words = [] if energy_j is None else [f"{energy_j * 1e3:.3g} mJ a run"]
    units = {"core_mhz": "MHz", "temperature_c": "°C", "power_w": "W"}
    words += [f"{told[name]:.0f} {unit}" for name, unit in units.items() if name in told]
    if told.get("other_processes"):
        words.append(f"{told['other_processes']:.0f} other processes on the device")
    if told.get("repeated"):
        words.append(f"throttled, timed {told['repeated']:.0f} times more")
    return "".join(f", {word}" for word in words)


def _spread(found: Mapping[str, Any]) -> str:
    low, high = found["low_s"] * 1e3, found["high_s"] * 1e3
    return f"(median of {found['runs']}; 10–90 %: {low:.3f}–{high:.3f})"


def evaluate_there(options: argparse.Namespace) -> int:
    """Time a bundle on a board and print the result."""
    from tuneloom.app.farm.evaluating import evaluate_on_farm
    from tuneloom.errors import InputError

    if options.against or options.device_cores:
        raise InputError("a board is timed alone; give --farm without --against and --device-cores")
    found = evaluate_on_farm(options.bundle, options.farm, options.seconds, options.device)
    words = f"{found['name']} on {found['device']}: {found['median_s'] * 1e3:.3f} ms {_spread(found)}"
    if found["difference"] is None:
        more = f"its outputs were not compared: {found['uncompared']}"
    else:
        more = f"outputs differ by {found['difference']:.1e} from those of the model's own runtime here"
    return tell(options, found, words, more)


def compare_it(options: argparse.Namespace) -> int:
    """Time a bundle beside its model in other runtimes and print all."""
    from tuneloom.app.evaluating import compare_bundle

    found = compare_bundle(options.bundle, options.against, options.seconds, options.device_cores)
    if options.json:
        print(json.dumps(found))
        return 0
    rows = [("this bundle", found), *((each["name"], each) for each in found["rivals"])]
    width = max(12, *(len(name) for name, _ in rows))
    for name, row in rows:
        told = row["failed"] if "failed" in row else f"{row['median_s'] * 1e3:9.3f} ms  {_spread(row)}"
        print(f"{name:{width}} {told}")
    tf32 = (
        "" if not found["against_name"].startswith("torch") else f"; TF32 {'on' if found['tf32'] else 'off'}"
    )
    print(
        f"{found['name']} takes {found['ratio']:.2f} times the time of {found['against_name']}; "
        f"outputs differ by {found['difference']:.1e}{tf32}"
    )
    return 0


def show_zoo(options: argparse.Namespace) -> int:
    """Print the zoo."""
    from tuneloom.tuners.tvm.zoo.listing import zoo_names

    names = [f"zoo:{name}" for name in zoo_names()]
    return tell(options, names, *names)
