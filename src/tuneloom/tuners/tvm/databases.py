"""Stock MetaSchedule databases, read and written as data.

A database is two files of JSON lines: workloads, and records that point at workloads by
line number. Stock stops at the first torn line; here every line stands for itself, and
what can't be used is counted by its reason.
"""

import base64
import json
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import ms, tvm_ffi
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import OutputError, RecordsError
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.tuners.tvm.lowering.payloads import unpack_kernel
from tuneloom.tuners.tvm.search.sketches import key_of

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"
_FAILED_S = 1e9  # stock writes 1e10 s for a trial that failed
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTask:
    """A workload of a foreign database with its trials on one target."""

    task: Task
    target: str
    family: str
    trials: tuple[Trial, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignDatabase:
    """What a foreign database held: tasks that can be used, and why other lines can't."""

    tasks: tuple[ForeignTask, ...]
    skipped: dict[str, int]
    tvm_version: str


def read_database(folder: str) -> ForeignDatabase | RecordsError:
    """Read what can be read; a folder that holds no database is a value."""
    place = Path(folder)
    for name in (WORKLOADS, RECORDS):
        if not (place / name).is_file():
            return RecordsError(
                f"{place} is not a MetaSchedule database: {name} is missing; give the folder that has it"
            )
    skipped: Counter[str] = Counter()
    modules = [_workload(line, skipped) for line in _lines(place / WORKLOADS)]
    found: dict[tuple[int, str], list[Trial]] = {}
    for line in _lines(place / RECORDS):
        parsed = _record(line, modules, skipped)
        if parsed is not None:
            index, target, trial = parsed
            found.setdefault((index, target), []).append(trial)
    tasks = [_foreign_task(modules[index], target, trials) for (index, target), trials in found.items()]
    return ForeignDatabase(tasks=tuple(tasks), skipped=dict(skipped), tvm_version=str(load_tvm().__version__))


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from (line for line in file if line.strip())


def _workload(line: str, skipped: Counter[str]) -> Any | None:
    """The module of a line, or None, so that later line numbers stay right."""
    try:
        _, encoded = json.loads(line)
        raw = base64.b64decode(encoded)
        return load_tvm().ir.load_json(raw[_LENGTH.size :].decode())
    except Exception:  # torn, or written by another TVM
        skipped["workload can't be read"] += 1
        return None


def _record(line: str, modules: Sequence[Any], skipped: Counter[str]) -> tuple[int, str, Trial] | None:
    try:
        index, (trace, seconds, target, _arguments) = json.loads(line)
        text = json.dumps(trace, separators=(",", ":"))
        candidate = Candidate(key=key_of(text), configuration=text, origin="import")
        times = tuple(float(s) for s in seconds or ())
    except (ValueError, TypeError):
        skipped["record can't be read"] += 1
        return None
    if not 0 <= index < len(modules) or modules[index] is None:
        skipped["record without its workload"] += 1
        return None
    try:
        spec = resolve_target(json.dumps(target))
    except Exception:
        skipped["unknown target"] += 1
        return None
    failed = not times or min(times) <= 0 or min(times) >= _FAILED_S
    outcome = (
        Failure(kind=FailureKind.RUN_ERROR, message="imported") if failed else Measurement(seconds=times)
    )
    return index, spec.text, Trial(candidate=candidate, outcome=outcome)


def _foreign_task(module: Any, target: str, trials: Sequence[Trial]) -> ForeignTask:
    from tuneloom.tuners.tvm.lowering.tasks import task_of

    spec: TargetSpec = resolve_target(target)
    function = module["main"] if "main" in [g.name_hint for g in module.get_global_vars()] else _only(module)
    return ForeignTask(task=task_of(function, spec), target=target, family=spec.family, trials=tuple(trials))


def _only(module: Any) -> Any:
    return module[module.get_global_vars()[0]]


def write_database(folder: str, tasks: Sequence[tuple[Task, str, Sequence[Trial]]]) -> int | OutputError:
    """Write measured trials as a stock database; returns how many records it has."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        if any((place / name).exists() for name in (WORKLOADS, RECORDS)):
            return OutputError(f"{place} already contains a database; choose another folder")
        return _write(place, tasks)
    except OSError as error:
        return OutputError(f"can't write {place}: {error.strerror}; choose another folder with --to")


def _write(place: Path, tasks: Sequence[tuple[Task, str, Sequence[Trial]]]) -> int:
    tvm = load_tvm()
    written = 0
    with (place / WORKLOADS).open("w") as workloads, (place / RECORDS).open("w") as records:
        for index, (task, target, trials) in enumerate(tasks):
            module = unpack_kernel(task.payload).module
            text = tvm.ir.save_json(module).encode()
            encoded = base64.b64encode(_LENGTH.pack(len(text)) + text).decode()
            digest = tvm_ffi.structural_hash(module) & (2**64 - 1)
            workloads.write(json.dumps([str(digest), encoded]) + "\n")
            arguments = [
                ["TENSOR", str(info.dtype), [int(extent) for extent in info.shape]]
                for info in ms.arg_info.ArgInfo.from_entry_func(module, True)
            ]
            for trial in trials:
                if isinstance(trial.outcome, Measurement):
                    body = [json.loads(trial.candidate.configuration), list(trial.outcome.seconds)]
                    records.write(json.dumps([index, [*body, json.loads(target), arguments]]) + "\n")
                    written += 1
    return written
