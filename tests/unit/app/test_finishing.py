"""The end of a job: who wins, what is dropped, what is said when something fails."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from support.jobs.small import drive, failed_trial, measured_trial, progress_of, small_spec
from tuneloom.app.finishing.ahead import UntunedModel
from tuneloom.app.finishing.choices import Choices
from tuneloom.app.finishing.contests import FinishingSteps
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.finishing.verdicts import Verdict, decide, near_the_fastest, opening_verdict
from tuneloom.app.tasks.limits import check_s, compile_s
from tuneloom.app.tasks.progress import Contender, TaskProgress
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned, TimedOut
from tuneloom.errors import OutputError
from tuneloom.model import Artifact, Budget, CheckResult, Handover, ModelRecipe, OwnRuntime, RuntimeChoice
from tuneloom.scheduling.stages import ANY_CORE, SlotDemand
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE

BUILT = Artifact(payload=b"so")
SAME = CheckResult(difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,))
DIFFERENT = CheckResult(difference=0.5, tuned_s=(1.0,), untuned_s=(2.0,))


def contender(key: str, seconds: float, origin: str = "search") -> Contender:
    return Contender(measured_trial(key, seconds, origin), BUILT)


def test_the_median_over_rounds_decides_not_the_luckiest_round() -> None:
    lucky, steady = contender("lucky", 1.0), contender("steady", 1.1)
    verdict = Verdict()
    decide(verdict, [lucky, steady], [[0.1, 3.0, 3.0], [1.0, 1.0, 1.0]], None)
    assert verdict.chosen is steady and verdict.tuned_s == 1.0


@pytest.mark.parametrize("tuned_s", [1.0, 1.2])
def test_a_schedule_not_faster_than_the_default_is_not_used(tuned_s: float) -> None:
    best, default = contender("best", tuned_s), contender("default", 1.0, "default")
    verdict = Verdict()
    decide(verdict, [best, default], [[tuned_s] * 3, [1.0] * 3], default)
    assert verdict.chosen is None and verdict.default_s == 1.0
    assert "not faster than the default" in verdict.note


def test_a_default_measured_earlier_counts_when_it_is_not_in_the_contest() -> None:
    verdict = Verdict(default_s=9.0)
    best = contender("best", 1.0)
    decide(verdict, [best], [[1.0]], None)
    assert verdict.chosen is best


def test_nothing_is_chosen_when_only_the_default_could_be_built_again() -> None:
    default = contender("default", 1.0, "default")
    verdict = Verdict()
    decide(verdict, [default], [[1.0]], default)
    assert verdict.chosen is None and "built again" in verdict.note


class Script:
    """Answers for the last stages; the contest gives every contender its trial's own time."""

    def __init__(self, tasks: Sequence[TaskProgress], **answers: object) -> None:
        self.calls: list[str] = []
        self.schedules: list[set[str]] = []
        self._times = {b"so": 1.0}
        self._answers = answers
        self._checks = list(answers.pop("checks", [SAME]))  # type: ignore[call-overload]

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        self.calls.append(function)
        if function in self._answers:
            answer = self._answers[function]
            return answer.pop(0) if isinstance(answer, list) else answer  # type: ignore[return-value]
        return self._default(function, call)

    def _default(self, function: str, call: Call) -> CallResult:
        match function:
            case "contest":
                return Returned(value=[[1.0] for _ in call.arguments[0]])
            case "compile_model":
                self.schedules.append(set(call.arguments[1]))
                return Returned(value={})
            case "check_model":
                return Returned(value=self._checks.pop(0))
            case "build":
                return Returned(value=BUILT)
            case "guilty_kernels":
                return Returned(value=["key-a"])
        return Returned(value=None)


def finish_of(tasks: Sequence[TaskProgress], export_to: str | None = "out", **asked: Any) -> Finish:
    spec = replace(small_spec(10), **asked)
    recipe = ModelRecipe(key="job", source="net.onnx", shapes={}, target=spec.target)
    return Finish("job", spec, recipe, tasks, export_to, Choices(spec.target))


def tuned(*names: str, artifact: Artifact | None = BUILT) -> list[TaskProgress]:
    tasks = progress_of(*names)
    for progress in tasks:
        progress.add(measured_trial("p0", 10.0, "default"), artifact)
        progress.add(measured_trial("p1", 1.0), artifact)
        progress.add(measured_trial("p2", 1.1), artifact)
    return tasks


