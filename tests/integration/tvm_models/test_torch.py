"""PyTorch programs: what TVM makes of them against PyTorch's own answer, and what is said about bad ones."""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.lazy import tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.importing.torch import files
from tuneloom.tuners.tvm.importing.torch.decomposing import Decomposition
from tuneloom.tuners.tvm.importing.torch.files import write_module
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
import torch_networks as networks

from tuneloom.tuners.tvm.importing.torch.converting import TypedImporter

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def assert_agrees(model: ImportedModel, module: Any, host: TargetSpec, *inputs: Any) -> None:
    got = build_model(lower(model, host), {}).open().run([value.numpy() for value in inputs])
    with torch.no_grad():
        expected = module.eval()(*inputs)
    for ours, theirs in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_a_residual_network_in_training_is_taken_as_it_is_deployed(tmp_path: Path, host: TargetSpec) -> None:
    module, x = networks.resnet(), torch.randn(1, 3, 32, 32)
    module.head.eval()
    write_module(module, [x], tmp_path / "net.pt2")
    assert module.training and module.body.training and not module.head.training
    assert_agrees(import_model(str(tmp_path / "net.pt2")), module, host, x)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_transformer_with_an_open_batch_is_bound(tmp_path: Path, host: TargetSpec, batch: int) -> None:
    module, open_batch = networks.encoder().eval(), torch.export.Dim("batch", min=1, max=8)
    path = networks.export(
        module, (torch.randn(2, 6, 16),), tmp_path / "net.pt2", dynamic_shapes=({0: open_batch},)
    )
    model = import_model(path, {"src": (batch, 6, 16)})
    assert model.outputs[0].shape == (batch, 6, 16)
    assert_agrees(model, module, host, torch.randn(batch, 6, 16))


def test_a_program_with_open_sizes_is_decomposed_once_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: TargetSpec
) -> None:
    seen, known = [], files.decomposed

    def decomposed(*given: Any) -> Any:
        seen.append(given)
        return known(*given)

    monkeypatch.setattr(files, "decomposed", decomposed)
    module, open_batch = torch.nn.Linear(4, 3).eval(), torch.export.Dim("batch", min=1, max=8)
    path = networks.export(
        module, (torch.randn(2, 4),), tmp_path / "net.pt2", dynamic_shapes=({0: open_batch},)
    )
    for batch in (1, 5, 8):
        assert_agrees(import_model(path, {"input": (batch, 4)}), module, host, torch.randn(batch, 4))
    assert len(seen) == 1


