"""Programs broken down to PyTorch's core operators, each distinct call of an operator once.

`run_decompositions` traces all of a program twice, at some 8 ms a node. Most nodes repeat others: what an
operator breaks down to depends on its arguments' shapes and types alone.
"""

import copy
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from tuneloom.tuners.tvm.importing.torch.schemas import arguments_of

_CONVOLUTIONS = {"conv1d.default": 1, "conv2d.default": 2, "conv3d.default": 3}
_NAMELESS_VIEWS = frozenset(("dropout.default", "alpha_dropout.default", "feature_dropout.default"))
"""Operators that may return their input although their schema does not say so."""


class NotTraceableError(Exception):
    """A program that must be traced as a whole: it changes its inputs, or has graphs in its nodes."""


def decomposed(program: Any, table: Any, whole: Collection[str]) -> Any:
    """The program in core operators, those named `whole` as they are; the program itself stays as it is."""
    try:
        from torch.fx import _lazy_graph_module as lazy

        with lazy._use_lazy_graph_module(True):  # nobody calls the graphs, so no Python code is made for them
            graph = Decomposition(program, table, whole).graph()
            module = lazy._make_graph_module(program.graph_module, graph)
    except Exception:  # whatever a single node fails at is told by the whole program, if it fails too
        found = program.run_decompositions(table)
        found.graph.eliminate_dead_code(_is_needed)
        return found

    found = copy.copy(program)
    found._graph_module = module
    return found


