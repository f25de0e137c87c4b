"""PyTorch's LSTM, GRU and RNN by the kernels that ONNX's use; TVM would unroll them step by step."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.recurrent import Layer

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where ONNX's order of gates finds each in PyTorch's: i f g o against i o f g, r z n against z r n."""

OPERATORS = {"lstm.input": "LSTM", "gru.input": "GRU", "rnn_tanh.input": "RNN", "rnn_relu.input": "RNN"}


def torch_recurrent() -> dict[str, Callable[[Any, Any], Any]]:
    """Converters by the name of their operator, as TVM's importer of programs takes them."""
    return {name: _converter(name) for name in OPERATORS}


def _converter(name: str) -> Callable[[Any, Any], Any]:
    def convert(node: Any, importer: Any) -> Any:
        x, states, weights, biased, layers, _dropout, _train, both, batch_first = importer.retrieve_args(node)
        given = list(states) if OPERATORS[name] == "LSTM" else [states]
        stack = TorchStack(name, importer.block_builder, bool(biased), 2 if both else 1)
        return stack.run(x, given, list(weights), int(layers), bool(batch_first))

    return convert


class TorchStack:
    """Layers of one recurrent module while they are converted."""

    def __init__(self, name: str, bb: Any, biased: bool, directions: int) -> None:
        self.bb, self.kind, self.biased, self.directions = bb, OPERATORS[name], biased, directions
        activation = b"Relu" if name.startswith("rnn_relu") else b"Tanh"
        own = {"activations": [activation] * directions} if self.kind == "RNN" else {}
        direction = b"bidirectional" if directions == 2 else b"forward"
        self.attributes = {"direction": direction, "linear_before_reset": 1, **own}

    def run(
        self, x: Any, states: Sequence[Any], weights: Sequence[Any], layers: int, batch_first: bool
    ) -> tuple[Any, ...]:
        """The outputs of the module: all states of the last layer, then the last ones of every layer."""
        single = len(shape_of(x)) == 2
        if single:
            x, states = self._emit(relax.op.expand_dims(x, 1)), [self._wide(one) for one in states]
        elif batch_first:
            x = self._emit(relax.op.permute_dims(x, (1, 0, 2)))
        last: list[list[Any]] = [[] for _ in states]
        for layer in range(layers):
            x, ends = self._layer(x, self._of_layer(states, layer), self._part(weights, layer))
            for place, end in zip(last, ends, strict=True):
                place.append(end)
        if single:
            x = self._emit(relax.op.squeeze(x, [1]))
        elif batch_first:
            x = self._emit(relax.op.permute_dims(x, (1, 0, 2)))
        joined = [self._joined(ends) for ends in last]
        return (x, *(self._emit(relax.op.squeeze(one, [1])) if single else one for one in joined))

    def _layer(self, x: Any, states: list[Any], weights: list[list[Any]]) -> tuple[Any, list[Any]]:
        inputs = [x, *(self._stacked([self._ordered(part[place]) for part in weights]) for place in (0, 1))]
        bias = None
        if self.biased:
            both = [self._joined([self._ordered(part[2]), self._ordered(part[3])]) for part in weights]
            bias = self._stacked(both)
        found = Layer(self.kind, self.bb, [*inputs, bias, None, *states], dict(self.attributes)).convert()
        fields = [self._emit(field) for field in found.fields]
        steps, directions, batch, hidden = shape_of(fields[0])
        turned = self._emit(relax.op.permute_dims(fields[0], (0, 2, 1, 3)))
        return self._emit(relax.op.reshape(turned, (steps, batch, directions * hidden))), fields[1:]

    def _part(self, weights: Sequence[Any], layer: int) -> list[list[Any]]:
        """One layer's tensors, for each direction: both matrices, then both biases if there are any."""
        count = 4 if self.biased else 2
        first = layer * self.directions * count
        return [list(weights[first + n * count : first + (n + 1) * count]) for n in range(self.directions)]

    def _of_layer(self, states: Sequence[Any], layer: int) -> list[Any]:
        begin = layer * self.directions
        return [
            self._emit(relax.op.strided_slice(one, [0], [begin], [begin + self.directions])) for one in states
        ]

    def _ordered(self, value: Any) -> Any:
        """Rows of gates in ONNX's order."""
        gates = _GATES[self.kind]
        size = shape_of(value)[0] // len(gates)
        rows = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in gates])
        return self._emit(relax.op.take(value, relax.const(rows.astype(np.int64)), axis=0, mode="clip"))

    def _stacked(self, values: Sequence[Any]) -> Any:
        return self._joined([self._emit(relax.op.expand_dims(value, 0)) for value in values])

    def _joined(self, values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else self._emit(relax.op.concat(list(values), 0))

    def _wide(self, state: Any) -> Any:
        return self._emit(relax.op.expand_dims(state, 1))

    def _emit(self, value: Any) -> Any:
        return self.bb.emit(value)
