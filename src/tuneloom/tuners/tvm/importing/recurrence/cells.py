"""LSTM, GRU and plain recurrent cells as values, and kernels of them as functions that write loops.

What depends on the input alone is a matrix product over the whole sequence, made before and tuned like any
other. A kernel goes through the sequence: a step multiplies the state by one matrix and then applies the
gates. Unrolled into operators, a sequence of some hundred steps would take minutes to lower.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

from tuneloom.compiler.lazy import T, relax, tirx
from tuneloom.tuners.tvm.importing.recurrence.activations import Activation

CELL = "tuneloom.cell"
"""The attribute of a kernel that says what it computes, for targets that need another one."""
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""In ONNX's order: input, output, forget, cell; update, reset, hidden."""
_WIDEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The sizes and options of one direction of a recurrent layer."""

    kind: str
    steps: int
    batch: int
    hidden: int
    activations: tuple[Activation, ...]
    backwards: bool = False
    clip: float = 0.0
    peepholes: bool = False
    coupled: bool = False
    reset_after: bool = False
    masked: bool = False
    """Whether steps may be left out: they keep the state and give zeros."""

    @property
    def width(self) -> int:
        """How many outputs of a step are computed at once."""
        return next(size for size in (_WIDEST, 16, 8, 4, 2, 1) if self.hidden % size == 0)

    @property
    def arguments(self) -> dict[str, tuple[int, ...]]:
        """What a kernel is given and makes, by name.

        An LSTM has a memory, and weights to peep at it; a GRU has another bias for the product of its last
        gate. The matrix is packed so that a block of outputs stays in registers while the state is read once.
        """
        one, rows = (self.batch, self.hidden), GATES[self.kind] * self.hidden
        lstm = self.kind == "LSTM"
        return {
            "x": (self.steps, self.batch, rows),
            "r": (rows // self.width, self.hidden, self.width),
            "h0": one,
            **({"c0": one} if lstm else {}),
            "lengths": (self.batch,),
            **({"m": (self.steps, self.batch)} if self.masked else {}),
            **({"p": (3 * self.hidden,)} if lstm else {"rb": (self.hidden,)} if self.kind == "GRU" else {}),
            "y": (self.steps, self.batch, self.hidden),
            "h": one,
            **({"c": one} if lstm else {}),
        }

    @property
    def results(self) -> tuple[str, ...]:
        """Which of them it makes: all states, the last one, and the last memory."""
        return ("y", "h", "c") if self.kind == "LSTM" else ("y", "h")

    @property
    def text(self) -> str:
        """All of it in JSON."""
        return json.dumps(asdict(self))

    def goes_on(self, given: Any, t: Any, b: Any) -> Any:
        """Whether turn t of a sequence changes its state."""
        return given.m[t, b] > T.float32(0.0) if self.masked else t < given.lengths[b]

    def bounded(self, x: Any) -> Any:
        """A gate before its activation, clipped if that is asked for."""
        if not self.clip:
            return x
        limit = tirx.const(self.clip, "float32")
        return T.max(T.min(x, limit), -limit)

    def gate(self, sums: Any, peephole: Any, memory: Any) -> Any:
        """A gate of an LSTM before its activation, which may peep at the memory."""
        return self.bounded(sums + peephole * memory if self.peepholes else sums)


def cells_in(function: Any) -> tuple[Cell, ...]:
    """The cells that a kernel computes, side by side where there are several; none of any other kernel."""
    text = function.attrs.get(CELL) if getattr(function, "attrs", None) else None
    found = [] if text is None else json.loads(str(text))
    return tuple(
        Cell(**each | {"activations": tuple(Activation(**one) for one in each["activations"])})
        for each in (found if isinstance(found, list) else [found])
    )


def packed(weights: Any, cell: Cell) -> Any:
    """Recurrent weights (gates × hidden, hidden) as a kernel reads them: blocks of outputs, then inputs."""
    rows = int(weights.ty.shape.values[0])
    blocks = relax.op.reshape(weights, (rows // cell.width, cell.width, cell.hidden))
    return relax.op.permute_dims(blocks, (0, 2, 1))


def written(cells: Sequence[Cell], write: Callable[[Cell, Any], None]) -> Any:
    """The kernel of some cells; `write` writes the loops of each and gets its arguments by name.

    It takes what all cells are given first, then what they make.
    """
    from tvm.script.ir_builder import IRBuilder
    from tvm.tirx.script import builder

    with IRBuilder() as made, builder.prim_func(s_tir=True):
        builder.func_name(cells[0].kind.lower())
        types = {"lengths": "int32"}
        arguments: list[dict[str, Any]] = [{} for _ in cells]
        for makes in (False, True):
            for cell, own in zip(cells, arguments, strict=True):
                for name, shape in cell.arguments.items():
                    if (name in cell.results) == makes:
                        own[name] = builder.arg(name, builder.buffer(shape, types.get(name, "float32")))
        builder.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        for cell, own in zip(cells, arguments, strict=True):
            write(cell, SimpleNamespace(**own))
    text = cells[0].text if len(cells) == 1 else f"[{', '.join(cell.text for cell in cells)}]"
    return made.get().without_attr("global_symbol").with_attr(CELL, text)


def put(buffer: Any, value: Any, *at: Any) -> None:
    """Write that a value is stored."""
    T.buffer_store(buffer, value, list(at))


def local(*shape: int, scope: str = "local") -> Any:
    """Memory of a block of the kernel."""
    return T.sblock_alloc_buffer(shape, "float32", scope=scope)
