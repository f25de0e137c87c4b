"""Convolutions that cuDNN takes: channels behind pixels, with bias, residual and ReLU behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuneloom.backends.cuda.epilogues import Epilogue, Summed, epilogue_of
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.library_calls import WORKSPACE_BYTES, algorithm_refusal, algorithm_space
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices
from tuneloom.backends.cuda.triton.templates.convolutions import Convolution, convolution_of
from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType

ALGORITHMS = 4
_GUESSES = 2
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 9}
_ON_TENSOR_CORES, _TF32, _EXACT = 1, 0, 3
_LAYOUTS = (("NHWC", "OHWI"), ("NWC", "OWI"))
_LEAST_CHANNELS = 8
"""Convolutions of smaller groups are left to templates, which read every window once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnClaim:
    """A convolution for cuDNN."""

    convolution: Convolution = field(repr=False)
    epilogue: Epilogue

    @property
    def factors(self) -> tuple[int, int]:
        """The image and the filters among the inputs."""
        image, filters = self.convolution.step.operands
        return image, filters

    @property
    def result(self) -> TensorType:
        """What the kernel gives."""
        meaning = self.convolution.meaning
        return meaning.type_of(meaning.outputs[0])

    @property
    def inputs(self) -> tuple[TensorType, ...]:
        """What the function takes: the kernel's inputs, the bias in the type of the result."""
        return tuple(
            replace(each, dtype=self.result.dtype) if number == self.epilogue.bias else each
            for number, each in enumerate(self.convolution.meaning.inputs)
        )

    @property
    def space(self) -> KnobChoices:
        """The library's list of algorithms."""
        return algorithm_space(ALGORITHMS, _GUESSES)

    def refusal(self, configuration: Configuration) -> str:
        """Why a configuration is not worth building; empty if it may work."""
        return algorithm_refusal(configuration, ALGORITHMS)

    def macros(self, configuration: Configuration, symbol: str) -> dict[str, Any]:
        """What the C function is compiled with."""
        found = self.convolution
        numbers = {
            "SYMBOL": symbol, "TYPE": _TYPES[found.dtype], "MATH": _math(found),
            "NUMBER": found.image.extent("N"), "GROUPS": found.batch, "CHANNELS": found.channels,
            "FILTERS": found.result.extent("C"), "ACTIVATED": self.epilogue.activation,
            "WORKSPACE": WORKSPACE_BYTES, "ALGORITHM": configuration["algorithm"],
        }  # fmt: skip
        for axis, letter in enumerate("HW"):
            name = {"H": "HEIGHT", "W": "WIDTH"}[letter]
            numbers |= {
                name: found.image.extent(letter), f"OUT_{name}": found.result.extent(letter),
                f"WINDOW_{name}": found.window.size[axis], f"PAD_{name}": found.window.before[axis],
                f"STRIDE_{name}": found.window.strides[axis], f"GAP_{name}": found.window.dilation[axis],
            }  # fmt: skip
        return numbers


def _math(found: Convolution) -> int:
    if found.dtype != "float32":
        return _ON_TENSOR_CORES
    return _TF32 if found.step.attributes.get("precision") == "tf32" else _EXACT


def cudnn_claim(meaning: Meaning, target: Mapping[str, Any]) -> CudnnClaim | None:
    """A claim on a convolution with nothing behind it that the library can't do."""
    gpu = Gpu.of(target)
    found = None if gpu is None else convolution_of(meaning, gpu)
    if found is None or not _is_plain(found) or len(meaning.outputs) != 1:
        return None
    epilogue = epilogue_of(
        Summed(
            meaning=meaning,
            value=found.value,
            dtype=found.dtype,
            channels=found.result.extent("C"),
            takes_bias=True,
            activations=_activation,
        )
    )
    if epilogue is None or meaning.type_of(meaning.outputs[0]).dtype != found.dtype:
        return None
    alone = epilogue.residual is None and not epilogue.activation
    return CudnnClaim(convolution=found, epilogue=epilogue) if epilogue.bias is not None or alone else None


def _is_plain(found: Convolution) -> bool:
    """Whether types and layouts are the library's, padding is the same on both sides, and groups are wide."""
    layouts = (found.image.letters, found.filters.letters)
    padding = list(found.step.attributes["padding"])
    half = len(padding) // 2
    even = half == 0 or padding[:half] == padding[half:]
    wide = found.batch == 1 or min(found.channels, found.columns) >= _LEAST_CHANNELS
    return (
        found.dtype in _TYPES and layouts in _LAYOUTS and found.result.letters == layouts[0] and even and wide
    )


def _activation(step: MeaningStep, _result: str) -> int:
    return int(step.operator == "relax.nn.relu")