def finished(tasks: Sequence[TaskProgress], script: Callable[[Call], CallResult]) -> Finish:
    finish = finish_of(tasks)
    drive(finish.begin(), script)
    assert finish.finished
    return finish


def test_contests_then_compile_check_export() -> None:
    tasks = tuned("a", "b")
    script = Script(tasks)
    finish = finished(tasks, script)
    assert script.calls == [
        "contest",
        "contest",
        "compile_plain",
        "compile_model",
        "check_model",
        "export_model",
    ]
    assert script.schedules == [{"key-a", "key-b"}]
    assert finish.check is SAME and not finish.failure and finish.unwritten is None


@pytest.mark.parametrize("artifact", [BUILT, None])
def test_what_was_built_for_the_chosen_trials_goes_to_the_compiler(artifact: Artifact | None) -> None:
    tasks = progress_of("a")
    for key, seconds, origin in (("p0", 10.0, "default"), ("p1", 1.0, "search"), ("p2", 1.5, "search")):
        tasks[0].add(measured_trial(key, seconds, origin), artifact)
    calls: list[Call] = []
    script = Script(tasks)
    finished(tasks, lambda call: calls.append(call) or script(call))  # type: ignore[func-returns-value]
    (*_, kernels, payloads, _instead) = next(
        call.arguments for call in calls if call.function.endswith("compile_model")
    )
    configuration = tasks[0].best[0].trial.candidate.configuration
    assert (kernels, payloads) == (([("key-a", configuration)], [b"so"]) if artifact else ([], []))


def test_a_schedule_that_is_clearly_the_fastest_needs_no_contest() -> None:
    tasks = progress_of("a")
    for key, seconds, origin in (("p0", 10.0, "default"), ("p1", 1.0, "search"), ("p2", 1.5, "search")):
        tasks[0].add(measured_trial(key, seconds, origin), None)
    script = Script(tasks)
    finish = finished(tasks, script)
    assert script.calls == ["compile_model", "check_model", "export_model"]
    verdict = finish.choices.verdicts["key-a"]
    assert verdict.chosen is tasks[0].best[0] and (verdict.tuned_s, verdict.default_s) == (1.0, 10.0)


def test_a_schedule_that_can_not_win_is_not_in_the_contest() -> None:
    tasks = tuned("a")
    tasks[0].add(measured_trial("p3", 1.5), BUILT)
    sizes: list[int] = []

    class Listening(Script):
        def __call__(self, call: Call) -> CallResult:
            if call.function.endswith(":contest"):
                sizes.append(len(call.arguments[0]))
            return super().__call__(call)

    finished(tasks, Listening(tasks))
    assert sizes == [2]


@pytest.mark.parametrize(("goal", "meet"), [("latency", False), ("energy", True)])
def test_on_a_gpu_only_schedules_that_are_nearly_as_fast_meet_again(goal: str, meet: bool) -> None:
    tasks = tuned("a")
    script = Script(tasks, contest_of_energy=Returned(value=([[1.0], [1.1]], [0.5, 0.4])))
    finish = finish_of(tasks, target="cuda", goal=goal)
    drive(finish.begin(), script)
    assert ("contest_of_energy" in script.calls) is meet and "contest" not in script.calls
    assert finish.choices.verdicts["key-a"].chosen is tasks[0].best[1 if meet else 0]


def against(rival_s: float, name: str = "onnxruntime", tuned_s: float = 1.0) -> CheckResult:
    own = OwnRuntime(name=name, difference=0.0, seconds=(rival_s,), tuned_s=(tuned_s,))
    return CheckResult(difference=0.0, tuned_s=(tuned_s,), untuned_s=(2.0,), own_runtime=own)


def beside(*differences: float) -> CheckResult:
    """Other runtimes whose outputs are so far from ours, the fastest first."""
    first, *others = (
        OwnRuntime(name=name, difference=apart, seconds=(2.0,), tuned_s=(1.0,))
        for name, apart in zip(("torch", "openvino"), differences, strict=False)
    )
    return replace(SAME, own_runtime=replace(first, others=tuple(others)))


