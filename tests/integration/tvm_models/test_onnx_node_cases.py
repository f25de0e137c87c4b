"""A few of the node tests that the package `onnx` ships; `benchmarks/onnx_operators.py` runs them all."""

import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

# Cases by the module of onnx that defines them, and their names.
AS_THEY_ARE = (
    "attention:test_attention_23_boolmask_fullymasked_row_nan_robustness",
    "attention:test_attention_4d_gqa_scaled",
    "attention:test_attention_24_qk_matmul_output_mode3_softmax_precision",
    "bitshift:test_bitshift_left_int32_negative_shift",
    "bitshift:test_bitshift_right_int32_negative_input",
    "celu:test_celu_float16",
    "convinteger:test_convinteger_with_padding",
    "convtranspose:test_convtranspose_dilations",
    "dft:test_dft_inverse_opset19",
    "dft:test_dft_opset19",
    "dft:test_dft_rfft_opset19",
    "dynamicquantizelinear:test_dynamicquantizelinear",
    "eyelike:test_eyelike_populate_off_main_diagonal",
    "gridsample:test_gridsample_reflection_padding",
    "gru:test_gru_seq_length",
    "lpnormalization:test_l1normalization_axis_last",
    "layernormalization:test_layer_normalization_4d_axis_negative_2",
    "lstm:test_lstm_with_peepholes",
    "mod:test_mod_float_edge_cases_fmod_0_float32",
    "pow:test_pow_types_float32_uint32",
    "pow:test_pow_types_int32_float32",
    "qlinearconv:test_qlinearconv",
    "qlinearmatmul:test_qlinearmatmul_3D_uint8_float32",
    "reversesequence:test_reversesequence_batch",
    "rmsnormalization:test_rms_normalization_2d_axis0",
    "rotaryembedding:test_rotary_embedding",
    "scan:test_scan9_sum",
    "rnn:test_simple_rnn_bidirectional",
    "spacetodepth:test_spacetodepth_crd_mode_example",
)
WITH_CONSTANTS = (
    "dft:test_dft_axis",
    "nonmaxsuppression:test_nonmaxsuppression_iou_threshold_boundary",
    "nonmaxsuppression:test_nonmaxsuppression_two_batches",
    "onehot:test_onehot_negative_indices",
    "onehot:test_onehot_with_axis",
    "reducemax:test_reduce_max_bool_inputs",
    "reducemin:test_reduce_min_bool_inputs",
    "resize:test_resize_downsample_sizes_nearest",
    "stft:test_stft_with_window",
)
"""Cases whose further inputs are sizes and limits, which a model has as constants."""


@cache
def cases(module: str) -> dict[str, Any]:
    """What a module of onnx defines, and modules that were asked for before; making all cases takes long."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        import_module(f"{node.__name__}.{module}")
    return {case.name: case for case in node._NodeTestCases}


@pytest.mark.parametrize("which", [*AS_THEY_ARE, *WITH_CONSTANTS])
def test_an_operator_computes_what_onnx_says(which: str, host: TargetSpec, tmp_path: Path) -> None:
    module, name = which.split(":")
    case = cases(module)[name]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    given, expected = case.data_sets[0]
    names = [value.name for value in model.graph.input]
    if which in WITH_CONSTANTS:
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


@pytest.mark.parametrize("limits", ["", ", overlap", ", overlap, lowest"])
def test_boxes_are_suppressed_as_in_onnx_runtime(limits: str, host: TargetSpec, tmp_path: Path) -> None:
    boxes = np.array([[[0, 0, 1, 1], [0.9, 0, 1.9, 1], [3, 3, 4, 4], [5, 5, 6, 6]]], dtype=np.float32)
    scores = np.array([[[0.5, -0.5, 0.1, -0.8]]], dtype=np.float32)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        net (float[1,4,4] boxes, float[1,1,4] scores) => (int64[n,3] kept)
        <int64[1] most = {{4}}, float[1] overlap = {{0.5}}, float[1] lowest = {{-0.6}}>
        {{ kept = NonMaxSuppression(boxes, scores, most{limits}) }}"""
    )
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"boxes": boxes, "scores": scores})
    (got,) = build_model(lower(import_model(str(path), only_tvm=True), host), {}).open().run([boxes, scores])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", ["INT8", "UINT8", "INT16", "INT32", "INT64", "UINT32"])
def test_real_numbers_are_truncated_as_in_onnx_runtime(kind: str, host: TargetSpec, tmp_path: Path) -> None:
    number = onnx.TensorProto.DataType.Value(kind)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        net (float[6] x) => ({kind.lower()}[6] y) {{ y = Cast <to: int = {number}> (x) }}"""
    )
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.array([0.0, 0.9, 1.5, 2.5, 99.99, 127.0], np.float32) * (1 if kind[0] == "U" else -1)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    (got,) = build_model(lower(import_model(str(path), only_tvm=True), host), {}).open().run([x])
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
