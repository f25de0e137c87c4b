"""Writers that are killed at random moments, and what the store still knows afterwards."""

import os
import signal
import struct
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from support.contracts.store import CONV, HERE, job_with_tasks, measured
from tuneloom.store import KeptTrial, Page, SpanRecord, open_store

NUMBER = struct.Struct("<q")
MOST_ACKNOWLEDGED = 12
LONGEST_SPIN_S = 0.02
AT_ONCE = 3
"""Trials that a writer commits in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillReport:
    """What became of the trials of killed writers.

    `lost` were acknowledged and are gone; `doubled` are there more than once; `skipped`
    are missing although a later one is there; `unacknowledged` were committed, but the
    writer was killed before it could say so.
    """

    kills: int
    acknowledged: int
    kept: int
    lost: int
    doubled: int
    skipped: int
    unacknowledged: int


def kill_writers(place: str | Path, kills: int, seed: int) -> KillReport:
    """Let one writer after another resume a job in a store and kill each with SIGKILL.

    Forks: the caller may hold no open store. Every writer reads what is known, goes on
    with the next number, commits some trials at once, and acknowledges them after the store has taken them.
    """
    chance = Random(seed)
    job = _prepared(place)
    acknowledged: list[int] = []
    for _ in range(kills):
        acknowledged += _one_writer(place, job, chance)
    return _judged(place, job, kills, acknowledged)


def _prepared(place: str | Path) -> str:
    store = open_store(place)
    job = job_with_tasks(store)
    store.close()
    return job


def _one_writer(place: str | Path, job: str, chance: Random) -> list[int]:
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        _write_for_ever(place, job, send)
    os.close(send)
    patience = chance.randint(0, MOST_ACKNOWLEDGED)
    heard = b"".join(os.read(receive, NUMBER.size) for _ in range(patience))
    _spin(chance.uniform(0, LONGEST_SPIN_S))
    os.kill(child, signal.SIGKILL)
    while piece := os.read(receive, 4096):
        heard += piece
    os.close(receive)
    os.waitpid(child, 0)
    return [number for (number,) in NUMBER.iter_unpack(heard)]


def _write_for_ever(place: str | Path, job: str, send: int) -> None:
    try:
        store = open_store(place)
        run = store.job(job).run
        known = store.trials(job, CONV.key)
        number = 1 + max((int(record.trial.candidate.key) for record in known), default=-1)
        while True:
            numbers = range(number, number + AT_ONCE)
            assert store.keep_trials([_kept(job, each) for each in numbers]) == []
            os.write(send, b"".join(NUMBER.pack(each) for each in numbers))
            assert not store.add_trial(job, CONV.key, measured(str(number), 0.5), HERE)
            store.write_pages([Page(run=run, spans=(_span(job, number),))])
            number += AT_ONCE
    finally:
        os._exit(1)


def _kept(job: str, number: int) -> KeptTrial:
    trial = measured(str(number), 1.0 + number)
    return KeptTrial(job=job, task_key=CONV.key, trial=trial, provenance=HERE)


def _span(job: str, number: int) -> SpanRecord:
    return SpanRecord(job=job, task=CONV.key, kind="build", resource="host", start_s=number, end_s=number + 1)


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _judged(place: str | Path, job: str, kills: int, acknowledged: list[int]) -> KillReport:
    store = open_store(place)
    records = store.trials(job, CONV.key)
    store.close()
    there = Counter(
        int(record.trial.candidate.key)
        for record in records
        if record.seconds == 1.0 + int(record.trial.candidate.key)
    )
    return KillReport(
        kills=kills,
        acknowledged=len(acknowledged),
        kept=len(there),
        lost=len(set(acknowledged) - set(there)),
        doubled=len(records) - len(there) + len(acknowledged) - len(set(acknowledged)),
        skipped=max(there, default=-1) + 1 - len(there),
        unacknowledged=len(set(there) - set(acknowledged)),
    )