@pytest.mark.parametrize(("apart", "nearest"), [(0.3, "PyTorch by 0.3,"), (float("inf"), "OpenVINO by 0.5,")])
def test_a_model_whose_outputs_no_other_runtime_gives_is_not_written(apart: float, nearest: str) -> None:
    tasks = tuned("a")
    script = Script(tasks, checks=[beside(apart, 0.5)])
    failure = finished(tasks, script).failure
    assert f"its outputs differ from those of {nearest}" in failure and "--tolerance" in failure
    assert "export_model" not in script.calls


def test_one_runtime_that_agrees_is_enough() -> None:
    tasks = tuned("a")
    script = Script(tasks, checks=[beside(0.3, 1e-6)])
    assert not finished(tasks, script).failure and "export_model" in script.calls


def test_made_up_whole_numbers_may_mean_something_else_to_another_runtime() -> None:
    tasks = tuned("a")
    script = Script(tasks, checks=[replace(beside(0.3), arbitrary=True)])
    finish = finished(tasks, script)
    assert not finish.failure and "export_model" in script.calls
    assert finish.notes[0].startswith("on made-up whole numbers its outputs differ from those of PyTorch")


def test_a_tolerance_may_allow_what_another_runtime_gives() -> None:
    tasks = tuned("a")
    script, finish = Script(tasks, checks=[beside(0.3)]), finish_of(tasks, tolerance=1.0)
    drive(finish.begin(), script)
    assert not finish.failure and "export_model" in script.calls


WHOLE = Handover(left=("*",), seconds=(0.9,), tvm_s=(1.0,), rival_s=(0.9,), whole=True)


def test_a_model_that_is_faster_in_onnx_runtime_is_exported_as_it_was_left_there() -> None:
    tasks = tuned("a")
    handover = Handover(left=("y",), seconds=(0.5,), tvm_s=(1.0,), rival_s=(0.5,), whole=False)
    exported: list[ModelRecipe] = []

    class Listening(Script):
        def __call__(self, call: Call) -> CallResult:
            if call.function.endswith(":export_model"):
                exported.append(call.arguments[0])
            return super().__call__(call)

    choice = RuntimeChoice(handover=handover, rejected=(WHOLE,), notes=("slow pieces",))
    finish = finished(tasks, Listening(tasks, checks=[against(0.5)], choose=Returned(value=choice)))
    assert finish.handover is handover and exported[0].left == ("y",)
    assert finish.rejected == (WHOLE,) and finish.notes == ["slow pieces"]


@pytest.mark.parametrize(
    "check",
    [SAME, against(1.5), against(0.5, "torch.compile (TF32 off)"), against(2.5e-5, tuned_s=5e-5)],
    ids=["none", "slower", "on a GPU", "no time"],
)
def test_nothing_is_left_to_a_runtime_that_is_not_clearly_faster(check: CheckResult) -> None:
    tasks = tuned("a")
    script = Script(tasks, checks=[check])
    assert finished(tasks, script).handover is None
    assert "choose" not in script.calls


def with_pieces(check: CheckResult, trials: int = 1) -> list[bool]:
    """Whether pieces were asked for, each time that the end of a job chose between runtimes."""
    tasks, pieces = tuned("a"), []

    class Listening(Script):
        def __call__(self, call: Call) -> CallResult:
            if call.function.endswith(":choose"):
                pieces.append(call.arguments[3])
            return super().__call__(call)

    finish = finish_of(tasks, budget=Budget(trials=trials))
    choice = Returned(value=RuntimeChoice(handover=WHOLE))
    drive(finish.begin(), Listening(tasks, checks=[check], choose=choice))
    return pieces


def test_a_job_without_trials_compiles_no_pieces_for_other_runtimes() -> None:
    assert with_pieces(against(0.5), trials=0) == [False]


def test_pieces_are_compiled_where_onnx_runtime_itself_is_near() -> None:
    assert with_pieces(against(1.1)) == [True]


def test_a_model_that_takes_little_time_is_not_cut() -> None:
    assert with_pieces(against(5e-4, tuned_s=9e-4)) == [False]


def test_no_pieces_are_compiled_where_another_runtime_is_near_and_onnx_runtime_is_not() -> None:
    fast, slow = against(0.5, "openvino").own_runtime, against(1.5).own_runtime
    assert fast is not None and slow is not None
    both = replace(against(0.5), own_runtime=OwnRuntime.fastest([slow, fast]))
    assert with_pieces(both) == [False]


