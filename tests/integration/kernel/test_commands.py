"""The options of the kernel commands, and what they refuse; the pages' own commands are run elsewhere."""

import argparse
import json
import shlex
from pathlib import Path

import pytest

from support.c_kernel import write_c_kernel
from support.spaces import Recipe, invented
from tuneloom.cli.lab.kernel import add_parser
from tuneloom.errors import InputError, RecordsError
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.opponent import KernelTunerSimulation


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="tuneloom")
    add_parser(parser.add_subparsers())
    options = parser.parse_args(words)
    code: int = options.func(options)
    return code


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the documentation speaks of."""
    monkeypatch.chdir(tmp_path)
    write_c_kernel(tmp_path)
    recording = invented(3, Recipe(sizes=3, choices=1, invalid_share=0.4))
    files.write(recording, tmp_path / "pnpoly.csv.gz", "csv")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "tune conv.toml --init random --search local",
        "tune conv.toml --init default --search random",
        "tune conv.toml --presample --spare 2",
        "replay pnpoly.csv.gz --seeds 2 --init default",
        "replay pnpoly.csv.gz --seeds 2 --stress",
        "replay pnpoly.csv.gz --seeds 2 --compare kernel-tuner --strategies genetic_algorithm pso",
    ],
)
def test_options_go_together(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line)
    if "--compare" in words:
        pytest.importorskip("kernel_tuner")
    assert run("kernel", *words, "--trials", "10") == 0
    assert "best" in capsys.readouterr().out


def test_what_was_tuned_can_be_replayed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in files.FORMATS:
        assert run("kernel", "tune", "conv.toml", "--trials", "9", "--export", "out", "--format", form) == 0
        assert run("kernel", "replay", "out", "--seeds", "2", "--trials", "5") == 0
        out = capsys.readouterr().out
        assert "4 trials written to out" in out
        assert "4 configurations, 0.0% invalid" in out


def test_nothing_is_said_of_trials_that_were_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kernel", "replay", "pnpoly.csv.gz", "--seeds", "1", "--trials", "30", "--json") == 0
    (summary,) = json.loads(capsys.readouterr().out)
    assert summary["best"]["25"] >= 1
    assert [summary["best"][later] for later in ("50", "100", "200")] == [None] * 3


@pytest.mark.parametrize(
    "line", ["tune conv.toml --trials 0", "replay pnpoly.csv.gz --trials 0", "replay pnpoly.csv.gz --seeds 0"]
)
def test_impossible_numbers_are_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("kernel", *shlex.split(line))
    assert ended.value.code == 2
    assert "must be a whole number of at least 1, got '0'" in capsys.readouterr().err


def test_what_makes_no_sense_together_is_refused() -> None:
    with pytest.raises(InputError, match="no strategy 'magic'"):
        words = ("--seeds", "1", "--compare", "kernel-tuner", "--strategies", "magic")
        run("kernel", "replay", "pnpoly.csv.gz", *words)
    with pytest.raises(RecordsError, match="takes one recording"):
        run("kernel", "replay", "pnpoly.csv.gz", "pnpoly.csv.gz", "--export", "x")


def test_kernel_tuner_sees_the_same_space_and_counts_failures() -> None:
    pytest.importorskip("kernel_tuner")
    recording = invented(3, Recipe(sizes=3, choices=1, invalid_share=0.4))
    opponent = KernelTunerSimulation(recording)
    seen = opponent.run("random_sample", 0, 60)
    assert len(seen) == min(60, recording.size)
    assert 0.1 < seen.count(None) / len(seen) < 0.8
    assert seen == opponent.run("random_sample", 0, 60)
