"""PyTorch's check for rows without a finite score: left out where nothing masks them, kept otherwise."""

from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.rewriting import name_of
from tuneloom.tuners.tvm.lowering.finite_scores import unmasked_scores

pytestmark = pytest.mark.integration
SHAPE = (2, 3, 5)


def shares(builder: Any, relax: Any, scores: Any) -> Any:
    """What PyTorch makes of attention's scores."""
    op, emit = relax.op, builder.emit
    softmax = emit(op.nn.softmax(scores, -1))
    finite = emit(op.logical_not(emit(op.equal(scores, relax.const(float("-inf"), "float32")))))
    some = emit(op.max(emit(op.astype(finite, "int8")), axis=[-1], keepdims=True))
    none = emit(op.logical_not(emit(op.astype(some, "bool"))))
    return op.where(none, emit(op.full_like(softmax, relax.const(0.0, "float32"))), softmax)


def attention(masked: bool) -> Any:
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    kinds = {"q": (2, 3, 4), "k": (2, 4, 5), "mask": SHAPE}
    given = [relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in kinds.items()]
    with builder.function("main", given):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(given[0], given[1]))
            scores = builder.emit(relax.op.multiply(product, relax.const(0.5, "float32")))
            if masked:
                scores = builder.emit(relax.op.add(scores, given[2]))
            result = builder.emit_output(shares(builder, relax, scores))
        builder.emit_func_output(result)
    return builder.get()


def outputs(module: Any) -> Any:
    tvm = load_tvm()
    from tvm import relax

    random = np.random.default_rng(0)
    values = [random.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4), (2, 4, 5))]
    mask = np.zeros(SHAPE, np.float32)
    mask[0, 0] = -np.inf
    machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
    return machine["main"](*map(tvm.runtime.tensor, (*values, mask))).numpy()


def operators(module: Any) -> set[str]:
    return {name_of(binding.value) for block in module["main"].body.blocks for binding in block.bindings}


def test_rows_of_a_product_are_not_checked() -> None:
    plain = attention(masked=False)
    changed = unmasked_scores(plain)
    assert operators(changed) - {""} == {"matmul", "multiply", "nn.softmax"}
    np.testing.assert_array_equal(outputs(changed), outputs(plain))


def test_a_row_that_a_mask_hides_is_zero() -> None:
    changed = unmasked_scores(attention(masked=True))
    assert "where" in operators(changed)
    found = outputs(changed)
    assert not found[0, 0].any() and np.isfinite(found).all()
