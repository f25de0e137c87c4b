"""Recorded spaces are read from four formats, written to them, and refused when they make no sense."""

import gzip
import json
from pathlib import Path

import pytest

from tuneloom.errors import OutputError, RecordsError
from tuneloom.model import Failure, FailureKind, Measurement, MeasuringRules, SearchOptions
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.recording import Entry, Recording
from tuneloom.tuners.replay.tuner import ReplayTuner, task_of

CSV = """\
block,tile,status,time_ms,eval_cost_ms
16,1,ok,4.0,100
16,2,ok,2.0,100
32,1,compile_error,,50
32,2,ok,1.5,100
"""


def written(tmp_path: Path, text: str, name: str = "space.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_our_csv_is_read(tmp_path: Path) -> None:
    recording = files.read(written(tmp_path, CSV))
    assert recording.knobs == ("block", "tile")
    assert recording.best_ms == 1.5
    assert recording.size == 4
    assert recording.invalid_share == 0.25
    assert recording.failures() == {FailureKind.BUILD_ERROR: 1}
    assert recording.within(0.5) == 2


def test_compressed_files_are_read_whatever_their_name(tmp_path: Path) -> None:
    path = tmp_path / "space.data"
    path.write_bytes(gzip.compress(CSV.encode()))
    assert files.read(path).size == 4


@pytest.mark.parametrize("form", files.FORMATS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_every_format_gives_back_what_was_written(tmp_path: Path, form: str, suffix: str) -> None:
    recording = files.read(written(tmp_path, CSV))
    path = tmp_path / f"copy{suffix}"
    files.write(recording, path, form)
    copy = files.read(path)
    assert copy.knobs == recording.knobs
    times = {row: entry.time_ms for row, entry in recording.entries.items()}
    assert {row: entry.time_ms for row, entry in copy.entries.items()} == times
    assert copy.failures() == recording.failures()


def test_equal_rows_are_counted_once(tmp_path: Path) -> None:
    recording = files.read(written(tmp_path, CSV + "16,1,ok,4.1,100\n"))
    assert recording.repeated == 1
    assert len(recording.entries) == 4


def test_a_row_that_is_valid_and_failed_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="line 6: block=32, tile=1 is recorded twice"):
        files.read(written(tmp_path, CSV + "32,1,ok,4.1,100\n"))


def test_a_time_that_is_no_number_of_seconds_counts_as_a_failure(tmp_path: Path) -> None:
    recording = files.read(written(tmp_path, CSV + "64,1,ok,nan,\n64,2,ok,,\n"))
    assert recording.failures()[FailureKind.RUN_ERROR] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("block,tile\n1,2\n", "column 'status' is missing"),
        ("block,status\n1,ok\n", "column 'time_ms' is missing"),
        ("a,a,status,time_ms\n1,1,ok,1\n", "appears twice"),
        ("status,time_ms\nok,1\n", "no knobs"),
        ("a,status,time_ms\n", "no configurations"),
        ("a,status,time_ms\n1,ok\n", "line 2: 3 fields"),
        ("a,status,time_ms\n1,odd,1\n", "unknown status 'odd'"),
        ("a,status,time_ms\n1,ok,fast\n", "'fast' is not a number"),
        ("a,status,time_ms\n1,run_error,\n", "every recorded configuration failed"),
        ("{", "not JSON"),
        ("{}", "no known kind"),
        ('{"cache": {}}', "tune_params_keys"),
        ('{"cache": {"1": {}}, "tune_params_keys": ["a"]}', "knob 'a' is missing"),
        ('{"Results": []}', "no results"),
        ('{"Results": [{}]}', "result 0: `Configuration`"),
        ('{"Results": [{}], "Metadata": {"TimeUnit": "Weeks"}}', "time unit 'Weeks'"),
        ('{"results": [{}]}', "result 0: `configuration` is missing"),
        (
            '{"results": [{"configuration": {"a": 1}}, {"configuration": {"b": 1}}]}',
            "result 1: its knobs differ",
        ),
    ],
)
def test_files_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecordsError, match=message):
        files.read(written(tmp_path, text))


def test_a_missing_file_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="can't be read"):
        files.read(tmp_path / "none.csv")
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(RecordsError, match="not text"):
        files.read(tmp_path / "raw")


def test_a_cache_that_an_interrupted_run_left_open_is_read(tmp_path: Path) -> None:
    whole = {"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 2.0}}}
    cut = json.dumps(whole)[:-2] + ","
    assert files.read(written(tmp_path, cut)).best_ms == 2.0


def test_failures_of_kernel_tuner_are_known_by_name_and_by_huge_times(tmp_path: Path) -> None:
    cache = {
        "1": {"a": 1, "time": "CompilationFailedConfig"},
        "2": {"a": 2, "time": 1e20},
        "3": {"a": 3, "time": 1.0},
        "4": {"a": 4, "time": "RuntimeFailedConfig", "__error__": "RuntimeFailedConfig"},
    }
    recording = files.read(written(tmp_path, json.dumps({"tune_params_keys": ["a"], "cache": cache})))
    assert recording.failures() == {FailureKind.BUILD_ERROR: 1, FailureKind.RUN_ERROR: 2}


def test_times_of_ktt_are_converted(tmp_path: Path) -> None:
    result = {"Configuration": [{"Name": "a", "Value": 1}], "Status": "Ok", "TotalDuration": 2500.0}
    data = {"Metadata": {"TimeUnit": "Microseconds"}, "Results": [result]}
    assert files.read(written(tmp_path, json.dumps(data))).best_ms == 2.5


def test_the_stress_form_fails_wherever_nothing_was_recorded() -> None:
    entries = {(1, 1): Entry(1.0), (2, 2): Entry(2.0)}
    recording = Recording("part", ("a", "b"), entries)
    assert recording.size == 2
    stressed = recording.stressed()
    assert stressed.size == 4
    assert stressed.invalid_share == 0.5
    assert stressed.at((0, 1)).failure is FailureKind.BUILD_ERROR


def test_an_unknown_format_and_an_unwritable_place_are_refused(tmp_path: Path) -> None:
    recording = files.read(written(tmp_path, CSV))
    with pytest.raises(OutputError, match="no format 'xml'; known: csv"):
        files.write(recording, tmp_path / "x", "xml")
    with pytest.raises(OutputError, match="can't be written"):
        files.write(recording, tmp_path / "none" / "x", "csv")


def test_a_recording_is_a_device_for_the_tuner_protocol(tmp_path: Path) -> None:
    recording = files.read(written(tmp_path, CSV))
    tuner, task, rules = ReplayTuner(), task_of(recording), MeasuringRules()
    search = tuner.open(task, SearchOptions(seed=0, trials=4, batch=4), ())
    outcomes = []
    for candidate in search.select(10):
        built = tuner.build(task, candidate, rules)
        outcomes.append(built if isinstance(built, Failure) else tuner.profile(task, built, rules, None))
    measured = [outcome.best_s for outcome in outcomes if isinstance(outcome, Measurement)]
    assert sorted(measured) == [0.0015, 0.002, 0.004]
    assert [o.kind for o in outcomes if isinstance(o, Failure)] == [FailureKind.BUILD_ERROR]


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(CSV.encode() * 200)
    path = tmp_path / "damaged.csv.gz"
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] if damage == "cut" else whole[:20] + b"\xff" * 30 + whole[50:])
    with pytest.raises(RecordsError, match="can't be read"):
        files.read(path)
