"""Channels behind pixels for a whole model: the same outputs, and no transposition between convolutions."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.cuda.passes.channels_last import channels_last, gates_apart
from tuneloom.backends.cuda.passes.turned_loops import turned_loops
from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LowerOptions, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.models.layouts import possible_layouts

sys.path.append(str(Path(__file__).parent))
from relax_models import model, operators, outputs

pytestmark = pytest.mark.integration
RANDOM = np.random.default_rng(1)


def constant(*shape: int) -> Any:
    from tvm import relax

    return relax.const(RANDOM.standard_normal(shape).astype("float32"))


def network(builder: Any, values: list[Any]) -> Any:
    """Convolutions with a gate, pools, a way around, parts joined and widened again, and a product behind."""
    from tvm import relax

    op, emit, (x,) = relax.op, builder.emit, values
    first = emit(
        op.nn.relu(emit(op.add(emit(op.nn.conv2d(x, constant(8, 3, 3, 3), padding=1)), constant(8, 1, 1))))
    )
    gate = emit(op.nn.conv2d(emit(op.mean(first, [2, 3], keepdims=True)), constant(8, 8, 1, 1)))
    gated = emit(op.multiply(first, emit(op.sigmoid(gate))))
    low = emit(op.nn.max_pool2d(gated, [2, 2], [2, 2]))
    deep = emit(op.nn.conv2d(low, constant(8, 1, 3, 3), padding=1, groups=8))
    high = emit(op.nn.conv2d_transpose(deep, constant(8, 8, 2, 2), strides=2))
    wide = emit(
        op.image.resize2d(deep, (6, 6), layout="NCHW", method="nearest_neighbor", rounding_method="floor")
    )
    joined = emit(op.concat([gated, high, wide], 1))
    mixed = emit(op.add(emit(op.nn.conv2d(joined, constant(8, 24, 1, 1))), gated))
    shares = emit(op.nn.softmax(mixed, axis=1))
    pixels = emit(op.permute_dims(emit(op.reshape(shares, (2, 8, 36))), [0, 2, 1]))
    return op.matmul(pixels, constant(8, 5))


def test_no_transposition_stands_between_convolutions() -> None:
    from tvm import relax

    plain = model(network, ((2, 3, 6, 6), "float32"))
    changed = channels_last(plain)
    assert operators(changed).count("relax.permute_dims") == 1 == operators(changed).index("relax.nn.conv2d")
    loops = relax.transform.LegalizeOps(dict(turned_loops()))(changed)
    np.testing.assert_allclose(outputs(loops), outputs(plain), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("rank", "layout"), [(1, "WOI"), (2, "HWOI")])
def test_filters_of_depthwise_convolutions_have_their_channels_side_by_side(rank: int, layout: str) -> None:
    from tvm import relax

    def body(_builder: Any, values: list[Any]) -> Any:
        make = relax.op.nn.conv1d if rank == 1 else relax.op.nn.conv2d
        return make(values[0], constant(6, 1, *(3,) * rank), padding=1, groups=6)

    plain = model(body, ((1, 6, *(9,) * rank), "float32"))
    changed = channels_last(plain)
    assert f'kernel_layout="{layout}"' in str(changed)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_lines_have_their_channels_last_too() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op, emit = relax.op, builder.emit
        y = emit(op.nn.gelu(emit(op.nn.conv1d(values[0], constant(6, 4, 3), padding=1))))
        y = emit(op.nn.conv1d_transpose(y, constant(6, 5, 4), strides=2, padding=1))
        return op.mean(y, [2])

    plain = model(body, ((1, 4, 9), "float32"))
    changed = channels_last(plain)
    assert operators(changed).count("relax.permute_dims") == 1
    loops = relax.transform.LegalizeOps(dict(turned_loops()))(changed)
    np.testing.assert_allclose(outputs(loops), outputs(plain), rtol=1e-4, atol=1e-5)


def test_operators_that_need_the_old_order_get_it() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        y = builder.emit(relax.op.nn.conv2d(values[0], constant(4, 4, 1, 1)))
        return relax.op.reshape(y, (1, 8, 8))

    plain = model(body, ((1, 4, 4, 4), "float32"))
    changed = channels_last(plain)
    assert operators(changed)[-2:] == ["relax.permute_dims", "relax.reshape"]
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)


def test_a_gate_of_channels_is_not_part_of_the_kernel_that_computes_it() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op, emit = relax.op, builder.emit
        y = emit(op.nn.conv2d(values[0], constant(8, 4, 1, 1)))
        gate = emit(op.nn.conv2d(emit(op.mean(y, [2, 3], keepdims=True)), constant(8, 8, 1, 1)))
        return op.multiply(y, emit(op.sigmoid(gate)))

    plain = model(body, ((2, 4, 5, 5), "float32"))
    lowered = lower(
        ImportedModel(name="it", module=plain, inputs=(), outputs=(), digest=""),
        resolve_target(json.dumps({"kind": "cuda", "arch": "sm_90"})),
    )
    claimed = {
        task.kernel_class: [one.name for one, _ in claims_on(unpack(task))] for task in extract(lowered)
    }
    assert len(claimed) == 5 and all("triton" in names for names in claimed.values()), claimed
    np.testing.assert_allclose(
        outputs(gates_apart(channels_last(plain))), outputs(plain), rtol=1e-4, atol=1e-5
    )


def test_the_whole_model_may_keep_its_channels_first() -> None:
    plain = model(network, ((2, 3, 6, 6), "float32"))
    lowered = lower(
        ImportedModel(name="it", module=plain, inputs=(), outputs=(), digest=""),
        resolve_target(json.dumps({"kind": "cuda", "arch": "sm_90"})),
        LowerOptions(layout="channels_first"),
    )
    steps = [step for meaning in lowered.meanings.values() for step in meaning.steps]
    layouts = {str(step.attributes["data_layout"]) for step in steps if step.operator == "relax.nn.conv2d"}
    assert layouts == {"NCHW"}
    assert possible_layouts(lowered) == ("channels_last", "channels_first")
    unclaimed = [task.name for task in extract(lowered) if not list(claims_on(unpack(task)))]
    assert not [name for name in unclaimed if "conv2d" in name and "transpose" not in name]
