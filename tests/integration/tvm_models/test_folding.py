"""Operators on constants: NumPy's values against those that TVM computes, and what is left alone."""

from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.folding import fold_constants
from tuneloom.tuners.tvm.importing.tflite.known_values import known_value

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def module_of(make: Any) -> Any:
    """A program that returns its input, and something made of constants before it."""
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.Tuple([builder.emit(make(relax)), x]))
        builder.emit_func_output(result)
    return builder.get()


def folded_value(module: Any) -> Any:
    """The constant that is returned."""
    (binding,) = module["main"].body.blocks[0].bindings
    return binding.value.fields[0].value.numpy()


CASES = {
    "permute_dims": lambda r: r.op.permute_dims(r.const(MATRIX)),
    "reshape": lambda r: r.op.reshape(r.const(MATRIX), (2, 6)),
    "broadcast_to": lambda r: r.op.broadcast_to(r.const(MATRIX[:1]), (3, 4)),
    "expand_dims": lambda r: r.op.expand_dims(r.const(MATRIX), [0, 2]),
    "shape_of": lambda r: r.op.shape_to_tensor(r.op.shape_of(r.const(MATRIX))),
    "squeeze": lambda r: r.op.squeeze(r.const(MATRIX[:1])),
    "concat": lambda r: r.op.concat([r.const(MATRIX), r.const(MATRIX)], 1),
    "take": lambda r: r.op.take(r.const(MATRIX), r.const(np.array([2, 0]), "int64"), axis=0, mode="clip"),
    "strided_slice": lambda r: r.op.strided_slice(r.const(MATRIX), [0, 1], [0, 1], [-1, 4], [1, 2]),
    "slice_scatter": lambda r: r.op.slice_scatter(r.const(MATRIX), r.const(MATRIX[:, :2]), 1, 3, 1, axis=1),
    "astype": lambda r: r.op.astype(r.const(np.arange(5), "int64"), "int32"),
    "full": lambda r: r.op.full((2, 3), r.const(7, "int64"), "int64"),
    "multiply": lambda r: r.op.multiply(r.const(MATRIX), r.const(np.float32(0.1))),
    "mod": lambda r: r.op.mod(r.const(np.arange(-6, 6), "int64"), r.const(4, "int64")),
    "astype to float16": lambda r: r.op.astype(r.const(MATRIX * 0.3 - 2e4), "float16"),
    "astype to bfloat16": lambda r: r.op.astype(r.const(MATRIX * 0.3), "bfloat16"),
    "add in bfloat16": lambda r: r.op.add(
        r.const(MATRIX * 0.3, "bfloat16"), r.const(MATRIX[1] * 0.7, "bfloat16")
    ),
    "sqrt": lambda r: r.op.sqrt(r.const(MATRIX * np.float32(0.3) + np.float32(1e-5))),
    "sqrt in float16": lambda r: r.op.sqrt(r.const(MATRIX * 0.3, "float16")),
    "floor_mod": lambda r: r.op.floor_mod(r.const(np.arange(-6, 6), "int64"), r.const(4, "int64")),
}


@pytest.mark.parametrize("name", CASES)
def test_numpy_folds_an_operator_to_what_tvm_computes(name: str) -> None:
    module = module_of(CASES[name])
    from tvm.relax import transform

    value = folded_value(fold_constants(module))
    expected = folded_value(transform.CanonicalizeBindings()(transform.FoldConstant()(module)))
    np.testing.assert_array_equal(value, expected)
    assert value.dtype == expected.dtype


def test_a_chain_of_operators_is_folded_to_its_end() -> None:
    def chain(relax: Any) -> Any:
        doubled = relax.op.add(relax.const(MATRIX), relax.const(MATRIX))
        return relax.op.permute_dims(relax.op.reshape(doubled, (2, 6)))

    np.testing.assert_array_equal(
        folded_value(fold_constants(module_of(chain))), (2 * MATRIX).reshape(2, 6).T
    )


def test_a_range_is_folded_although_tvm_leaves_it() -> None:
    value = folded_value(fold_constants(module_of(lambda relax: relax.op.arange(2, 14, 3, "int64"))))
    np.testing.assert_array_equal(value, np.arange(2, 14, 3))


def test_a_type_that_would_have_to_be_rounded_is_left_to_tvm() -> None:
    module = module_of(lambda relax: relax.op.astype(relax.const(MATRIX * 0.3), "int32"))
    np.testing.assert_array_equal(folded_value(fold_constants(module)), (MATRIX * 0.3).astype(np.int32))


def test_a_product_of_constants_is_rounded_once() -> None:
    left = np.array([[1e8, 1.0, -1e8]], np.float32)
    right = np.ones((3, 1), np.float32)
    module = module_of(lambda relax: relax.op.matmul(relax.const(left), relax.const(right)))
    np.testing.assert_array_equal(folded_value(fold_constants(module)), [[1.0]])


def test_places_outside_a_tensor_are_not_taken_by_numpy() -> None:
    def outside(relax: Any) -> Any:
        return relax.op.take(relax.const(MATRIX), relax.const(np.array([7]), "int64"), axis=0, mode="clip")

    np.testing.assert_array_equal(folded_value(fold_constants(module_of(outside))), MATRIX[2:])


def test_what_depends_on_inputs_need_not_have_loops_for_constants_to_be_folded() -> None:
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 4), "bfloat16"))  # TVM has no loops for such a norm
    with builder.function("main", [x]):
        with builder.dataflow():
            weights = [builder.emit(relax.op.exp(relax.const(MATRIX[n], "bfloat16"))) for n in (0, 1)]
            result = builder.emit_output(relax.op.nn.layer_norm(x, *weights, axes=[-1]))
        builder.emit_func_output(result)
    (norm,) = fold_constants(builder.get())["main"].body.blocks[0].bindings
    found = norm.value.args[1].value.numpy().astype(np.float32)
    np.testing.assert_allclose(found, np.exp(MATRIX[0]), rtol=1e-2)


def test_a_value_bound_to_variables_is_known_and_one_of_an_input_is_not() -> None:
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 4), "float32"))
    with builder.function("main", [x]):
        inner = builder.emit(relax.op.add(relax.const(MATRIX), relax.const(MATRIX)))
        both = builder.emit(relax.op.add(inner, x))
        np.testing.assert_array_equal(known_value(inner, builder), 2 * MATRIX)
        assert known_value(both, builder) is None
        builder.emit_func_output(both)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_numbers_in_half_precision_are_added_in_single_precision(dtype: str) -> None:
    """Added in half precision, they stop growing where one of them is less than half a step."""
    module = module_of(lambda r: r.op.sum(r.const(np.full(20_000, 0.02, np.float32), dtype)))
    assert folded_value(fold_constants(module)).astype(float) == pytest.approx(400, rel=1e-2)
