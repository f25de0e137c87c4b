"""Kernels are runs like all others: kept, killed, resumed, reported, and mixed with models."""

import json
import re
import signal
from pathlib import Path

import pytest

from support.commands import Workplace, ended_afterwards
from support.ending import ending
from support.warm import WarmInterpreter
from tuneloom.store import RunStatus, open_store

pytestmark = pytest.mark.integration

SOURCE = """
#include <stdio.h>
static int told = 0;
void twice(const float *x, float *y, int n)
{
    if (!told) {
        FILE *log = fopen("@LOG@", "a");
        fprintf(log, "%d %d\\n", STEP, SHIFT);
        fclose(log);
        told = 1;
    }
#if SHIFT == 3
    *(volatile int *)0 = 1;
#endif
    for (int i = 0; i < n; i += STEP)
        for (int j = 0; j < STEP && i + j < n; j++)
            y[i + j] = (2 + SHIFT) * x[i + j];
}
"""
TOML = """
[kernel]
language = "c"
source = "twice.c"
entry = "twice"
flags = ["-O1"]
[knobs]
STEP = [1, 2, 3, 4, 5, 6, 7, 8]
SHIFT = [0, 1, 2, 3]
[[arguments]]
type = "float32"
shape = [2000]
[[arguments]]
type = "float32"
shape = [2000]
fill = "zeros"
output = true
[[arguments]]
type = "int32"
value = 2000
[tuning]
trials = 18
"""
SCRIPT = """
import sys
from tuneloom.kernel import Space, tune_kernel

def build(configuration):
    return configuration["level"]

def main():
    log = sys.argv[1]
    def noted(level):
        with open(log, "a") as file:
            file.write(f"{level}\\n")
        return 0.1 / level
    result = tune_kernel(Space({"level": range(1, 41)}), build, noted, trials=30, name="levels")
    print(result.best)

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def place(tmp_path: Path, warm: WarmInterpreter) -> Workplace:
    (tmp_path / "twice.c").write_text(SOURCE.replace("@LOG@", str(tmp_path / "ran.txt")))
    (tmp_path / "twice.toml").write_text(TOML)
    return Workplace(folder=tmp_path, warm=warm)


def killed_at(place: Workplace, trials: int, *words: str) -> list[tuple[str, str]]:
    """Let a run be killed once it has so many trials; what it had committed by then."""
    with ended_afterwards(place.start_python(*ending(trials, signal.SIGKILL, *words))) as process:
        _, error = process.communicate()
    assert process.returncode == -signal.SIGKILL, error
    return place.trials()


def test_a_killed_run_goes_on_without_losing_or_repeating_anything(place: Workplace) -> None:
    known = killed_at(place, 6, "kernel", "tune", "twice.toml")
    ran = place.folder / "ran.txt"
    before = ran.read_text().splitlines()
    again = place.run("resume", "last", "--json")
    assert again.returncode == 0, again.stderr
    trials = place.trials()
    assert len(trials) == len(set(trials)) == 18
    assert trials[: len(known)] == known
    assert place.run("report", "last", "-o", "page.html").returncode == 0
    chosen = re.findall(r'data-tip="(trial \d+): ', (place.folder / "page.html").read_text())
    assert set(chosen) == {f"trial {number}" for number in range(1, 19)}  # also those before the kill
    (job,) = json.loads(again.stdout)["jobs"]
    assert job["result"]["trials"] == 18 and job["result"]["best"]["SHIFT"] != 3
    measured = set(before[: len(known) - 2])  # the last few may have run without being committed
    assert not measured & set(ran.read_text().splitlines()[len(before) :])


def test_its_report_shows_stages_failures_and_maps_of_knobs(place: Workplace) -> None:
    done = place.run("kernel", "tune", "twice.toml", "--trials", "20", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "twice: best" in done.stdout and "run_error" in done.stdout
    assert place.run("report", "last", "-o", "page.html").returncode == 0
    page = (place.folder / "page.html").read_text()
    for title in ("Timeline of resources", "Tuning curves", "Failures", "Valid and invalid configurations"):
        assert f"<h2>{title}</h2>" in page
    assert "SHIFT against STEP" in page and "expected to be valid" in page
    assert "effect on the time" in page and "killed by SIGSEGV" in page
    chosen = page[page.index("<h2>What the search chose</h2>") :]
    assert "far from all tried" in chosen and "Gaussian process" in chosen and "\npromised " in chosen
    listed = place.run("runs", "--json")
    assert [run["trials"] for run in json.loads(listed.stdout)] == [20]


def test_control_c_keeps_everything_and_says_how_to_go_on(place: Workplace) -> None:
    words = ending(3, signal.SIGINT, "kernel", "tune", "twice.toml", "--trials", "32")
    with ended_afterwards(place.start_python(*words)) as process:
        _, error = process.communicate()
    store = open_store(place.store)
    (run,) = store.runs()
    store.close()
    assert process.returncode == 130, error
    assert error == f"tuneloom: interrupted; everything measured is kept: tuneloom resume {run.id}\n"
    assert run.status is RunStatus.INTERRUPTED and run.trials >= 3
    exported = place.run("kernel", "export", "last", "part.csv")
    assert exported.returncode == 0 and f"{run.trials} trials written" in exported.stdout
    refused = place.run("export", "last", "--to", "metaschedule", "database")
    assert refused.returncode == 2 and "tuneloom kernel export" in refused.stderr


def test_a_kernel_that_was_changed_meanwhile_is_resumed_as_it_was_submitted(place: Workplace) -> None:
    known = killed_at(place, 2, "kernel", "tune", "twice.toml")
    (place.folder / "twice.c").write_text("this is no C any more")
    again = place.run("resume", "last")
    assert again.returncode == 0, again.stderr
    assert place.trials()[: len(known)] == known


def test_functions_of_a_script_are_resumed_from_the_command_line(place: Workplace) -> None:
    (place.folder / "levels.py").write_text(SCRIPT)
    log = place.folder / "levels.txt"
    known = killed_at(place, 5, "levels.py", str(log))
    kept = place.folder / "home" / "kernels"
    assert len(list(kept.glob("*.kernel"))) == 1
    again = place.run("resume", "last")
    assert again.returncode == 0, again.stderr
    assert "levels: best 2.5 ms with level=40" in again.stdout
    assert place.trials()[: len(known)] == known and len(place.trials()) == 30
    assert not list(kept.iterdir())
    ran = log.read_text().split()
    assert len(ran) - len(set(ran)) <= 2  # only what ran without being committed ran again


def test_a_kernel_stands_in_a_jobs_file_beside_a_model(place: Workplace) -> None:
    (place.folder / "jobs.toml").write_text(
        '[[jobs]]\nmodel = "mock:tasks=2"\ntrials = 12\n[[jobs]]\nmodel = "twice.toml"\ntrials = 6\n'
    )
    done = place.run("tune", "--jobs", "jobs.toml", "--json")
    assert done.returncode == 0, done.stderr
    mock, kernel = json.loads(done.stdout)["jobs"]
    assert (mock["result"]["trials"], kernel["result"]["trials"]) == (12, 6)
    assert kernel["name"] == "twice" and kernel["result"]["best_s"] > 0
    assert kernel["spec"]["tuner"] == "kernel"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("kernel", "tune", "missing.toml"), "missing.toml can't be read"),
        (("kernel", "tune", "twice.toml", "--spare", "-1"), "--spare: must be a whole number of at least 0"),
        (("kernel", "tune", "twice.toml", "--device", "npu"), "no device with key 'npu'"),
        (("kernel", "tune", "twice.toml", "--run-timeout", "0"), "--run-timeout: must be a number above 0"),
        (("tune", "twice.toml", "--out", "fast"), "a kernel job writes no bundle"),
        (("tune", "missing.toml"), "no kernel at"),
        (("kernel", "export", "last", "x.csv"), "no run"),
    ],
)
def test_what_makes_no_sense_is_one_line(place: Workplace, words: tuple[str, ...], message: str) -> None:
    done = place.run(*words)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
