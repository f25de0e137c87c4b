"""The ways in for PyTorch: a backend of `torch.compile`, and `tuneloom.compile` without dynamo."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tuneloom.errors import InputError, ModelError, TuneloomError
from tuneloom.pytorch.adapting import LOG, AdaptiveGraph
from tuneloom.pytorch.background import WORKSHOP, Commission
from tuneloom.pytorch.graphs import Graph, require_inference, require_plain
from tuneloom.pytorch.options import CompileOptions
from tuneloom.pytorch.varying import VaryingInputs

_MOST = 64
"""Sets of weights and shapes that one graph is compiled for; any further ones stay in PyTorch."""


def backend(
    module: Any, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """What `torch.compile(backend="tuneloom")` calls for every graph; bad input is raised by the call."""
    try:
        chosen = CompileOptions.of(options, mode)
        require_inference(examples, module)
        return GraphFamily(module, examples, chosen)
    except InputError as error:
        refused = error
    kind, words = type(refused), str(refused)

    def refuse(*_: Any) -> Any:
        raise kind(words)  # dynamo would put a page around what a backend raises

    return refuse


def started(graph: Graph, options: CompileOptions) -> AdaptiveGraph:
    """A graph that runs in PyTorch; it is compiled after its first call."""
    graph.target(options)
    return AdaptiveGraph(graph, rough=options.dtype != "float32")


def commission(graph: AdaptiveGraph, options: CompileOptions) -> None:
    """Use what is known of a graph that has run once, and have it tuned if it was not; see `mode`."""
    ordered = Commission(graph=graph, options=options, folder=options.folder / graph.graph.key(options))
    if ordered.refused() or (options.mode == "wait" and ordered.deliver()):
        return
    if options.mode != "wait" and ordered.found():
        WORKSHOP.load(ordered)
        return
    WORKSHOP.add(ordered)
    if options.mode == "wait":
        ordered.done.wait()


class GraphFamily:
    """One graph of dynamo, for all weights and shapes that it is called with.

    Layers that share their code share a graph, too, and dynamo passes different weights to it.
    """

    def __init__(self, module: Any, examples: Sequence[Any], options: CompileOptions) -> None:
        self._options = options
        self._module = torch.fx.GraphModule(module, module.graph)
        self._module.meta = {}
        self._name = _named(module)
        self._weights = [n for n, one in enumerate(examples) if _is_weight(one)]
        self._inputs = [n for n, one in enumerate(examples) if not _is_weight(one)]
        self._members: list[AdaptiveGraph] = []

    def __call__(self, *arguments: Any) -> Any:
        weights = [arguments[place] for place in self._weights]
        inputs = [arguments[place] for place in self._inputs]
        for member in self._members:
            if member.serves(weights, inputs):
                return member(arguments)
        return self._first(arguments, weights, inputs)

    def _first(self, arguments: Sequence[Any], weights: Sequence[Any], inputs: Sequence[Any]) -> Any:
        if len(self._members) >= _MOST:
            return self._module(*arguments)
        graph = Graph(
            name=self._name,
            run=self._module,
            text=self._module.code,
            inputs=tuple(n for n in self._inputs if isinstance(arguments[n], torch.Tensor)),
            examples=tuple(inputs),
            weights=tuple(weights),
            constants=_constants(self._module),
            content=(self._module, arguments),
        )
        member = started(graph, self._options)
        answer = member(arguments)
        self._members.insert(0, member)
        try:
            require_plain(arguments)
            commission(member, self._options)
        except (TuneloomError, OSError) as error:
            LOG.warning("%s stays in PyTorch: %s", self._name, error)
        return answer


def compile(
    model: Any, example: Any, *, mode: str | None = None, dynamic_shapes: Any = None, **options: Any
) -> "CompiledModule":
    """A callable that answers as `model` does, and becomes faster: tuned in the background.

    `example` is what the model is called with: a tensor, or a tuple of arguments. With `mode="wait"` the
    model is tuned before this returns. `dynamic_shapes` are as for `torch.export.export`: one dimension may
    vary, up to a greatest size. Options are those of `torch.compile`'s backend.
    """
    chosen = CompileOptions.of(options, mode)
    if not isinstance(model, torch.nn.Module):
        raise ModelError(f"tuneloom.compile takes a torch module, not {type(model).__name__}")
    if model.training:
        raise ModelError("the model is in training mode; call model.eval() first")
    arguments = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    return CompiledModule(model, arguments, chosen, dynamic_shapes)


class CompiledModule:
    """A module for inputs of one set of shapes, or of a range; calls with others run in PyTorch."""

    def __init__(
        self, model: Any, example: tuple[Any, ...], options: CompileOptions, dynamic_shapes: Any = None
    ) -> None:
        self._model, self._name = model, type(model).__name__
        flat, self._spec = pytree.tree_flatten(example)
        require_plain(flat)
        with torch.no_grad():
            program = torch.export.export(model, example, dynamic_shapes=dynamic_shapes)
            answer = model(*example)
        self._weights = [*model.parameters(), *model.buffers()]
        self._answer = pytree.tree_structure(answer)
        tensors = [n for n, one in enumerate(flat) if isinstance(one, torch.Tensor)]
        graph = Graph(
            name=self._name,
            run=self._flat,
            text=str(program.graph),
            inputs=tuple(tensors),
            examples=tuple(flat),
            weights=tuple(self._weights),
            content=program,
            varying=None if dynamic_shapes is None else VaryingInputs.of(program),
        )
        self._graph = started(graph, options)
        with torch.no_grad():
            self._graph(flat)
            commission(self._graph, options)

    def __call__(self, *arguments: Any) -> Any:
        flat, spec = pytree.tree_flatten(arguments)
        require_inference((*flat, *self._weights))
        if spec != self._spec or not self._graph.serves(self._weights, flat):
            return self._model(*arguments)
        return pytree.tree_unflatten(self._graph(flat), self._answer)

    @property
    def in_use(self) -> str:
        """What runs now: `PyTorch`, `untuned` or `tuned`."""
        return self._graph.in_use

    def _flat(self, *flat: Any) -> list[Any]:
        return list(pytree.tree_leaves(self._model(*pytree.tree_unflatten(list(flat), self._spec))))


def _is_weight(value: Any) -> bool:
    """Whether dynamo passes a parameter or buffer of a module: it has marked these."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def _constants(module: Any) -> tuple[Any, ...]:
    """The tensors that a graph has of its own."""
    names = dict.fromkeys(node.target for node in module.graph.nodes if node.op == "get_attr")
    found = [attrgetter(name)(module) for name in names]
    return tuple(one for one in found if isinstance(one, torch.Tensor))


def _named(module: Any) -> str:
    """What people know a graph by: the line of their program that its first operator comes from."""
    for node in module.graph.nodes:
        for _, kind in (node.meta.get("nn_module_stack") or {}).values():
            return str(getattr(kind, "__name__", kind)).rpartition(".")[2]
    return "graph"
