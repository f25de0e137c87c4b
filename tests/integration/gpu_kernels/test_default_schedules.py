"""Kernels that have no schedule get one that a GPU can run."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, save

from support.models.graphs import model_of
from tuneloom.backends.cuda.default_schedules import _shared_bytes
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower

pytestmark = pytest.mark.integration
LENGTH, CHANNELS, WINDOW, GROUPS = 249, 64, 16, 4
MOST = 48 * 1024


def test_a_result_that_is_cut_is_not_kept_whole_in_shared_memory(tmp_path: Path) -> None:
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["whole"], pads=[2, 2], group=GROUPS, kernel_shape=[WINDOW]
        ),
        helper.make_node("Slice", ["whole", "begin", "end", "axis"], ["y"]),
    ]
    rows = LENGTH + 4 - WINDOW + 1
    constants = {
        "w": np.ones((CHANNELS, CHANNELS // GROUPS, WINDOW), "float32"),
        "b": np.ones(CHANNELS, "float32"),
        "begin": np.array([0]),
        "end": np.array([-5]),  # more than the padding, so that the convolution can't be shorter
        "axis": np.array([2]),
    }
    x, y = {"x": (1, CHANNELS, LENGTH)}, {"y": (1, CHANNELS, rows - 5)}
    save(model_of(nodes, x, y, constants), tmp_path / "net.onnx")
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    lowered = lower(import_model(str(tmp_path / "net.onnx")), target)
    scheduled = backend_of(target).default_module(lowered.module, target)
    assert rows * CHANNELS * 4 > MOST and "strided_slice" in lowered.module.script()
    assert "threadIdx.x" in scheduled.script() and _shared_bytes(scheduled) <= MOST
