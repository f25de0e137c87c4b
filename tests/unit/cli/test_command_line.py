"""What the command line makes of its words, and what it says to wrong ones."""

import argparse
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tuneloom.cli import parsing
from tuneloom.cli.local.tune import job_specs
from tuneloom.cli.main import main, parser
from tuneloom.errors import InputError
from tuneloom.store import open_store


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["tune", *words])


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit code and what went to stderr."""
    try:
        code = main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, capsys.readouterr().err


def test_several_models_are_several_jobs_with_folders_of_their_own(tmp_path: Path) -> None:
    specs = job_specs(parsed("zoo:resnet18", "a/net.onnx", "b/net.onnx", "--out", "fast", "--trials", "7"))
    assert [spec.name for spec in specs] == ["resnet18", "net", "net-2"]
    assert [spec.out for spec in specs] == [str(tmp_path / "fast" / spec.name) for spec in specs]
    assert {spec.budget.trials for spec in specs} == {7}


def test_one_model_goes_straight_to_the_folder(tmp_path: Path) -> None:
    (spec,) = job_specs(parsed("net.onnx", "--out", "fast", "--shape", "x=1,3,8,8", "--goal-ms", "2"))
    assert spec.out == str(tmp_path / "fast")
    assert spec.model == str(tmp_path / "net.onnx")
    assert spec.shapes == {"x": (1, 3, 8, 8)} and spec.budget.goal_ms == 2.0


@pytest.mark.parametrize("text", ["x", "x=", "x=1,,2", "x=a,b", "x=0,3", f"x={2**70},3", "=", "1,2"])
def test_a_shape_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write it as name=1,3,224,224"):
        job_specs(parsed("net.onnx", "--shape", text))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "COMMAND"),
        (("frobnicate",), "frobnicate"),
        (("tune", "--trials", "many", "zoo:resnet18"), "many"),
        (("tune",), "no model"),
        (("tune", "zoo:resnet18", "--frob"), "--frob"),
        (("tune", "zoo:resnet18", "--trials", "-1"), "--trials: must be a whole number of at least 0"),
        (("tune", "zoo:resnet18", "--batch", "0"), "--batch: must be a whole number of at least 1"),
        (("tune", "zoo:resnet18", "--seconds", "-1"), "must be a number above 0"),
        (("tune", "zoo:resnet18", "--goal-ms", "0"), "must be a number above 0"),
        (("tune", "zoo:resnet18", "--run-timeout", "0"), "--run-timeout"),
        (("tune", "zoo:resnet18", "--shape", "input"), "name=1,3,224,224"),
        (("tune", "zoo:resnet18", "--device", "rtx4090"), "known: 'cpu'"),
        (("tune", "zoo:resnet18", "--device-cores", "0"), "--device-cores"),
        (("tune", "zoo:resnet18", "--policy", "fair"), "load-aware"),
        (("tune", "zoo:resnet1"), "resnet18"),
        (("tune", "missing.onnx"), "missing.onnx"),
        (("tune", "notes.txt"), ".onnx"),
        (("tasks", "missing.onnx"), "missing.onnx"),
        (("run", "nowhere", "--input", "x.npy", "--output", "y.npy"), "not a bundle"),
        (("evaluate", "nowhere"), "not a bundle"),
        (("export", "last", "--to", "excel", "there"), "metaschedule"),
        (("resume", "no-such-run"), "no-such-run"),
        (("report", "no-such-run"), "no-such-run"),
        (("import", "nowhere"), "nowhere"),
        (("kernel", "tune", "missing.toml"), "missing.toml"),
        (("kernel", "replay", "missing.csv"), "missing.csv"),
        (("tune", "--jobs", "missing.toml"), "missing.toml"),
        (("superb", "missing.toml"), "missing.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_words_get_one_line_with_the_remedy_and_exit_code_2(
    words: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = said(capsys, *words)
    assert code == 2
    assert error.startswith("tuneloom: ") and error.count("\n") == 1, error
    assert named in error


def test_a_folder_that_is_not_empty_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    code, error = said(capsys, "tune", "zoo:resnet18", "--out", "full")
    assert code == 2 and "full is not empty" in error
    assert not (tmp_path / "home").exists()


def test_a_file_where_the_bundle_should_go_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").touch()
    code, error = said(capsys, "tune", "zoo:resnet18", "--out", "taken")
    assert code == 2 and "taken is a file" in error


def test_a_store_that_is_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = said(capsys, "runs", "--store", str(tmp_path))
    assert code == 2 and "name a file in it" in error and error.count("\n") == 1


@pytest.mark.parametrize("command", ["runs", "bank stats", "report last -o page.html", "resume last"])
def test_a_store_that_is_not_there_is_refused_by_those_who_read(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = said(capsys, *command.split(), "--store", str(tmp_path / "typo" / "store.db"))
    assert code == 2 and "there is no store at" in error and error.count("\n") == 1
    assert not (tmp_path / "typo").exists()


REMEDIES = {
    "kernel tune missing.toml": "check the path",
    "kernel tune junk.toml": "give a file that describes a kernel",
    "kernel replay missing.json": "check the path",
    "kernel replay junk.json": "give a file of `tuneloom kernel export`",
    "bank import missing.jsonl": "give a file of `tuneloom bank export`",
    "runs --store postgresql://127.0.0.1:1/x": "check the address, and that the server runs",
    "tune zoo:resnet18 --target {": 'write it as {"kind": "llvm", "mcpu": "…"}',
}


@pytest.mark.parametrize("words", REMEDIES)
def test_a_file_or_address_that_can_not_be_used_is_told_with_a_remedy(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("junk.toml", "junk.json"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    code, error = said(capsys, *words.split())
    assert code == 2 and error.count("\n") == 1
    assert error.startswith("tuneloom: ") and error.endswith(f"; {REMEDIES[words]}\n")


def test_an_empty_store_lists_no_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(InputError):
        main(["--debug", "tune", "zoo:resnet18", "--shape", "x"])


@pytest.mark.parametrize(
    "command", ["tune", "tasks", "run", "evaluate", "runs", "resume", "export", "import", "report"]
)
def test_every_command_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"tuneloom {command}" in capsys.readouterr().out


NUMBERS = {
    "tune zoo:resnet18": (
        "--trials --seconds --goal-ms --goal-ratio --tolerance --batch --run-timeout --build-timeout --seed "
        "--priority --deadline --device-cores"
    ),
    "add last zoo:resnet18": "--trials --seconds --deadline --priority --seed",
    "plan zoo:resnet18": "--trials",
    "evaluate fast": "--seconds --device-cores",
    "runs": "--limit",
    "bank prune": "--keep",
    "simulate": "--jobs --rounds --parts --lanes --hosts --slots --devices --seed",
    "kernel tune k.toml": (
        "--trials --seconds --goal-ms --seed --run-timeout --build-timeout --spare --device-cores"
    ),
    "kernel replay k.csv": "--trials --seeds --explain",
}
OPTIONS = [(command, option) for command, options in NUMBERS.items() for option in options.split()]


WRONG = ("nan", "inf", "-inf", "1e400", "-1.5", "9" * 5000, "many", "")


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_a_number_that_is_none_or_out_of_range_is_refused_by_the_name_of_its_option(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong in WRONG:
        code, error = said(capsys, *command.split(), f"{option}={wrong}")
        assert code == 2
        assert error.startswith(f"tuneloom: argument {option}: must be "), error[:300]
        assert error.count("\n") == 1


def test_every_option_that_takes_a_number_is_among_those_tried() -> None:
    found = set()
    for words in (*(command.split()[0] for command in NUMBERS), "kernel tune", "kernel replay", "bank prune"):
        for action in _options_of(words.split()):
            if getattr(action.type, "__module__", "") == parsing.__name__ or action.type in (int, float):
                found |= {option for option in action.option_strings if option.startswith("--")}
    assert found <= {option for _, option in OPTIONS}


def _options_of(words: list[str]) -> list[argparse.Action]:
    """The options of a command, as its parser knows them."""
    seen: list[argparse.Action] = []

    class Listed(Exception):  # noqa: N818 - raised to leave the parser
        pass

    def listed(self: argparse.ArgumentParser, *_: object) -> None:
        seen.extend(self._actions)
        raise Listed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Listed):
        patch.setattr(argparse.ArgumentParser, "print_help", listed)
        parser().parse_args([*words, "--help"])
    return seen


@pytest.mark.parametrize(
    "words", [["login", "http://127.0.0.1:1"], ["jobs", "--server", "http://127.0.0.1:1"]]
)
def test_without_the_extra_for_servers_its_remedy_is_told_in_one_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["tuneloom", "client"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert main(words) == 2
    assert (
        capsys.readouterr().err
        == "tuneloom: a connection to a server needs httpx: pip install 'tuneloom[client]'\n"
    )


def test_what_is_too_old_is_removed_without_the_extra_for_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("uvicorn", "fastapi", "pydantic"):
        monkeypatch.setitem(sys.modules, name, None)
    open_store(tmp_path / "store.db").close()
    assert main(["serve", "gc", "--store", str(tmp_path / "store.db")]) == 0
    assert capsys.readouterr().out == "removed 0 items, 0.0 MB\n"


def test_an_executor_refuses_a_farm_file_that_is_not_there_before_it_says_that_it_executes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, words = said(capsys, "executor", "--farm", "missing.toml")
    assert code == 2 and words.count("\n") == 1 and "missing.toml" in words


@pytest.mark.parametrize("port", ["99999", "-1", "many"])
def test_a_board_names_a_port_that_is_none_before_the_key_that_is_missing(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, words = said(capsys, "board", "serve", f"--port={port}")
    assert code == 2 and f"must be a port from 0 to 65535, got {port!r}" in words


@pytest.mark.parametrize("model", ["", ".", "zoo:"])
def test_a_model_without_a_name_is_refused_as_a_model(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, words = said(capsys, "tune", model)
    assert code == 2 and ("model file" in words or "in the zoo" in words)


@pytest.mark.parametrize(
    "url",
    [
        "farm:8321",
        "ftp://farm",
        "http://",
        "http://farm:99999",
        "http://farm:0",
        "http://[::1",
        "http://farm:x",
    ],
)
def test_what_is_no_address_of_a_server_is_named(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_TOKEN", "tl_any")
    code, words = said(capsys, "jobs", "--server", url)
    assert (code, words.count("\n")) == (2, 1)
    assert f"{url.rstrip('/')!r} is not the address of a server, such as http://farm:8321" in words


def test_a_folder_that_is_not_empty_is_refused_before_a_server_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    code, words = said(capsys, "tune", "net.onnx", "--out", "full", "--server", "http://127.0.0.1:1")
    assert code == 2 and "full is not empty" in words


@pytest.mark.parametrize("place", [".", "file/below", "missing/folder/x"])
def test_a_place_that_can_not_be_written_is_named(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with closing(open_store()) as store:
        store.submit_run("tune", [])
    for words in (("report", "last", "-o", place), ("bank", "export", place)):
        code, told = said(capsys, *words)
        assert code == 2 and told.startswith(f"tuneloom: can't write {place}: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_does_not_fit_on_the_disk_ends_in_one_line(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tuneloom.cli.main", "zoo"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "tuneloom: can't write the output: No space left on device; make room there\n"
    assert (done.returncode, done.stderr) == (2, told)


WAITING = """
import sys, threading
from pathlib import Path
from tuneloom.cli.hosting.executor import _end_with_input
thread = threading.Thread(target=_end_with_input, daemon=True)
thread.start()
while Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0] != "S":
    pass
"""


def test_an_executor_that_is_told_to_end_ends_without_a_fatal_error() -> None:
    words = [sys.executable, "-c", WAITING]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait()) == ("", 0)


@pytest.mark.parametrize(
    ("words", "code"), [(["--version"], 0), (["runs", "--wrong"], 2), (["evaluate", "no"], 2)]
)
def test_the_package_runs_as_a_module_too(words: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, "-m", "tuneloom", *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("tuneloom ") if code == 0 else "tuneloom" in done.stderr
