"""`torch.compile(backend="tuneloom")` and `tuneloom.compile`: real graphs, real tuning."""

import logging
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
from torch.utils import _pytree as pytree

import tuneloom
from tuneloom.errors import InputError, ModelError, TargetError
from tuneloom.pytorch import compiling
from tuneloom.pytorch.adapting import AnswerForm, DeployedGraph
from tuneloom.pytorch.background import LOADING, Commission
from tuneloom.pytorch.options import CompileOptions
from tuneloom.pytorch.tuning import on_cpu
from tuneloom.tuners.tvm.bundles.loading import load_bundle

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def commissions(monkeypatch: pytest.MonkeyPatch) -> list[Commission]:
    """What would be tuned; nothing is."""
    found: list[Commission] = []
    monkeypatch.setattr(compiling.WORKSHOP, "add", found.append)
    return found


def small() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(4, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()


X = torch.randn(1, 4, 12, 12)


def test_a_module_is_tuned_first_if_it_shall_wait_and_found_again_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small()
    with torch.no_grad():
        expected = model(X)
        compiled = tuneloom.compile(model, X, mode="wait", trials=2)
        for _ in range(8):
            torch.testing.assert_close(compiled(X), expected, rtol=1e-4, atol=1e-5)
        (folder,) = (tmp_path / "home" / "pytorch").iterdir()
        deployed = DeployedGraph(folder / "tuned", [0], AnswerForm.of([expected]))
        for x in (X, X.transpose(2, 3), torch.cat([X, X], 3)[..., 1:13]):
            torch.testing.assert_close(deployed([x])[0], model(x), rtol=1e-4, atol=1e-5)
        assert not list(folder.glob("graph*"))  # weights are kept once, in the bundle

        ordered: list[Commission] = []
        monkeypatch.setattr(compiling.WORKSHOP, "add", ordered.append)
        again = tuneloom.compile(small(), X)
        loaded()
        assert ordered == []  # this graph was tuned before
        assert again._graph._offered is not None and again._graph._offered[0] == "tuned"
        torch.testing.assert_close(again(X), expected, rtol=1e-4, atol=1e-5)


def loaded() -> None:
    """Wait until what was found in the store is loaded."""
    for thread in threading.enumerate():
        if thread.name == LOADING:
            thread.join()


def test_a_bundle_that_cannot_be_loaded_leaves_the_graph_in_pytorch(
    tmp_path: Path, commissions: list[Commission], caplog: pytest.LogCaptureFixture
) -> None:
    with torch.no_grad():
        options = CompileOptions()
        graph = compiling.started(compiling.CompiledModule(small(), (X,), options)._graph.graph, options)
        graph([X])
        folder = tmp_path / "home" / "pytorch" / graph.graph.key(options, graph.dtype) / "tuned"
        folder.mkdir(parents=True)
        (folder / "bundle.json").write_text("{}")
        compiling.commission(graph, options)
        loaded()
        torch.testing.assert_close(graph([X])[0], small()(X))
    assert "stays in PyTorch" in caplog.text


def test_dynamo_finds_the_backend_and_a_graph_is_tuned(tmp_path: Path) -> None:
    assert "tuneloom" in torch._dynamo.list_backends()
    model = small()
    compiled = torch.compile(model, backend="tuneloom", options={"trials": 2, "mode": "wait"})
    with torch.no_grad():
        for _ in range(8):
            torch.testing.assert_close(compiled(X), model(X), rtol=1e-4, atol=1e-5)
    assert [path.name for path in (tmp_path / "home" / "pytorch").glob("*/tuned")] == ["tuned"]


def test_the_first_call_is_answered_by_pytorch_and_tuned_behind_it(commissions: list[Commission]) -> None:
    model = small()
    compiled = torch.compile(model, backend="tuneloom")
    with torch.no_grad():
        assert torch.equal(compiled(X), model(X))
        assert torch.equal(compiled(X), model(X))
    (one,) = commissions
    assert one.graph.in_use == "PyTorch" and len(one.graph.graph.weights) == 6


class Broken(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Two layers of the same code, each with a break in it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Halting(), Halting()])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Halting(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        x = self.linear(x)
        torch._dynamo.graph_break()
        return torch.relu(x)


def test_graph_breaks_and_layers_that_share_code_keep_their_own_weights(
    commissions: list[Commission],
) -> None:
    model, x = Broken().eval(), torch.randn(2, 6)
    compiled = torch.compile(model, backend="tuneloom")
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(compiled(x), model(x))
    weights = [one.graph.graph.weights for one in commissions]
    assert {id(layer.linear.weight) for layer in model.layers} <= {id(w) for ws in weights for w in ws}
    assert len({one.folder for one in commissions}) == len(commissions)


def test_weights_that_change_later_are_used(commissions: list[Commission]) -> None:
    model, x = torch.nn.Linear(3, 3).eval(), torch.randn(2, 3)
    compiled = tuneloom.compile(model, x)
    wrong = DeployedWrongly()
    commissions[0].graph._current = wrong
    with torch.no_grad():
        assert compiled(x) is wrong.answer
        model.weight.mul_(2)
        assert torch.equal(compiled(x), model(x))


class DeployedWrongly:
    answer = torch.zeros(2, 3)

    def __call__(self, _: Any) -> list[Any]:
        return [self.answer]


def test_a_size_that_changes_is_tuned_as_one_that_varies(commissions: list[Commission]) -> None:
    model = torch.nn.Linear(3, 3).eval()
    compiled = torch.compile(model, backend="tuneloom")
    with torch.no_grad():
        for size in (2, 5, 7, 5):
            x = torch.randn(size, 3)
            torch.testing.assert_close(compiled(x), model(x))
    assert served(commissions) == [None, [((2, 64), (3, 3))]]


def test_a_graph_that_tvm_cannot_take_stays_in_pytorch_and_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x = torch.randn(4)
    compiled = torch.compile(Bessel(), backend="tuneloom", options={"mode": "wait"})
    with torch.no_grad(), caplog.at_level(logging.WARNING, logger="tuneloom.pytorch"):
        for _ in range(3):
            assert torch.equal(compiled(x), torch.special.bessel_j0(x))
    (message,) = caplog.messages
    assert "stays in PyTorch" in message and "special_bessel_j0" in message and "\n" not in message


class Branching(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Its path depends on values, so that PyTorch can't export it."""

    def forward(self, x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x - 1


class Bessel(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        return torch.special.bessel_j0(x)


@pytest.mark.parametrize(("kind", "why"), [(Branching, "torch.export: "), (Bessel, "special_bessel_j0")])
def test_a_module_that_cannot_be_compiled_runs_as_it_is_and_is_named(
    kind: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, x, called = kind().eval(), torch.ones(4), []
    with torch.no_grad(), caplog.at_level(logging.WARNING, logger="tuneloom.pytorch"):
        compiled = tuneloom.compile(model, x, mode="wait", trials=1)
        model.register_forward_hook(lambda *_: called.append(True))
        assert torch.equal(compiled(x), model(x))
    (message,) = [one.getMessage() for one in caplog.records if one.name == "tuneloom.pytorch"]
    assert "stays in PyTorch" in message and why in message
    assert compiled.in_use == "PyTorch"
    assert len(called) == 2


def test_what_changes_its_inputs_stays_in_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, seen: Any) -> Any:
            seen.add_(1)
            return x * seen

    compiled = torch.compile(Counting(), backend="tuneloom", options={"mode": "wait", "trials": 1})
    x, seen = torch.randn(4), torch.zeros(1)
    with torch.no_grad(), caplog.at_level(logging.WARNING, logger="tuneloom.pytorch"):
        for count in range(1, 8):
            assert torch.equal(compiled(x, seen), x * count)
    assert "changes" in caplog.text


REFUSALS = {
    "unknown option 'trails'; did you mean 'trials'": (InputError, {"trails": 3}),
    "'trials' must be": (InputError, {"trials": -1}),
    "unknown mode 'late'": (InputError, {"mode": "late"}),
    "tensors are on cpu, the target is cuda": (TargetError, {"target": "cuda"}),
}


@pytest.mark.parametrize("words", REFUSALS)
def test_bad_options_are_refused_in_one_line(words: str, commissions: list[Commission]) -> None:
    kind, options = REFUSALS[words]
    with pytest.raises(kind, match=words) as caught, torch.no_grad():
        torch.compile(small(), backend="tuneloom", options=options)(X)
    assert "\n" not in str(caught.value)
    with pytest.raises(kind, match=words), torch.no_grad():
        tuneloom.compile(small(), X, **options)


def test_gradients_and_training_are_refused_in_one_line(commissions: list[Commission]) -> None:
    compiled = torch.compile(small(), backend="tuneloom")
    with pytest.raises(ModelError, match=r"torch\.no_grad\(\)$"):
        compiled(X)
    with torch.no_grad():
        compiled(X)
        with pytest.raises(ModelError, match=r"model\.eval\(\)"):
            torch.compile(small().train(), backend="tuneloom")(X)
        with pytest.raises(ModelError, match=r"model\.eval\(\)"):
            tuneloom.compile(small().train(), X)
    with pytest.raises(ModelError, match=r"torch\.no_grad\(\)$"):
        tuneloom.compile(small(), X)(X)


def test_a_graph_that_was_captured_on_a_gpu_is_exported_on_the_cpu() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    zeros = graph.call_function(torch.zeros, (6,), {"device": torch.device("cuda", 0)})
    moved = graph.call_method("to", (x, torch.device("cuda")))
    graph.output((graph.call_function(torch.add, (moved, zeros)),))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    on_cpu(module)
    value = torch.randn(2, 6)
    torch.testing.assert_close(module(value)[0], value)


def test_graphs_are_kept_beside_the_store(tmp_path: Path) -> None:
    assert CompileOptions(store=str(tmp_path / "own.db")).folder == tmp_path / "pytorch"
    assert CompileOptions(store="postgresql://h/d").folder == tmp_path / "home" / "pytorch"


def varied(high: int | None = 6) -> Any:
    batch = torch.export.Dim("batch", max=high) if high else torch.export.Dim("batch")
    return ({0: batch},)


class Answering(torch.nn.Module):
    """Gives what it was told to make of two sums."""

    def __init__(self, form: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._form = form

    def forward(self, x: Any, more: Any) -> Any:
        other = more["y"] if isinstance(more, dict) else more
        return self._form(x + other, x - other)


@pytest.mark.parametrize("more", [X, {"y": X}], ids=["tensors", "a dictionary"])
@pytest.mark.parametrize(
    "form",
    [lambda a, _: a, lambda a, b: (a, b), lambda a, b: [a, b], lambda a, b: {"a": a, "rest": (b, [a])}],
    ids=["one", "pair", "list", "nested"],
)
def test_arguments_and_answers_keep_their_form(
    form: Callable[[Any, Any], Any], more: Any, commissions: list[Commission]
) -> None:
    model = Answering(form).eval()
    with torch.no_grad():
        fast, expected = tuneloom.compile(model, (X, more)), model(X, more)
        found = fast(X, more)
    assert len(commissions) == 1
    assert pytree.tree_structure(found) == pytree.tree_structure(expected)
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        assert torch.equal(one, other)
    with torch.no_grad(), pytest.raises(TypeError, match="positional argument"):
        fast(X)


def test_a_dimension_may_vary_up_to_its_greatest_size() -> None:
    model = small()
    with torch.no_grad():
        compiled = tuneloom.compile(
            model, torch.randn(2, 4, 12, 12), mode="wait", trials=2, dynamic_shapes=varied()
        )
        assert compiled._graph._offered is not None
        _, program = compiled._graph._offered
        for size in (1, 2, 5, 6, 7):
            x = torch.randn(size, 4, 12, 12)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
            if size <= 6:
                torch.testing.assert_close(program([x])[0], model(x), rtol=1e-4, atol=1e-5)


def test_sizes_beyond_the_greatest_are_left_to_pytorch(commissions: list[Commission]) -> None:
    with torch.no_grad():
        compiled = tuneloom.compile(small(), torch.randn(2, 4, 12, 12), dynamic_shapes=varied())
    (ordered,) = commissions
    serves = [ordered.graph.serves(compiled._weights, [torch.randn(n, 4, 12, 12)]) for n in (1, 6, 7)]
    assert serves == [True, True, False]


def test_a_dimension_without_a_greatest_size_is_refused(commissions: list[Commission]) -> None:
    with (
        torch.no_grad(),
        pytest.raises(ModelError, match=r"has no greatest size; give it one: torch\.export"),
    ):
        tuneloom.compile(small(), torch.randn(2, 4, 12, 12), dynamic_shapes=varied(None))
    assert not commissions


def test_a_dynamic_dimension_is_tuned_once_for_all_its_sizes(tmp_path: Path) -> None:
    model = small()
    compiled = torch.compile(model, backend="tuneloom", options={"trials": 2, "mode": "wait"})
    first = torch.randn(3, 4, 12, 12)
    torch._dynamo.mark_dynamic(first, 0, min=2, max=6)
    with torch.no_grad():
        for x in (first, *(torch.randn(size, 4, 12, 12) for size in (5, 2, 6, 4, 5, 3))):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    (folder,) = (tmp_path / "home" / "pytorch").iterdir()
    bundle = load_bundle(folder / "tuned")
    assert (bundle.manifest["sizes"]["low"], bundle.manifest["sizes"]["high"]) == (1, 6)
    x = torch.randn(5, 4, 12, 12)
    deployed = DeployedGraph(folder / "tuned", [0], AnswerForm.of([x]))
    torch.testing.assert_close(deployed([x])[0], model(x), rtol=1e-4, atol=1e-5)


def test_inputs_of_another_type_are_left_to_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    model = torch.nn.ReLU().eval()
    with torch.no_grad():
        compiled = tuneloom.compile(model, X, mode="wait", trials=2)
        assert compiled._graph._offered is not None
        compiled._graph._current = compiled._graph._offered[1]
        compiled._graph._offered = None
        for x in (X, X.double(), X.int(), X.to("meta")):
            assert compiled(x).dtype == x.dtype and compiled(x).device == x.device
    assert "tuneloom" not in caplog.text


def test_weights_that_are_replaced_after_compiling_are_used(commissions: list[Commission]) -> None:
    model, x = torch.nn.Linear(3, 3).eval(), torch.randn(2, 3)
    with torch.no_grad():
        for change in (
            lambda: setattr(model.weight, "data", torch.zeros(3, 3)),
            lambda: replace(model, "bias"),
        ):
            compiled = tuneloom.compile(model, x)
            compiled._graph._current = wrong = DeployedWrongly()
            assert compiled(x) is wrong.answer
            change()
            assert torch.equal(compiled(x), model(x))


def replace(model: Any, name: str) -> None:
    setattr(model, name, torch.nn.Parameter(torch.ones(3)))


def test_inputs_on_another_device_than_the_weights_are_refused_in_one_line(
    commissions: list[Commission],
) -> None:
    with torch.no_grad():
        compiled = tuneloom.compile(small(), X)
        with pytest.raises(TargetError, match=r"^Sequential: tensors are on cpu and meta; move them to one$"):
            compiled(X.to("meta"))


def served(commissions: list[Commission]) -> list[Any]:
    return [
        None if varying is None else list(varying.places.values())
        for varying in (one.graph.graph.varying for one in commissions)
    ]


def test_sizes_without_bounds_get_room_to_grow(commissions: list[Commission]) -> None:
    model = torch.nn.Linear(3, 3).eval()
    compiled = torch.compile(model, backend="tuneloom", dynamic=True)
    with torch.no_grad():
        for size in (5, 7, 64, 100, 3):
            x = torch.randn(size, 3)
            torch.testing.assert_close(compiled(x), model(x))
    assert served(commissions) == [[((2, 64), (3, 3))], [((2, 256), (3, 3))]]
    assert len({one.folder for one in commissions}) == 2


def test_of_several_dynamic_dimensions_the_one_that_calls_change_varies(
    commissions: list[Commission],
) -> None:
    model = torch.nn.ReLU()
    compiled = torch.compile(model, backend="tuneloom", dynamic=True)
    with torch.no_grad():
        for shape in ((4, 9), (4, 11), (4, 30), (6, 12)):
            assert torch.equal(compiled(torch.ones(shape)), torch.ones(shape))
    assert served(commissions) == [None, [((4, 4), (2, 64))], None]


def test_a_dynamic_graph_that_cannot_vary_gets_a_program_for_each_size(commissions: list[Commission]) -> None:
    model = torch.nn.Linear(3, 3).eval()
    compiled = torch.compile(model, backend="tuneloom", dynamic=True)
    with torch.no_grad():
        compiled(torch.randn(5, 3))
        commissions[0].folder.mkdir(parents=True)
        (commissions[0].folder / "refused.txt").write_text("zeros change it\n")
        assert commissions[0].refused()
        for size in (5, 7, 5):
            x = torch.randn(size, 3)
            torch.testing.assert_close(compiled(x), model(x))
    assert served(commissions) == [[((2, 64), (3, 3))], None, None]
