"""`tuneloom tasks|run|evaluate|export|import|zoo`: models, bundles and records without tuning."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tuneloom.app.job_sources import located
from tuneloom.app.models import (
    KnownTask,
    evaluate_bundle,
    export_records,
    import_records,
    list_tasks,
    run_bundle,
)
from tuneloom.cli.tune import shapes_of
from tuneloom.errors import InputError
from tuneloom.tuners.tvm.zoo import zoo_names


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the program."""
    tasks = subparsers.add_parser("tasks", help="show what would be tuned, and what is known already")
    tasks.add_argument("model", metavar="MODEL", help="a model file, or zoo:NAME")
    tasks.add_argument("--target", default="cpu", help="cpu, cuda, or a TVM target in JSON")
    tasks.add_argument(
        "--shape", action="append", default=[], metavar="NAME=1,3,224,224", help="bind an input"
    )
    _add_common(tasks)
    tasks.set_defaults(func=show_tasks)
    _add_bundle_parsers(subparsers)
    _add_record_parsers(subparsers)
    zoo = subparsers.add_parser("zoo", help="list the models that need no file")
    zoo.set_defaults(func=show_zoo)


def _add_bundle_parsers(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    run = subparsers.add_parser("run", help="run a bundle on NumPy files")
    run.add_argument("bundle", type=Path, metavar="BUNDLE")
    run.add_argument(
        "--input", type=Path, nargs="+", required=True, metavar="X.npy", help="one file for each input"
    )
    run.add_argument(
        "--output", type=Path, nargs="+", required=True, metavar="Y.npy", help="one for each output"
    )
    run.set_defaults(func=run_files)
    evaluate = subparsers.add_parser("evaluate", help="time a bundle: median and spread")
    evaluate.add_argument("bundle", type=Path, metavar="BUNDLE")
    evaluate.add_argument("--seconds", type=float, default=3.0, help="how long to time it (default: 3)")
    evaluate.add_argument("--json", action="store_true", help="print JSON, for programs")
    evaluate.set_defaults(func=evaluate_it)


def _add_record_parsers(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    export = subparsers.add_parser("export", help="write a run's records as a stock MetaSchedule database")
    export.add_argument("run", metavar="RUN", help="the run's name, or `last`")
    export.add_argument(
        "--to", nargs=2, required=True, metavar=("FORMAT", "DIR"), help="metaschedule and a folder"
    )
    export.add_argument("--store", help="a store's path or address")
    export.set_defaults(func=export_run)
    importing = subparsers.add_parser("import", help="take a stock MetaSchedule database into the bank")
    importing.add_argument("folder", type=Path, metavar="DIR")
    importing.add_argument("--device", default="cpu", metavar="KEY", help="the device its times come from")
    importing.add_argument("--store", help="a store's path or address")
    importing.set_defaults(func=import_folder)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", help="a store's path or address (default: the one of TUNELOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def show_tasks(options: argparse.Namespace) -> int:
    """Print the tasks of a model."""
    tasks = list_tasks(located(options.model), options.target, shapes_of(options.shape), options.store)
    if options.json:
        print(json.dumps([_task_json(known) for known in tasks], indent=2))
    elif sys.stdout.isatty():
        Console().print(_task_table(tasks))
    else:
        for known in tasks:
            print("\t".join(_task_cells(known)))
    return 0


def _task_json(known: KnownTask) -> dict[str, object]:
    task = asdict(known.task)
    del task["payload"]
    return {**task, "records": known.records, "best_s": known.best_s}


def _task_table(tasks: list[KnownTask]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("kernel", "weight", "GFLOP", "records", "best", "shapes"):
        table.add_column(column, justify="left" if column in ("kernel", "shapes") else "right")
    for known in tasks:
        table.add_row(*_task_cells(known))
    return table


def _task_cells(known: KnownTask) -> tuple[str, ...]:
    task = known.task
    best = f"{known.best_s * 1e3:.3f} ms" if known.best_s else "–"
    return (task.name, str(task.weight), f"{task.gflop:.3f}", str(known.records), best, task.shapes)


def run_files(options: argparse.Namespace) -> int:
    """Run a bundle once."""
    run_bundle(options.bundle, options.input, options.output)
    return 0


def evaluate_it(options: argparse.Namespace) -> int:
    """Time a bundle and print the result."""
    result = evaluate_bundle(options.bundle, options.seconds)
    if options.json:
        print(json.dumps(result))
    else:
        low, high = result["low_s"] * 1e3, result["high_s"] * 1e3
        spread = f"median of {result['runs']}; 10–90 %: {low:.3f}–{high:.3f}"
        print(f"{result['name']}: {result['median_s'] * 1e3:.3f} ms ({spread})")
    return 0


def export_run(options: argparse.Namespace) -> int:
    """Write records for stock MetaSchedule."""
    form, folder = options.to
    if form != "metaschedule":
        raise InputError(f"no format {form!r}; known: 'metaschedule'")
    count = export_records(options.run, Path(folder), options.store)
    print(f"{count} records written to {folder}")
    return 0


def import_folder(options: argparse.Namespace) -> int:
    """Take records from stock MetaSchedule."""
    summary = import_records(options.folder, options.device, options.store)
    print(f"{summary.added} records of {summary.tasks} tasks imported as run {summary.run}")
    for reason, count in summary.skipped.items():
        print(f"  left out: {count} × {reason}")
    return 0


def show_zoo(_options: argparse.Namespace) -> int:
    """Print the zoo."""
    for name in zoo_names():
        print(f"zoo:{name}")
    return 0
