"""Triton programs run by Triton's interpreter on NumPy arrays, in a process with TRITON_INTERPRET=1."""

import json
import random
import sys
from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from support.kernels.cases import CASES
from support.kernels.meanings import computed, numpy_type, random_inputs
from tuneloom.backends.cuda.triton.claims import Configuration, TritonClaim
from tuneloom.backends.cuda.triton.compiling import function_of
from tuneloom.backends.cuda.triton.implementer import triton_claim
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.meaning import Meaning

Array = NDArray[Any]
_FEW_BLOCKS = 24
_DRAWN = 200


class _Memory:
    """As much of a PyTorch tensor as the interpreter asks for, over an array."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.dtype = str(array.dtype)

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def untyped_storage(self) -> "_Memory":
        return self

    def cpu(self) -> "_Memory":
        return self

    def new_empty(self, _size: int, device: str) -> "_Memory":
        return _Memory(self._array)

    def set_(self, *_view: Any) -> None:
        """The storage is the array already."""

    def copy_(self, _other: "_Memory") -> None:
        """What was written is in the array already."""

    def size(self) -> tuple[int, ...]:
        return self._array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self._array.itemsize for step in self._array.strides)

    def storage_offset(self) -> int:
        return 0


def interpreted(meaning: Meaning, program: TritonProgram, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a program; they and its scratch memory start as NaN (or -77), so that gaps show."""
    outputs = [
        _poisoned(meaning.type_of(each).shape, meaning.type_of(each).dtype) for each in meaning.outputs
    ]
    scratch = [_poisoned(each.shape, each.dtype) for each in program.scratch]
    memory = {"input": [np.ascontiguousarray(each) for each in inputs], "output": outputs, "scratch": scratch}
    for kernel in program.kernels:
        arguments = [_Memory(memory[each.role][each.number]) for each in kernel.arguments]
        function_of(kernel)[kernel.grid](*arguments)
    return outputs


def _poisoned(shape: tuple[int, ...], dtype: str) -> Array:
    kind = numpy_type(dtype)
    poison = -77 if kind.kind in "iu" else (False if kind.kind == "b" else float("nan"))
    return np.full(max(prod(shape), 1), poison, kind).reshape(shape)


def _index(self: Any) -> int:
    return int(self.handle.data.item())


def mend_interpreter() -> None:
    """Mend what the interpreter can't do: computed bounds of loops, narrow products, truths in masks.

    NumPy refuses the first, the second are wrong, and a single truth that joins a block of them makes it a
    block of numbers.
    """
    from triton.runtime import interpreter

    patch, multiply = interpreter._patch_lang_tensor, interpreter.InterpreterBuilder.create_dot

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        tensor.__index__ = _index

    def create_dot(self: Any, a: Any, b: Any, *others: Any) -> Any:
        return multiply(self, *(_widened(each, interpreter.TensorHandle) for each in (a, b)), *others)

    interpreter._patch_lang_tensor = patched
    interpreter.InterpreterBuilder.create_dot = create_dot
    for name, place in (("create_masked_load", 1), ("create_masked_store", 2)):
        setattr(
            interpreter.InterpreterBuilder, name, _with_truths(interpreter.InterpreterBuilder, name, place)
        )


def _with_truths(builder: Any, name: str, place: int) -> Any:
    """A function of the interpreter that takes its mask as truths, whatever it is."""
    function = getattr(builder, name)

    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        mask = arguments[place]
        if not isinstance(mask, np.ndarray):
            mask.data = mask.data.astype(np.bool_)
        return function(self, *arguments, **named)

    return called


def _widened(handle: Any, kind: Any) -> Any:
    import triton.language as tl

    narrow = {tl.bfloat16: ml_dtypes.bfloat16, tl.float8e4nv: ml_dtypes.float8_e4m3fn}.get(
        handle.dtype.scalar
    )
    if narrow is None:
        return handle
    return kind(handle.data.view(narrow).astype(np.float32), tl.float32)


def difference(got: Array, right: Array) -> float:
    """How far an output is off, relative to its size; infinite if it is not finite or not written."""
    values, wanted = got.astype(np.float64), right.astype(np.float64)
    if not np.isfinite(values).all():
        return float("inf")
    return float(np.linalg.norm(values - wanted) / (np.linalg.norm(wanted) or 1.0))


def main(names: Sequence[str]) -> dict[str, list[float]]:
    """Run cases by name, each in two configurations; returns how far outputs are off."""
    mend_interpreter()
    results: dict[str, list[float]] = {}
    for name in names:
        meaning = CASES[name][1]()
        claim = triton_claim(meaning, {"kind": "cuda", "arch": "sm_90"})
        assert claim is not None, name
        inputs = random_inputs(meaning)
        right = computed(meaning, inputs)
        found = [0.0] * len(right)
        for configuration in chosen(claim):
            outputs = interpreted(meaning, claim.program(configuration), inputs)
            found = [
                max(old, difference(*pair))
                for old, pair in zip(found, zip(outputs, right, strict=True), strict=True)
            ]
        results[name] = found
    return results


def chosen(claim: TritonClaim) -> list[Configuration]:
    """Configurations to check: the first guess, and one that differs from it in most knobs, of few blocks."""
    first = claim.space.guesses[0]
    source = random.Random(1)
    drawn = [
        {name: source.choice(values) for name, values in claim.space.knobs.items()} for _ in range(_DRAWN)
    ]
    others = [each for each in drawn if not claim.refusal(each)]
    others.sort(key=lambda each: -sum(each[name] != first[name] for name in first))
    small = (each for each in others if prod(claim.program(each).kernels[0].grid) <= _FEW_BLOCKS)
    return [first, *islice(small, 1)]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:] or list(CASES))))