def test_a_sequence_of_layers_keeps_the_name_of_its_input(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    model = import_model(networks.export(module, (torch.randn(2, 4),), tmp_path / "net.pt2"))
    assert [info.name for info in model.inputs] == ["input"]


def test_several_inputs_and_outputs_keep_their_order(tmp_path: Path, host: TargetSpec) -> None:
    module, tokens, scale = networks.TwoWays(), torch.tensor([[3, 15, 0]]), torch.randn(1, 3, 8)
    model = import_model(networks.export(module, (tokens, scale), tmp_path / "net.pt2"))
    assert [(info.name, info.dtype) for info in model.inputs] == [("tokens", "int64"), ("scale", "float32")]
    assert [info.shape for info in model.outputs] == [(1, 3, 8), (1, 3)]
    assert_agrees(model, module, host, tokens, scale)


def test_a_cache_that_begins_empty_is_joined_with_what_comes(tmp_path: Path, host: TargetSpec) -> None:
    class Growing(torch.nn.Module):
        def forward(self, x: Any, more: Any) -> Any:
            cache = torch.cat([torch.tensor([]), x], dim=-2)
            return torch.cat([cache, more], dim=-2) * 2

    inputs = torch.randn(1, 3, 4), torch.randn(1, 2, 4)
    model = import_model(networks.export(Growing(), inputs, tmp_path / "net.pt2"))
    assert model.outputs[0].shape == (1, 5, 4)
    assert_agrees(model, Growing(), host, *inputs)


def test_shapes_that_do_not_fit_are_refused_with_the_reason(tmp_path: Path) -> None:
    open_batch = torch.export.Dim("batch", min=1, max=8)
    path = networks.export(
        networks.encoder().eval(),
        (torch.randn(2, 6, 16),),
        tmp_path / "net.pt2",
        dynamic_shapes=({0: open_batch},),
    )
    refusals = {
        r"input 'src' has an unbound shape .*--shape src=1,6,16": {},
        r"no input 'x'.*inputs: src": {"x": (1, 6, 16)},
        r"--shape src=1,7,16 does not fit": {"src": (1, 7, 16)},
        r"--shape src=1,6 does not fit": {"src": (1, 6)},
        r"exported for 1 to 8, not 9": {"src": (9, 6, 16)},
    }
    for reason, shapes in refusals.items():
        with pytest.raises(ModelError, match=reason):
            import_model(path, shapes)


def test_an_unknown_operator_is_named_with_its_place(tmp_path: Path) -> None:
    path = networks.export(networks.Unsupported(), (torch.randn(4),), tmp_path / "net.pt2")
    with pytest.raises(ModelError, match=r"special_bessel_j0.*in tail, called at torch_networks\.py:\d+"):
        import_model(path)


def test_a_program_exported_in_training_says_what_to_call(tmp_path: Path) -> None:
    path = networks.export(networks.resnet(), (torch.randn(2, 3, 32, 32),), tmp_path / "net.pt2")
    with pytest.raises(ModelError, match=r"changes 'stem\.1\.running_mean'.*model\.eval\(\)"):
        import_model(path)


@pytest.mark.parametrize("whole", [False, True])
def test_saved_weights_are_no_program(tmp_path: Path, whole: bool) -> None:
    module = networks.resnet()
    torch.save(module if whole else module.state_dict(), tmp_path / "net.pt2")
    with pytest.raises(ModelError, match=r"torch\.save wrote this.*torch\.export\.save"):
        import_model(str(tmp_path / "net.pt2"))


def test_a_program_may_read_a_number_from_a_tensor(tmp_path: Path, host: TargetSpec) -> None:
    module, x = networks.ReadsNumber().eval(), torch.randn(4)
    model = import_model(networks.export(module, (x,), tmp_path / "net.pt2"))
    assert_agrees(model, module, host, x)


@pytest.mark.parametrize(
    ("network", "shape"), [(networks.ChangesInPlace, (1, 2, 6, 6)), (networks.OwnConstant, (1, 2, 7, 6))]
)
def test_changes_in_place_and_constants_are_computed_as_torch_does(
    tmp_path: Path, host: TargetSpec, network: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, x = network().eval(), torch.randn(shape)
    path = networks.export(module, (x,), tmp_path / "net.pt2")
    monkeypatch.delattr(torch.export.ExportedProgram, "run_decompositions")
    assert_agrees(import_model(path), module, host, x)


def test_values_are_added_at_places(tmp_path: Path, host: TargetSpec) -> None:
    inputs = torch.randn(5, 4), torch.tensor([2, 0, 2, 2, 1])
    model = import_model(networks.export(networks.AddsAtPlaces(), inputs, tmp_path / "net.pt2"))
    assert_agrees(model, networks.AddsAtPlaces(), host, *inputs)


def test_indices_count_from_the_end_and_are_taken_together(tmp_path: Path, host: TargetSpec) -> None:
    module = networks.Indices()
    inputs = torch.randn(2, 5, 4, 3), torch.tensor([-1, 0, 2]), torch.tensor([[-2], [1]])
    model = import_model(networks.export(module, inputs, tmp_path / "net.pt2"))
    assert_agrees(model, module, host, *inputs)


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_images_are_sampled_at_places(tmp_path: Path, host: TargetSpec, mode: str, padding: str) -> None:
    class Sampling(torch.nn.Module):
        def forward(self, image: Any, places: Any) -> Any:
            sample = torch.nn.functional.grid_sample
            return sample(image, places, mode=mode, padding_mode=padding, align_corners=False)

    inputs = torch.randn(2, 3, 5, 6), torch.rand(2, 4, 7, 2) * 2.4 - 1.2
    path = networks.export(Sampling(), inputs, tmp_path / "net.pt2")
    assert_agrees(import_model(path), Sampling(), host, *inputs)


def test_a_random_number_that_nobody_reads_is_no_obstacle(tmp_path: Path, host: TargetSpec) -> None:
    class Skipping(torch.nn.Module):
        """Draws whether a layer is left out, as in training, and does not care."""

        def forward(self, x: Any) -> Any:
            torch.rand([])
            return x * 2

    x = torch.randn(3)
    path = networks.export(Skipping(), (x,), tmp_path / "net.pt2")
    assert_agrees(import_model(path), Skipping(), host, x)


def test_a_converter_that_means_another_shape_than_torch_is_not_believed() -> None:
    importer = TypedImporter()
    node = torch.fx.Graph().call_function(torch.ops.aten.relu.default)
    node.meta["val"] = torch.empty(2, 3)
    other = tvm.relax.Var("other", tvm.relax.TensorType((3, 2), "float32"))
    with pytest.raises(ValueError, match=r"relu the shape \(3, 2\), PyTorch \(2, 3\)"):
        importer._typed("relu", lambda _: other)(node)


def test_layers_of_the_same_form_are_broken_down_once(tmp_path: Path) -> None:
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))] * 5
    path = networks.export(torch.nn.Sequential(*layers), (torch.randn(2, 3, 8),), tmp_path / "net.pt2")
    program = torch.export.load(path)
    decomposition = Decomposition(program, torch.export.default_decompositions(), whole=())
    graph = decomposition.graph()
    assert len(graph.find_nodes(op="call_function", target=torch.ops.aten.addmm.default)) == 5
    assert decomposition.traced <= 3


