"""LSTM, GRU and RNN: the input's part as one matrix product, the rest as one kernel per direction."""

from functools import partial
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import array, dtype_of, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import own
from tuneloom.tuners.tvm.importing.recurrence.activations import Activation
from tuneloom.tuners.tvm.importing.recurrence.cells import Cell, packed
from tuneloom.tuners.tvm.importing.recurrence.kernels import kernel_of

_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


class Layer:
    """One recurrent node while it is converted."""

    def __init__(self, kind: str, bb: Any, inputs: list[Any], attributes: dict[str, Any]) -> None:
        self.kind, self.bb, self.attributes = kind, bb, attributes
        self.inputs = [*inputs, *([None] * (8 - len(inputs)))]
        self.batch_first = bool(attributes.get("layout", 0))
        self.dtype = dtype_of(inputs[0])
        self.x = self._single(self._turned(inputs[0], (1, 0, 2)))
        self.steps, self.batch, self.width = shape_of(self.x)
        self.hidden = shape_of(inputs[2])[2]
        self.directions = shape_of(inputs[1])[0]

    def convert(self) -> Any:
        """The outputs of the node: all states, the last one, and an LSTM's last memory."""
        parts = [self._direction(number) for number in range(self.directions)]
        results = []
        for place in range(len(parts[0])):
            axis = 1 if place == 0 else 0
            values = [relax.op.expand_dims(part[place], axis) for part in parts]
            joined = values[0] if len(values) == 1 else relax.op.concat(values, axis)
            turned = self._turned(joined, (2, 0, 1, 3) if place == 0 else (1, 0, 2))
            results.append(self.bb.normalize(self._like_input(turned)))
        return relax.Tuple(results)

    def _direction(self, number: int) -> list[Any]:
        cell = self._cell(number)
        matrix = self.bb.emit(packed(self._of(2, number), cell))
        states = [self._state(place, number) for place in ((5, 6) if self.kind == "LSTM" else (5,))]
        arguments = [self._projected(number), matrix, *states, self._lengths(), *self._extra(number)]
        types = [relax.TensorType(cell.arguments[name], "float32") for name in cell.results]
        # Both directions, and several layers, have a kernel of this name: only the variable's is unique.
        variable = self.bb.add_func(kernel_of(cell), self.kind.lower())
        found = self.bb.emit(relax.call_tir(variable, relax.Tuple(arguments), types))
        return [self.bb.emit(relax.TupleGetItem(found, place)) for place in range(len(types))]

    def _cell(self, number: int) -> Cell:
        own = len(_DEFAULTS[self.kind])
        names = [
            text.decode() if isinstance(text, bytes) else text
            for text in self.attributes.get("activations", ())
        ]
        names = names or list(_DEFAULTS[self.kind]) * self.directions
        alphas, betas = (
            list(self.attributes.get("activation_alpha", ())),
            list(self.attributes.get("activation_beta", ())),
        )
        chosen = []
        for name in names:
            takes = name.lower()
            alpha = alphas.pop(0) if alphas and takes in _WITH_ALPHA else None
            beta = betas.pop(0) if betas and takes in _WITH_BETA else None
            chosen.append(Activation(name, alpha, beta))
        direction = self.attributes.get("direction", b"forward")
        return Cell(
            kind=self.kind,
            steps=self.steps,
            batch=self.batch,
            hidden=self.hidden,
            activations=tuple(chosen[number * own : (number + 1) * own]),
            backwards=number == 1 or direction in (b"reverse", "reverse"),
            clip=float(self.attributes.get("clip", 0.0)),
            peepholes=self.kind == "LSTM" and self.inputs[7] is not None,
            coupled=bool(self.attributes.get("input_forget", 0)),
            reset_after=bool(self.attributes.get("linear_before_reset", 0)),
        )

    def _projected(self, number: int) -> Any:
        """What the input gives to all gates at all steps, biases included."""
        flat = self.bb.emit(relax.op.reshape(self.x, (self.steps * self.batch, self.width)))
        weights = self.bb.emit(relax.op.permute_dims(self._of(1, number)))
        product = self.bb.emit(relax.op.matmul(flat, weights))
        bias = self._bias(number)
        if bias is not None:
            product = self.bb.emit(relax.op.add(product, bias))
        return self.bb.emit(relax.op.reshape(product, (self.steps, self.batch, shape_of(weights)[1])))

    def _bias(self, number: int) -> Any | None:
        """Both biases added; a GRU's for the hidden gate stays apart: the reset may apply to it."""
        if self.inputs[3] is None:
            return None
        both = self._of(3, number)
        half = shape_of(both)[0] // 2
        inner, outer = (self._slice(both, begin, begin + half) for begin in (0, half))
        if self.kind == "GRU":
            zero = relax.const(np.zeros(self.hidden, dtype=np.float32))
            outer = self.bb.emit(relax.op.concat([self._slice(outer, 0, 2 * self.hidden), zero], 0))
        return self.bb.emit(relax.op.add(inner, outer))

    def _extra(self, number: int) -> list[Any]:
        """Peepholes of an LSTM, the hidden gate's bias of a GRU; zeros where there are none."""
        if self.kind == "LSTM":
            zeros = relax.const(np.zeros(3 * self.hidden, dtype=np.float32))
            return [zeros if self.inputs[7] is None else self._of(7, number)]
        if self.kind == "RNN":
            return []
        if self.inputs[3] is None:
            return [relax.const(np.zeros(self.hidden, dtype=np.float32))]
        return [self._slice(self._of(3, number), 5 * self.hidden, 6 * self.hidden)]

    def _state(self, place: int, number: int) -> Any:
        if self.inputs[place] is None:
            return relax.const(np.zeros((self.batch, self.hidden), dtype=np.float32))
        return self._row(self._turned(self.inputs[place], (1, 0, 2)), number)

    def _lengths(self) -> Any:
        given = self.inputs[4]
        if given is None:
            return relax.const(np.full(self.batch, self.steps, dtype=np.int32))
        return self.bb.emit(relax.op.astype(given, "int32"))

    def _of(self, place: int, number: int) -> Any:
        """One direction's part of an input."""
        return self._row(self.inputs[place], number)

    def _row(self, value: Any, number: int) -> Any:
        known = array(value)
        if known is not None:
            return relax.const(np.ascontiguousarray(known[number]).astype(np.float32))
        row = self.bb.emit(relax.op.strided_slice(value, [0], [number], [number + 1]))
        return self._single(self.bb.emit(relax.op.squeeze(row, [0])))

    def _slice(self, value: Any, begin: int, end: int) -> Any:
        return self.bb.emit(relax.op.strided_slice(value, [0], [begin], [end]))

    def _turned(self, value: Any, axes: tuple[int, ...]) -> Any:
        """With time first, or back again; nothing where the node has it first anyway."""
        return self.bb.normalize(relax.op.permute_dims(value, axes)) if self.batch_first else value

    def _single(self, value: Any) -> Any:
        if dtype_of(self.bb.normalize(value)) == "float32":
            return self.bb.emit(value)
        return self.bb.emit(relax.op.astype(value, "float32"))

    def _like_input(self, value: Any) -> Any:
        return value if self.dtype == "float32" else relax.op.astype(value, self.dtype)


