"""From what a user writes after `--target` to a complete target, by the backend whose hardware it is."""

import json
from typing import Any

from tuneloom.backends.base import Backend
from tuneloom.backends.finding import backend_for
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError

_DEFAULT = "cpu"


def resolve_target(text: str | None = None, *, cores: int = 1) -> TargetSpec:
    """Turn the name of a backend, or a TVM target in JSON, into a complete target.

    What is not described further is this machine's own; `cores` says how many cores of a CPU one run of
    the model may use. Raises TargetError for anything that no backend takes.
    """
    if cores < 1:
        raise TargetError(f"a target needs at least 1 core, got {cores}")
    backend, wanted = backend_of_text(text), (text or _DEFAULT).strip()
    config = json_config(wanted) if wanted.startswith("{") else {"kind": backend.kinds[0]}
    return backend.resolve(config, cores)


def backend_of_text(text: str | None) -> Backend:
    """The backend of what a user wrote, without asking the hardware; raises TargetError if there is none."""
    wanted = (text or _DEFAULT).strip()
    return backend_for(json_config(wanted)["kind"] if wanted.startswith("{") else wanted)


def json_config(text: str) -> dict[str, Any]:
    """Read a target written as JSON; raises TargetError when it is none."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise TargetError(
            f'target {text!r} is not valid JSON: {error}; write it as {{"kind": "llvm", "mcpu": "…"}}'
        ) from error
    if not isinstance(config, dict) or not isinstance(config.get("kind"), str):
        raise TargetError(f'target {text!r} needs a "kind", such as {{"kind": "llvm"}}')
    return config


def aimed(target: str) -> str | TargetError:
    """The target with everything filled in that this machine knows; one that can't be used is a value.

    How many cores a run may use is left open: that is up to the device. Runs in a worker on the
    machine of the device.
    """
    try:
        config = resolve_target(target).config
    except TargetError as error:
        return error
    said = json.loads(target) if target.startswith("{") else {}
    full = {name: value for name, value in config.items() if name != "num-cores" or name in said}
    return json.dumps(full, sort_keys=True)
