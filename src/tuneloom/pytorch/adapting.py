"""A graph that runs in PyTorch until something faster is there and has given the same answers."""

import logging
import operator
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tuneloom.compiler.threads import use_cores
from tuneloom.model import TF32_TYPES
from tuneloom.pytorch.graphs import PLAIN, Graph
from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.weights import ALIGNMENT

LOG = logging.getLogger("tuneloom.pytorch")
_ROUNDS = 5
"""Calls for which both run before one of them is chosen: the first compares outputs, the others times."""
_SHORT_S, _REPEATS = 1e-3, 8
"""A run that takes less is repeated so often: what else runs in between must not count."""
_CLEARLY = 0.98
"""What a program may take of the current one's time to replace it: less could be noise."""
_TOLERANCES = {torch.float16: 3e-2, torch.bfloat16: 1e-1}
"""PyTorch's own outputs of deep networks are as far from exact ones in these types."""
_TOLERANCE, _ROUNDED, _ROUGH = 1e-3, 1e-2, 0.2
"""In float32, where TF32 rounds numbers, and in other types."""
_VERSION = operator.attrgetter("_version")
"""How often a tensor was changed in place."""
_PLACE = torch.Tensor.data_ptr
"""Where its values are: `weight.data = other` is no change in place."""
_FORM = operator.attrgetter("shape", "dtype", "device")

Run = Callable[[Sequence[Any]], Any]


