"""Model files made wrong: ONNX, TensorFlow Lite and PyTorch programs, in their structure or their bytes."""

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import tflite

Mutation = Callable[[random.Random, Any], None]


ODD = (0, 1, -1, 2, 7, 255, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))
OPERATORS = (
    "Loop",
    "If",
    "Scan",
    "Einsum",
    "Resize",
    "LSTM",
    "TopK",
    "Tile",
    "Expand",
    "Range",
    "Pad",
    "Nope",
    "",
)


def _dimension(chance: random.Random, model: Any) -> None:
    graph = model.graph
    tensors = [value.type.tensor_type for value in (*graph.input, *graph.output)]
    dims = [dim for tensor in tensors for dim in tensor.shape.dim]
    if dims:
        chance.choice(dims).dim_value = chance.choice(ODD)


def _weights(chance: random.Random, model: Any) -> None:
    if model.graph.initializer:
        tensor = chance.choice(model.graph.initializer)
        if tensor.dims:
            tensor.dims[chance.randrange(len(tensor.dims))] = chance.choice(ODD)
        else:
            tensor.dims.append(chance.choice(ODD))


def _type(chance: random.Random, model: Any) -> None:
    kinds = [value.type.tensor_type for value in (*model.graph.input, *model.graph.output)]
    thing = chance.choice([*kinds, *model.graph.initializer])
    setattr(thing, "elem_type" if hasattr(thing, "elem_type") else "data_type", chance.randrange(0, 30))


def _operator(chance: random.Random, model: Any) -> None:
    if model.graph.node:
        chance.choice(model.graph.node).op_type = chance.choice(OPERATORS)


def _wire(chance: random.Random, model: Any) -> None:
    """A node reads something else: nothing, itself, or what comes later."""
    nodes = [node for node in model.graph.node if node.input]
    if nodes:
        node = chance.choice(nodes)
        names = ["", *(name for each in model.graph.node for name in each.output), *node.output, "nobody"]
        node.input[chance.randrange(len(node.input))] = chance.choice(names)


def _attribute(chance: random.Random, model: Any) -> None:
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    if attributes:
        attribute = chance.choice(attributes)
        attribute.i = chance.choice(ODD)
        attribute.ints.append(chance.choice(ODD))


def _missing(chance: random.Random, model: Any) -> None:
    graph = model.graph
    filled = [part for part in (graph.node, graph.input, graph.output, graph.initializer) if part]
    if filled:
        part = chance.choice(filled)
        del part[chance.randrange(len(part))]


def _twice(chance: random.Random, model: Any) -> None:
    if model.graph.node:
        model.graph.node.append(chance.choice(model.graph.node))


def _version(chance: random.Random, model: Any) -> None:
    model.ir_version = chance.choice(ODD)
    if model.opset_import:
        model.opset_import[0].version = chance.choice((0, 1, 6, 11, 25, 999, 2**62))


MUTATIONS: tuple[Mutation, ...] = (
    *(_dimension, _weights, _type, _operator, _wire),
    *(_attribute, _missing, _twice, _version),
)


def mutated(chance: random.Random, name: str, content: bytes) -> bytes:
    """A file that is wrong, mostly in its structure, sometimes in its bytes."""
    if chance.random() < 0.25:
        return _bytes_changed(chance, bytearray(content))
    match Path(name).suffix:
        case ".onnx":
            return _onnx_changed(chance, content)
        case ".tflite":
            return _flatbuffer_changed(chance, bytearray(content))
        case _ if zipfile.is_zipfile(io.BytesIO(content)):
            return _archive_changed(chance, content)
    return _bytes_changed(chance, bytearray(content))


def _onnx_changed(chance: random.Random, content: bytes) -> bytes:
    model = onnx.load_from_string(content)
    for _ in range(chance.randint(1, 3)):
        try:
            chance.choice(MUTATIONS)(chance, model)
        except (ValueError, OverflowError):  # a number that the field can't hold
            continue
    return bytes(model.SerializeToString())


