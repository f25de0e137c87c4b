"""The arguments of PyTorch's operators, as their schemas name them."""

from collections.abc import Mapping
from typing import Any


def arguments_of(node: Any, target: Any = None) -> Mapping[str, Any]:
    """All arguments of a node in the order of the schema, those left out with their defaults.

    `target` is another operator with the same arguments.
    """
    schema = (target or node.target)._schema
    given = dict(zip((one.name for one in schema.arguments), node.args, strict=False))
    return {
        one.name: given.get(one.name, node.kwargs.get(one.name, one.default_value))
        for one in schema.arguments
    }
