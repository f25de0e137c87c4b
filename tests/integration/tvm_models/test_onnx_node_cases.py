"""A few of the node tests that the package `onnx` ships; `benchmarks/onnx_operators.py` runs them all."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.final import build_model
from tuneloom.tuners.tvm.targets.target import TargetSpec

AS_THEY_ARE = (
    "test_attention_23_boolmask_fullymasked_row_nan_robustness",
    "test_attention_4d_gqa_scaled",
    "test_celu_float16",
    "test_convinteger_with_padding",
    "test_convtranspose_dilations",
    "test_dynamicquantizelinear",
    "test_gridsample_reflection_padding",
    "test_gru_seq_length",
    "test_lstm_with_peepholes",
    "test_pow_types_float32_uint32",
    "test_pow_types_int32_float32",
    "test_qlinearconv",
    "test_qlinearmatmul_3D_uint8_float32",
    "test_rotary_embedding",
    "test_scan9_sum",
    "test_simple_rnn_bidirectional",
)
WITH_CONSTANTS = (
    "test_nonmaxsuppression_two_batches",
    "test_onehot_negative_indices",
    "test_onehot_with_axis",
    "test_reduce_max_bool_inputs",
    "test_reduce_min_bool_inputs",
    "test_resize_downsample_sizes_nearest",
)
"""Cases whose further inputs are sizes and limits, which a model has as constants."""


@cache
def cases() -> dict[str, Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}


@pytest.mark.parametrize("name", [*AS_THEY_ARE, *WITH_CONSTANTS])
def test_an_operator_computes_what_onnx_says(name: str, host: TargetSpec, tmp_path: Path) -> None:
    case = cases()[name]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    given, expected = case.data_sets[0]
    names = [value.name for value in model.graph.input]
    if name in WITH_CONSTANTS:
        for constant, value in list(zip(names, given, strict=True))[1:]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), constant))
        names, given = names[:1], given[:1]
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    shapes = {one: np.shape(value) for one, value in zip(names, given, strict=True) if np.ndim(value)}
    compiled = build_model(lower(import_model(str(path), shapes, only_tvm=True), host), {})
    got = compiled.open().run([np.asarray(value) for value in given])
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
