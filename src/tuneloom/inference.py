"""Bundles behind the interface of ONNX Runtime: existing code changes one import."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.errors import BundleError, InvalidArgument
from tuneloom.tuners.tvm.bundles.loading import read_manifest
from tuneloom.tuners.tvm.bundles.one_file import opened, unpacked
from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.weights import type_named

_TYPES = {"float32": "float", "float64": "double"}
_WORDS = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : "


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeArg:
    """An input or output: its name, its shape (None where it varies), its type as ONNX Runtime writes it."""

    name: str
    shape: list[int | None]
    type: str


class InferenceSession:
    """A bundle, a folder, a `.tlb` file or its bytes, that is run as a session of ONNX Runtime is.

    Raises BundleError if it can't be loaded here. May be used by several threads, which take turns.
    """

    def __init__(
        self,
        path_or_bytes: str | Path | bytes,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **_: Any,
    ) -> None:
        folder = unpacked(path_or_bytes) if isinstance(path_or_bytes, bytes) else opened(Path(path_or_bytes))
        self._options, self._lock = sess_options, threading.Lock()
        self._manifest = read_manifest(folder)
        try:
            self._model = Model(folder)
        except Refused as error:
            named = f"{len(path_or_bytes)} bytes" if isinstance(path_or_bytes, bytes) else path_or_bytes
            raise BundleError(f"{named}: {error}") from error
        self._inputs, self._outputs = self._model.state.inputs, self._model.state.outputs
        sizes = self._manifest.get("sizes", {"inputs": {}, "outputs": {}})
        self._varying = {name: set(axes) for name, axes in sizes["inputs"].items()}
        self._varying |= {name: {axis for axis, _ in axes} for name, axes in sizes["outputs"].items()}

    def get_inputs(self) -> list[NodeArg]:
        """The inputs of the model in their order."""
        return [_argument(entry, self._varying.get(entry["name"], ())) for entry in self._inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs of the model in their order."""
        return [_argument(entry, self._varying.get(entry["name"], ())) for entry in self._outputs]

    def get_providers(self) -> list[str]:
        """What runs the model."""
        return [f"{self._manifest['target']['device'].upper()}ExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of what runs the model: there are none."""
        return {name: {} for name in self.get_providers()}

    def get_session_options(self) -> Any:
        """The options that were given, which change nothing."""
        return self._options

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """The outputs with these names, or all of them, for arrays by the names of the inputs."""
        known = [entry["name"] for entry in self._outputs]
        for name in output_names or ():
            if name not in known:
                raise InvalidArgument(f"{_WORDS}Invalid output name: {name}")
        values = self._values(input_feed)
        try:
            with self._lock:
                found = dict(zip(known, self._model.run(values), strict=True))
        except Refused as error:
            raise InvalidArgument(f"{_WORDS}{error}") from error
        return [found[name] for name in output_names or known]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Sequence[Any], Any, str], None],
        user_data: Any,
        run_options: Any = None,
    ) -> None:
        """Run in another thread, which calls back with the outputs, `user_data`, and the error or ''."""

        def run() -> None:
            try:
                found, error = self.run(output_names, input_feed), ""
            except Exception as refused:
                found, error = [], str(refused)
            callback(found, user_data, error)

        threading.Thread(target=run, name="tuneloom-run").start()

    def reset(self) -> None:
        """Forget what the model kept from earlier runs."""
        self._model.state.reset()

    def _values(self, feed: Mapping[str, Any]) -> list[Any]:
        names = [entry["name"] for entry in self._inputs]
        missing = [name for name in names if name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        for name in feed:
            if name not in names:
                raise InvalidArgument(f"{_WORDS}Invalid input name: {name}")
        return [self._value(entry, feed[entry["name"]]) for entry in self._inputs]

    def _value(self, entry: Mapping[str, Any], given: Any) -> Any:
        wanted = type_named(entry["dtype"])
        given = given.numpy() if callable(getattr(given, "numpy", None)) else given  # an OrtValue
        value = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=wanted)
        if value.dtype != wanted:
            words = f"Actual: ({_type(value.dtype.name)}) , expected: ({_type(entry['dtype'])})"
            raise InvalidArgument(f"{_WORDS}Unexpected input data type. {words}")
        if value.ndim != len(entry["shape"]):
            words = f"{entry['name']} Got: {value.ndim} Expected: {len(entry['shape'])}"
            raise InvalidArgument(f"{_WORDS}Invalid rank for input: {words}")
        if list(value.shape) != entry["shape"] and not {"shapes", "sizes"} & self._manifest.keys():
            raise InvalidArgument(f"{_WORDS}{_wrong_sizes(entry, value.shape)}")
        return value


def _wrong_sizes(entry: Mapping[str, Any], got: Sequence[int]) -> str:
    pairs = zip(got, entry["shape"], strict=True)
    wrong = [f"index: {n} Got: {own} Expected: {size}" for n, (own, size) in enumerate(pairs) if own != size]
    return f"Got invalid dimensions for input: {entry['name']} for the following indices: {'; '.join(wrong)}"


def _argument(entry: Mapping[str, Any], varying: Collection[int]) -> NodeArg:
    shape = [None if axis in varying else size for axis, size in enumerate(entry["shape"])]
    return NodeArg(name=entry["name"], shape=shape, type=_type(entry["dtype"]))


def _type(dtype: str) -> str:
    return f"tensor({_TYPES.get(dtype, dtype)})"
