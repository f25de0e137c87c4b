"""Names inside branches, loop bodies and functions, made unique in the whole graph."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tuneloom.compiler.lazy import onnx


class Names:
    """The names in use; new ones are numbered, so that none is given twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def take(self, names: Iterable[str]) -> None:
        """Names that the file has given."""
        self._taken.update(names)

    def fresh(self, like: str) -> str:
        """A name nobody has."""
        while True:
            self._numbers[like] += 1
            name = f"{like}.{self._numbers[like]}"
            if name not in self._taken:
                self._taken.add(name)
                return name


class Scope:
    """What the names of one graph mean in the clean graph; an inner one sees the names around it."""

    def __init__(self, names: Names, outer: "Scope | None" = None, *, inner: bool = False) -> None:
        self._names = names
        self._outer = outer
        self._meanings: dict[str, str] = {}
        self._promised: dict[str, str] = {}
        self.inner = inner or outer is not None

    def find(self, name: str) -> str:
        """The global name; a name nobody set stands for itself."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._meanings:
                return scope._meanings[name]
            scope = scope._outer
        return name

    def set(self, name: str, meaning: str) -> None:
        """Let a name stand for a global one."""
        self._meanings[name] = meaning

    def reserve(self, name: str, meaning: str) -> None:
        """Let the value that will be called `name` get this global name."""
        if meaning:
            self._promised[name] = meaning

    def fresh(self, name: str) -> str:
        """A global name nobody else has for a value that is made here."""
        meaning = self._promised.pop(name, "") or (self._names.fresh(name) if self.inner else name)
        self._meanings[name] = meaning
        return meaning


def renamed(node: Any, scope: Scope) -> Any:
    """A copy of a node that reads global names, in its branches too; outputs keep theirs."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    _rename_inputs(copy, scope, frozenset())
    return copy


def _rename_inputs(node: Any, scope: Scope, own: frozenset[str]) -> None:
    for index, name in enumerate(node.input):
        if name and name not in own:
            node.input[index] = scope.find(name)
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            local = own | {value.name for value in graph.input}
            local |= {tensor.name for tensor in graph.initializer}
            local |= {name for inner in graph.node for name in inner.output}
            for inner in graph.node:
                _rename_inputs(inner, scope, local)
            for value in graph.output:
                if value.name not in local:
                    value.name = scope.find(value.name)
