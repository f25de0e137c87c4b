"""What a target means on the machine of its device; runs in a worker there."""

import json

from tuneloom.errors import TargetError
from tuneloom.tuners.tvm.targets.target import resolve_target


def aimed(target: str) -> str | TargetError:
    """The target with all that this machine can tell filled in; one that can't be used is a value.

    How many cores a run may use is not said: that is up to the device.
    """
    try:
        config = resolve_target(target).config
    except TargetError as error:
        return error
    said = json.loads(target) if target.startswith("{") else {}
    full = {name: value for name, value in config.items() if name != "num-cores" or name in said}
    return json.dumps(full, sort_keys=True)
