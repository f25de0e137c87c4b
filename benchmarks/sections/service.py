"""Tuning as a service."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sections.drawing import Rows, Section, each_alone, flat, one_row


def soaked(data: Mapping[str, Any]) -> str:
    """What came of a long run, and its curves."""
    told = {name: value or "none" for name, value in data.items() if name not in ("samples", "seed")}
    return f"{one_row(told)}\n\n![Memory, disk and latency](../figures/benchmarks/soak.svg)"


def summed(rows: Rows) -> str:
    """All seeds together."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update({name: value for name, value in row.items() if name not in ("seed", "seconds")})
    return one_row({"seeds": len(rows), **total})


SECTIONS = (
    Section(
        results="soak.json",
        title="A service over a longer time",
        about="One server and three executors on PostgreSQL, with mock jobs and a small real network. Every "
        "minute a process is killed; once the disk is full for half a minute, twice the database restarts. "
        "Nothing may be lost or doubled. Trends are medians of the last quarter over those of the second.",
        command="benchmarks/soak.py",
        draw=soaked,
    ),
    Section(
        results="service_shares.json",
        title="Shares of tenants",
        about="A hundred jobs of ten tenants, whose numbers of jobs are unrelated to their weights, on one "
        "executor and on two. `real`: executors as processes, with mock stages that sleep and a device that "
        "is always wanted. `simulated` (`service_shares_simulated.py`): the same claims and the same "
        "scheduler in simulated time, with long stages of unequal length. `worst` is how far the device time "
        "of a tenant is from what its weight gives it; at most 0.05 is wanted.",
        command="benchmarks/service_shares.py",
        draw=flat,
    ),
    Section(
        results="service_kills.json",
        title="A service that is killed",
        about="Server and executors killed at random moments while a client submits jobs with idempotency "
        "keys. Nothing may be lost or doubled, and everything has to end. `start_s` is what an executor "
        "takes from its start to its first trial; processes live three times as long on average, "
        "exponentially distributed. `waited_s` is the time after the last kill until all jobs had ended.",
        command="benchmarks/service_kills.py",
        draw=flat,
    ),
    Section(
        results="service_executor.json",
        title="What holding runs costs an executor",
        about="Transactions a second of an executor that holds 25 runs, before and after it began to write "
        "about all of them at once. Two trials a second are committed one by one.",
        command="benchmarks/service_executor.py",
        draw=flat,
    ),
    Section(
        results="service_overhead.json",
        title="What the service costs a job",
        about="`tuneloom tune MODEL --server URL` against `tuneloom tune MODEL`, in turn, from the start of "
        "the command to its end. `mock` has stages of known lengths, `network` is compiled and measured. "
        "Medians; at most 1.03 is wanted.",
        command="benchmarks/service_overhead.py",
        draw=lambda data: flat(data["cases"]),
    ),
    Section(
        results="service_load.json",
        title="A server under load",
        about="Submitting a small job while an executor tunes (SQLite), listing 50 of many jobs (PostgreSQL),"
        " and trials a second of a job with and without listeners to its events. Wanted: a median of 50 ms "
        "and 99 % below 300 ms, a median of 50 ms, and a ratio of at least 0.98. `machine` says what else was"
        " running on the two cores.",
        command="benchmarks/service_load.py",
        draw=each_alone,
    ),
    Section(
        results="service_hostile.json",
        title="Hostile requests",
        about="Wrong tokens, ids of other tenants, path tricks, odd numbers and bodies, wrong types, bombs, "
        "torn uploads and raw bytes against a server that listens.",
        command="benchmarks/service_hostile.py",
        draw=flat,
    ),
    Section(
        results="hostile_files.json",
        title="Hostile files",
        about="ONNX, TensorFlow Lite and PyTorch files made wrong in their structure or their bytes, opened "
        "as jobs open them. `died`: the file ended its worker, which is what a worker is for. `failed`: "
        "an internal error, or more than one line; none is wanted. `accepted` and `refused` count uploads to "
        "a server. On x86 without LiteRT, on ARM with it.",
        command="benchmarks/hostile_files.py",
        draw=summed,
    ),
)
