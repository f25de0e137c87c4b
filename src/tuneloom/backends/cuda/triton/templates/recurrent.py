"""Recurrent layers as one kernel: blocks keep rows of the matrix in registers and meet after every step.

A block computes some units of the state. The state is in global memory, twice, so that nobody writes what
another still reads; a counter for each sequence says how many blocks have written theirs. Directions of a
layer are blocks of their own.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil

from tuneloom.backends.cuda.code import Argument
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.programs import KernelText, TritonProgram
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, TensorType

GATES = {"tuneloom.lstm": 4, "tuneloom.gru": 3}
_MOST_WEIGHTS = 128
"""How many numbers of the matrix a thread keeps."""
_FEW_UNITS = 32
"""One block computes a step of so many units sooner than several meet."""
_SIGMOID = "(1.0 / (1.0 + tl.exp(-({}))))"
_TANH = "(1.0 - 2.0 / (tl.exp(2.0 * ({})) + 1.0))"


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a layer: its place among them, and how many inputs and outputs each has."""

    number: int
    backwards: bool
    takes: int
    gives: int

    def input(self, number: int) -> str:
        """The name of one of its inputs."""
        return f"input{self.number * self.takes + number}"

    def output(self, number: int) -> str:
        """The name of one of its outputs."""
        return f"output{self.number * self.gives + number}"


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A recurrent layer; `width` is how many outputs of its matrix are side by side."""

    gates: int
    steps: int
    batch: int
    hidden: int
    width: int
    directions: tuple[Direction, ...]

    @property
    def is_lstm(self) -> bool:
        return self.gates == 4

    @property
    def padded(self) -> int:
        """The hidden units up to a power of two."""
        return 1 << (self.hidden - 1).bit_length()


def _found(meaning: Meaning) -> Recurrence | None:
    step = meaning.steps[0] if meaning.steps else None
    if step is None or step.operator not in GATES:
        return None
    steps, batch, hidden = step.result.shape
    firsts = [each for each in meaning.steps if each.attributes["result"] == 0]
    gives = len(meaning.steps) // len(firsts)
    directions = tuple(
        Direction(number, bool(each.attributes["backwards"]), len(each.operands), gives)
        for number, each in enumerate(firsts)
    )
    return Recurrence(GATES[step.operator], steps, batch, hidden, int(step.attributes["width"]), directions)


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = _found(meaning)
    if found is None:
        return None
    knobs = {
        "units": tuple(each for each in (8, 16, 32, 64, 128) if each < 2 * max(found.hidden, 8)),
        "warps": (2, 4, 8, 16),
    }
    alone = [(found.padded, 16), (found.padded, 8)]  # one block has nobody to wait for
    several = [(16, 4), (32, 4), (8, 4), (16, 2), (8, 2), (16, 8), (32, 8), (32, 16), (64, 16)]
    sizes = [*alone, *several] if found.padded <= _FEW_UNITS else [*several, *alone]
    guesses = [{"units": min(units, knobs["units"][-1]), "warps": warps} for units, warps in sizes]
    fitting = [
        each for n, each in enumerate(guesses) if each not in guesses[:n] and not _refusal(meaning, gpu, each)
    ]
    return KnobChoices(knobs=knobs, guesses=tuple(fitting))


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = _found(meaning)
    assert found is not None
    threads = configuration["warps"] * 32
    kept = found.gates * configuration["units"] * found.padded / threads
    if kept > _MOST_WEIGHTS:
        return f"{kept:.0f} numbers of the matrix don't fit into the registers of a thread"
    blocks = ceil(found.hidden / configuration["units"]) * found.batch * len(found.directions)
    if blocks > gpu.multiprocessors * max(1, gpu.registers // (threads * 255)):
        return f"{blocks} blocks do not run side by side"
    return ""


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = _found(meaning)
    if found is None:
        raise Unfit("no recurrent layer")
    units = configuration["units"]
    blocks = ceil(found.hidden / units)
    draft = Draft(meaning, scratch=("int32", "float32"))
    for each in found.directions:
        alone = len(found.directions) == 1
        with nullcontext() if alone else draft.block(f"if tl.program_id(2) == {each.number}:"):
            _weights(draft, found, each, units)
            with draft.block(f"for t in range(0, {found.steps}):"):
                _step(draft, found, each, blocks)
            _ends(draft, found, each)
    grid = (blocks, found.batch, len(found.directions))
    kernel = draft.text("recurrent", grid, warps=configuration["warps"])
    counters = TensorType(shape=(len(found.directions) * found.batch,), dtype="int32")
    states = TensorType(shape=(len(found.directions), 2, found.batch, found.hidden), dtype="float32")
    kernels = (_cleared(meaning, counters.shape[0]), kernel) if blocks > 1 else (kernel,)
    return TritonProgram(kernels=kernels, scratch=(counters, states))


def _cleared(meaning: Meaning, count: int) -> KernelText:
    """The kernel that sets the counters to nothing."""
    draft = Draft(meaning, scratch=("int32", "float32"))
    size = 1 << (count - 1).bit_length()
    draft.line(f"b = tl.arange(0, {size})")
    draft.line(f"tl.store(scratch0 + b, tl.zeros(({size},), tl.int32), mask=b < {count})")
    return draft.text("cleared", (1, 1, 1), warps=1, arguments=(Argument("scratch", 0, "int32"),))


def _weights(draft: Draft, found: Recurrence, way: Direction, units: int) -> None:
    """Names for the units of this block, its rows of the matrix, and its part of the first state."""
    hidden, width = found.hidden, found.width
    lengths = 4 if found.is_lstm else 3
    draft.line("b = tl.program_id(1)")
    draft.line(f"u = tl.program_id(0) * {units} + tl.arange(0, {units})")
    draft.line(f"k = tl.arange(0, {found.padded})")
    draft.line(f"u_ok = u < {hidden}")
    draft.line(f"ok = u_ok[:, None] & (k < {hidden})[None, :]")
    for gate in range(found.gates):
        draft.line(f"row{gate} = ({gate * hidden} + u)[:, None]")
        where = f"(row{gate} // {width} * {hidden} + k[None, :]) * {width} + row{gate} % {width}"
        draft.line(f"w{gate} = tl.load({way.input(1)} + {where}, mask=ok, other=0.0)")
    draft.line(f"length = tl.load({way.input(lengths)} + b)")
    draft.line(f"h = tl.load({way.input(2)} + b * {hidden} + u, mask=u_ok, other=0.0)")
    if found.is_lstm:
        draft.line(f"c = tl.load({way.input(3)} + b * {hidden} + u, mask=u_ok, other=0.0)")
    else:
        draft.line(f"bias = tl.load({way.input(4)} + u, mask=u_ok, other=0.0)")


def _step(draft: Draft, found: Recurrence, way: Direction, blocks: int) -> None:
    """One step: inputs are read before the others are waited for."""
    hidden, batch, gates = found.hidden, found.batch, found.gates
    counter = f"scratch0 + {way.number * batch} + b"
    states = f"scratch1 + {way.number * 2 * batch * hidden}"
    draft.line("going = t < length")
    draft.line("place = tl.where(going, length - 1 - t, t)" if way.backwards else "place = t")
    for gate in range(gates):
        where = f"(place * {batch} + b) * {gates * hidden} + {gate * hidden} + u"
        draft.line(f"x{gate} = tl.load({way.input(0)} + {where}, mask=u_ok, other=0.0)")
    if blocks > 1:
        draft.line(f'while tl.atomic_add({counter}, 0, sem="acquire", scope="gpu") < t * {blocks}:')
        draft.line("    pass")
    old = f"{states} + ((t % 2) * {batch} + b) * {hidden} + k"
    draft.line(f"before = tl.load({old}, mask=(k < {hidden}) & (t > 0), other=0.0, volatile={blocks > 1})")
    draft.line(
        f"first = tl.load({way.input(2)} + b * {hidden} + k, mask=(k < {hidden}) & (t == 0), other=0.0)"
    )
    draft.line("state = (before + first)[None, :]")
    for gate in range(gates):
        draft.line(f"s{gate} = tl.sum(w{gate} * state, axis=1)")
    _cell(draft, found)
    draft.line(f"new = {states} + (((t + 1) % 2) * {batch} + b) * {hidden} + u")
    draft.line("tl.store(new, h, mask=u_ok)")
    out = f"{way.output(0)} + (place * {batch} + b) * {hidden} + u"
    draft.line(f"tl.store({out}, tl.where(going, h, 0.0), mask=u_ok)")
    draft.line("tl.debug_barrier()")
    if blocks > 1:
        draft.line(f'tl.atomic_add({counter}, 1, sem="release", scope="gpu")')


def _cell(draft: Draft, found: Recurrence) -> None:
    """What the gates make of the state; it stays what it is when a sequence is over."""
    if found.is_lstm:
        draft.line(f"into, out, kept = {', '.join(_SIGMOID.format(f's{n} + x{n}') for n in range(3))}")
        draft.line(f"c_new = kept * c + into * {_TANH.format('s3 + x3')}")
        draft.line("c = tl.where(going, c_new, c)")
        draft.line(f"h = tl.where(going, out * {_TANH.format('c_new')}, h)")
        return
    draft.line(f"update, reset = {_SIGMOID.format('s0 + x0')}, {_SIGMOID.format('s1 + x1')}")
    draft.line(f"fresh = {_TANH.format('x2 + reset * (s2 + bias)')}")
    draft.line("h = tl.where(going, fresh + update * (h - fresh), h)")


def _ends(draft: Draft, found: Recurrence, way: Direction) -> None:
    for number, name in enumerate("hc" if found.is_lstm else "h", 1):
        draft.line(f"tl.store({way.output(number)} + b * {found.hidden} + u, {name}, mask=u_ok)")


RECURRENT = Template(name="recurrent", space=_space, refusal=_refusal, program=_program)
