"""Banks as files, for colleagues: JSON lines, every line for itself, nothing that could run.

The first line names the format. A `workload` line says what a kernel is; a `record` line
has its schedule as text and its times. Records stand behind their workload.
"""

import base64
import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.errors import OutputError, RecordsError
from tuneloom.model import Candidate, Measurement, Task, Trial
from tuneloom.store import (
    KeptTrial,
    Provenance,
    RunStatus,
    Store,
    TrialRecord,
    WorkloadRecord,
    open_existing,
    open_store,
)
from tuneloom.transfer import DoesNotFit, form_of

FORMAT, VERSION = "tuneloom-bank", 1
_LARGEST_PAYLOAD = 64 << 20
_MANY = 100_000
_AT_ONCE = 5_000
"""Records written at once: whoever else writes waits meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankImport:
    """What came of an import: new records, their workloads, and lines left out by reason."""

    run: str
    added: int
    workloads: int
    skipped: dict[str, int]


def export_bank(path: Path, place: str | None = None, family: str | None = None) -> int:
    """Write all measured records to a file; returns how many. Raises OutputError if it can't be written."""
    goal = path.absolute()  # a path such as `.` has no name
    unfinished = goal.with_name(f".{goal.name}.unfinished")
    try:
        with open_existing(place) as store, unfinished.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"format": FORMAT, "version": VERSION}) + "\n")
            count = 0
            for line in _lines(store, family):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
                count += "record" in line
        unfinished.replace(goal)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise OutputError(f"can't write {path}: {error.strerror}; choose another place") from error
    return count


def _lines(store: Store, family: str | None) -> Iterator[dict[str, Any]]:
    told: set[str] = set()
    for record in store.all_trials(family):
        if not isinstance(record.trial.outcome, Measurement):
            continue
        if record.task_key not in told:
            workload = store.workload(record.task_key, record.provenance.tvm_version)
            workload = workload or store.workload(record.task_key)
            if workload is None:
                continue
            told.add(record.task_key)
            yield _workload_line(workload)
        yield _record_line(record)


def _workload_line(workload: WorkloadRecord) -> dict[str, Any]:
    return {
        "workload": workload.key,
        "name": workload.name,
        "class": workload.kernel_class,
        "shapes": workload.shapes,
        "gflop": workload.gflop,
        "family": workload.family,
        "target": workload.target,
        "tvm": workload.tvm_version,
        "payload": base64.b64encode(zlib.compress(workload.payload)).decode(),
    }


def _record_line(record: TrialRecord) -> dict[str, Any]:
    outcome = record.trial.outcome
    assert isinstance(outcome, Measurement)
    return {
        "record": record.task_key,
        "candidate": record.trial.candidate.key,
        "origin": record.trial.candidate.origin,
        "trace": record.trial.candidate.configuration,
        "seconds": list(outcome.seconds),
        "target": record.provenance.target,
        "device": record.provenance.device_key,
        "policy": record.provenance.measuring,
        "tvm": record.provenance.tvm_version,
    }


def import_bank(path: Path, place: str | None = None) -> BankImport:
    """Take a colleague's bank in; lines that can't be used are counted by reason.

    Raises RecordsError if the file can't be read or is no bank at all.
    """
    with open_store(place) as store:
        return import_into(store, path, f"bank import {path.name}")


def import_into(store: Store, path: Path, command: str) -> BankImport:
    """The same for an open store; the records belong to a run of this command. `.gz` is compressed."""
    reading = _Reading()
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            _check_head(path, file.readline())
            for line in file:
                reading.take(line)
    except (OSError, EOFError, zlib.error) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise RecordsError(f"can't read {path}: {why}; give a file of `tuneloom bank export`") from error
    return _keep(store, command, reading)


