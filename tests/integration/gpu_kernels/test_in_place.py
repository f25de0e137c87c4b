"""Kernels of lowered models: views are part of the kernels that read them, and somebody takes each kernel."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model

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


def block(builder: Any, values: list[Any]) -> Any:
    """Attention as networks write it: one product split in three, a mask, and a product behind."""
    from tvm import relax

    op, random = relax.op, np.random.default_rng(0)
    weights = [
        relax.const(random.standard_normal((96, n)).astype(np.float32) * np.float32(0.1)) for n in (288, 96)
    ]
    rows = builder.emit(op.matmul(builder.emit(op.reshape(values[0], (32, 96))), weights[0]))
    parts = builder.emit(op.split(builder.emit(op.reshape(rows, (2, 16, 288))), 3, axis=2))
    heads = []
    for number in range(3):
        apart = builder.emit(op.reshape(builder.emit(parts[number]), (2, 16, 6, 16)))
        heads.append(builder.emit(op.permute_dims(apart, [0, 2, 1, 3])))
    query, key, value = heads
    turned = builder.emit(op.permute_dims(key, [0, 1, 3, 2]))
    scores = builder.emit(op.multiply(builder.emit(op.matmul(query, turned)), relax.const(np.float32(0.25))))
    masked = builder.emit(op.add(scores, values[1]))
    shares = builder.emit(op.nn.softmax(masked, axis=-1))
    back = builder.emit(op.permute_dims(builder.emit(op.matmul(shares, value)), [0, 2, 1, 3]))
    joined = builder.emit(op.matmul(builder.emit(op.reshape(back, (32, 96))), weights[1]))
    return op.add(values[0], builder.emit(op.reshape(joined, (2, 16, 96))))


def test_a_block_of_attention_is_three_kernels() -> None:
    found = kernels(model(block, ((2, 16, 96), "float32"), ((2, 1, 1, 16), "float32")))
    computing = {name: claims for name, claims in found.items() if not name.startswith("reshape")}
    assert len(computing) == 3
    assert computing["fused_attention"] == ["attention"]
    assert all(claims for claims in computing.values())
