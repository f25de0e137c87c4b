"""What a model keeps from one run to the next."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.weights import type_named


class KeptState:
    """What a model keeps from one run to the next: inputs that nobody gives, outputs that nobody sees."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        pairs = {pair["input"]: pair for pair in manifest.get("state", [])}
        after = {pair["output"]: name for name, pair in pairs.items()}
        self._inputs = [(info, pairs.get(info["name"])) for info in manifest["inputs"]]
        self._outputs = [after.get(info["name"]) for info in manifest["outputs"]]
        self._values: dict[str, Any] = {}
        self.inputs = [info for info, pair in self._inputs if pair is None]
        manifest_outputs = zip(manifest["outputs"], self._outputs, strict=True)
        self.outputs = [info for info, name in manifest_outputs if name is None]
        self.reset()

    def reset(self) -> None:
        """Begin again as before the first run."""
        for info, pair in self._inputs:
            if pair is not None:
                value = np.array(pair.get("initial", 0), type_named(info["dtype"]))
                self._values[info["name"]] = np.broadcast_to(value, info["shape"]).copy()

    def complete(self, values: Sequence[Any]) -> list[Any]:
        """The values of all inputs."""
        if len(values) != len(self.inputs):
            names = ", ".join(info["name"] for info in self.inputs)
            raise Refused(f"the model takes {len(self.inputs)} inputs ({names}), got {len(values)}")
        given = iter(values)
        return [next(given) if pair is None else self._values[info["name"]] for info, pair in self._inputs]

    def keep(self, outputs: Sequence[Any]) -> list[Any]:
        """Those outputs that are seen; the others are for the next run."""
        named = list(zip(self._outputs, outputs, strict=True))
        self._values |= {name: value for name, value in named if name is not None}
        return [value for name, value in named if name is None]