def _flatbuffer_changed(chance: random.Random, content: bytearray) -> bytes:
    """Numbers of tables that mean something: shapes, types, indices, operators, lengths."""
    places = list(_numbers(tflite.Model.GetRootAsModel(bytes(content), 0)))
    for _ in range(chance.randint(1, 3)):
        at, size = chance.choice(places)
        value = chance.choice((*ODD, 3, 4, 5, 9, 17, 32, 100)) % (1 << 8 * size)
        content[at : at + size] = value.to_bytes(size, "little")
    return bytes(content)


_FIELDS: dict[type, tuple[tuple[int, int], ...]] = {
    tflite.Model: ((4, 4), (6, -1), (8, -1), (12, -1)),
    tflite.OperatorCode: ((4, 1), (8, 4), (10, 4)),
    tflite.SubGraph: ((4, -1), (6, -4), (8, -4), (10, -1)),
    tflite.Tensor: ((4, -4), (6, 1), (8, 4)),
    tflite.Operator: ((4, 4), (6, -4), (8, -4), (10, 1)),
    tflite.Buffer: ((4, -1),),
}
"""Of each kind of table: places in its vtable, and sizes of numbers there; negative for those of a vector."""


def _numbers(model: Any) -> Iterator[tuple[int, int]]:
    """Where numbers are, and how many bytes each has."""
    graphs = [model.Subgraphs(n) for n in range(model.SubgraphsLength())]
    tables = [model, *graphs, *(model.OperatorCodes(n) for n in range(model.OperatorCodesLength()))]
    tables += [model.Buffers(n) for n in range(model.BuffersLength())]
    for graph in graphs:
        tables += [graph.Tensors(n) for n in range(graph.TensorsLength())]
        tables += [graph.Operators(n) for n in range(graph.OperatorsLength())]
    for table in tables:
        inner = table._tab
        for slot, size in _FIELDS[type(table)]:
            offset = inner.Offset(slot)
            if offset and size > 0:
                yield inner.Pos + offset, size
            elif offset:
                start = inner.Vector(offset)
                yield start - 4, 4  # its length
                yield from ((start - size * n, -size) for n in range(inner.VectorLen(offset)) if size < -1)


def _archive_changed(chance: random.Random, content: bytes) -> bytes:
    """An archive with a member less, twice, under another name, or with other content."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = chance.choice([key for key in members if not chance.random() < 0.5] or list(members))
    match chance.randrange(6):
        case 0:
            del members[name]
        case 1:
            members[chance.choice(("../../evil", "/etc/evil", name + "x", ""))] = members.pop(name)
        case 2 if members[name]:
            members[name] = _bytes_changed(chance, bytearray(members[name]))
        case _:
            programs = [key for key in members if key.endswith(".json")] or [name]
            name = chance.choice(programs)
            members[name] = _json_changed(chance, members[name])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for key, value in members.items():
            archive.writestr(key or "empty", value)
    return made.getvalue()


def _json_changed(chance: random.Random, content: bytes) -> bytes:
    """A document with a few values replaced, dropped or exchanged."""
    try:
        tree = json.loads(content)
    except ValueError:
        return _bytes_changed(chance, bytearray(content)) if content else content
    for _ in range(chance.randint(1, 3)):
        places = list(_places(tree))
        if not places:
            break
        holder, key = chance.choice(places)
        _, other = chance.choice(places)
        exchanged = holder.get(other) if isinstance(holder, dict) else other
        replaced: tuple[Any, ...] = (*ODD, None, True, "", "nobody", [], {}, 1.5, exchanged)
        if chance.random() < 0.2:
            del holder[key]
        else:
            holder[key] = chance.choice(replaced)
    return json.dumps(tree).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _bytes_changed(chance: random.Random, content: bytearray) -> bytes:
    match chance.randrange(4):
        case 0:
            return bytes(content[: chance.randrange(len(content))])
        case 1:
            for _ in range(chance.randint(1, 8)):
                content[chance.randrange(len(content))] = chance.randrange(256)
        case 2:  # an offset or a length of a flatbuffer
            at = 4 * chance.randrange(max(1, len(content) // 4))
            content[at : at + 4] = chance.choice((0, 1, 2**31 - 1, 2**32 - 1, 65536)).to_bytes(4, "little")
        case _:
            at = chance.randrange(len(content))
            content[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 64)))
    return bytes(content)
