"""A bundle on a real GPU: tensors of PyTorch without copies, the caller's stream, clocks and energy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.onnx_files import network_input, write_network
from tuneloom.app.evaluating import evaluate_bundle
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.gpus import visible_gpus
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models.layouts import choose_layout
from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.tensors import borrowed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.gpu,
    pytest.mark.skipif(not visible_gpus(), reason="no GPU"),
]


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="the extra torch is not installed")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small network tuned for the GPU."""
    folder = tmp_path_factory.mktemp("on_gpu")
    model = write_network(folder / "net.onnx")
    spec = job_spec(
        {"name": "net", "model": str(model), "target": "cuda", "device": "cuda", "trials": 8,
         "out": str(folder / "fast")}
    )  # fmt: skip
    outcome = tune([spec], RunSettings(store=str(folder / "store.db")))
    assert outcome.failure is None
    yield folder / "fast"


def test_tensors_of_pytorch_go_in_and_come_out_on_the_gpu(bundle: Path, torch: Any) -> None:
    model, value = Model(bundle), network_input()
    (expected,) = model.run([value])
    (made,) = model.run([torch.from_numpy(value).cuda()])
    assert made.is_cuda
    np.testing.assert_allclose(made.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_inputs_are_read_where_they_are(bundle: Path, torch: Any) -> None:
    model, given = Model(bundle), torch.from_numpy(network_input()).cuda()
    read = borrowed(given, model.manifest["inputs"][0], model._variants[0][1].device)
    assert torch.from_dlpack(read).data_ptr() == given.data_ptr()


def test_work_is_queued_behind_what_the_stream_of_the_caller_has_to_do(bundle: Path, torch: Any) -> None:
    model, value = Model(bundle), network_input()
    (expected,) = model.run([value])
    model.run([torch.from_numpy(value).cuda()])  # loads the code, which waits for the GPU
    given, stream = torch.zeros(value.shape, device="cuda"), torch.cuda.Stream()
    source = torch.from_numpy(value).cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        given.copy_(source, non_blocking=True)
        (made,) = model.run([given])
    stream.synchronize()
    np.testing.assert_allclose(made.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_tensor_in_the_memory_of_the_host_is_refused(bundle: Path, torch: Any) -> None:
    with pytest.raises(Refused, match=r"is not on cuda.* where the model runs"):
        Model(bundle).run([torch.from_numpy(network_input())])


def test_evaluate_tells_clock_and_energy(bundle: Path) -> None:
    timed = evaluate_bundle(bundle, 0.5)
    assert timed["energy_j"] > 0 and timed["conditions"]["core_mhz"] > 0


def test_a_model_is_timed_in_each_layout(tmp_path: Path) -> None:
    model = write_network(tmp_path / "net.onnx")
    recipe = ModelRecipe(key=str(tmp_path), source=str(model), shapes={}, target="cuda")
    choice = choose_layout(recipe, 0)
    assert set(choice.seconds) == {"channels_last", "channels_first"}
    assert all(seconds > 0 for seconds in choice.seconds.values())
