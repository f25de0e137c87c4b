"""What the options of `torch.compile(backend="tuneloom")` do."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
import tuneloom
from tuneloom.app.runs.settings import RunSettings
from tuneloom.backends.cpu.backend import CpuBackend
from tuneloom.backends.resolving import resolve_target
from tuneloom.pytorch import tuning
from tuneloom.pytorch.graphs import Graph
from tuneloom.pytorch.options import JOB, TUNED, CompileOptions
from tuneloom.tuners.tvm.models.rivals.torch_programs import DISABLED, compiled_modes

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(4, 16)
MANY = 100_000
"""Trials that no test waits for."""


def linear() -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(16, 16).eval()


def tuned(home: Path, **options: Any) -> dict[str, Any]:
    """The manifest of the bundle of a graph that was tuned under these options; its answers are right."""
    model = linear()
    compiled = torch.compile(model, backend="tuneloom", options={"mode": "wait", **options})
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(X), model(X), rtol=0.1, atol=0.1)
    (manifest,) = home.glob(f"pytorch/*/{TUNED}/bundle.json")
    found: dict[str, Any] = json.loads(manifest.read_text())
    return found


@pytest.mark.parametrize("options", [{"seconds": 1.0}, {"goal": 1e6}], ids=["seconds", "goal"])
def test_tuning_ends_before_its_trials_do(tmp_path: Path, options: dict[str, float]) -> None:
    """It returns at all: so many trials would take days."""
    assert tuned(tmp_path / "home", trials=MANY, **options)["target"]["device"] == "cpu"


def test_a_target_may_name_an_instruction_set(tmp_path: Path) -> None:
    target = json.dumps({"kind": "llvm", "mcpu": "x86-64-v2"})
    assert tuned(tmp_path / "home", trials=1, target=target)["target"]["mcpu"] == "x86-64-v2"


def test_products_of_bfloat16_need_its_instructions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if "bfloat16" in CpuBackend().dtypes(resolve_target("cpu")):
        assert "bfloat16" in json.dumps(tuned(tmp_path / "home", trials=1, dtype="bfloat16"))
        return
    model = linear()
    with torch.no_grad():
        compiled = torch.compile(model, backend="tuneloom", options={"mode": "wait", "dtype": "bfloat16"})
        assert torch.equal(compiled(X), model(X))
    (message,) = [one.getMessage() for one in caplog.records if one.name == "tuneloom.pytorch"]
    assert "Linear stays in PyTorch: bfloat16 needs" in message and "\n" not in message


class Server:
    """Keeps what was submitted, and hands out an empty bundle."""

    submitted: list[tuple[str, str, dict[str, Any]]] = []

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, model: str, **wanted: Any) -> "Server":
        assert Path(model).is_file()
        self.submitted.append((self._address, Path(model).suffix, wanted))
        return self

    def wait(self) -> "Server":
        return self

    def fetch(self, out: Path) -> None:
        out.mkdir()


def test_a_server_tunes_instead_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneloom.client.Client", Server)
    ordered: list[Any] = []
    monkeypatch.setattr("tuneloom.pytorch.compiling.WORKSHOP.add", ordered.append)
    options: dict[str, Any] = {"server": "http://tuner:8000", "trials": 7, "seconds": 9.0, "goal": 2.0}
    with torch.no_grad():
        tuneloom.compile(linear(), X, **options)
    ordered[0].write()
    tuning._make(ordered[0].folder, json.loads((ordered[0].folder / JOB).read_text()))
    ((address, suffix, wanted),) = Server.submitted
    assert (address, suffix) == ("http://tuner:8000", ".pt2")
    assert wanted == {
        "name": "Linear",
        "target": "cpu",
        "dtype": "float32",
        "trials": 7,
        "seconds": 9.0,
        "goal_ms": 2.0,
    }
    assert (ordered[0].folder / TUNED).is_dir()


@pytest.fixture
def settings() -> Iterator[Any]:
    """PyTorch's, with TF32 in convolutions, as they are after it was imported; they are restored."""
    places = (torch.backends.cudnn.conv, torch.backends.cuda.matmul)
    before = [one.fp32_precision for one in places]
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    yield torch.backends
    for place, value in zip(places, before, strict=True):
        place.fp32_precision = value


def computed_in(
    monkeypatch: pytest.MonkeyPatch, *, dtype: Any = torch.float32, able: int = 9, device: str = "cuda"
) -> Callable[..., str]:
    """The type in which a graph computes, given options; its tensors claim to be on a device."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (able, 0))
    monkeypatch.setattr(Graph, "device", device)
    weights = (torch.ones(2, dtype=dtype),)
    graph = Graph(name="g", run=abs, text="", inputs=(), examples=(), weights=weights, content=None)
    return lambda **options: graph.dtype(CompileOptions(**options))


@pytest.mark.parametrize(
    ("convolutions", "products", "dtype"),
    [
        ("tf32", "ieee", "tf32_convolutions"),
        ("tf32", "tf32", "tf32"),
        ("ieee", "ieee", "float32"),
        ("ieee", "tf32", "float32"),
    ],
)
def test_without_a_dtype_tf32_is_used_where_pytorch_uses_it(
    monkeypatch: pytest.MonkeyPatch, settings: Any, convolutions: str, products: str, dtype: str
) -> None:
    settings.cudnn.conv.fp32_precision, settings.cuda.matmul.fp32_precision = convolutions, products
    found = computed_in(monkeypatch)
    assert found() == dtype
    assert found(dtype="float32") == "float32"
    assert found(dtype="float16") == "float16"


@pytest.mark.parametrize("how", [{"able": 7}, {"dtype": torch.float16}, {"device": "cpu"}], ids=str)
def test_there_is_no_tf32_on_old_gpus_without_float32_or_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, settings: Any, how: dict[str, Any]
) -> None:
    assert computed_in(monkeypatch)() == "tf32_convolutions"
    assert computed_in(monkeypatch, **how)() == "float32"


def test_settings_that_change_while_a_graph_waits_do_not_change_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name in the store was made with the type that it had at its first call."""
    ordered: list[Any] = []
    monkeypatch.setattr("tuneloom.pytorch.compiling.WORKSHOP.add", ordered.append)
    with torch.no_grad():
        tuneloom.compile(linear(), X, store=str(tmp_path / "s.db"))
    monkeypatch.setattr(Graph, "dtype", lambda *_: "tf32")
    ordered[0].write()
    assert json.loads((ordered[0].folder / JOB).read_text())["options"]["dtype"] == "float32"


def test_pytorch_compiles_nothing_to_compare_graphs_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DISABLED, "0")
    modes: list[Any] = [compiled_modes((), "cuda")]

    def tune(*_: object) -> Any:
        modes.append(compiled_modes((), "cuda"))
        return SimpleNamespace(failure=None)

    monkeypatch.setattr(tuning, "tune", tune)
    job = {"name": "g", "model": "graph.pt2", "target": "cpu"}
    tuning._tune(job, RunSettings(store=str(tmp_path / "s.db")), tmp_path / TUNED)
    assert modes[0] and modes[1] == []
