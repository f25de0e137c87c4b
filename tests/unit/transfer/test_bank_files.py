"""Banks exchanged as files."""

import json
from pathlib import Path

import pytest

from support.samples.traces import tiled_trace
from tuneloom.app.bank.files import export_bank, import_bank
from tuneloom.app.bank.looking import bank_class, bank_stats, prune
from tuneloom.cli.main import main
from tuneloom.errors import InputError, OutputError, RecordsError
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.store import Provenance, RunStatus, open_store

HERE = Provenance(family="llvm-512", target="llvm", device_key="cpu", measuring="r3", tvm_version="0.27")
TASK = Task(
    key="k", name="fused_conv2d", gflop=1.0, shapes="1 → 1", kernel_class="conv2d", payload=b"{}" * 500
)


@pytest.fixture
def place(tmp_path: Path) -> str:
    path = tmp_path / "ours.db"
    store = open_store(path)
    job = store.add_job(store.create_run("tune").id, "job").id
    store.add_tasks(job, [TASK], family=HERE.family, target=HERE.target, tvm_version="0.27")
    for number in range(3):
        candidate = Candidate(key=f"c{number}", configuration=tiled_trace([(4, 2**number)]), origin="search")
        trial = Trial(candidate=candidate, outcome=Measurement(seconds=(0.5 + number, 0.6 + number)))
        store.add_trial(job, TASK.key, trial, HERE)
    failed = Trial(
        candidate=Candidate(key="bad", configuration="{}"), outcome=Failure(kind=FailureKind.RUN_ERROR)
    )
    store.add_trial(job, TASK.key, failed, HERE)
    store.finish_run(store.job(job).run, RunStatus.FINISHED)
    store.close()
    return str(path)


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    return str(tmp_path / "theirs.db")


def test_what_is_exported_comes_back_with_its_provenance(place: str, theirs: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    assert export_bank(path, place) == 3
    done = import_bank(path, theirs)
    assert (done.added, done.workloads, done.skipped) == (3, 1, {})
    store = open_store(theirs)
    records = store.workload_trials("k", "llvm-512", 9)
    assert [record.trial.candidate.key for record in records] == ["c0", "c1", "c2"]
    assert records[0].provenance == HERE
    assert records[0].trial.candidate.configuration == tiled_trace([(4, 1)])
    workload = store.workload("k")
    assert workload is not None and workload.payload == TASK.payload
    store.close()


def test_importing_twice_adds_nothing(place: str, theirs: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    export_bank(path, place)
    import_bank(path, theirs)
    again = import_bank(path, theirs)
    assert (again.added, again.skipped) == (0, {"known already": 3})


def test_bad_lines_are_counted_by_reason_and_stop_nothing(place: str, theirs: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    export_bank(path, place)
    head, workload, *records = path.read_text().splitlines()
    told = json.loads(records[0])
    orphan = json.dumps(told | {"record": "other"})
    backwards = json.dumps(told | {"seconds": [-1.0]})
    endless = json.dumps(told | {"seconds": [float("inf")]})
    code = json.dumps(told | {"trace": "__import__('os').system('true')"})
    lines = [
        head,
        orphan,
        workload,
        records[1][:30],
        backwards,
        endless,
        code,
        "[1, 2]",
        "\x00\xff",
        records[2],
    ]
    path.write_text("\n".join(lines) + "\n")
    done = import_bank(path, theirs)
    assert done.added == 1
    assert done.skipped == {
        "record without its workload": 1,
        "line can't be read": 3,
        "times make no sense": 2,
        "schedule is no trace": 1,
    }


@pytest.mark.parametrize(
    "text", ["", "hello\n", '{"format": "other"}\n', '{"format": "tuneloom-bank"}\n', "[]\n"]
)
def test_a_file_that_is_no_bank_is_refused(text: str, theirs: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_text(text)
    with pytest.raises(RecordsError):
        import_bank(path, theirs)


def test_a_missing_file_and_a_missing_folder_are_named(place: str, tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="nowhere"):
        import_bank(tmp_path / "nowhere", place)
    with pytest.raises(OutputError, match="choose another place"):
        export_bank(tmp_path / "no" / "bank.jsonl", place)


def test_the_best_of_a_class_is_shown_with_its_device(place: str) -> None:
    (known,) = bank_class("conv2d", place)
    assert (known.best_s, known.gflops, known.device_key) == (0.5, 2.0, "cpu")
    with pytest.raises(InputError, match="no class 'dense'; known: conv2d"):
        bank_class("dense", place)


def test_pruning_keeps_the_fastest(place: str) -> None:
    assert prune(1, place) == 3
    assert [(row.measured, row.failed) for row in bank_stats(place)] == [(1, 0)]


def test_the_commands_say_what_they_did(
    place: str, theirs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "bank.jsonl")
    assert main(["bank", "export", path, "--store", place]) == 0
    assert main(["bank", "import", path, "--store", theirs]) == 0
    assert main(["bank", "stats", "--store", theirs, "--json"]) == 0
    assert main(["bank", "show", "conv2d", "--store", theirs]) == 0
    assert main(["bank", "prune", "--keep", "2", "--store", theirs]) == 0
    told = capsys.readouterr().out
    assert f"3 records written to {path}" in told
    assert "3 records of 1 kernels imported as run" in told
    assert '"kernel_class": "conv2d"' in told
    assert "500.000\t2.0\tcpu" in told
    assert "1 records deleted" in told
