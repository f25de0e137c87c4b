"""Which runtime a result is compared with, as people call it."""

from tuneloom.model.rival import Rival

OWN = {"name": "onnxruntime", "latency_s": 4e-3, "tuned_s": 2e-3}


def test_a_tuned_model_stands_beside_the_runtime_it_belongs_to() -> None:
    found = Rival.told_by({"own_runtime": OWN})
    assert found == Rival(name="ONNX Runtime", alone_s=4e-3, bundle_s=2e-3)


def test_a_model_that_is_left_as_a_whole_stands_beside_the_runtime_that_has_it() -> None:
    left = {"whole": True, "runtime": "openvino", "onnxruntime_s": 1e-3, "latency_s": 1.1e-3}
    found = Rival.told_by({"own_runtime": OWN, "left_to_onnxruntime": left})
    assert found == Rival(name="OpenVINO", alone_s=1e-3, bundle_s=1.1e-3)


def test_parts_that_are_left_change_the_times_but_not_the_runtime() -> None:
    left = {"whole": False, "runtime": "openvino", "onnxruntime_s": 3e-3, "latency_s": 1e-3}
    found = Rival.told_by({"own_runtime": OWN, "left_to_onnxruntime": left})
    assert found == Rival(name="ONNX Runtime", alone_s=3e-3, bundle_s=1e-3)


def test_without_a_comparison_there_is_no_runtime() -> None:
    assert Rival.told_by({}) == Rival(name="", alone_s=None, bundle_s=None)
