"""C kernels through the system's compiler, from a description in TOML."""

from pathlib import Path

import pytest

from support.spaces import presampled
from tuneloom.errors import SpaceError
from tuneloom.kernel import Array, CBuilder, CReference, CRunner, Number, Plan, tune
from tuneloom.model import Budget, FailureKind, MeasuringRules
from tuneloom.tuners.kernel.description import described

EXAMPLES = Path(__file__).parents[3] / "examples" / "kernels"
SOURCE = """
#include <unistd.h>
#ifndef STEP
#define STEP 1
#define SHIFT 0
#define MODE 0
#endif
void right(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
void twice(const float *x, float *y, int n)
{
#if MODE == 1
#error "this mode is not written"
#endif
#if MODE == 2
    *(volatile int *)0 = 1;
#endif
#if MODE == 3
    for (;;) pause();
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
reference = "right"
flags = ["-O1"]
[knobs]
STEP = [1, 4]
SHIFT = [0, 1]
MODE = [0, 1, 2, 3]
[[arguments]]
type = "float32"
shape = [1000]
[[arguments]]
type = "float32"
shape = [1000]
fill = "zeros"
output = true
[[arguments]]
type = "int32"
value = 1000
[tuning]
trials = 16
run_timeout_s = 3.0
"""


def description(folder: Path, text: str = TOML) -> Path:
    (folder / "twice.c").write_text(SOURCE)
    path = folder / "twice.toml"
    path.write_text(text)
    return path


def test_every_kind_of_failure_is_counted_and_the_rest_is_tuned(tmp_path: Path) -> None:
    hangs_once = '[restrictions]\nwhere = ["MODE != 3 or SHIFT == 0"]\n[[arguments]]'
    text = TOML.replace("STEP = [1, 4]", "STEP = [4]").replace("[[arguments]]", hangs_once, 1)
    plan = Plan(budget=Budget(trials=7), measuring=MeasuringRules(run_timeout_s=10.0))
    kernel = described(description(tmp_path, text)).kernel
    result = tune(kernel, plan)
    assert (result.best["MODE"], result.best["SHIFT"]) == (0, 0)
    assert result.failures == {
        FailureKind.BUILD_ERROR: 2,
        FailureKind.RUN_ERROR: 2,
        FailureKind.RUN_TIMEOUT: 1,
        FailureKind.WRONG_RESULT: 1,
    }


def test_the_compiler_reveals_code_size_and_stack() -> None:
    plain = CBuilder(SOURCE, ("-O1",))({"STEP": 1, "SHIFT": 0, "MODE": 0})
    assert plain.features["code_bytes"] > 0
    assert plain.features["stack_bytes"] >= 0


def test_a_builder_and_a_runner_work_on_their_own() -> None:
    arguments = (Array("float32", (100,)), Array("float32", (100,), "zeros", True), Number("int32", 100))
    library = CBuilder(SOURCE, ("-O1",))({"STEP": 4, "SHIFT": 0, "MODE": 0}).payload
    ran = CRunner("twice", arguments, CReference(SOURCE, "right", arguments), min_repeat_s=0.001)(library)
    assert len(ran.seconds) == 5 and min(ran.seconds) > 0


def test_spare_builds_are_not_run(tmp_path: Path) -> None:
    kernel = described(description(tmp_path, TOML.replace("MODE = [0, 1, 2, 3]", "MODE = [0]"))).kernel
    result = tune(kernel, Plan(budget=Budget(trials=2), spare=1))
    assert len(result.trials) == 2
    assert result.built_only == 1


def test_presampling_learns_what_does_not_build_and_counts_its_time(tmp_path: Path) -> None:
    kernel = described(description(tmp_path, TOML.replace("MODE = [0, 1, 2, 3]", "MODE = [0, 1]"))).kernel
    result = tune(kernel, Plan(budget=Budget(trials=4), presample=True))
    assert result.presampling_s > 0
    assert FailureKind.BUILD_ERROR not in result.failures


def test_presampling_stops_when_nothing_fails(tmp_path: Path) -> None:
    space = described(EXAMPLES / "matmul_c" / "matmul.toml").kernel.space
    asked: list[tuple[int, ...]] = []

    def builds(point: tuple[int, ...]) -> bool:
        asked.append(point)
        return True

    assert all(sample.builds for sample in presampled(space, builds, 0, 200))
    assert len(asked) == 16


def test_the_example_is_right_and_faster_than_its_naive_form() -> None:
    kernel = described(EXAMPLES / "matmul_c" / "matmul.toml").kernel
    result = tune(kernel, Plan(budget=Budget(trials=4), measuring=MeasuringRules(run_timeout_s=60)))
    assert FailureKind.WRONG_RESULT not in result.failures
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('language = "c"', 'language = "fortran"', "no language 'fortran'"),
        ('entry = "twice"', "", r"\[kernel\] needs 'entry'"),
        ('source = "twice.c"', 'source = "none.c"', "can't be read"),
        ("[knobs]", "[knob]", "unknown section 'knob'"),
        ("STEP = [1, 4]", "STEP = []", "no values"),
        ('type = "float32"', 'type = "float3"', "no array type"),
        ("shape = [1000]", "", "needs a `shape` or a `value`"),
        ('fill = "zeros"', 'fill = "noise"', "no fill"),
        ("[tuning]", "[tuning", "is not TOML"),
        ("STEP = [1, 4]", "STEP = 3", r"'STEP' in \[knobs\] must be a list of values, got 3"),
        ("shape = [1000]", 'shape = ["x"]', r"'shape' in \[arguments\] must be a list of whole numbers"),
        ("value = 1000", 'value = "x"', "must be a finite number"),
        ('flags = ["-O1"]', "flags = [5]", "must be a list of texts"),
        ('flags = ["-O1"]', 'tolerance = "x"', "must be a number"),
        ('entry = "twice"', 'entry = "twice"\ncolour = "red"', r"unknown key 'colour' in \[kernel\]"),
        ("trials = 16", "tirals = 16", r"unknown key 'tirals' in \[tuning\]"),
        ("trials = 16", "trials = true", "must be a whole number of at least 1, got True"),
        ("[tuning]", '[restrictions]\nwhere = "STEP < 3"\n[tuning]', "must be a list of texts"),
        ("[tuning]", '[restrictions]\nwhere = ["STEP <"]\n[tuning]', "does not parse at column 7"),
        ("[tuning]", '[restrictions]\nwhere = ["STOP < 3"]\n[tuning]', "unknown knob 'STOP'"),
        ("[tuning]", '[restrictions]\nwhere = ["STEP > 30"]\n[tuning]', "exclude every configuration"),
        ("[tuning]", "[when]\nSTEP = 3\n[tuning]", "must be text"),
    ],
)
def test_a_wrong_description_names_file_and_reason(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message) as caught:
        described(description(tmp_path, TOML.replace(old, new, 1)))
    assert "twice.toml" in str(caught.value)