@pytest.mark.parametrize(
    ("other_s", "whole", "share"), [(0.5, True, 0.5), (1.05, True, 1.0), (1.2, False, 1.0)]
)
def test_pieces_have_to_beat_the_fastest_other_runtime(other_s: float, whole: bool, share: float) -> None:
    tasks, asked = tuned("a"), []

    class Listening(Script):
        def __call__(self, call: Call) -> CallResult:
            if call.function.endswith(":choose"):
                asked.append(call.arguments[4:])
            return super().__call__(call)

    choice = Returned(value=RuntimeChoice())
    drive(finish_of(tasks).begin(), Listening(tasks, checks=[against(other_s)], choose=choice))
    assert asked == [(whole, pytest.approx(share), ("onnxruntime",))]


@pytest.mark.parametrize(("slow_s", "near"), [(0.55, ("openvino", "onnxruntime")), (0.6, ("openvino",))])
def test_a_runtime_that_was_clearly_slower_than_the_fastest_is_not_timed_again(
    slow_s: float, near: tuple[str, ...]
) -> None:
    fast, slow = against(0.5, "openvino").own_runtime, against(slow_s).own_runtime
    assert fast is not None and slow is not None
    both = replace(against(0.5), own_runtime=OwnRuntime.fastest([slow, fast]))
    assert near_the_fastest(both) == near


def test_a_runtime_that_takes_whole_models_only_is_not_tried_again_if_it_was_slower() -> None:
    assert with_pieces(against(1.1, "tflite")) == []


@pytest.mark.parametrize(
    ("trials", "only", "spread"), [(0, False, True), (10, False, False), (10, True, True)]
)
def test_a_model_is_compiled_on_the_cores_to_measure_on_too_where_nobody_wants_to_measure(
    trials: int, only: bool, spread: bool
) -> None:
    tasks = tuned("a")
    found: dict[str, bool] = {}

    class Listening(Script):
        def __call__(self, call: Call) -> CallResult:
            found[call.function.partition(":")[2]] = call.spread
            return super().__call__(call)

    finish = finish_of(tasks, budget=Budget(trials=trials))
    finish.is_only_job = lambda: only
    drive(finish.begin(), Listening(tasks))
    assert (found["compile_model"], found["check_model"], found["export_model"]) == (spread, False, False)


def test_a_model_is_exported_as_it_is_when_the_choice_fails() -> None:
    tasks = tuned("a")
    lost = Died(cause=KilledBy(signal.SIGSEGV))
    script = Script(tasks, checks=[against(0.5)], choose=lost)
    finish = finished(tasks, script)
    assert finish.handover is None and "could not find out" in finish.notes[-1]
    assert script.calls[-2:] == ["choose", "export_model"]


def test_a_worker_that_pieces_of_a_model_end_does_not_end_the_choice_of_all_of_it() -> None:
    tasks, lost = tuned("a"), Died(cause=KilledBy(signal.SIGSEGV))
    answers = [lost, Returned(value=RuntimeChoice(handover=WHOLE))]
    finish = finished(tasks, Script(tasks, checks=[against(0.5)], choose=answers))
    assert finish.handover is WHOLE
    assert len(finish.notes) == 1 and "pieces of the model could not be tried" in finish.notes[0]


def test_a_model_that_its_own_runtime_refuses_says_why_it_was_not_compared() -> None:
    tasks = tuned("a")
    refused = CheckResult(
        difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,), uncompared="onnxruntime refuses it"
    )
    finish = finished(tasks, Script(tasks, checks=[refused]))
    assert finish.notes == ["not compared with the model's own runtime: onnxruntime refuses it"]


def test_a_task_of_which_only_the_default_was_measured_gets_the_first_guess_of_its_template() -> None:
    tasks = progress_of("a", "b")
    for progress in tasks:
        progress.add(measured_trial("p0", 10.0, "default"), BUILT)
    tasks[1].add(measured_trial("p1", 1.0), BUILT)
    script = Script(tasks)
    finish = finished(tasks, script)
    assert script.schedules == [{"key-b"}]
    assert "only its default schedule" in finish.choices.verdicts["key-a"].note


