"""Operators that ONNX itself defines by simpler ones."""

from collections.abc import Mapping
from typing import Any

from tuneloom.compiler.lazy import onnx

CHANGED = frozenset(
    (
        *(f"Reduce{kind}" for kind in ("Max", "Min", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp")),
        *("ReduceSum", "ReduceSumSquare", "Squeeze", "Unsqueeze", "Split", "Softmax", "LogSoftmax", "Resize"),
        *("Pad", "Clip", "Slice", "TopK", "Dropout", "Upsample", "DFT", "BatchNormalization"),
    )
)
"""Operators that got another meaning with some version: most others only got more types."""


_MISREAD = {"STFT": {"onesided": 1}}
"""Defaults that ONNX derives types without, although it documents them."""


def say_defaults(node: Any) -> None:
    """Give a node the attributes that its types depend on."""
    given = {attribute.name for attribute in node.attribute}
    for name, value in _MISREAD.get(node.op_type, {}).items() if node.domain in ("", "ai.onnx") else ():
        if name not in given:
            node.attribute.append(onnx.helper.make_attribute(name, value))


def body_of(node: Any, types: Mapping[str, Any], versions: Mapping[str, int]) -> Any | None:
    """The function that defines a node, with the node's attributes put in.

    None if it has none, or none that is made of operators as this version of ONNX has them.
    """
    if node.domain not in ("", "ai.onnx"):
        return None
    version = versions.get("", 1)
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
        body = _plain(schema, version) or _fitting(schema, version, node, types)
    except Exception:  # no such operator, or a definition that does not fit these types
        return None
    if body is None or not _means_the_same(body, version):
        return None
    _put_in(body.node, {a.name: a for a in node.attribute} | _defaults(schema, node))
    return body


def _plain(schema: Any, version: int) -> Any | None:
    """A definition that is the same for all types, the newest that this version has."""
    known = [one for one in schema.function_opset_versions if one <= version]
    if not known:
        return None
    body = onnx.FunctionProto()
    found = schema.get_function_with_opset_version(max(known))
    body.CopyFrom(onnx.FunctionProto.FromString(found) if isinstance(found, bytes) else found)
    return body


def _fitting(schema: Any, version: int, node: Any, types: Mapping[str, Any]) -> Any | None:
    """A definition that depends on the types of the node's inputs."""
    known = [one for one in schema.context_dependent_function_opset_versions if one <= version]
    if not known:
        return None
    given = [types[name].SerializeToString() for name in node.input if name]
    text = schema.get_context_dependent_function_with_opset_version(
        max(known), node.SerializeToString(), given
    )
    return onnx.FunctionProto.FromString(text)


def _means_the_same(body: Any, version: int) -> bool:
    """Whether the operators of a definition are still what they were when it was written."""
    written = max((one.version for one in body.opset_import if one.domain == ""), default=version)
    return all(
        onnx.defs.get_schema(one.op_type, written, "").since_version
        == onnx.defs.get_schema(one.op_type, version, "").since_version
        for one in body.node
        if one.domain in ("", "ai.onnx") and one.op_type in CHANGED
    )


def _defaults(schema: Any, node: Any) -> dict[str, Any]:
    given = {attribute.name for attribute in node.attribute}
    return {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if name not in given and attribute.default_value.name
    }


def _put_in(nodes: Any, attributes: Mapping[str, Any]) -> None:
    """Replace references to the function's attributes by their values."""
    for node in nodes:
        kept = []
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in attributes:
                    copy = type(attribute)()
                    copy.CopyFrom(attributes[attribute.ref_attr_name])
                    copy.name = attribute.name
                    kept.append(copy)
                continue
            if attribute.HasField("g"):
                _put_in(attribute.g.node, attributes)
            kept.append(attribute)
        copies = [type(a).FromString(a.SerializeToString()) for a in kept]
        del node.attribute[:]
        node.attribute.extend(copies)
