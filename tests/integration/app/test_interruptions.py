"""Kills, Ctrl-C and going on afterwards."""

import os
import select
import signal
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from support.commands import Workplace, ended_afterwards, wait_until
from support.ending import ending
from support.models.onnx_files import write_network
from support.warm import WarmInterpreter
from tuneloom.store import RunStatus, open_store

TRIALS = 16
PATIENCE_S = 300.0
BEGIN = """
import sys
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, JobSpec
budget = Budget(trials=int(sys.argv[1]))
spec = JobSpec(name="net", model=sys.argv[2], tuner="watched", budget=budget, batch=6, out=sys.argv[3])
tune([spec], RunSettings())
"""


def test_kills_at_random_moments_lose_nothing_and_measure_nothing_twice(
    tmp_path: Path, plugged: Callable[..., None], warm: WarmInterpreter
) -> None:
    builds = tmp_path / "builds.txt"
    builds.touch()
    plugged(WATCHED_BUILDS=str(builds), WATCHED_ROUND="0")
    model = write_network(tmp_path / "net.onnx", channels=32)
    place = Workplace(folder=tmp_path, warm=warm)
    (tmp_path / "begin.py").write_text(BEGIN)
    words = ("begin.py", str(TRIALS), str(model), str(tmp_path / "fast"))
    chance, known_at_kill = Random(5), []
    for number, more in enumerate((2, 5, 5)):
        killed = ending(more, signal.SIGKILL, *words, after_s=chance.uniform(0.0, 0.3))
        with ended_afterwards(place.start_python(*killed, WATCHED_ROUND=str(number))) as process:
            _, error = process.communicate()
        assert process.returncode == -signal.SIGKILL, error
        known_at_kill.append(set(place.trials()))
        words = ("resume", "last")
    done = place.run("resume", "last", WATCHED_ROUND="3")
    assert done.returncode == 0, done.stderr
    trials = place.trials()
    assert len(trials) == len(set(trials)) == TRIALS
    for known in known_at_kill:
        assert known <= set(trials)
    later = defaultdict(set)
    for line in builds.read_text().splitlines():
        number, task, key = line.split()
        later[int(number)].add((task, key))
    for number, known in enumerate(known_at_kill, start=1):
        assert not known & later[number]
    assert (tmp_path / "fast" / "model.so").is_file()


def test_control_c_stops_at_once_keeps_everything_and_says_how_to_go_on(place: Workplace) -> None:
    write_network(place.folder / "wide.onnx", channels=32)
    place = replace(place, warm=None)  # its children are counted: they have to be its own
    with ended_afterwards(place.start("tune", "wide.onnx", "--trials", "100000", "--out", "fast")) as process:
        assert wait_until(process, lambda: len(place.trials()) >= 3)
        children = _descendants(process.pid)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
    store = open_store(place.store)
    (run,) = store.runs()
    store.close()
    assert process.returncode == 130, error
    assert error == f"tuneloom: interrupted; everything measured is kept: tuneloom resume {run.id}\n"
    assert run.status is RunStatus.INTERRUPTED and run.trials >= 3
    assert not list(place.folder.glob(".*unfinished")) and not (place.folder / "fast").exists()
    assert children and all(_ended(pid) for pid in children)


def test_control_c_before_the_first_trial_is_answered_as_well(place: Workplace) -> None:
    with ended_afterwards(place.start("tune", "net.onnx", "--trials", "100")) as process:
        assert wait_until(process, lambda: Path(place.store).exists() and bool(_runs(place)))
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, error
    assert error.startswith("tuneloom: interrupted") and error.count("\n") == 1


def test_a_finished_run_is_not_resumed(place: Workplace) -> None:
    assert place.run("tune", "mock:tasks=1,size=4", "--trials", "4").returncode == 0
    done = place.run("resume", "last")
    assert done.returncode == 2 and "is finished" in done.stderr


def test_a_failed_run_without_open_jobs_is_not_resumed(place: Workplace) -> None:
    assert place.run("tune", "mock:tasks=1,size=4,build_error=1", "--trials", "4").returncode in (0, 1)
    done = place.run("resume", "last")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def _runs(place: Workplace) -> list[str]:
    store = open_store(place.store)
    try:
        return [run.id for run in store.runs()]
    finally:
        store.close()


def _descendants(pid: int) -> list[int]:
    """Processes below a process, by /proc."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        path = Path(f"/proc/{waiting.pop()}/task")
        for task in path.iterdir() if path.exists() else ():
            with suppress(OSError):
                waiting += [int(child) for child in (task / "children").read_text().split()]
        found += [child for child in waiting if child not in found]
    return found


def _ended(pid: int) -> bool:
    """Whether a process ends; one that was killed may need a moment."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE_S)[0])
    finally:
        os.close(descriptor)