def masked_lstm(bb: Any, node: Any, inputs: Any, constants: Any) -> Any:
    """A Scan that is an LSTM with a mask (cleaning/masked.py): its outputs in the order of the node's."""
    state, memory, x, mask = inputs
    steps, batch, rows = shape_of(x)
    functions = tuple(Activation(name) for name in _DEFAULTS["LSTM"])
    cell = Cell(kind="LSTM", steps=steps, batch=batch, hidden=rows // 4, activations=functions, masked=True)
    (body,) = (one.g for one in node.attribute if one.HasField("g"))
    weights = np.ascontiguousarray(constants.array(body.node[0].input[1]).T)
    arguments = [
        *(x, bb.emit(packed(relax.const(weights), cell)), state, memory),
        relax.const(np.full(batch, steps, dtype=np.int32)),
        bb.emit(relax.op.reshape(mask, (steps, batch))),
        relax.const(np.zeros(3 * cell.hidden, dtype=np.float32)),
    ]
    types = [relax.TensorType(cell.arguments[name], "float32") for name in cell.results]
    found = bb.emit(relax.call_tir(bb.add_func(kernel_of(cell), "lstm"), relax.Tuple(arguments), types))
    y, h, c = (bb.emit(relax.TupleGetItem(found, place)) for place in range(3))
    return bb.normalize(relax.Tuple([h, c, y]))


_WITH_ALPHA = frozenset(("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"))
_WITH_BETA = frozenset(("affine", "scaledtanh", "hardsigmoid"))


def _converted(kind: str, bb: Any, inputs: Any, attr: Any) -> Any:
    return Layer(kind, bb, list(inputs), attr).convert()


RECURRENT = {kind: own(partial(_converted, kind)) for kind in _DEFAULTS}
