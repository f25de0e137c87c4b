"""The description of the API as a page: `python -m tuneloom.server.describing > docs/api.md`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuneloom.server.building import build_app, described
from tuneloom.server.settings import ServerSettings

_HEAD = """\
# API

Generated from the schema by `python -m tuneloom.server.describing`. The schema itself is served at
`/api/v1/openapi.json`. Every request except `/healthz`, `/readyz` and `/api/v1/session` carries
`Authorization: Bearer TOKEN`, or the cookie of a session of the page, and then every write the header
`X-CSRF-Token`.
Errors are problem details (RFC 9457) with the field that is wrong and the id of the request.
"""


def page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder:
        app = build_app(ServerSettings(store=str(Path(folder) / "store.db")))
        schema = described(app)
        app.state.service.close()
    return "\n".join((_HEAD, *_operations(schema), "## Bodies\n", *_bodies(schema)))


def _operations(schema: dict[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"## {method.upper()} {path}\n\n{operation.get('description', '')}\n"
            yield from _parameters(operation)
            answers = ", ".join(operation["responses"])
            yield f"Answers: {answers}. {_body(operation)}\n"


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    parameters = operation.get("parameters", ())
    for parameter in parameters:
        needed = ", required" if parameter.get("required") else ""
        words = parameter.get("description", "")
        yield f"- `{parameter['name']}` ({parameter['in']}{needed}): {words}".removesuffix(": ")
    if parameters:
        yield ""


def _body(operation: dict[str, Any]) -> str:
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        name = content["schema"].get("$ref", "").rpartition("/")[2]
        return f"Body: `{name}`." if name else f"Body: {kind}."
    return ""


def _bodies(schema: dict[str, Any]) -> Iterator[str]:
    for name, body in sorted(schema["components"]["schemas"].items()):
        yield f"### {name}\n\n{body.get('description', '')}\n\n| field | type | |\n| --- | --- | --- |"
        needed = body.get("required", ())
        for field, value in body.get("properties", {}).items():
            words = "; ".join(filter(None, (value.get("description"), "required" if field in needed else "")))
            yield f"| `{field}` | {_kind(value)} | {words} |"
        yield ""


def _kind(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_kind(each) for each in value["anyOf"])
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if "$ref" in value:
        return f"`{value['$ref'].rpartition('/')[2]}`"
    return str(value.get("type", value.get("const", "anything")))


if __name__ == "__main__":
    print(page(), end="")
