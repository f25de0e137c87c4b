"""The ways in for PyTorch: a backend of `torch.compile`, and `tuneloom.compile` without dynamo."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tuneloom.errors import InputError, ModelError, TuneloomError
from tuneloom.pytorch.adapting import LOG, AdaptiveGraph
from tuneloom.pytorch.background import WORKSHOP, Commission
from tuneloom.pytorch.graphs import PLAIN, Graph, require_inference, require_one_device, require_plain
from tuneloom.pytorch.options import CompileOptions
from tuneloom.pytorch.varying import Bounds, OpenSizes, VaryingInputs, has_sizes_open

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
    return AdaptiveGraph(graph, dtype=graph.dtype(options))


def commission(graph: AdaptiveGraph, options: CompileOptions) -> None:
    """Use what is known of a graph that has run once, and have it tuned if it was not; see `mode`."""
    folder = options.folder / graph.graph.key(options, graph.dtype)
    ordered = Commission(graph=graph, options=options, folder=folder)
    if ordered.refused() or (options.mode == "wait" and ordered.deliver()):
        ordered.close()
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
        self._weights_of, self._inputs_of = picking(self._weights), picking(self._inputs)
        self._members: list[AdaptiveGraph] = []
        self._sizes, self._is_open = OpenSizes.of(module, self._inputs), has_sizes_open(module)

    def __call__(self, *arguments: Any) -> Any:
        weights = self._weights_of(arguments)
        inputs = self._inputs_of(arguments) if self._is_open else ()
        for member in self._members:
            if member.keeps(weights) and (not self._is_open or member.fits(inputs)):
                return member(arguments)
        return self._first(arguments, weights, self._inputs_of(arguments))

    def _first(self, arguments: Sequence[Any], weights: Sequence[Any], inputs: Sequence[Any]) -> Any:
        if len(self._members) >= _MOST:
            return self._module(*arguments)
        refused = any(one.refused and one.graph.varying is not None for one in self._members)
        varying = None if refused else self._sizes.varying(inputs)
        graph = Graph(
            name=self._name,
            run=self._module,
            text=self._module.code,
            inputs=tuple(n for n in self._inputs if isinstance(arguments[n], torch.Tensor)),
            examples=tuple(inputs),
            weights=tuple(weights),
            constants=_constants(self._module),
            content=(self._module, arguments, *self._open(varying)),
            varying=varying,
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

    def _open(self, varying: VaryingInputs | None) -> tuple[dict[int, Bounds], tuple[int, ...]]:
        """The bounds of arguments that vary, and the places of numbers that do."""
        if varying is None:
            return {}, ()
        bounds = {self._inputs[n]: pairs for n, pairs in varying.places.items()}
        return bounds, tuple(self._inputs[n] for n in varying.numbers)


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
        self._is_flat = len(flat) == len(example) and all(type(one) in PLAIN for one in example)
        require_plain(flat)
        self._graph: AdaptiveGraph | None = None
        kept = [one for part in model.modules() for one in (part._parameters, part._buffers)]
        names = [(one, name) for one in kept for name, value in one.items() if value is not None]
        self._owners, self._names = [one for one, _ in names], [name for _, name in names]
        program = self._exported(example, dynamic_shapes)
        if program is None:
            return
        with torch.no_grad():
            answer = model(*example)
        self._rebuilt = _rebuilding(answer)
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

    def _exported(self, example: tuple[Any, ...], dynamic_shapes: Any) -> Any:
        """The exported program; None if PyTorch can't export the model, which is logged."""
        try:
            with torch.no_grad():
                return torch.export.export(self._model, example, dynamic_shapes=dynamic_shapes)
        except Exception as error:
            if dynamic_shapes is not None:
                raise
            why = str(error).strip().partition("\n")[0]
            LOG.warning("%s stays in PyTorch: torch.export: %s", self._name, why)
            return None

    def __call__(self, *arguments: Any) -> Any:
        if self._graph is None or self._graph.stays:
            return self._model(*arguments)
        flat, alike = self._flattened(arguments)
        weights = self._weights
        require_inference((*flat, *weights))
        if not alike or not self._graph.serves(weights, flat):
            require_one_device(self._name, (*weights, *flat))
            return self._model(*arguments)
        return self._rebuilt(self._graph(flat))

    def _flattened(self, arguments: tuple[Any, ...]) -> tuple[Sequence[Any], bool]:
        """The leaves of arguments, and whether these are built as the example is."""
        if self._is_flat and PLAIN.issuperset(map(type, arguments)):
            return arguments, len(arguments) == self._spec.num_children
        flat, spec = pytree.tree_flatten(arguments)
        return flat, spec == self._spec

    @property
    def _weights(self) -> list[Any]:
        """The weights that the model has now."""
        return list(map(dict.get, self._owners, self._names))

    @property
    def in_use(self) -> str:
        """What runs now: `PyTorch`, `untuned` or `tuned`."""
        return "PyTorch" if self._graph is None else self._graph.in_use

    def _flat(self, *flat: Any) -> list[Any]:
        arguments = flat if self._is_flat else pytree.tree_unflatten(list(flat), self._spec)
        answer = self._model(*arguments)
        return [answer] if isinstance(answer, torch.Tensor) else list(pytree.tree_leaves(answer))


def _rebuilding(answer: Any) -> Callable[[Sequence[Any]], Any]:
    """What makes a model's answer of its leaves; quick for a tensor and for a tuple of tensors."""
    if isinstance(answer, torch.Tensor):
        return itemgetter(0)
    if type(answer) is tuple and all(isinstance(one, torch.Tensor) for one in answer):
        return tuple
    structure = pytree.tree_structure(answer)
    return lambda leaves: pytree.tree_unflatten(leaves, structure)


def _is_weight(value: Any) -> bool:
    """Whether dynamo passes a parameter or buffer of a module: it has marked these."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def picking(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What takes the values at some places out of all, in one call."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: [values[place] for place in places]


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
