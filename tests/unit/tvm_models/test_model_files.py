"""What is no model is refused in one line that names it and says the remedy."""

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from support.models.onnx_files import write_network
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.naming import source_files
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.tasks import kernel_class
from tuneloom.tuners.tvm.zoo.listing import zoo_model, zoo_names


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.onnx: no such file"):
        import_model(str(tmp_path / "gone.onnx"))


def test_a_folder_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").mkdir()
    with pytest.raises(ModelError, match="this is a folder; give the model file in it"):
        import_model(str(tmp_path / "net.onnx"))


def test_weights_that_are_missing_are_named_with_their_place(tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    weights = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    kinds = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "net", kinds[:1], kinds[1:], [weights])
    path = tmp_path / "net.onnx"
    onnx.save(
        helper.make_model(graph), path, save_as_external_data=True, location="far.bin", size_threshold=0
    )
    (tmp_path / "far.bin").unlink()
    with pytest.raises(ModelError, match=r"put that file beside the model: .*far\.bin"):
        import_model(str(path))


def test_unknown_kind_of_file_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"\.onnx, \.pt2, \.tflite or zoo:NAME"):
        import_model(str(tmp_path / "model.h5"))


def test_a_version_of_operators_that_can_not_be_is_named(tmp_path: Path) -> None:
    import onnx

    path = write_network(tmp_path / "net.onnx")
    model = onnx.load(path)
    model.opset_import[0].version = 1 << 40
    onnx.save(model, path)
    with pytest.raises(
        ModelError, match=r"net\.onnx: operators of version 1099511627776 \(damaged\?\); copy"
    ):
        import_model(str(path))


def test_text_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "notes.onnx"
    path.write_text("This is not a model.\n" * 20)
    with pytest.raises(ModelError, match="text file, not an ONNX model"):
        import_model(str(path))


def test_empty_file_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    with pytest.raises(ModelError, match="is empty"):
        import_model(str(path))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_file_is_recognised(tmp_path: Path, share: float) -> None:
    content = zoo_model("squeezenet").SerializeToString()
    path = tmp_path / "half.onnx"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelError, match="truncated"):
        import_model(str(path))


def test_unknown_network_names_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"no network 'resnet19'.*resnet18"):
        import_model("zoo:resnet19")


def test_text_under_the_name_of_an_exported_program_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "notes.pt2"
    path.write_text("This is not a model.\n")
    with pytest.raises(ModelError, match=r"not a file of torch\.export; write one with torch\.export\.save"):
        import_model(str(path))


@pytest.mark.parametrize("name", ["net.pt", "net.pth"])
def test_weights_saved_by_torch_are_no_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match=r"weights alone are not a model.*torch\.export\.save"):
        import_model(str(tmp_path / name))


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/model.json", "{}")
    with pytest.raises(ModelError, match=r"needs torch; install it: pip install 'tuneloom\[torch\]'"):
        import_model(str(path))


def test_zoo_has_twelve_networks() -> None:
    assert len(zoo_names()) == 12
    assert {"squeezenet", "mobilenet_v2", "resnet18", "transformer"} <= set(zoo_names())


def test_same_seed_gives_the_same_weights() -> None:
    one, again, other = zoo_model("squeezenet"), zoo_model("squeezenet"), zoo_model("squeezenet", seed=1)
    assert one.SerializeToString() == again.SerializeToString()
    assert one.SerializeToString() != other.SerializeToString()


def test_zoo_graphs_ask_only_for_their_data() -> None:
    for name in ("squeezenet", "shufflenet", "mobilenet_v2", "transformer"):
        assert len(zoo_model(name).graph.input) == 1, name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fused_conv2d12_add3_relu", "conv2d_add_relu"),
        ("max_pool2d1", "max_pool2d"),
        ("fused_winograd_output_add1_add2_relu1", "winograd_output_add_add_relu"),
    ],
)
def test_kernel_class_forgets_numbering(name: str, expected: str) -> None:
    assert kernel_class(name) == expected


@pytest.mark.parametrize("place", ["{elsewhere}", "../secret.bin"], ids=["absolute", "above"])
def test_a_file_elsewhere_is_never_taken_for_the_weights_of_a_model(place: str, tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    (tmp_path / "secret.bin").write_bytes(b"secret")
    (tmp_path / "models").mkdir()
    weights = onnx.TensorProto(name="w", dims=[1], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value=place.format(elsewhere=tmp_path / "secret.bin"))
    path = tmp_path / "models" / "net.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([], "net", [], [], [weights])).SerializeToString())
    assert source_files(str(path)) == [path]