def test_a_program_that_changes_its_input_is_refused(tmp_path: Path) -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, seen: Any) -> Any:
            seen.add_(1)
            return x * seen

    path = networks.export(Counting(), (torch.randn(4), torch.zeros(1)), tmp_path / "net.pt2")
    with pytest.raises(ModelError, match="changes its input 'seen'"):
        import_model(path)


def test_a_truncated_program_is_called_one(tmp_path: Path) -> None:
    path = Path(networks.export(networks.encoder().eval(), (torch.randn(1, 6, 16),), tmp_path / "net.pt2"))
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(ModelError, match="damaged or truncated"):
        import_model(str(path))


def test_what_torch_cannot_export_is_said_in_one_line(tmp_path: Path) -> None:
    class Fickle(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x if x.sum().item() > 0 else -x

    with pytest.raises(ModelError, match="torch can't export Fickle") as caught:
        write_module(Fickle(), [torch.randn(4)], tmp_path / "net.pt2")
    assert "\n" not in str(caught.value)


RECURRENT = {
    "lstm": lambda: torch.nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True),
    "gru": lambda: torch.nn.GRU(6, 8, num_layers=2, bidirectional=True),
    "gru without biases": lambda: torch.nn.GRU(6, 8, bias=False, batch_first=True),
    "rnn": lambda: torch.nn.RNN(6, 8, nonlinearity="relu"),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_layer_is_one_kernel_per_direction(tmp_path: Path, host: TargetSpec, name: str) -> None:
    module, x = networks.AllOutputs(RECURRENT[name]()), torch.randn(5, 3, 6)
    model = import_model(networks.export(module.eval(), (x,), tmp_path / "net.pt2"))
    kernels = [gvar.name_hint for gvar in model.module.get_global_vars() if gvar.name_hint != "main"]
    assert len(kernels) == (2 if module.layer.bidirectional else 1)  # layers of one size share them
    assert_agrees(model, module, host, x)


def test_a_recurrent_layer_takes_a_sequence_without_a_batch(tmp_path: Path, host: TargetSpec) -> None:
    module, x = networks.AllOutputs(torch.nn.LSTM(6, 8)), torch.randn(5, 6)
    model = import_model(networks.export(module.eval(), (x,), tmp_path / "net.pt2"))
    assert_agrees(model, module, host, x)


def test_a_recurrent_layer_with_an_open_batch_is_bound(tmp_path: Path, host: TargetSpec) -> None:
    module, open_batch = networks.AllOutputs(torch.nn.GRU(4, 4)), torch.export.Dim("batch", min=1, max=8)
    path = networks.export(
        module.eval(), (torch.randn(3, 2, 4),), tmp_path / "net.pt2", dynamic_shapes=({1: open_batch},)
    )
    assert_agrees(import_model(path, {"x": (3, 5, 4)}), module, host, torch.randn(3, 5, 4))


def test_operators_give_the_types_that_torch_gives_them(tmp_path: Path, host: TargetSpec) -> None:
    module, x = networks.MixedTypes(), torch.tensor([[1, 0, 3, 4], [0, 0, 7, 2]])
    model = import_model(networks.export(module, (x,), tmp_path / "net.pt2"))
    assert [info.dtype for info in model.outputs] == ["int64", "float32", "int64"]
    assert_agrees(model, module, host, x)


def test_a_program_in_half_precision_is_taken(tmp_path: Path, host: TargetSpec) -> None:
    torch.manual_seed(0)
    module, x = networks.SmallResNet().eval().half(), torch.randn(1, 3, 32, 32).half()
    model = import_model(networks.export(module, (x,), tmp_path / "net.pt2"))
    assert {info.dtype for info in (*model.inputs, *model.outputs)} == {"float16"}
    got = build_model(lower(model, host), {}).open().run([x.numpy()])
    np.testing.assert_allclose(got[0], module(x).detach().numpy(), rtol=2e-2, atol=2e-3)


class OnGpu:
    """A parameter of a program that was exported on a GPU, as far as the importer asks it."""

    def __init__(self, values: Any) -> None:
        self.cpu = lambda: values

    def detach(self) -> "OnGpu":
        return self

    def to_dense(self) -> "OnGpu":
        return self


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_parameters_become_constants_on_the_cpu_wherever_they_were(dtype: str) -> None:
    values = torch.randn(3, 4).to(getattr(torch, dtype)).t()
    found = TypedImporter()._convert_pytorch_tensor_to_tvm(OnGpu(values))
    assert str(found.device) == "cpu:0" and str(found.dtype) == dtype
    np.testing.assert_array_equal(found.numpy().astype(np.float32), values.float().numpy())