def test_what_a_gpu_never_measured_runs_with_the_first_guess_of_an_implementer() -> None:
    tasks = [*tuned("a"), *progress_of("b", "c")]
    tasks[2].add(failed_trial("wrong", "out of memory"), None)
    guesses = Returned(value=dict.fromkeys(("key-a", "key-b", "key-c"), "triton:{}"))
    script = Script(tasks, first_guesses=guesses)
    finish = finish_of(tasks, target="cuda")
    drive(finish.begin(), script)
    assert script.schedules == [{"key-a", "key-b", "key-c"}]
    assert finish.choices.guesses == {"key-b": "triton:{}"} and finish.choices.schedules["key-c"] == NO_TRACE
    assert "first guess" in finish.choices.verdicts["key-b"].note and not finish.notes


def test_first_guesses_that_change_the_outputs_are_dropped() -> None:
    tasks = [*tuned("a"), *progress_of("b")]
    guesses = Returned(value=dict.fromkeys(("key-b", "key-view"), "triton:{}"))
    guilty = Returned(value=["key-b", "key-view"])
    script = Script(tasks, first_guesses=guesses, guilty_kernels=guilty, checks=[DIFFERENT, SAME])
    finish = finish_of(tasks, target="cuda")
    drive(finish.begin(), script)
    assert script.schedules == [{"key-a", "key-b", "key-view"}, {"key-a"}]
    assert "changed the outputs" in finish.choices.verdicts["key-b"].note and not finish.failure


def test_a_task_without_a_trial_of_its_own_uses_the_best_of_earlier_jobs() -> None:
    tasks = [*tuned("a"), *progress_of("b")]
    known = measured_trial("known", 0.5, "transfer:7")
    script = Script(tasks, slower_in_model=Returned(value={}))
    finish = finish_of(tasks)
    finish.choices.known = {"key-b": known}
    drive(finish.begin(), script)
    verdict = finish.choices.verdicts["key-b"]
    assert script.schedules == [{"key-a", "key-b"}]
    assert verdict.chosen is not None and verdict.chosen.trial is known and verdict.used_s == 0.5
    assert "best known" in verdict.note


def test_what_an_earlier_job_found_does_not_hide_that_it_fails_now() -> None:
    (task,) = progress_of("b")
    task.add(failed_trial("known", "out of memory"), None)
    known = measured_trial("known", 0.5, "transfer:7")
    assert opening_verdict(task, known).chosen is None


def test_models_are_compiled_wherever_cores_are_free_and_kernels_tell_how_long_it_takes() -> None:
    tasks = tuned("a", "b", artifact=Artifact(payload=b"so", build_s=2.0))
    plain = finish_of(tasks).begin()[-1].request
    assert plain.needs == SlotDemand(lendable=True) and plain.expected_s == 4.0


def test_contenders_from_an_earlier_run_are_built_again_first() -> None:
    tasks = tuned("a", artifact=None)
    script = Script(tasks)
    finished(tasks, script)
    assert script.calls.index("build") < script.calls.index("contest")


def test_the_untuned_model_is_compiled_while_contenders_are_timed() -> None:
    tasks = tuned("a", "b")
    script = Script(tasks, compile_plain=Raised(error="RuntimeError: no", trace=""))
    finish = finished(tasks, script)
    assert script.calls.index("compile_plain") < script.calls.index("compile_model")
    assert not finish.failure, "compiling both is tried again, and says what is wrong"


def test_a_task_whose_contenders_cannot_be_built_again_stays_untuned() -> None:
    tasks = tuned("a", artifact=None)
    script = Script(tasks, build=Raised(error="ValueError: no", trace=""))
    finish = finished(tasks, script)
    assert finish.choices.schedules == {} and script.schedules == [set()]


def test_a_schedule_that_changes_the_outputs_is_dropped_and_noted() -> None:
    tasks = tuned("a", "b")
    script = Script(tasks, checks=[DIFFERENT, SAME])
    finish = finished(tasks, script)
    assert script.schedules == [{"key-a", "key-b"}, {"key-b"}]
    assert "changed the outputs" in finish.choices.verdicts["key-a"].note
    assert finish.choices.verdicts["key-b"].chosen is not None


def test_all_schedules_are_dropped_when_no_single_one_is_guilty() -> None:
    tasks = tuned("a", "b")
    script = Script(tasks, checks=[DIFFERENT, SAME], guilty_kernels=Returned(value=[]))
    finish = finished(tasks, script)
    assert finish.choices.schedules == {}


