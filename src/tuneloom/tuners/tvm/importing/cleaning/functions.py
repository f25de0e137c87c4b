"""Operators that ONNX itself defines by simpler ones."""

from collections.abc import Mapping
from typing import Any


def body_of(node: Any, types: Mapping[str, Any], versions: Mapping[str, int]) -> Any | None:
    """The function that defines a node, with the node's attributes put in; None if it has none."""
    import onnx
    from onnx import defs

    if node.domain not in ("", "ai.onnx"):
        return None
    version = versions.get("", 1)
    try:
        schema = defs.get_schema(node.op_type, version, "")
    except defs.SchemaError:
        return None
    if schema.has_function:
        body = onnx.FunctionProto()
        body.CopyFrom(schema.function_body)
    elif schema.has_context_dependent_function:
        given = [types[name] for name in node.input if name]
        try:
            text = schema.get_context_dependent_function(
                node.SerializeToString(), [kind.SerializeToString() for kind in given]
            )
        except Exception:
            return None
        body = onnx.FunctionProto.FromString(text)
    else:
        return None
    _put_in(body.node, {a.name: a for a in node.attribute} | _defaults(schema, node))
    return body


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