class Decomposition:
    """A program while its nodes are copied, one by one, or as pieces where tensors are changed in place."""

    def __init__(self, program: Any, table: Any, whole: Collection[str]) -> None:
        import torch

        self._torch, self._aten, self._table, self._whole = torch, torch.ops.aten, table, whole
        self._nodes = list(program.graph.nodes)
        for node in program.graph.find_nodes(op="placeholder"):
            if any(isinstance(extent, torch.SymInt) for extent in getattr(node.meta["val"], "shape", ())):
                raise NotTraceableError("open dimensions")
        self._made = torch.fx.Graph()
        self._new: dict[Any, Any] = {}
        self._traces: dict[Any, Any] = {}
        self._functional: dict[Any, Any] = {}
        """For nodes whose change of a tensor in place nobody sees: the operator that returns a new one."""

    def graph(self) -> Any:
        """The new graph; raises whatever PyTorch raises, and NotTraceableError."""
        pieces = list(self._pieces())
        for piece in pieces:
            if len(piece) > 1 or self._changes(piece[0]):
                self._trace(piece)
            else:
                self._copy(piece[0])
        self._made.eliminate_dead_code(_is_needed)
        return self._made

    @property
    def traced(self) -> int:
        """How many different nodes and pieces were traced."""
        return len(self._traces)

    def _copy(self, node: Any) -> None:
        if node.op != "call_function":
            copied = self._made.node_copy(node, self._new.__getitem__)
            copied.name = node.name  # a copy of `input`, which a sequence of layers takes, has another
            self._new[node] = copied
            return
        target = self._functional.get(node, node.target)
        if target is operator.getitem and isinstance(self._new[node.args[0]], (list, tuple)):
            self._new[node] = self._new[node.args[0]][node.args[1]]
            return
        short = self._short(node, target)
        if short is not None:
            self._new[node] = short
        elif target in self._table or (_is_composite(target) and target.__name__ not in self._whole):
            self._trace([node])
        else:
            copied = self._made.node_copy(node, self._new.__getitem__)
            copied.target = target
            self._new[node] = copied

    def _short(self, node: Any, target: Any) -> Any:
        """What the most frequent operators break down to, without a trace; None for others."""
        name = getattr(target, "__name__", "")
        if name in _CONVOLUTIONS:
            x, weight, bias, *rest = self._arguments(node, target)
            stride, padding, dilation, groups = rest
            ranks = _CONVOLUTIONS[name]
            wide = [list(one) * (ranks // len(one)) for one in (stride, padding, dilation)]
            operands = (x, weight, bias, *wide, False, [0] * ranks, groups)
            return self._call(self._aten.convolution.default, operands, node.meta)
        if name == "batch_norm.default":
            x, weight, bias, mean, variance, training, momentum, eps, _ = self._arguments(node, target)
            if training or mean is None:
                raise NotTraceableError("statistics of a batch")
            return self._normalised(node, (x, weight, bias, mean, variance, momentum, eps))
        if name == "instance_norm.default":
            x, weight, bias, mean, variance, of_inputs, momentum, eps, _ = self._arguments(node, target)
            if of_inputs:
                return self._call(target, self._arguments(node, target), node.meta)
            return self._normalised(node, (x, weight, bias, mean, variance, momentum, eps))
        return None

    def _normalised(self, node: Any, operands: tuple[Any, ...]) -> Any:
        """A norm by statistics that are known."""
        op = self._aten._native_batch_norm_legit_no_training.default
        value = node.meta["val"]
        meta = {**node.meta, "val": (value, value.new_empty(0), value.new_empty(0))}
        return self._call(operator.getitem, (self._call(op, operands, meta), 0), node.meta)

    def _arguments(self, node: Any, target: Any) -> list[Any]:
        """All arguments in the order of the schema, with the new nodes in place of the old."""
        node_type = self._torch.fx.Node
        given = arguments_of(node, target).values()
        return [self._new.get(one, one) if isinstance(one, node_type) else one for one in given]

    def _call(self, target: Any, operands: Sequence[Any], meta: dict[str, Any]) -> Any:
        made = self._made.call_function(target, tuple(operands))
        made.meta = dict(meta)
        return made

    def _trace(self, nodes: Sequence[Any]) -> None:
        """Copy what some nodes break down to together."""
        inside = set(nodes)
        inputs = list(
            dict.fromkeys(one for node in nodes for one in node.all_input_nodes if one not in inside)
        )
        outputs = [node for node in nodes if any(user not in inside for user in node.users)]
        key = self._signature(nodes[0], inputs) if len(nodes) == 1 else tuple(nodes)
        bases = self._changed(nodes)
        changed = [one for one in inputs if one in bases]
        if key not in self._traces:
            self._traces[key] = self._traced(nodes, inputs, changed, outputs)
        traced = self._traces[key]
        found = dict(
            zip(traced.find_nodes(op="placeholder"), map(self._new.__getitem__, inputs), strict=True)
        )
        for one in traced.nodes:
            if one.op == "call_function":
                found[one] = self._made.node_copy(one, found.__getitem__)
                found[one].meta = {**nodes[-1].meta, "val": None, **found[one].meta}
            elif one.op == "get_attr":
                raise NotTraceableError("a tensor of the trace's own")
        flat = traced.output_node().args[0]
        for node, results in zip((*outputs, *changed), flat, strict=True):  # others read what is changed
            self._new[node] = self._torch.fx.node.map_arg(results, found.__getitem__)

    def _changes(self, node: Any) -> bool:
        return _mutates(node) and node not in self._functional

    def _changed(self, nodes: Sequence[Any]) -> set[Any]:
        """Where the memory that some nodes change comes from."""
        return {base for node in nodes if self._changes(node) for base in self._bases(node.args[0])}

    def _traced(
        self, nodes: Sequence[Any], inputs: Sequence[Any], changed: Sequence[Any], outputs: Sequence[Any]
    ) -> Any:
        def run(*values: Any) -> Any:
            known = {
                node: value.clone() if node in changed else value
                for node, value in zip(inputs, values, strict=True)
            }
            for node in nodes:
                args, kwargs = self._torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
                known[node] = self._functional.get(node, node.target)(*args, **kwargs)
            return [known[node] for node in (*outputs, *changed)]

        made = self._graph_of(self._torch.func.functionalize(run) if changed else run, inputs)
        if any(_mutates(one) for one in made.graph.nodes):  # what operators are made of may change tensors
            made = self._graph_of(self._torch.func.functionalize(made), inputs)
        return made.graph

    def _graph_of(self, run: Any, inputs: Sequence[Any]) -> Any:
        from torch.fx.experimental.proxy_tensor import make_fx

        with self._torch.no_grad():
            return make_fx(run, decomposition_table=self._table)(*map(_contiguous, inputs))

    def _signature(self, node: Any, inputs: Sequence[Any]) -> Any:
        """What decides how a single node breaks down."""
        import torch.utils._pytree as pytree

        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        told = [(inputs.index(one), _form(one)) if one in inputs else (type(one), str(one)) for one in leaves]
        return self._functional.get(node, node.target), str(spec), tuple(told)

    def _pieces(self) -> Iterator[Sequence[Any]]:
        """The nodes in order; those between the first and the last that share a changed tensor together."""
        place = {node: number for number, node in enumerate(self._nodes)}
        spans = sorted(filter(None, (self._span(node, place) for node in self._nodes if _mutates(node))))
        begin = 0
        while begin < len(self._nodes):
            end = begin + 1
            while spans and spans[0][0] < end:
                end = max(end, spans.pop(0)[1] + 1)
            yield self._nodes[begin:end]
            begin = end

    def _span(self, node: Any, place: dict[Any, int]) -> tuple[int, int] | None:
        """From where to where a change in place is seen; None if only the node's own result is used."""
        changed = node.args[0]
        bases = self._bases(changed)
        if any(base.op != "call_function" for base in bases):
            raise NotTraceableError("an input is changed")
        sharing = self._sharing(bases, place[node])
        last = max(place[user] for one in sharing for user in one.users)
        functional = _functional(node)
        if last <= place[node] and functional is not None:
            self._functional[node] = functional
            return None
        family = self._sharing(bases, len(place))
        first = min(place[one] for one in family - bases)
        last = max(place[user] for one in family for user in one.users)
        return first, min(last, len(place) - 2)  # what is returned is no part of a piece

    def _bases(self, node: Any) -> set[Any]:
        """Where the memory of a value comes from."""
        sources = list(_viewed(node))
        return {base for one in sources for base in self._bases(one)} if sources else {node}

    def _sharing(self, bases: set[Any], before: int) -> set[Any]:
        """The values in the memory of others, as far as they are made before a place."""
        found = set(bases)
        for node in self._nodes[:before]:
            if any(source in found for source in _viewed(node)):
                found.add(node)
        return found


def _is_composite(target: Any) -> bool:
    """Whether PyTorch itself defines an operator by others."""
    import torch

    if getattr(target, "_schema", None) is None or target.__name__.endswith(".vec"):
        return False
    return bool(target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd))


def _mutates(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    own = node.op == "call_function" and schema is None
    if own and not getattr(node.target, "__module__", "").endswith("operator"):
        raise NotTraceableError(str(node.target))
    return schema is not None and bool(schema.is_mutable)


def _is_needed(node: Any) -> bool:
    """Whether a node stays although nobody uses its result; a random number nobody reads does not."""
    schema = getattr(node.target, "_schema", None)
    return node.op in ("placeholder", "output") or (schema is not None and bool(schema.is_mutable))


def _viewed(node: Any) -> Iterable[Any]:
    """The operands in whose memory the result of a node may be."""
    if node.op != "call_function":
        return ()
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return tuple(node.all_input_nodes)
    if any(one.alias_info is not None for one in schema.returns) or node.target.__name__ in _NAMELESS_VIEWS:
        return tuple(node.all_input_nodes[:1])
    return ()


def _functional(node: Any) -> Any:
    """The operator without the underscore; None if there is none or only a part of the tensor is changed."""
    import torch

    packet, _, overload = node.target.__name__.partition(".")
    if not packet.endswith("_") or packet in ("copy_", "index_put_") or packet.startswith("__"):
        return None
    found = getattr(getattr(torch.ops.aten, packet.removesuffix("_"), None), overload, None)
    if found is None or len(found._schema.arguments) != len(node.target._schema.arguments):
        return None
    return found


def _form(node: Any) -> Any:
    value = node.meta["val"]
    return tuple(value.shape), str(value.dtype)


def _contiguous(node: Any) -> Any:
    """What stands for a value in a trace: its memory is in order, as TVM keeps all tensors."""
    value = node.meta["val"]
    return value.new_empty(value.shape)