def test_a_contest_that_fails_leaves_its_kernel_untuned() -> None:
    tasks = tuned("a")
    finish = finished(tasks, Script(tasks, contest=Died(cause=KilledBy(signal.SIGSEGV))))
    assert "contest failed" in finish.choices.verdicts["key-a"].note and finish.choices.schedules == {}


def test_a_lost_worker_compiles_once_more_elsewhere() -> None:
    tasks = tuned("a")
    check: list[CallResult] = [Died(cause=KilledBy(signal.SIGKILL)), Returned(value=SAME)]
    script = Script(tasks, check_model=check)
    finish = finished(tasks, script)
    assert script.calls.count("compile_model") == 2 and not finish.failure


@pytest.mark.parametrize("missed_by", ["check_model", "export_model"])
def test_a_model_that_is_gone_with_its_machine_is_compiled_again_when_it_is_missed(missed_by: str) -> None:
    tasks = tuned("a")
    finish = finish_of(tasks)
    script = Script(tasks, checks=[SAME, SAME])
    missed: list[str] = []

    def answer(call: Call) -> CallResult:
        if call.function.endswith(missed_by) and not missed:
            missed.append(missed_by)
            finish.worker_lost("job:model")
            return Raised(error="KeyError: 'job'", trace="")
        return script(call)

    drive(finish.begin(), answer)
    assert finish.finished and not finish.failure and missed
    assert script.calls.count("compile_model") == 2


def test_a_model_that_cannot_be_compiled_ends_with_the_reason() -> None:
    tasks = tuned("a")
    finish = finished(
        tasks, Script(tasks, compile_model=Raised(error="RuntimeError: no such pass", trace=""))
    )
    assert finish.failure == "compiling the tuned model failed: RuntimeError: no such pass"


def test_a_schedule_that_tvm_cannot_compile_costs_that_schedule_only() -> None:
    tasks = tuned("a", "b")
    refused, taken = Returned(value={"key-a": "no such loop", "key-view": "no such loop"}), Returned(value={})
    script = Script(tasks, compile_model=[refused, taken])
    finish = finished(tasks, script)
    assert not finish.failure and finish.choices.schedules.keys() == {"key-a", "key-b", "key-view"}
    used, verdicts = finish.choices.schedules, finish.choices.verdicts
    assert used["key-a"] == used["key-view"] == NO_TRACE != used["key-b"]
    assert verdicts["key-a"].chosen is None and "no such loop" in verdicts["key-a"].note
    assert verdicts["key-b"].chosen is not None and script.calls.count("compile_model") == 2


def test_wrong_outputs_without_a_schedule_left_to_drop_end_the_job() -> None:
    tasks = tuned("a")
    refused = Returned(value={"key-a": "no such loop"})
    script = Script(tasks, compile_model=[refused, refused], checks=[DIFFERENT])
    assert "outputs differ" in finished(tasks, script).failure


def test_a_wall_of_text_about_a_model_that_cannot_be_compiled_is_one_short_line() -> None:
    tasks = tuned("a")
    wall = (
        "tvm.error.InternalError: Check failed: (Equal()(a, b)) is false: Trying to update var "
        + 99 * "x[0] + "
    )
    finish = finished(tasks, Script(tasks, compile_model=Raised(error=f"in TVM\n{wall}", trace="")))
    assert "InternalError: Trying to update var" in finish.failure
    assert "\n" not in finish.failure and len(finish.failure) < 250 and "Equal" not in finish.failure


def test_a_model_that_cannot_be_written_is_an_output_error() -> None:
    tasks = tuned("a")
    full = OutputError("can't write out: No space left on device")
    finish = finished(tasks, Script(tasks, export_model=Returned(value=full)))
    assert finish.unwritten is full and not finish.failure


def test_a_model_is_checked_once_although_borrowed_schedules_give_way() -> None:
    tasks = tuned("a")
    tasks[0].add(measured_trial("p2", 0.5, "transfer:7"), None)
    script = Script(tasks, checks=[SAME], slower_in_model=Returned(value={"key-a": 1.0}))
    finished(tasks, script)
    ends = ("compile_model", "slower_in_model", "check_model")
    wanted = ["compile_model", "slower_in_model", "compile_model", "check_model"]
    assert [call for call in script.calls if call in ends] == wanted


