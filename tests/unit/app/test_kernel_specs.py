"""What a kernel's file, a jobs file and the command line say together."""

import re
from pathlib import Path

import pytest

from tuneloom.app.kinds.kernel.kind import KIND
from tuneloom.app.kinds.kernel.specs import described_spec, kernel_spec
from tuneloom.app.requests.jobs_file import read_jobs
from tuneloom.app.requests.sources import kind_of, require_possible
from tuneloom.errors import InputError, SpaceError, TargetError
from tuneloom.model import JobSpec

TOML = """
[kernel]
name = "twice"
language = "@LANGUAGE@"
source = "twice.c"
entry = "twice"
[knobs]
STEP = [1, 2, 4]
[launch]
grid = ["1"]
block = ["STEP"]
[tuning]
trials = 30
search = "local"
presample = true
run_timeout_s = 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return described_in(tmp_path, "c")


def described_in(folder: Path, language: str) -> Path:
    (folder / "twice.c").write_text("void twice(void) {}")
    path = folder / f"{language}.toml"
    path.write_text(TOML.replace("@LANGUAGE@", language))
    return path


def test_a_file_says_what_nobody_else_says(file: Path) -> None:
    spec = described_spec(file, {"trials": None, "init": "random"})
    assert (spec.name, spec.model, spec.tuner, spec.device_key) == ("twice", str(file), "kernel", "cpu")
    assert (spec.budget.trials, spec.measuring.run_timeout_s) == (30, 2.0)
    assert spec.extra == {"search": "local", "init": "random", "presample": "yes", "spare": "0"}


def test_options_win_over_the_file(file: Path) -> None:
    spec = described_spec(file, {"trials": 5, "search": "guided", "run_timeout_s": 9.0, "device": "npu"})
    assert (spec.budget.trials, spec.extra["search"], spec.measuring.run_timeout_s) == (5, "guided", 9.0)
    assert spec.device_key == "npu"


def test_the_language_decides_on_the_device(tmp_path: Path) -> None:
    assert described_spec(described_in(tmp_path, "cuda"), {}).device_key == "cuda"


def test_a_jobs_file_gives_the_budget_and_the_kernel_its_search(file: Path) -> None:
    jobs = file.with_name("jobs.toml")
    jobs.write_text(
        '[[jobs]]\nmodel = "c.toml"\ntrials = 7\npriority = 3\n[[jobs]]\nmodel = "zoo:squeezenet"\n'
    )
    kernel, model = read_jobs(jobs)
    assert (kernel.name, kernel.tuner, kernel.budget.trials, kernel.priority) == ("c", "kernel", 7, 3)
    assert (kernel.extra["search"], kernel.batch, kernel.device_key) == ("local", 1, "cpu")
    assert (model.tuner, model.extra) == ("tvm", {})


def test_a_job_keeps_its_extra_options_in_the_store(file: Path) -> None:
    spec = described_spec(file, {})
    assert JobSpec.from_json(spec.to_json()) == spec
    older = {key: value for key, value in spec.to_json().items() if key != "extra"}
    assert JobSpec.from_json(older).extra == {}


def test_tuners_are_told_by_the_name_of_the_file() -> None:
    assert [kind_of(name).name for name in ("a.toml", "/x/y.kernel", "a.onnx", "zoo:a", "mock:tasks=1")] == [
        "kernel",
        "kernel",
        "tvm",
        "tvm",
        "mock",
    ]


def test_jobs_that_are_bound_to_fail_are_refused(file: Path, tmp_path: Path) -> None:
    missing = kernel_spec("k", str(tmp_path / "none.toml"), "cpu", {})
    with pytest.raises(SpaceError, match="no kernel at"):
        require_possible(missing, ["cpu"])
    with pytest.raises(TargetError, match="no device with key 'cuda'; known: 'cpu'"):
        require_possible(described_spec(described_in(tmp_path, "cuda"), {}), ["cpu"])
    file.write_text(file.read_text().replace("STEP = [1, 2, 4]", "STEP = []"))
    with pytest.raises(SpaceError, match="no values"):
        require_possible(kernel_spec("k", str(file), "cpu", {}), ["cpu"])


def test_fewer_than_no_spares_are_refused(file: Path) -> None:
    with pytest.raises(InputError, match="spare must be a whole number of at least 0, got -2"):
        described_spec(file, {"spare": -2})


def test_only_files_of_functions_are_deleted(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "f00d.kernel"
    kept.write_bytes(b"")
    for model in (str(kept), str(file)):
        KIND.ended(kernel_spec("twice", model, "cpu", {}))
    assert file.exists() and not kept.exists()


@pytest.mark.parametrize(
    ("found", "put", "said"),
    [
        ("trials = 30", "trials = 0", "'trials' in [tuning] must be a whole number of at least 1, got 0"),
        ("trials = 30", "seconds = nan", "'seconds' in [tuning] must be a number above 0, got nan"),
        ("trials = 30", "goal_ms = inf", "'goal_ms' in [tuning] must be a number above 0, got inf"),
        ("trials = 30", "spare = -1", "'spare' in [tuning] must be a whole number of at least 0, got -1"),
        ("run_timeout_s = 2", "run_timeout_s = 0", "'run_timeout_s' in [tuning] must be a number above 0"),
        ('entry = "twice"', 'entry = "twice"\ntolerance = nan', "'tolerance' in [kernel] must be a number"),
        ("[launch]", '[[arguments]]\ntype = "int32"\nvalue = inf\n[launch]', "must be a finite number"),
        (
            "[launch]",
            '[[arguments]]\ntype = "int32"\nvalue = 3e9\n[launch]',
            "3000000000.0 can't be passed as int32",
        ),
        (
            "[launch]",
            '[[arguments]]\ntype = "float32"\nvalue = 1e39\n[launch]',
            "1e+39 can't be passed as float32",
        ),
        ("[launch]", '[[arguments]]\ntype = "float32"\nshape = [0]\n[launch]', "of at least 1, got [0]"),
    ],
)
def test_numbers_of_a_kernel_file_are_finite_and_in_range(
    file: Path, found: str, put: str, said: str
) -> None:
    file.write_text(file.read_text().replace(found, put))
    with pytest.raises(SpaceError, match=re.escape(said)):
        described_spec(file, {})
