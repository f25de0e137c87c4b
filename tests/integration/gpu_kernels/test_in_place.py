"""Kernels of lowered models: views are part of the kernels that read them, and somebody takes each kernel."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import Body, model, operators, outputs

from tuneloom.backends.cuda.passes.moves import moves_before
from tuneloom.backends.cuda.passes.views import reshapes_behind
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LowerOptions, lowered_module
from tuneloom.tuners.tvm.lowering.meanings import Meanings
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls

pytestmark = pytest.mark.integration
pytest.importorskip("triton", reason="the extra triton is not installed")


def kernels(module: Any) -> dict[str, list[str]]:
    """The kernels of a model for a GPU, and which templates or libraries take each."""
    target, meanings = resolve_target('{"kind": "cuda", "arch": "sm_90"}'), Meanings()
    lowered = lowered_module(module, target, LowerOptions(), "float32", meanings)
    found = {}
    for name in kernel_calls(lowered):
        kernel = ModelKernel(module=None, meaning=meanings.known.get(name), target=target)
        claims = [getattr(getattr(claim, "template", None), "name", "") for _, claim in claims_on(kernel)]
        found[name] = claims
    return found


def encoder(dtype: str) -> Body:
    """A norm and attention as PyTorch writes them in a type: products in single precision, rounded once."""

    def body(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        op, random = relax.op, np.random.default_rng(0)

        def known(*shape: int) -> Any:
            return relax.const(random.standard_normal(shape).astype(np.float32) * np.float32(0.1), dtype)

        def cast(value: Any, kind: str) -> Any:
            return value if kind == str(value.ty.dtype) else builder.emit(op.astype(value, kind))

        def product(one: Any, other: Any) -> Any:
            return builder.emit(op.matmul(cast(one, "float32"), cast(other, "float32")))

        normed = builder.emit(op.nn.layer_norm(values[0], known(96), known(96), axes=[-1]))
        rows = product(builder.emit(op.reshape(normed, (32, 96))), known(96, 288))
        rows = cast(builder.emit(op.add(rows, cast(known(288), "float32"))), dtype)
        parts = builder.emit(op.split(builder.emit(op.reshape(rows, (2, 16, 288))), 3, axis=2))
        heads = []
        for number in range(3):
            apart = builder.emit(op.reshape(builder.emit(parts[number]), (2, 16, 6, 16)))
            heads.append(builder.emit(op.permute_dims(apart, [0, 2, 1, 3])))
        query, key, value = heads
        scale = cast(relax.const(np.float32(0.25)), dtype)
        turned = builder.emit(op.permute_dims(builder.emit(op.multiply(key, scale)), [0, 1, 3, 2]))
        masked = builder.emit(op.add(cast(product(query, turned), dtype), values[1]))
        shares = builder.emit(op.nn.softmax(masked, axis=-1))
        back = builder.emit(op.permute_dims(cast(product(shares, value), dtype), [0, 2, 1, 3]))
        joined = cast(product(builder.emit(op.reshape(back, (32, 96))), known(96, 96)), dtype)
        return op.add(values[0], builder.emit(op.reshape(joined, (2, 16, 96))))

    return body


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attention_behind_a_norm_is_four_kernels_in_every_type(dtype: str) -> None:
    found = kernels(model(encoder(dtype), ((2, 16, 96), dtype), ((2, 1, 1, 16), dtype)))
    computing = {name: claims for name, claims in found.items() if not name.startswith("reshape")}
    assert sorted(claims[0] for claims in computing.values()) == ["attention", "product", "product", "rows"]
    assert computing["fused_attention"] == ["attention"]


def windows(shift: int) -> Body:
    """Norm, product and residual around something on the windows of an image, which may be moved round."""

    def body(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        op, random = relax.op, np.random.default_rng(0)

        def known(*shape: int) -> Any:
            return relax.const(random.standard_normal(shape).astype(np.float32) * np.float32(0.2))

        def rolled(value: Any, by: int) -> Any:
            for axis in (1, 2) if by % 8 else ():
                places = relax.const((np.arange(8) + by) % 8, "int64")
                value = builder.emit(op.take(value, places, axis=axis))
            return value

        def turned(value: Any, before: tuple[int, ...], after: tuple[int, ...]) -> Any:
            apart = builder.emit(op.permute_dims(builder.emit(op.reshape(value, before)), [0, 1, 3, 2, 4, 5]))
            return builder.emit(op.reshape(apart, after))

        normed = builder.emit(op.nn.layer_norm(values[0], known(32), known(32), axes=[-1]))
        rows = turned(rolled(normed, shift), (1, 2, 4, 2, 4, 32), (4, 16, 32))
        shares = builder.emit(op.nn.softmax(rows, axis=1))
        flat = builder.emit(op.reshape(builder.emit(op.multiply(rows, shares)), (64, 32)))
        done = builder.emit(op.add(known(32), builder.emit(op.matmul(flat, known(32, 32)))))
        image = turned(done, (1, 2, 2, 4, 4, 32), (1, 8, 8, 32))
        return op.add(values[0], rolled(image, -shift))

    return body


@pytest.mark.parametrize("shift", [0, 3])
def test_windows_of_an_image_are_read_in_place_by_norms_and_products(shift: int) -> None:
    found = kernels(model(windows(shift), ((1, 8, 8, 32), "float32")))
    computing = [name for name in found if not name.startswith("reshape")]
    assert [found[name][0] for name in computing] == ["rows", "rows", "product"]
    assert computing[0] == "fused_layer_norm" and "matmul" in computing[2] and "add" in computing[2]


@pytest.mark.parametrize("shift", [0, 3])
def test_rows_that_are_moved_before_norms_and_products_give_the_same(shift: int) -> None:
    plain = reshapes_behind(model(windows(shift), ((1, 8, 8, 32), "float32")))
    changed = moves_before(plain)
    names = operators(changed)
    assert names.index("relax.permute_dims") < names.index("relax.nn.layer_norm")
    assert names[-2:] == ["relax.reshape", "relax.add"] and names[-4] == "relax.matmul"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_rows_that_others_read_in_their_old_order_are_not_moved() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        normed = builder.emit(relax.op.nn.rms_norm(*values, axes=[-1]))
        turned = builder.emit(relax.op.permute_dims(normed, [1, 0, 2]))
        return relax.op.add(normed, turned)

    plain = model(body, ((4, 4, 8), "float32"), ((8,), "float32"))
    assert operators(moves_before(plain)) == operators(plain)


def test_attention_reads_a_cache_and_what_is_joined_with_it_in_place() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op, (query, cache, *own) = relax.op, values
        joined = []
        for number, new in enumerate(own):
            part = builder.emit(op.strided_slice(cache, [0], [number], [number + 1]))
            before = builder.emit(op.reshape(part, (1, 20, 2, 16)))
            joined.append(builder.emit(op.concat([before, new], 1)))
        return op.nn.attention(query, *joined)

    row = ((1, 1, 2, 16), "float16")
    found = kernels(model(body, row, ((2, 20, 2, 16), "float16"), row, row))
    assert found == {"fused_attention": ["attention"]}
