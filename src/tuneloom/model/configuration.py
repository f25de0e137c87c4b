"""The text of a configuration, as it is kept for ever, says who can make code of it.

A text that begins with a name and a colon is that implementer's; any other is TVM's own: a trace.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

TVM = "tvm"
_NAMED = re.compile(r"([a-z][a-z0-9_-]*):(?=\{)")


def implementer_of(configuration: str) -> str:
    """Who makes code of a configuration."""
    found = _NAMED.match(configuration)
    return found[1] if found else TVM


def other_than_tvm(configuration: str) -> str:
    """The implementer of a configuration, as reports show it; empty for TVM."""
    found = implementer_of(configuration)
    return "" if found == TVM else found


def configured(implementer: str, values: Mapping[str, Any]) -> str:
    """The text of an implementer's configuration, the same for equal values."""
    return f"{implementer}:{json.dumps(dict(values), sort_keys=True, separators=(',', ':'))}"


def values_in(configuration: str) -> dict[str, Any]:
    """What `configured` wrote; raises ValueError for a trace."""
    found = _NAMED.match(configuration)
    if found is None:
        raise ValueError(f"no values but a trace: {configuration[:60]!r}")
    values: dict[str, Any] = json.loads(configuration[found.end() :])
    return values
