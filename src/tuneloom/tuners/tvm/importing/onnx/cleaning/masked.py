"""Loops that Keras writes for an LSTM with a mask, as one node.

A step that the mask leaves out keeps the state and gives zeros, which no operator of ONNX does. Such a loop
becomes a product for the whole sequence and a Scan whose body is always the same: other runtimes run it as it
is, and TVM gets one kernel for all steps. Unrolled, some hundred steps would be thousands of operators.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx
from tuneloom.tuners.tvm.importing.onnx.cleaning.scopes import Scope

MASKED_LSTM = "tuneloom_masked_lstm"
"""The name of such a body; it reads the recurrent weights from outside."""
_SINCE = 13
"""The version of ONNX from which on `Split` takes what the body gives it."""
_MOST_NODES = 100
"""Bodies with more are not looked at: such a step has about forty."""
_EITHER_WAY = frozenset(("Add", "Mul"))

Tree = Any
"""An operator and what it reads, or where a value comes from: ("state", place) or ("outer", name)."""


def _patterns() -> dict[str, Tree]:
    """What a turn makes; names stand for anything, the same everywhere."""
    kept = ("Gather 0", "mask", "turn")
    sums = ("Add", ("Add", ("MatMul", ("Gather 0", "x", "turn"), "w"), ("MatMul", "h", "r")), "b")
    into, forget, new, out = (("Split 1", number, sums) for number in range(4))
    memory = ("Add", ("Mul", ("Sigmoid", forget), "c"), ("Mul", ("Sigmoid", into), ("Tanh", new)))
    state = ("Mul", ("Sigmoid", out), ("Tanh", memory))

    def chosen(fresh: Tree, old: Tree) -> Tree:
        return ("Add", ("Mul", ("Cast 1", kept), fresh), ("Mul", ("Cast 1", ("Not", kept)), old))

    following = ("Add", "turn", "one")
    going = ("Less", ("Cast 1", following), ("Cast 1", "turns"))
    return {
        "y": chosen(state, "zeros"),
        "h": chosen(state, "h"),
        "c": chosen(memory, "c"),
        "turn": following,
        "going": going,
    }


def as_masked_lstm(cleaner: Any, node: Any, inner: Any, scope: Scope) -> bool:
    """Put such a loop into the graph as a product and a Scan; False if it is another one."""
    body = node.attribute[0].g
    if cleaner.versions.get("", 1) < _SINCE or len(body.node) > _MOST_NODES:
        return False
    layer = _Layer.of(cleaner, _Loop(body, inner, scope))
    if layer is None:
        return False
    for name, meaning in zip(node.output, layer.written(), strict=False):
        if name:
            scope.set(name, meaning)
    return True


def is_masked_lstm(node: Any) -> bool:
    """Whether a node is such a Scan."""
    return node.op_type == "Scan" and any(one.g.name == MASKED_LSTM for one in node.attribute)


class _Loop:
    """The body of a loop as trees."""

    def __init__(self, body: Any, node: Any, scope: Scope) -> None:
        self.body, self.scope, self.given = body, scope, list(node.input)
        self._made = {name: one for one in body.node for name in one.output}
        self._constants = {tensor.name: tensor for tensor in body.initializer}
        self._places = {value.name: place for place, value in enumerate(body.input)}
        self._known: dict[str, Tree] = {}

    def output(self, place: int) -> Tree:
        return self.tree(self.body.output[place].name)

    def is_kept(self, place: int) -> bool:
        """Whether what a turn gets in this place goes on to the next as it is."""
        return place > 1 and self.body.output[place - 1].name == self.body.input[place].name

    def tree(self, name: str) -> Tree:
        if name not in self._known:
            self._known[name] = self._tree(name)
        return self._known[name]

    def _tree(self, name: str) -> Tree:
        if name in self._places:
            place = self._places[name]
            return ("outer", self.given[place]) if self.is_kept(place) else ("state", place)
        if name in self._constants:
            return ("inner", self._constants[name].SerializeToString())
        if name not in self._made:
            return ("outer", self.scope.find(name))
        return self._operator(self._made[name], name)

    def _operator(self, node: Any, name: str) -> Tree:
        read = tuple(self.tree(one) for one in node.input)
        values = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        match node.op_type:
            case "Identity":
                return read[0]
            case "Split":
                return (f"Split {values.get('axis', 0)}", list(node.output).index(name), read[0])
            case "Gather" | "Cast":
                return (f"{node.op_type} {values.get('axis', values.get('to', 0))}", *read)
        return (node.op_type if not values else f"{node.op_type} {sorted(values)}", *read)


def _matches(pattern: Tree, tree: Tree, found: dict[str, Tree]) -> Iterator[dict[str, Tree]]:
    """What the names of a pattern stand for, in every way in which a tree fits it."""
    if isinstance(pattern, str):
        if found.get(pattern, tree) == tree:
            yield found | {pattern: tree}
        return
    if not isinstance(pattern, tuple) or not isinstance(tree, tuple):
        if pattern == tree:
            yield found
        return
    if pattern[0] != tree[0] or len(pattern) != len(tree):
        return
    orders = [tree[1:], tree[:0:-1]] if pattern[0] in _EITHER_WAY else [tree[1:]]
    for order in orders:
        ways = [found]
        for part, one in zip(pattern[1:], order, strict=True):
            ways = [more for way in ways for more in _matches(part, one, way)]
        yield from ways


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """A loop that is an LSTM with a mask: global names and known values of what it reads."""

    cleaner: Any
    loop: _Loop
    x: str
    mask: str
    weights: dict[str, Any]
    places: dict[str, int]
    """Which of the loop's inputs hold the turn, the state and the memory."""

    @classmethod
    def of(cls, cleaner: Any, loop: _Loop) -> "_Layer | None":
        found = _found(loop)
        if found is None or any(found[name][0] != "outer" for name in ("x", "mask", "w", "r", "b", "turns")):
            return None
        layer = cls(
            cleaner=cleaner,
            loop=loop,
            x=found["x"][1],
            mask=found["mask"][1],
            weights={name: cleaner.value(found[name][1]) for name in ("w", "r", "b")},
            places={name: found[name][1] for name in ("turn", "h", "c")},
        )
        known = {name: layer._known(found[name]) for name in ("zeros", "turns", "one")}
        return layer if layer._is_whole(known) else None

    def _known(self, tree: Tree) -> Any:
        if tree[0] == "inner":
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(tree[1]))
        return self.cleaner.value(tree[1]) if tree[0] == "outer" else None

    def _is_whole(self, known: dict[str, Any]) -> bool:
        """Whether the loop goes through the whole sequence, step by step, with weights that are known."""
        values = (*known.values(), *self.weights.values())
        shapes = [self.cleaner.result.shape(name) for name in (self.x, self.mask, self._first("h"))]
        begin, going = self.cleaner.value(self._first("turn")), self.cleaner.value(self.loop.given[1])
        if any(one is None for one in (*values, *shapes, begin, going)) or self.loop.given[0]:
            return False
        x, mask, state = shapes
        steps, batch = x[:2]
        sizes = (x[2], 4 * state[1]) == self.weights["w"].shape and mask == (steps, batch, 1)
        counts = np.all(known["turns"] == steps) and np.all(known["one"] == 1) and np.all(begin == 0)
        return bool(sizes and counts and np.all(going) and not np.any(known["zeros"]))

    def _first(self, name: str) -> str:
        return str(self.loop.given[self.places[name]])

    def written(self) -> list[str]:
        """The layer in the graph; what the outputs of the loop are called."""
        cleaner = self.cleaner
        steps, batch, width = cleaner.result.shape(self.x)
        weights = {name: _reordered(value) for name, value in self.weights.items()}
        rows = weights["w"].shape[1]
        flat = self._shaped(self.x, (steps * batch, width))
        product = cleaner.emit("MatMul", [flat, cleaner.constant(weights["w"], "w")], "projected")
        summed = cleaner.emit("Add", [product, cleaner.constant(weights["b"], "b")], "projected")
        mask = cleaner.emit("Cast", [self.mask], "mask", to=onnx.TensorProto.FLOAT)
        given = [self._first("h"), self._first("c"), self._shaped(summed, (steps, batch, rows)), mask]
        h, c, y = self._scan(given, cleaner.constant(weights["r"], "r"), (steps, batch, rows // 4))
        last = cleaner.constant(np.array(steps - 1, dtype=np.int64), "last")
        begin = cleaner.value(self._first("turn"))
        made = {
            self.places["turn"]: cleaner.constant(np.full_like(begin, steps), "turns"),
            self.places["h"]: h,
            self.places["c"]: c,
        }
        carried = range(2, len(self.loop.given))
        return [
            *(
                self.loop.given[place]
                if self.loop.is_kept(place)
                else made.get(place) or cleaner.emit("Gather", [y, last], "last", axis=0)
                for place in carried
            ),
            y,
        ]

    def _shaped(self, name: str, shape: tuple[int, ...]) -> str:
        sizes = self.cleaner.constant(np.array(shape, dtype=np.int64), "shape")
        return str(self.cleaner.emit("Reshape", [name, sizes], "shaped"))

    def _scan(self, given: list[str], weights: str, shape: tuple[int, int, int]) -> list[str]:
        scope = Scope(self.cleaner.names, inner=True)
        names = [scope.fresh(name) for name in ("h", "c", "y")]
        node = onnx.helper.make_node(
            "Scan", given, names, num_scan_inputs=2, body=_body(weights, shape[1], shape[2])
        )
        result = self.cleaner.result
        result.nodes.append(node)
        for name, sizes in zip(names, (shape[1:], shape[1:], shape), strict=True):
            result.types[name] = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, sizes)
        return names


def _found(loop: _Loop) -> dict[str, Tree] | None:
    """What the names of all patterns stand for; None if one does not fit."""
    patterns, outputs = _patterns(), loop.body.output
    if len(outputs) != len(loop.given):  # the condition, what is carried on, and one value of every turn
        return None
    for found in _matches(patterns["y"], loop.output(len(outputs) - 1), {}):
        states = {name: found[name] for name in ("turn", "h", "c")}
        if all(tree[0] == "state" for tree in states.values()):
            trees = {name: loop.output(tree[1] - 1) for name, tree in states.items()}
            whole = _all(patterns, trees | {"going": loop.output(0)}, found)
            others = {*range(2, len(loop.given))} - {tree[1] for tree in states.values()}
            last = loop.output(len(outputs) - 1)
            if whole and all(loop.is_kept(one) or loop.output(one - 1) == last for one in others):
                return whole
    return None


def _all(patterns: dict[str, Tree], trees: dict[str, Tree], found: dict[str, Tree]) -> dict[str, Tree] | None:
    for name, tree in trees.items():
        fitting = next(_matches(patterns[name], tree, found), None)
        if fitting is None:
            return None
        found = fitting
    return found


def _reordered(value: Any) -> Any:
    """Columns of input, forget, new and output gates in ONNX's order: input, output, forget, new."""
    into, forget, new, out = np.split(value, 4, axis=-1)
    return np.concatenate([into, out, forget, new], axis=-1)


def _body(weights: str, batch: int, hidden: int) -> Any:
    """A step: the state, the memory, what the input gives to all gates and whether the step counts."""
    make, kind = onnx.helper.make_node, onnx.TensorProto.FLOAT
    sizes = {"h": hidden, "c": hidden, "x": 4 * hidden, "m": 1}
    nodes = [
        make("MatMul", ["h", weights], ["product"]),
        make("Add", ["x", "product"], ["sums"]),
        make("Split", ["sums", "parts"], ["i", "o", "f", "n"], axis=1),
        *(make("Sigmoid", [name], [f"{name}1"]) for name in ("i", "o", "f")),
        make("Tanh", ["n"], ["n1"]),
        make("Mul", ["f1", "c"], ["old"]),
        make("Mul", ["i1", "n1"], ["new"]),
        make("Add", ["old", "new"], ["memory"]),
        make("Tanh", ["memory"], ["bent"]),
        make("Mul", ["o1", "bent"], ["state"]),
        make("Sub", ["one", "m"], ["left"]),
        make("Mul", ["m", "state"], ["y"]),
        make("Mul", ["left", "h"], ["h_left"]),
        make("Add", ["y", "h_left"], ["h_next"]),
        make("Mul", ["m", "memory"], ["c_new"]),
        make("Mul", ["left", "c"], ["c_left"]),
        make("Add", ["c_new", "c_left"], ["c_next"]),
    ]
    constants = {"parts": np.full(4, hidden, dtype=np.int64), "one": np.ones(1, dtype=np.float32)}
    return onnx.helper.make_graph(
        nodes,
        MASKED_LSTM,
        [onnx.helper.make_tensor_value_info(name, kind, (batch, size)) for name, size in sizes.items()],
        [
            onnx.helper.make_tensor_value_info(name, kind, (batch, hidden))
            for name in ("h_next", "c_next", "y")
        ],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
