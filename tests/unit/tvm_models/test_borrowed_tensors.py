"""Tensors of a caller are used where they are, on the caller's stream; what can't be used so is refused."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.programs import CompiledProgram
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.state import KeptState
from tuneloom.tuners.tvm.runner.tensors import as_given, borrowed, is_tensor, queued_on

ONE = np.arange(6, dtype=np.float32).reshape(2, 3)
INFO = {"name": "x", "shape": [2, 3], "dtype": "float32"}
GPU = SimpleNamespace(dlpack_device_type=lambda: 2, index=1)
"""A device of TVM's that is not there."""


@pytest.fixture
def tvm() -> Any:
    return load_tvm()


def doubling(tvm: Any) -> Model:
    """A model whose program writes twice its input where the virtual machine would."""
    program = CompiledProgram.__new__(CompiledProgram)
    program.device, program._outputs, program.parameters = tvm.cpu(), 1, []
    program._main = lambda value: tvm.runtime.tensor(2 * np.from_dlpack(value))
    model = Model.__new__(Model)
    model.manifest = {"inputs": [INFO], "outputs": [{**INFO, "name": "y"}], "pad": True}
    model.state, model.sizes = KeptState(model.manifest), None
    model._variants = [({"inputs": [INFO]}, program)]
    return model


def test_a_tensor_of_the_device_is_read_where_it_is(tvm: Any) -> None:
    given = tvm.runtime.tensor(ONE)
    read = borrowed(given, INFO, tvm.cpu())
    np.from_dlpack(given)[0, 0] = 77
    assert np.from_dlpack(read)[0, 0] == 77


def test_tensors_in_give_tensors_out(tvm: Any) -> None:
    (made,) = doubling(tvm).run([tvm.runtime.tensor(ONE)])
    assert is_tensor(made) and np.array_equal(np.from_dlpack(made), 2 * ONE)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (ONE.astype(np.float64), r"x must be float32 \(2, 3\), got float64 \(2, 3\)"),
        (ONE[:1], r"takes x \(2, 3\), got \(1, 3\)"),
    ],
)
def test_a_tensor_of_another_type_or_shape_is_refused_and_not_padded(
    tvm: Any, value: Any, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        doubling(tvm).run([tvm.runtime.tensor(value)])


def test_a_tensor_of_another_device_is_refused(tvm: Any) -> None:
    with pytest.raises(Refused, match=r"x is not on .* where the model runs; move it there"):
        borrowed(tvm.runtime.tensor(ONE), INFO, GPU)


def test_an_array_beside_tensors_is_put_on_the_device(tvm: Any) -> None:
    assert np.array_equal(np.from_dlpack(borrowed(ONE, INFO, tvm.cpu())), ONE)


def test_a_tensor_that_is_not_in_order_is_refused_with_the_remedy(tvm: Any) -> None:
    class Turned:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **options: Any) -> Any:
            return np.asfortranarray(np.ones((64, 64), np.float32)).__dlpack__()

    with pytest.raises(Refused, match=r"x can't be used where it is .* give a contiguous copy"):
        borrowed(Turned(), {**INFO, "shape": [64, 64]}, tvm.cpu())


class Tensor:
    """One of PyTorch's, as far as it is asked."""


def pretended_torch(**functions: Any) -> SimpleNamespace:
    stream = SimpleNamespace(cuda_stream=4711)
    cuda = SimpleNamespace(current_stream=lambda index: stream if index == 1 else None)
    return SimpleNamespace(
        Tensor=Tensor, cuda=cuda, from_dlpack=lambda tensor: ("torch", tensor), **functions
    )


def test_work_goes_to_the_current_stream_of_pytorch_or_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tvm_ffi

    monkeypatch.setitem(sys.modules, "torch", pretended_torch())
    monkeypatch.setattr(tvm_ffi, "use_raw_stream", lambda device, stream: (device, stream))
    assert queued_on(GPU, [Tensor()], None) == (GPU, 4711)
    assert queued_on(GPU, [Tensor()], 0) == (GPU, 0)
    assert queued_on(GPU, [object()], 12) == (GPU, 12)


def test_tensors_of_pytorch_give_tensors_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", pretended_torch())
    assert as_given(Tensor(), "made") == ("torch", "made") and as_given(object(), "made") == "made"
