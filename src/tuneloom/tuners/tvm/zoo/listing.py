"""Networks that need no download: `zoo:NAME`.

Nine graphs come with the package `onnx` without their weights; three are built here.
All weights are seeded and scaled so that activations neither explode nor vanish.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuneloom.compiler.lazy import onnx
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.zoo.networks import mobilenet_v2, resnet18, transformer_encoder
from tuneloom.tuners.tvm.zoo.weights import fill_weights

_SHIPPED = {
    "alexnet": "bvlc_alexnet",
    "densenet121": "densenet121",
    "inception_v1": "inception_v1",
    "inception_v2": "inception_v2",
    "resnet50": "resnet50",
    "shufflenet": "shufflenet",
    "squeezenet": "squeezenet",
    "vgg19": "vgg19",
    "zfnet512": "zfnet512",
}
_BUILT: dict[str, Callable[[int], Any]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet18": resnet18,
    "transformer": transformer_encoder,
}


def zoo_names() -> tuple[str, ...]:
    """The names of all networks in the zoo."""
    return tuple(sorted((*_SHIPPED, *_BUILT)))


def zoo_model(name: str, seed: int = 0) -> Any:
    """The network as an `onnx.ModelProto`; the same seed gives the same weights.

    Raises ModelError for a name the zoo does not have.
    """
    require_name(name)
    if name in _BUILT:
        return _BUILT[name](seed)
    return fill_weights(_shipped_graph(_SHIPPED[name]), seed)


def require_name(name: str) -> None:
    """Raise ModelError for a name the zoo does not have."""
    if name not in _BUILT and name not in _SHIPPED:
        raise ModelError(f"no network {name!r} in the zoo; known: {', '.join(zoo_names())}")


def _shipped_graph(stem: str) -> Any:
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{stem}.onnx"
    if not path.is_file():
        raise ModelError(f"the installed package onnx has no {path.name}; install onnx 1.17 or newer")
    return onnx.load(path)
