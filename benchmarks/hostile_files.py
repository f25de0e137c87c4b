"""Mutated model files, each imported and lowered by a worker as those of users are.

    python benchmarks/hostile_files.py [--files 300] [--seed 1] [--keep FOLDER]

Every file has to end in a model or in one line that says what is wrong. A worker may die or be stopped at
its limits, since that is what it is there for, but not often. An internal error, or more than one line, is
a failure: it is printed, and with --keep its file is kept. Writes a row to
benchmarks/results/hostile_files.json, one per seed; exits with 1 if something failed.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.models.onnx_files import write_network
from support.models.tflite_files import write_tflite
from tuneloom.app.conducting.calling import ends_of
from tuneloom.engine.calls import Call, CallResult, Lost, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.errors import InputError
from tuneloom.model import ModelRecipe

RESULTS = Path(__file__).parent / "results" / "hostile_files.json"
OPEN = "tuneloom.tuners.tvm.models.opening:open_model"
LIMIT_S, MEMORY = 120.0, 4 << 30
_LONGEST = 1000
Mutation = Callable[[random.Random, Any], None]


def seeds(folder: Path) -> dict[str, bytes]:
    """Small models of every format that is read here, and an archive like a program of PyTorch."""
    write_network(folder / "net.onnx")
    write_tflite(folder / "net.tflite")
    zip_header = b"PK\x03\x04" + bytes(26) + b"net/version" + b"7"
    several = _several().SerializeToString()
    return {
        "net.onnx": (folder / "net.onnx").read_bytes(),
        "several.onnx": several,
        "net.tflite": (folder / "net.tflite").read_bytes(),
        "net.pt2": zip_header,
    }


def _several() -> onnx.ModelProto:
    """A network with constants, attributes, shapes that are computed, and a branch."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["a"], ["s"]),
        helper.make_node("Reshape", ["a", "to"], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"], axis=1),
        helper.make_node("Gather", ["c", "at"], ["d"], axis=1),
        helper.make_node("Concat", ["d", "d"], ["e"], axis=0),
        helper.make_node("ReduceSum", ["e", "axes"], ["y"], keepdims=0),
    ]
    tensors = [
        helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], [0.1] * 108),
        helper.make_tensor("to", TensorProto.INT64, [2], [4, 64]),
        helper.make_tensor("at", TensorProto.INT64, [3], [0, 5, 9]),
        helper.make_tensor("axes", TensorProto.INT64, [1], [1]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])
    graph = helper.make_graph(nodes, "several", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


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
    """A file that is wrong: ONNX files mostly in their structure, others in their bytes."""
    if name.endswith(".onnx") and chance.random() < 0.75:
        model = onnx.load_from_string(content)
        for _ in range(chance.randint(1, 3)):
            try:
                chance.choice(MUTATIONS)(chance, model)
            except (ValueError, OverflowError):  # a number that the field can't hold
                continue
        return bytes(model.SerializeToString())
    return _bytes_changed(chance, bytearray(content))


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


def verdict(result: CallResult | Lost) -> tuple[str, str]:
    """How an import ended, and what is wrong with that; nothing if it ended as it should."""
    if not isinstance(result, Returned):
        kind = type(result).__name__.lower()
        return kind, str(result) if kind == "raised" else ""
    if not isinstance(result.value, InputError):
        return "imported", ""
    text = str(result.value)
    return "rejected", text if "\n" in text or len(text) > _LONGEST else ""


def files(count: int, seed: int, folder: Path) -> Iterator[Path]:
    """Mutated files, each with a name of its own."""
    known = seeds(folder)
    for number in range(count):
        chance = random.Random(f"{seed}.{number}")
        name = chance.choice(list(known))
        path = folder / f"{seed}-{number}-{name}"
        path.write_bytes(mutated(chance, name, known[name]))
        yield path


def call(path: Path) -> Call:
    """What opens a file as a job does."""
    recipe = ModelRecipe(key=path.name, source=str(path), shapes={}, target="cpu")
    return Call(function=OPEN, arguments=(recipe,), timeout_s=LIMIT_S, memory_bytes=MEMORY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    failed = []
    began = time.monotonic()
    engine = LocalEngine("tuneloom.tuners.tvm.warmth:warm_up")
    try:
        with tempfile.TemporaryDirectory() as folder:
            for path in files(options.files, options.seed, Path(folder)):
                kind, wrong = verdict(ends_of(engine, [call(path)])[0])
                counts[kind] += 1
                if wrong:
                    failed.append(path.name)
                    print(f"{path.name}: {wrong[:300]}", flush=True)
                if options.keep is not None and (wrong or kind in ("died", "timedout")):
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{kind}-{path.name}").write_bytes(path.read_bytes())
    finally:
        engine.close()
    row = {"seed": options.seed, "files": options.files, **counts, "failed": len(failed)}
    row["seconds"] = round(time.monotonic() - began)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([each for each in known if each["seed"] != options.seed] + [row], indent=1))
    print(row)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
