"""`tuneloom simulate` as a user types it."""

import argparse
import json
from pathlib import Path

import pytest

from tuneloom.cli.lab.simulate import add_parser, parse_stages
from tuneloom.errors import InputError

README = "--stages select=22,build=8.3,profile=39.5,update=22 --jobs 4 --hosts 1 --devices 1 --policy all"


def call(text: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["simulate", *text.split()])
    code: int = arguments.func(arguments)
    return code


def test_table_compares_all_policies_with_the_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(README) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("policy")
    assert [row.split()[0] for row in lines[1:5]] == [
        "load-aware",
        "interleaved",
        "sequential",
        "synchronous",
    ]
    assert lines[5] == "lower bound 2092.0 s, set by: hosts"
    assert "1.755" in lines[3]


def test_json_tells_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        call("--jobs 2 --rounds 3 --policy load-aware --parts 4 --lanes 2 --arrivals poisson:60 --json") == 0
    )
    report = json.loads(capsys.readouterr().out)
    (policy,) = report["policies"]
    assert policy["ratio_to_bound"] >= 1.0
    assert {use["name"] for use in policy["resources"]} == {"host-1", "device-1"}
    assert set(policy["completed_s"]) == {"job-1", "job-2"}


def test_recorded_times_replace_the_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"job": "a", "kind": "select", "seconds": 2}\n{"job": "a", "kind": "profile", "seconds": 3}\n'
    )
    assert call(f"--recorded {path} --policy sequential --json") == 0
    assert json.loads(capsys.readouterr().out)["policies"][0]["makespan_s"] == 5.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--stages bake=3", "can't read 'bake=3'; write KIND=SECONDS with KIND one of select"),
        ("--stages select", "can't read 'select'"),
        ("--stages select=soon", "needs a number of seconds, got 'soon'"),
        ("--stages select=-1", "can't take -1 s"),
        ("--stages select=1,select=2", "given twice"),
        ("--arrivals sometimes", "can't read 'sometimes'"),
        ("--arrivals poisson:never", "can't read 'poisson:never'"),
        ("--arrivals poisson:0", "can't read 'poisson:0'"),
        ("--policy fifo", "no policy named 'fifo'; known: 'load-aware'"),
        ("--recorded nowhere.jsonl", "can't read the recording 'nowhere.jsonl'"),
    ],
)
def test_bad_input_is_named_with_its_remedy(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(text)


def test_recorded_stage_wider_than_the_hosts_says_what_to_give(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"job": "a", "kind": "select", "seconds": 2, "slots": 4}\n')
    with pytest.raises(InputError, match="give --slots 4 or more"):
        call(f"--recorded {path}")


def test_stages_are_read_with_spaces() -> None:
    assert parse_stages("select=1, build=2.5") == {"select": 1.0, "build": 2.5}
