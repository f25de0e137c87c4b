"""Models in half precision: batch norms in weights, products of halves, sums in single precision."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import Body, model, operators, outputs

from tuneloom.backends.cuda.passes.norms import norms_folded
from tuneloom.backends.cuda.passes.precision import halved
from tuneloom.backends.cuda.passes.rounding import in_tf32, weights_rounded
from tuneloom.backends.cuda.tf32 import convolves_in_tf32
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.errors import TargetError
from tuneloom.model import Failure, FailureKind, TensorInfo
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls
from tuneloom.tuners.tvm.measuring import rebuilding
from tuneloom.tuners.tvm.models.compiling import inserts
from tuneloom.tuners.tvm.search.spaces import describe

pytestmark = pytest.mark.integration
RANDOM = np.random.default_rng(3)
MULTIPLIES = ("relax.nn.conv2d", "relax.matmul")
BEGINNING = RANDOM.bit_generator.state


def constant(*shape: int, dtype: str = "float32", low: float = -1.0) -> Any:
    from tvm import relax

    return relax.const(RANDOM.uniform(low, 1.0, shape).astype(dtype))


def normed(builder: Any, value: Any, channels: int, dtype: str) -> Any:
    """A batch norm whose statistics are not trivial."""
    from tvm import relax

    statistics = [constant(channels, dtype=dtype) for _ in range(3)]
    variance = constant(channels, dtype=dtype, low=0.5)
    norm = builder.emit(relax.op.nn.batch_norm(value, *statistics, variance, axis=1, training=False))
    return builder.emit(relax.TupleGetItem(norm, 0))


def block_in(dtype: str) -> Body:
    """Convolutions with batch norms as importers write them in a type, with the same numbers in all."""

    def body(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        op, (x,) = relax.op, values
        RANDOM.bit_generator.state = BEGINNING

        def cast(value: Any, kind: str) -> Any:
            return builder.emit(op.astype(value, kind)) if kind != dtype or kind != "float32" else value

        y = x
        for biased in (False, True):
            weights = constant(8, 8, 3, 3, dtype=dtype)
            wide = [cast(one, "float32") for one in (y, weights)]
            y = cast(builder.emit(op.nn.conv2d(*wide, padding=1)), dtype)
            if biased:
                y = builder.emit(op.add(y, constant(1, 8, 1, 1, dtype=dtype)))
            y = builder.emit(op.nn.relu(normed(builder, y, 8, dtype)))
        return op.add(y, x)

    return body


def network(builder: Any, values: list[Any]) -> Any:
    """A convolution, a written out norm, a gate for each channel, a product and a softmax."""
    from tvm import relax

    op, (x,) = relax.op, values
    y = builder.emit(op.nn.conv2d(x, constant(8, 4, 3, 3), padding=1))
    y = builder.emit(op.nn.silu(normed(builder, y, 8, "float32")))
    squeezed = builder.emit(op.mean(y, [2, 3], keepdims=True))
    gate = builder.emit(op.sigmoid(builder.emit(op.nn.conv2d(squeezed, constant(8, 8, 1, 1)))))
    y = builder.emit(op.multiply(y, gate))
    mean = builder.emit(op.mean(y, [1], keepdims=True))
    spread = builder.emit(op.subtract(y, mean))
    variance = builder.emit(op.mean(builder.emit(op.multiply(spread, spread)), [1], keepdims=True))
    small = relax.const(np.float32(1e-12))
    root = builder.emit(op.sqrt(builder.emit(op.add(variance, small))))
    flat = builder.emit(op.reshape(builder.emit(op.divide(spread, root)), (1, 8 * 36)))
    return op.nn.softmax(builder.emit(op.matmul(flat, constant(8 * 36, 10))))


def lowered(module: Any, dtype: str = "float32", arch: str = "sm_90") -> LoweredModel:
    target = resolve_target(json.dumps({"kind": "cuda", "arch": arch}))
    shapes = [tuple(int(extent) for extent in one.ty.shape.values) for one in module["main"].params]
    inputs = tuple(TensorInfo(name=str(n), shape=shape, dtype="float32") for n, shape in enumerate(shapes))
    imported = ImportedModel(name="it", module=module, inputs=inputs, outputs=(), digest="", dtype=dtype)
    return lower(imported, target)


def test_batch_norms_in_half_precision_are_part_of_the_convolutions_before_them() -> None:
    single, plain = (model(block_in(dtype), ((1, 8, 6, 6), dtype)) for dtype in ("float32", "float16"))
    changed = norms_folded(plain)
    assert "relax.nn.batch_norm" not in operators(changed)
    np.testing.assert_allclose(outputs(changed), outputs(single), rtol=1e-2, atol=5e-2)
    kernels = kernel_calls(lowered(plain).module)
    convolutions = [name for name in kernels if "conv2d" in name]
    assert len(convolutions) == 2 and set(kernels) == {*convolutions, "transpose", "transpose1"}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("biased", [False, True])
def test_a_batch_norm_of_rows_is_part_of_the_product_before_it(dtype: str, biased: bool) -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        y = builder.emit(relax.op.matmul(values[0], constant(6, 8, dtype=dtype)))
        y = builder.emit(relax.op.add(y, constant(8, dtype=dtype))) if biased else y
        wide = builder.emit(relax.op.reshape(y, (1, 2, 5, 8)))
        flat = builder.emit(relax.op.reshape(wide, (2 * 5, 8)))
        return relax.op.reshape(normed(builder, flat, 8, dtype), (2, 5, 8))

    plain = model(body, ((2, 5, 6), dtype))
    changed = norms_folded(plain)
    assert operators(changed) == ["relax.matmul", "relax.reshape", "relax.add", "relax.reshape"]
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-2, "atol": 5e-2}
    np.testing.assert_allclose(outputs(changed), outputs(plain), **close)


def test_a_batch_norm_along_another_axis_than_the_channels_of_a_product_stays_beside_it() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        y = builder.emit(relax.op.matmul(values[0], constant(6, 8)))
        return normed(builder, builder.emit(relax.op.reshape(y, (5, 8, 2))), 8, "float32")

    plain = model(body, ((2, 5, 6), "float32"))
    changed = norms_folded(plain)
    assert operators(changed)[-2:] == ["relax.multiply", "relax.add"]
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5, atol=1e-5)


def test_a_batch_norm_without_a_convolution_is_one_product_and_one_sum() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        return relax.op.nn.relu(normed(builder, values[0], 8, "float32"))

    plain = model(body, ((2, 8, 3, 3), "float32"))
    changed = norms_folded(plain)
    assert operators(changed) == ["relax.multiply", "relax.add", "relax.nn.relu"]
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5, atol=1e-6)


def test_a_group_norm_is_a_norm_of_rows() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        weights = [constant(8), constant(8)]
        return relax.op.nn.group_norm(values[0], *weights, num_groups=2, channel_axis=1, axes=[2, 3])

    plain = model(body, ((2, 8, 3, 5), "float32"))
    changed = norms_folded(plain)
    assert "relax.nn.layer_norm" in operators(changed) and "relax.nn.group_norm" not in operators(changed)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-5), ("float16", 1e-3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_norm_of_whole_images_is_summed_by_channel(dtype: str, most: float, groups: int) -> None:
    from tvm import relax

    shape = (2, 6, 161, 144)
    drawn = RANDOM.standard_normal(6).astype(dtype), RANDOM.standard_normal(6).astype(dtype)

    def body(_builder: Any, values: list[Any]) -> Any:
        weights = [relax.const(one) for one in drawn]
        return relax.op.nn.group_norm(values[0], *weights, num_groups=groups, channel_axis=1, axes=[2, 3])

    changed = norms_folded(model(body, (shape, dtype)))
    assert operators(changed).count("relax.sum") == 4 and "relax.nn.group_norm" not in operators(changed)
    rows = np.random.default_rng(0).standard_normal(shape).astype(dtype).astype(float)
    rows = rows.reshape(2, groups, -1)
    normed = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    scale, shift = (one.astype(float).reshape(1, 6, 1, 1) for one in drawn)
    expected = normed.reshape(shape) * scale + shift
    assert np.linalg.norm(outputs(changed) - expected) / np.linalg.norm(expected) < most


@pytest.mark.parametrize(("dtype", "most"), [("float16", 3e-3), ("bfloat16", 8e-2)])
def test_a_converted_model_is_close_to_itself_in_single_precision(dtype: str, most: float) -> None:
    plain = norms_folded(model(network, ((1, 4, 6, 6), "float32")))
    changed = halved(plain, dtype)
    got, expected = outputs(changed), outputs(plain)
    assert got.dtype == np.float32
    assert 0 < np.linalg.norm(got - expected) / np.linalg.norm(expected) < most


def test_products_of_a_converted_model_read_halves_and_what_divides_stays_in_single_precision() -> None:
    changed = halved(norms_folded(model(network, ((1, 4, 6, 6), "float32"))), "float16")
    calls = [binding.value for binding in changed["main"].body.blocks[0].bindings]
    named = {call.op.name: call for call in calls if hasattr(call, "op")}
    assert {str(one.ty.dtype) for one in named["relax.nn.conv2d"].args} == {"float16"}
    assert str(named["relax.nn.conv2d"].ty.dtype) == "float32"
    assert str(named["relax.sqrt"].ty.dtype) == "float32"
    assert str(named["relax.multiply"].ty.dtype) == "float32"


def test_numbers_beyond_the_range_of_half_precision_become_its_largest() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        product = builder.emit(relax.op.matmul(values[0], constant(4, 4)))
        return relax.op.add(product, relax.const(np.float32(-3e38)))

    assert np.isfinite(outputs(halved(model(body, ((2, 4), "float32")), "float16"))).all()


def wide(builder: Any, values: list[Any]) -> Any:
    """A first convolution of an image's three channels, one of many channels and a product."""
    from tvm import relax

    op, (x,) = relax.op, values
    y = builder.emit(op.nn.relu(builder.emit(op.nn.conv2d(x, constant(64, 3, 3, 3), padding=1))))
    y = builder.emit(op.nn.relu(builder.emit(op.nn.conv2d(y, constant(8, 64, 3, 3), padding=1))))
    flat = builder.emit(op.reshape(y, (1, 8 * 36)))
    return op.nn.softmax(builder.emit(op.matmul(flat, constant(8 * 36, 10))))