def test_every_stage_of_the_end_has_a_limit() -> None:
    tasks = tuned("a", "b", artifact=None)
    tasks[0].add(measured_trial("p2", 0.5, "transfer:7"), None)
    limits: dict[str, float | None] = {}

    def answer(call: Call) -> CallResult:
        limits[call.function.partition(":")[2]] = call.timeout_s
        return script(call)

    script = Script(tasks, checks=[DIFFERENT, SAME], slower_in_model=Returned(value={"key-a": 1.0}))
    finished(tasks, answer)
    assert set(limits) == {
        "build",
        "contest",
        "compile_plain",
        "compile_model",
        "check_model",
        "slower_in_model",
        "guilty_kernels",
        "export_model",
    }
    assert all(limits.values())


def test_a_large_model_gets_more_time_than_a_small_one() -> None:
    small, large = tuned("a"), tuned(*"abcdefgh", artifact=Artifact(payload=b"so", build_s=100.0))
    assert compile_s(large) > compile_s(small) and check_s(large) > check_s(small)


def test_contenders_are_built_again_within_their_memory() -> None:
    tasks = tuned("a", artifact=None)
    builds: list[Call] = []

    def answer(call: Call) -> CallResult:
        if call.function.endswith(":build"):
            builds.append(call)
        return script(call)

    script = Script(tasks)
    finished(tasks, answer)
    assert builds and {call.memory_bytes for call in builds} == {small_spec(1).measuring.memory_bytes}


@pytest.mark.parametrize(
    ("stage", "doing"),
    [
        ("compile_model", "compiling the tuned model"),
        ("check_model", "checking the tuned model"),
        ("export_model", "writing the tuned model"),
    ],
)
def test_a_stage_that_hangs_ends_the_job_with_words(stage: str, doing: str) -> None:
    tasks = tuned("a")
    finish = finished(tasks, Script(tasks, **{stage: TimedOut(after_s=330.0)}))
    assert finish.failure == f"{doing} failed: it did not end within 330 s"


def test_for_energy_the_schedule_that_costs_least_is_chosen_though_another_is_faster() -> None:
    fast, frugal, default = (Contender(measured_trial(key, 1.0)) for key in ("fast", "frugal", "default"))
    rounds, joules = [[1.0], [1.1], [3.0]], [0.9, 0.5, 0.7]
    verdict = Verdict()
    decide(verdict, [fast, frugal, default], rounds, default, joules)
    assert verdict.chosen is frugal and (verdict.tuned_s, verdict.default_s) == (1.1, 3.0)
    assert [contender for _, contender in verdict.own] == [frugal], (
        "the faster one costs more than the default"
    )
    by_latency = Verdict()
    decide(by_latency, [fast, frugal, default], rounds, default, [0.9, None, 0.7])
    assert by_latency.chosen is fast and "energy could not be measured" in by_latency.note


@pytest.mark.parametrize(("goal", "function"), [("latency", "contest"), ("energy", "contest_of_energy")])
def test_the_goal_of_a_job_says_what_its_contests_measure(goal: str, function: str) -> None:
    tasks = tuned("a")
    script = Script(tasks, contest_of_energy=Returned(value=([[1.0], [2.0]], [0.5, None])))
    finish = finish_of(tasks, goal=goal)
    drive(finish.begin(), script)
    assert function in script.calls and not finish.failure


def test_kernels_without_a_trial_are_compiled_ahead_some_at_a_time() -> None:
    untuned = UntunedModel(FinishingSteps("job", home="job:model"), finish_of(tuned("a")).recipe, seed=0)
    (plain,) = untuned.begin(ANY_CORE, 1.0, 60.0)
    assert untuned.guess_kernels(["a"], 60.0) == [], "one after the other"
    plain.ended(Returned(value=None), 1.0)
    assert untuned.guess_kernels([], 60.0) == []
    (first,) = untuned.guess_kernels(["a", "b"], 60.0)
    assert first.call().arguments[1] == ["a", "b"] and untuned.running
    first.ended(Returned(value=False), 2.0)
    (second,) = untuned.guess_kernels(["b"], 60.0)
    assert second.request.id != first.request.id
    second.ended(Returned(value=True), 3.0)
    assert untuned.guess_kernels(["b"], 60.0) == [], "none was left"
