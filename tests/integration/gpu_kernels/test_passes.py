"""What GPUs get of a model: the same outputs, in fewer and larger kernels."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model, operators, outputs

from tuneloom.backends.cuda.backend import BACKEND
from tuneloom.backends.cuda.passes.attention import attention_as_one
from tuneloom.backends.cuda.passes.halves import products_in_half
from tuneloom.backends.cuda.passes.rms_norms import rms_norms_as_one
from tuneloom.backends.cuda.passes.spelled_out import attention_loops
from tuneloom.backends.cuda.passes.views import reshapes_behind
from tuneloom.backends.resolving import resolve_target

pytestmark = pytest.mark.integration


def linear(builder: Any, values: list[Any]) -> Any:
    """A product in half precision, as importers write it, on a matrix that was flattened for it."""
    from tvm import relax

    x, weight = values
    flat = builder.emit(relax.op.reshape(x, (6, 8)))
    wide = [builder.emit(relax.op.astype(one, "float32")) for one in (flat, weight)]
    product = builder.emit(relax.op.matmul(*wide))
    rounded = builder.emit(relax.op.astype(product, "float16"))
    restored = builder.emit(relax.op.reshape(rounded, (2, 3, 16)))
    return relax.op.nn.relu(restored)


def attention(builder: Any, values: list[Any]) -> Any:
    """Attention as PyTorch writes it out, with rows of zeros for rows without a finite score."""
    from tvm import relax

    op = relax.op
    query, key, value = (builder.emit(op.astype(one, "float32")) for one in values)
    scale = relax.const(np.float32(0.5))
    rows = builder.emit(op.reshape(builder.emit(op.multiply(query, scale)), (6, 5, 4)))
    turned = builder.emit(op.permute_dims(key, [0, 1, 3, 2]))
    columns = builder.emit(op.reshape(builder.emit(op.multiply(turned, scale)), (6, 4, 5)))
    scores = builder.emit(op.reshape(builder.emit(op.matmul(rows, columns)), (2, 3, 5, 5)))
    shares = builder.emit(op.nn.softmax(scores, axis=-1))
    nothing = builder.emit(op.equal(scores, relax.const(np.float32(-np.inf))))
    kept = builder.emit(op.where(nothing, builder.emit(op.zeros_like(shares)), shares))
    flat = builder.emit(op.reshape(kept, (6, 5, 5)))
    done = builder.emit(op.matmul(flat, builder.emit(op.reshape(value, (6, 5, 4)))))
    return op.astype(builder.emit(op.reshape(done, (2, 3, 5, 4))), "float16")


def test_a_product_of_halves_reads_halves_and_sums_in_single_precision() -> None:
    plain = model(linear, ((2, 3, 8), "float16"), ((8, 16), "float16"))
    changed = products_in_half(plain)
    (product,) = (
        binding.value
        for binding in changed["main"].body.blocks[0].bindings
        if binding.value.op.name == "relax.matmul"
    )
    assert [str(one.ty.dtype) for one in product.args] == ["float16", "float16"]
    assert str(product.ty.dtype) == "float32"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-3)


def test_an_activation_behind_a_product_is_not_kept_from_it_by_a_reshape() -> None:
    plain = model(linear, ((2, 3, 8), "float16"), ((8, 16), "float16"))
    changed = reshapes_behind(plain)
    names = operators(changed)
    assert names.index("relax.nn.relu") == names.index("relax.matmul") + 2
    assert names[-1] == "relax.reshape"
    np.testing.assert_array_equal(outputs(changed), outputs(plain))


def test_a_factor_for_each_column_is_not_kept_from_a_product_either() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        product = builder.emit(relax.op.matmul(*values[:2]))
        wide = builder.emit(relax.op.reshape(product, (2, 3, 16)))
        factor = relax.const(np.arange(16, dtype="float32").reshape(1, 1, 16))
        return relax.op.add(values[2], builder.emit(relax.op.multiply(wide, factor)))

    plain = model(body, ((6, 8), "float32"), ((8, 16), "float32"), ((2, 3, 16), "float32"))
    changed = reshapes_behind(plain)
    names = operators(changed)
    assert names.index("relax.multiply") == names.index("relax.matmul") + 1 and names[-1] == "relax.reshape"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)


def test_written_out_attention_becomes_one_operator_of_halves() -> None:
    plain = model(attention, *[((2, 3, 5, 4), "float16")] * 3)
    changed = reshapes_behind(attention_as_one(plain))
    names = operators(changed)
    assert "relax.nn.attention" in names
    assert not {"relax.matmul", "relax.nn.softmax", "relax.astype"} & set(names)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-2, atol=1e-3)


def test_attention_without_an_axis_for_the_batch_is_one_operator_too() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        query, key, value = values
        turned = builder.emit(relax.op.permute_dims(key, [0, 2, 1]))
        scores = builder.emit(relax.op.matmul(query, turned))
        scaled = builder.emit(relax.op.divide(scores, relax.const(np.float32(2.0))))
        return relax.op.matmul(builder.emit(relax.op.nn.softmax(scaled, axis=-1)), value)

    plain = model(body, *[((3, 5, 4), "float32")] * 3)
    changed = reshapes_behind(attention_as_one(plain))
    assert "relax.nn.attention" in operators(changed) and "relax.matmul" not in operators(changed)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_a_product_with_softmax_over_another_axis_is_no_attention() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        scores = builder.emit(relax.op.matmul(values[0], values[1]))
        return relax.op.matmul(builder.emit(relax.op.nn.softmax(scores, axis=1)), values[2])

    module = model(body, *[((2, 3, 4, 4), "float32")] * 3)
    assert "relax.nn.attention" not in operators(attention_as_one(module))


def test_transpositions_of_a_slice_are_joined_and_read_in_place() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        turned = builder.emit(relax.op.permute_dims(values[0], [2, 0, 1, 3]))
        part = builder.emit(relax.op.take(turned, relax.const(1, "int64"), axis=0))
        return relax.op.permute_dims(builder.emit(relax.op.permute_dims(part, [1, 0, 2])), [1, 0, 2])

    plain = model(body, ((2, 5, 3, 4), "float32"))
    changed = reshapes_behind(plain)
    assert operators(changed)[0] == "relax.strided_slice"
    assert operators(changed).count("relax.permute_dims") <= 1
    np.testing.assert_array_equal(outputs(changed), outputs(plain))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_attention_has_loops_of_its_own_type(dtype: str) -> None:
    from tvm import relax

    module = model(lambda _, values: relax.op.nn.attention(*values), *[((2, 5, 3, 4), dtype)] * 3)
    loops = relax.transform.LegalizeOps({"relax.nn.attention": attention_loops})(module)
    assert str(loops["main"].ret_ty.dtype) == dtype
    query, key, value = (
        np.random.default_rng(0).standard_normal((3, 2, 5, 3, 4)).astype(dtype).astype("float64")
    )
    scores = np.einsum("bihd,bjhd->bhij", query, key) / 2
    shares = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    expected = np.einsum("bhij,bjhd->bihd", shares, value)
    np.testing.assert_allclose(outputs(loops), expected, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("axis", [-1, 1])
def test_a_written_out_rms_norm_is_one_operator_along_rows(axis: int) -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op, x = relax.op, values[0]
        square = builder.emit(op.power(x, relax.const(np.float32(2.0))))
        mean = builder.emit(op.mean(square, axis=[axis], keepdims=True))
        shifted = builder.emit(op.add(mean, relax.const(np.float32(1e-6))))
        return op.multiply(x, builder.emit(op.rsqrt(shifted)))

    plain = model(body, ((2, 3, 8), "float32"))
    changed = rms_norms_as_one(plain)
    assert ("relax.nn.rms_norm" in operators(changed)) == (axis == -1)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)


def test_values_that_are_clipped_behind_a_product_are_clipped_before_their_reshape() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        rows = builder.emit(relax.op.matmul(*values))
        return relax.op.clip(builder.emit(relax.op.reshape(rows, (1, 4, 8))), -0.5, 0.5)

    plain = model(body, ((4, 6), "float32"), ((6, 8), "float32"))
    changed = reshapes_behind(plain)
    assert operators(changed)[-1] == "relax.reshape"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)


def test_a_mean_reads_what_was_transposed_for_it_as_it_was() -> None:
    def body(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        turned = builder.emit(relax.op.permute_dims(values[0], [0, 2, 1]))
        wide = builder.emit(relax.op.expand_dims(turned, 2))
        mean = builder.emit(relax.op.mean(wide, [2, 3], keepdims=True))
        return relax.op.reshape(builder.emit(relax.op.squeeze(mean, [3])), (2, 5))

    plain = model(body, ((2, 7, 5), "float32"))
    changed = reshapes_behind(plain)
    assert [name for name in operators(changed) if name != "relax.reshape"] == ["relax.mean"]
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)


def test_a_mean_that_leaves_axes_in_another_order_keeps_its_transposition() -> None:
    def body(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        return relax.op.mean(builder.emit(relax.op.permute_dims(values[0], [2, 1, 0])), [1])

    plain = model(body, ((2, 7, 5), "float32"))
    assert operators(reshapes_behind(plain)) == ["relax.permute_dims", "relax.mean"]


def test_a_default_schedule_that_raises_leaves_its_kernel_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tvm import relax
    from tvm.s_tir.dlight import gpu

    def refuse(*_: Any) -> None:
        raise RuntimeError("there are some consumers that are not properly inlined")

    monkeypatch.setattr(gpu.Matmul, "apply", refuse)
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    plain = model(lambda _, values: relax.op.matmul(*values), *(((64, 64), "float32"),) * 2)
    loops = BACKEND.default_module(relax.transform.LegalizeOps()(plain), target)
    assert "threadIdx.x" in loops["matmul"].script()
