"""Which program of a graph runs: programs and clock are scripted."""

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
from tuneloom.pytorch.adapting import AdaptiveGraph, _form
from tuneloom.pytorch.background import let_others_first
from tuneloom.pytorch.graphs import Graph
from tuneloom.pytorch.varying import VaryingInputs


class Clock:
    """Goes on only when a program says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def program(self, takes_s: float, answer: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
        def run(arguments: Sequence[Any]) -> list[Any]:
            self.now_s += takes_s
            return [answer(arguments[0])]

        return run


def doubling(
    clock: Clock,
    weight: Any = None,
    *,
    example: Any = None,
    dtype: str = "float32",
    run: Callable[[Sequence[Any]], list[Any]] | None = None,
) -> AdaptiveGraph:
    usual = run or clock.program(2.0, lambda x: 2 * x)
    graph = Graph(
        name="Net",
        run=lambda *arguments: usual(arguments),
        text="2 * x",
        inputs=(0,),
        examples=(X if example is None else example,),
        weights=() if weight is None else (weight,),
        content=None,
    )
    return AdaptiveGraph(graph, dtype=dtype, clock=clock)


X = torch.arange(4.0)


def called(graph: AdaptiveGraph, times: int) -> list[Any]:
    return [graph([X])[0] for _ in range(times)]


def test_a_faster_program_with_the_same_answers_takes_over() -> None:
    clock = Clock()
    graph = doubling(clock)
    graph.offer("tuned", clock.program(1.0, lambda x: x + x))
    answers = called(graph, 6)
    assert graph.in_use == "tuned"
    assert all(torch.equal(one, 2 * X) for one in answers)
    began = clock.now_s
    called(graph, 1)
    assert clock.now_s == began + 1.0


@pytest.mark.parametrize("takes_s", [3.0, 1.97], ids=["slower", "hardly faster"])
def test_a_program_that_is_not_clearly_faster_is_not_used(takes_s: float) -> None:
    clock = Clock()
    graph = doubling(clock)
    graph.offer("tuned", clock.program(takes_s, lambda x: x + x))
    called(graph, 6)
    assert graph.in_use == "PyTorch"


@pytest.mark.parametrize(("takes_s", "stays"), [(1.0, False), (3.0, True)])
def test_a_graph_stays_in_pytorch_if_its_last_program_is_slower(takes_s: float, stays: bool) -> None:
    clock = Clock()
    graph = doubling(clock)
    called(graph, 1)
    assert not graph.stays
    graph.offer("tuned", clock.program(takes_s, lambda x: x + x))
    graph.final = True
    called(graph, 4)
    assert not graph.stays  # it is still tried
    called(graph, 1)
    assert graph.stays is stays


def test_short_programs_are_judged_by_runs_behind_each_other() -> None:
    """The first run after another program's pays for its caches."""
    clock, last = Clock(), ["nobody"]

    def program(name: str, takes_s: float, first_s: float) -> Callable[[Sequence[Any]], list[Any]]:
        def run(arguments: Sequence[Any]) -> list[Any]:
            clock.now_s += takes_s if last[0] == name else first_s
            last[0] = name
            return [2 * arguments[0]]

        return run

    graph = doubling(clock, run=program("PyTorch", 5e-4, 6e-4))
    graph.offer("tuned", program("tuned", 1e-4, 9e-4))
    called(graph, 5)
    assert graph.in_use == "tuned"


def test_a_program_whose_answers_differ_is_named_and_never_answers(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    graph = doubling(clock)
    graph.offer("tuned", clock.program(1.0, lambda x: 2.01 * x))
    with caplog.at_level(logging.WARNING):
        answers = called(graph, 6)
    assert graph.in_use == "PyTorch"
    assert all(torch.equal(one, 2 * X) for one in answers)
    assert [r.getMessage() for r in caplog.records if "Net stays in PyTorch: outputs" in r.getMessage()]
    assert len(caplog.records) == 1


def test_a_program_that_fails_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError("no such kernel\nand more")

    clock = Clock()
    graph = doubling(clock)
    graph.offer("tuned", clock.program(1.0, fail))
    with caplog.at_level(logging.WARNING):
        assert torch.equal(called(graph, 2)[1], 2 * X)
    assert caplog.messages == ["Net stays in PyTorch: the tuned program failed: no such kernel"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_answers_that_are_no_numbers_are_equal_to_themselves_alone(value: float) -> None:
    clock = Clock()
    graph = doubling(clock)
    graph.offer("tuned", clock.program(1.0, lambda x: torch.full_like(x, value)))
    called(graph, 6)
    assert graph.in_use == "PyTorch"


def test_a_graph_serves_its_own_weights_and_shapes_as_they_were() -> None:
    weight = torch.ones(2)
    graph = doubling(Clock(), weight)
    assert graph.serves([weight], [torch.zeros(4)])
    assert not graph.serves([weight.clone()], [X])
    assert not graph.serves([weight], [torch.zeros(5)])
    weight.add_(1)
    assert not graph.serves([weight], [X])


@pytest.mark.parametrize(
    "other",
    [X.double(), X.long(), X.to("meta"), X.reshape(2, 2), 4.0],
    ids=["double", "long", "meta", "shape", "number"],
)
def test_a_graph_serves_only_inputs_of_its_shapes_types_and_devices(other: Any) -> None:
    graph = doubling(Clock())
    assert graph.fits([X + 1])
    assert not graph.fits([other])


def test_inputs_that_vary_keep_their_type_and_device() -> None:
    varying = VaryingInputs(places={0: ((1, 8),)}, named={}, numbers=(1,))
    examples = [_form(X), _form(4)]
    for value, fits in ((X[:2], True), (X.double(), False), (X.to("meta"), False), (torch.ones(9), False)):
        assert varying.fit([_form(value), _form(2)], examples) is fits


def test_the_tuning_process_runs_only_when_nobody_else_wants_to() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    let_others_first(process.pid)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE
    process.communicate(b"\n")
    let_others_first(process.pid)  # it has ended: nothing happens


@pytest.mark.parametrize(
    ("dtype", "kind", "off", "stays"),
    [
        ("float32", torch.float32, 2e-3, True),
        ("tf32_convolutions", torch.float32, 2e-3, False),
        ("tf32_convolutions", torch.float32, 2e-2, True),
        ("float32", torch.float16, 2e-2, False),
        ("float32", torch.float16, 5e-2, True),
    ],
)
def test_answers_may_be_as_far_off_as_their_type_is(dtype: str, kind: Any, off: float, stays: bool) -> None:
    """PyTorch's own are as far from exact ones."""
    clock, values = Clock(), X.to(kind)
    graph = doubling(clock, example=values, dtype=dtype)
    graph.offer("tuned", clock.program(1.0, lambda x: (2 + 2 * off) * x))
    for _ in range(6):
        graph([values])
    assert graph.in_use == ("PyTorch" if stays else "tuned")