def _check_head(path: Path, line: str) -> None:
    try:
        head = json.loads(line)
        right = head.get("format") == FORMAT
    except (ValueError, AttributeError):
        right = False
    if not right:
        raise RecordsError(f"{path} is not a bank file; `tuneloom bank export` writes one")
    if head.get("version") != VERSION:
        raise RecordsError(
            f"{path} has version {head.get('version')}, this program reads version {VERSION}; upgrade it"
        )


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    workloads: dict[str, WorkloadRecord] = field(default_factory=dict)
    records: dict[tuple[str, Provenance], list[Trial]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)

    def take(self, line: str) -> None:
        """Read one line; a bad one is counted."""
        if not line.strip():
            return
        try:
            content = json.loads(line)
            if "workload" in content:
                workload = _workload(content)
                self.workloads[workload.key] = workload
            else:
                self._record(content)
        except (ValueError, TypeError, KeyError, AttributeError, zlib.error):
            self.skipped["line can't be read"] += 1

    def _record(self, content: dict[str, Any]) -> None:
        workload = self.workloads.get(content["record"])
        trace, seconds = str(content["trace"]), tuple(float(each) for each in content["seconds"])
        if workload is None:
            self.skipped["record without its workload"] += 1
        elif isinstance(form_of(trace), DoesNotFit):
            self.skipped["schedule is no trace"] += 1
        elif not seconds or not all(math.isfinite(each) and each > 0 for each in seconds):
            self.skipped["times make no sense"] += 1
        else:
            candidate = Candidate(
                key=str(content["candidate"]), configuration=trace, origin=str(content["origin"])
            )
            trial = Trial(candidate=candidate, outcome=Measurement(seconds=seconds))
            self.records.setdefault((workload.key, _provenance(content, workload)), []).append(trial)


def _workload(content: dict[str, Any]) -> WorkloadRecord:
    opened = zlib.decompressobj()
    payload = opened.decompress(base64.b64decode(content["payload"], validate=True), _LARGEST_PAYLOAD)
    texts = {name: str(content[name]) for name in ("name", "shapes", "family", "target")}
    if not texts["family"] or not str(content["workload"]):
        raise ValueError("a workload without a key or a family")
    return WorkloadRecord(
        key=str(content["workload"]),
        kernel_class=str(content["class"]),
        gflop=float(content["gflop"]),
        tvm_version=str(content["tvm"]),
        payload=payload,
        **texts,
    )


def _provenance(content: dict[str, Any], workload: WorkloadRecord) -> Provenance:
    return Provenance(
        family=workload.family,
        target=str(content["target"]),
        device_key=str(content["device"]),
        measuring=str(content["policy"]),
        tvm_version=str(content["tvm"]),
    )


def _keep(store: Store, command: str, reading: _Reading) -> BankImport:
    """Write what was read, many records in one transaction: each waits for the disk."""
    run = store.create_run(command).id
    fresh = [trials for trials in _fresh(store, reading) if trials.trials]
    jobs = _jobs_for(store, run, [reading.workloads[each.key] for each in fresh])
    kept = [
        KeptTrial(job=jobs[each.key], task_key=each.key, trial=trial, provenance=each.provenance)
        for each in fresh
        for trial in each.trials
    ]
    added = sum(store.add_all_trials(kept[n : n + _AT_ONCE]) for n in range(0, len(kept), _AT_ONCE))
    store.finish_run(run, RunStatus.FINISHED, f"{added} records imported")
    skipped = {reason: count for reason, count in reading.skipped.items() if count}
    return BankImport(run=run, added=added, workloads=len(jobs), skipped=skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fresh:
    """Trials of a workload, by its key, that the store has not yet."""

    key: str
    provenance: Provenance
    trials: list[Trial]


def _fresh(store: Store, reading: _Reading) -> Iterator[_Fresh]:
    known_of: dict[str, set[str]] = {}
    for (key, provenance), trials in reading.records.items():
        if key not in known_of:
            records = store.workload_trials(key, reading.workloads[key].family, _MANY)
            known_of[key] = {record.trial.candidate.key for record in records}
        known = known_of[key]
        left = [trial for trial in trials if trial.candidate.key not in known]
        reading.skipped["known already"] += len(trials) - len(left)
        known |= {trial.candidate.key for trial in left}
        yield _Fresh(key=key, provenance=provenance, trials=left)


def _jobs_for(store: Store, run: str, workloads: Sequence[WorkloadRecord]) -> dict[str, str]:
    """The job of each workload, by key: those for the same target and TVM version have one together."""
    together: dict[tuple[str, str, str], dict[str, Task]] = {}
    for each in workloads:
        origin = each.family, each.target, each.tvm_version
        together.setdefault(origin, {})[each.key] = _task(each)
    jobs: dict[str, str] = {}
    for number, ((family, target, version), tasks) in enumerate(together.items()):
        job = store.add_job(run, f"bank-{number}").id
        store.add_tasks(job, list(tasks.values()), family=family, target=target, tvm_version=version)
        jobs |= dict.fromkeys(tasks, job)
    return jobs


def _task(workload: WorkloadRecord) -> Task:
    return Task(
        key=workload.key,
        name=workload.name,
        gflop=workload.gflop,
        shapes=workload.shapes,
        kernel_class=workload.kernel_class,
        payload=workload.payload,
    )