class DeployedGraph:
    """The bundle of a graph on PyTorch's own tensors: nothing is copied that lies in one aligned piece."""

    def __init__(self, folder: Path, inputs: Sequence[int], answer: "AnswerForm") -> None:
        use_cores(torch.get_num_threads())
        model = Model(folder)
        self._run = model.on_tensors if model.sizes is None else model.run
        self._inputs, self._answer, self._is_tensor = tuple(inputs), answer, answer.is_tensor
        self._lock = threading.Lock()

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """All outputs of the graph; may be called by several threads."""
        values = [_placed(arguments[place]) for place in self._inputs]
        with self._lock:
            found = self._run(values)
        return found if self._is_tensor and type(found[0]) is torch.Tensor else self._answer.filled(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """Which outputs of a graph are tensors; all others are the same for every call."""

    tensors: tuple[int, ...]
    others: tuple[Any, ...]

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor and nothing else."""
        return self.tensors == (0,) and len(self.others) == 1

    @classmethod
    def of(cls, answer: Sequence[Any]) -> "AnswerForm":
        tensors = tuple(n for n, one in enumerate(answer) if isinstance(one, torch.Tensor))
        return cls(
            tensors=tensors, others=tuple(None if n in tensors else one for n, one in enumerate(answer))
        )

    def filled(self, found: Sequence[Any]) -> list[Any]:
        """An answer with these tensors, of any library that speaks DLPack."""
        answer = list(self.others)
        for place, value in zip(self.tensors, found, strict=True):
            answer[place] = value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)
        return answer


def _placed(tensor: Any) -> Any:
    """A tensor as compiled code takes it."""
    if tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT == 0:
        return tensor.detach() if tensor.requires_grad else tensor
    return tensor.detach().clone(memory_format=torch.contiguous_format)


class AdaptiveGraph:
    """A graph with its weights as they are now; `serves` says whether a call is for it.

    A program that is offered runs beside the current one for a few calls. It is dropped as soon as its
    outputs differ, and replaces the current one if it is faster by `clock`.
    """

    def __init__(
        self, graph: Graph, *, dtype: str = "float32", clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.graph, self.dtype, self._clock = graph, dtype, clock
        self.answer: AnswerForm | None = None
        """Known after the first call."""
        self.final = False
        """Whether nothing more will be offered."""
        self.in_use = "PyTorch"
        self.refused = False
        """Whether nothing can be compiled for it."""
        self._current: Run = lambda arguments: graph.run(*arguments)
        self._offered: tuple[str, Run] | None = None
        self._times: list[tuple[float, float]] = []
        self._counted = [one for one in graph.weights if not one.is_inference()]
        """Weights whose changes PyTorch counts: not those of inference mode."""
        self._versions = list(map(_VERSION, self._counted))
        self._placed = [one for one in graph.weights if type(one) in PLAIN and one.layout == torch.strided]
        self._places = list(map(_PLACE, self._placed))
        self._forms = list(map(_form, graph.examples))

    def serves(self, weights: Sequence[Any], inputs: Sequence[Any]) -> bool:
        """Whether a call with these weights and inputs is the one that was captured."""
        return self.keeps(weights) and self.fits(inputs)

    def keeps(self, weights: Sequence[Any]) -> bool:
        """Whether these are the weights that were captured, as they were."""
        return (
            all(map(operator.is_, weights, self.graph.weights))
            and list(map(_VERSION, self._counted)) == self._versions
            and list(map(_PLACE, self._placed)) == self._places
        )

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether all but the values of tensors is as it was captured, or sizes are between their bounds."""
        forms = list(map(_form, inputs))
        if self.graph.varying is None:
            return forms == self._forms
        return not self.refused and self.graph.varying.fit(forms, self._forms)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        if self._offered is not None:
            return self._beside(arguments, *self._offered)
        found = self._current(arguments)
        if self.answer is None:
            self.answer = AnswerForm.of(found)
        return found

    @property
    def stays(self) -> bool:
        """Whether it runs in PyTorch for good."""
        return self.final and self._offered is None and self.in_use == "PyTorch"

    def offer(self, name: str, program: Run) -> None:
        """Try a program in the next calls; a later offer takes the place of one that is still tried."""
        self._times = []
        self._offered = (name, program)

    def _beside(self, arguments: Sequence[Any], name: str, program: Run) -> Any:
        expected, current_s = self._timed(self._current, arguments)
        try:
            found, offered_s = self._timed(program, arguments)
            gap = max(map(self._gap, found, expected), default=0.0)
        except Exception as error:
            return self._drop(expected, f"the {name} program failed: {str(error).splitlines()[0]}")
        if gap > 1.0:
            return self._drop(
                expected, f"outputs of the {name} program differ {gap:.3g} times what is allowed"
            )
        self._times.append((offered_s, current_s))
        if len(self._times) == _ROUNDS:
            self._choose(name, program)
        return expected

    def _drop(self, answer: Any, why: str) -> Any:
        self._offered = None
        LOG.warning("%s stays in %s: %s", self.graph.name, self.in_use, why)
        return answer

    def _choose(self, name: str, program: Run) -> None:
        # Calls of a graph that varies may have had different sizes.
        of_all: Callable[[Iterable[float]], float] = min if self.graph.varying is None else sum
        ours, theirs = (of_all(times) for times in zip(*self._times[1:], strict=True))
        words = f"{ours * 1e3:.3f} ms against {theirs * 1e3:.3f} ms in {self.in_use}"
        self._offered = None
        if ours < _CLEARLY * theirs:
            self._current, self.in_use = program, name
            LOG.info("%s: the %s program is used from now on: %s", self.graph.name, name, words)
        else:
            LOG.info("%s: the %s program is not faster: %s", self.graph.name, name, words)

    def _timed(self, run: Run, arguments: Sequence[Any]) -> tuple[Any, float]:
        """What a run gives, and its time: that of the fastest of several if it is short."""
        found, least_s = self._once(run, arguments)
        for _ in range(_REPEATS - 1 if least_s < _SHORT_S else 0):
            least_s = min(least_s, self._once(run, arguments)[1])
        return found, least_s

    def _once(self, run: Run, arguments: Sequence[Any]) -> tuple[Any, float]:
        started = self._clock()
        found = run(arguments)
        torch.get_device_module(self.graph.device).synchronize()
        return found, self._clock() - started

    def _gap(self, found: Any, expected: Any) -> float:
        """How far outputs are apart, as a multiple of what is allowed."""
        if not isinstance(expected, torch.Tensor):
            return 0.0 if found == expected else float("inf")
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return float("inf")
        one, other = found.double(), expected.double()
        same = (one == other) | (one.isnan() & other.isnan())
        apart = float(torch.where(same, 0.0, one - other).norm())
        scale = float(torch.where(other.isfinite(), other, 0.0).norm()) or 1.0
        return float("inf") if apart != apart else apart / scale / self._allowed(expected.dtype)

    def _allowed(self, kind: torch.dtype) -> float:
        least = _TOLERANCES.get(kind, _TOLERANCE)
        if self.dtype == "float32":
            return least
        return max(least, _ROUNDED) if self.dtype in TF32_TYPES else _ROUGH


def _form(value: Any) -> Any:
    """What an input must have in common with its example: all but the values of a tensor."""
    return _FORM(value) if isinstance(value, torch.Tensor) else (type(value), value)