@pytest.mark.parametrize(
    ("dtype", "rounded"), [("tf32", {"conv2d", "matmul"}), ("tf32_convolutions", {"conv2d"})]
)
def test_what_is_computed_in_tf32_says_so_and_is_in_kernels_of_its_own(dtype: str, rounded: set[str]) -> None:
    plain, fast = (lowered(model(wide, ((1, 3, 6, 6), "float32")), one) for one in ("float32", dtype))
    marked = {
        (step.operator.rpartition(".")[2], meaning.type_of(step.operands[0]).shape[-1])
        for meaning in fast.meanings.values()
        for step in meaning.steps
        if step.attributes.get("precision") == "tf32"
    }
    assert {name for name, _ in marked} == rounded
    assert ("conv2d", 64) in marked, "the convolution of many channels"
    assert ("conv2d", 3) not in marked, "the first one"
    exact = {task.key: task.name for task in extract(plain)}
    kept = {task.key for task in extract(fast)} & exact.keys()
    assert len(exact.keys() - kept) > 0
    assert sum("conv2d" in exact[key] for key in kept) == 1
    assert rounded == {"conv2d", "matmul"} or any("matmul" in exact[key] for key in kept)


def test_weights_in_tf32_are_the_nearest_numbers_that_have_ten_bits() -> None:
    values = np.array([1 + 2**-10, 1 + 2**-11, -1 - 3 * 2**-12, 1 + 2**-12, 0.0], np.float32)
    expected = np.array([1 + 2**-10, 1 + 2**-10, -1 - 2**-10, 1.0, 0.0], np.float32)
    np.testing.assert_array_equal(in_tf32(values), expected)
    odd = np.array([np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(in_tf32(odd), odd)


def test_only_weights_of_operators_in_tf32_are_rounded() -> None:
    plain = model(wide, ((1, 3, 6, 6), "float32"))
    before, after = weights(plain), weights(weights_rounded(plain, "tf32_convolutions"))
    first, second, product = (np.array_equal(*pair) for pair in zip(before, after, strict=True))
    assert (first, second, product) == (True, False, True)
    np.testing.assert_array_equal(after[1], in_tf32(before[1]))
    assert weights_rounded(plain, "float32") is plain


@pytest.mark.parametrize(
    ("filters", "result", "strides", "groups", "rounded"),
    [
        ((64, 3, 7, 7), (1, 64, 112, 112), (2, 2), 1, False),
        ((64, 64, 3, 3), (1, 64, 56, 56), (1, 1), 1, True),
        ((64, 64, 3, 3), (1, 64, 4, 4), (1, 1), 1, False),
        ((64, 16, 1, 1), (1, 64, 56, 56), (1, 1), 1, True),
        ((64, 16, 1, 1), (1, 64, 56, 56), (2, 2), 1, False),
        ((1024, 512, 1, 1), (1, 1024, 14, 14), (2, 2), 1, True),
        ((64, 1, 3, 3), (1, 64, 56, 56), (1, 1), 64, False),
        ((256, 8, 3, 3), (1, 256, 28, 28), (1, 1), 32, True),
        ((128, 32, 3, 3), (1, 128, 28, 28), (1, 1), 4, False),
        ((1, 64, 1, 1), (1, 1, 56, 56), (1, 1), 1, False),
    ],
)
def test_convolutions_are_rounded_where_tensor_cores_make_them_faster(
    filters: Any, result: Any, strides: Any, groups: int, rounded: bool
) -> None:
    first = {"strides": strides, "groups": groups, "data_layout": "NCHW", "out_layout": ""}
    assert convolves_in_tf32({**first, "kernel_layout": "OIHW"}, filters, result) == rounded
    turned = tuple(filters[at] for at in (0, 2, 3, 1)), tuple(result[at] for at in (0, 2, 3, 1))
    last = {**first, "data_layout": "NHWC", "kernel_layout": "OHWI", "out_layout": "NHWC"}
    assert convolves_in_tf32(last, *turned) == rounded


def test_convolutions_along_one_axis_have_no_rows() -> None:
    along = {"strides": (1,), "groups": 1, "data_layout": "NCW", "kernel_layout": "OIW", "out_layout": "NCW"}
    assert convolves_in_tf32(along, (64, 64, 3), (1, 64, 100))
    assert not convolves_in_tf32(along, (64, 1, 10), (1, 64, 100))


def weights(module: Any) -> list[Any]:
    """The second operands of convolutions and products, in order."""
    calls = (binding.value for binding in module["main"].body.blocks[0].bindings)
    multiplying = (call for call in calls if getattr(getattr(call, "op", None), "name", "") in MULTIPLIES)
    return [call.args[1].value.numpy() for call in multiplying]


def test_spaces_of_kernels_that_a_template_writes_are_not_opened_to_look_for_records() -> None:
    tasks = extract(lowered(model(network, ((1, 4, 6, 6), "float32"))))
    assert tasks and all(space.sketches == () for space in describe(tasks))


def test_code_is_called_the_same_in_trials_and_in_the_model_so_that_it_is_compiled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    symbols: list[str] = []

    def noted(_kernel: object, _configuration: str, symbol: str) -> Failure:
        symbols.append(symbol)
        return Failure(kind=FailureKind.BUILD_ERROR, message="not needed here")

    monkeypatch.setattr(rebuilding, "inserted", noted)
    monkeypatch.setattr(inserts, "inserted", noted)
    made = lowered(model(network, ((1, 4, 6, 6), "float32")))
    for task in extract(made):
        assert isinstance(rebuilding.rebuild_kernel(task.payload, 'triton:{"tile":1}'), Failure)
        with pytest.raises(ValueError, match="not needed here"):
            inserts.Inserts(made).function(task.name, task.key, 'triton:{"tile":1}')
    assert symbols and symbols[0::2] == symbols[1::2] and len(set(symbols)) == len(symbols) // 2


def test_kernels_of_a_compiler_that_remembers_are_compiled_ahead_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("triton", reason="the extra triton is not installed")
    begun: list[int] = []
    monkeypatch.setattr(inserts, "done_ahead", lambda work: begun.append(len(work)))
    monkeypatch.setattr(inserts, "inserted", lambda *_: begun.append(1))
    made = lowered(model(network, ((1, 4, 6, 6), "float32")))
    tasks = extract(made)
    wanted = [(task.name, task.key, 'triton:{"tile":1}') for task in tasks]
    inserts.Inserts(made).compile_ahead([*wanted, *wanted, ("other", "key", 'cublaslt:{"algorithm":0}')])
    assert begun == [1, len(tasks) - 1]


def test_types_are_refused_where_a_gpu_does_not_compute_in_them() -> None:
    turing = resolve_target(json.dumps({"kind": "cuda", "arch": "sm_75"}))
    backend = backend_of(turing)
    backend.require_dtype("float16", turing)
    with pytest.raises(TargetError, match=r"bfloat16 is not available on cuda \(sm_75\)"):
        backend.require_dtype("bfloat16", turing)
