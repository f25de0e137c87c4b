"""A model in 8-bit numbers, their scales found on the user's samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tuneloom.backends.finding import backend_of
from tuneloom.backends.quantising import Quantiser
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.folding import fold_constants
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.precision.layers import Conversion
from tuneloom.tuners.tvm.models.precision.samples import samples_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedModel:
    """A model that works on 8-bit numbers where it can, and how far its outputs are from those in floats."""

    model: ImportedModel
    difference: float
    agreeing: float | None
    """For how many of the samples, as a share, the largest output is the same; None without classes."""
    samples: int
    points: int
    drawn: bool = False
    """Whether the samples are random, since the user gave none."""

    @property
    def note(self) -> str:
        """What the user should know."""
        text = (
            f"{self.model.dtype}: outputs differ by {self.difference:.1%} from those in float32 "
            f"on {self.samples} {'random inputs, as no --samples were given' if self.drawn else 'samples'}"
        )
        return text + ("" if self.agreeing is None else f", the largest is the same on {self.agreeing:.0%}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantising:
    """What the user said about it: which type, where the samples are, and how far outputs may be off.

    Without a place of samples they are random.
    """

    dtype: str = "int8"
    samples: str
    tolerance: float = field(default=0.1)


def quantise(imported: ImportedModel, target: TargetSpec, how: Quantising) -> QuantisedModel:
    """The model with its constant products in 8-bit numbers.

    What has to be run for that is run on this machine's CPU, where devices are free for others. Raises
    InputError for samples that don't fit, for a model without such products, and for outputs beyond the
    tolerance.
    """
    backend_of(target).require_dtype(how.dtype, target)
    host = target if backend_of(target).on_host else resolve_target("cpu")
    quantiser = backend_of(target).quantiser(target)
    samples = samples_of(how.samples, imported.inputs)
    folded = replace(imported, module=fold_constants(imported.module))
    sources = quantiser.sources(folded.module)
    if not sources:
        raise InputError(
            f"{imported.name} has no convolution or product that {how.dtype} could speed up; omit --dtype"
        )
    expected, ranges = _ranges(folded, sources, host, quantiser, samples)
    scales = {source: quantiser.scale(low, high) for source, (low, high) in zip(sources, ranges, strict=True)}
    module = quantiser.rounded(folded.module, scales)
    made = replace(folded, module=module, digest=f"{imported.digest}-{how.dtype}", dtype=how.dtype)
    got = _outputs(lower(made, host), samples)
    difference = max(map(relative_difference, _stacked(got), _stacked(expected)))
    if not difference <= how.tolerance:
        worst = samples[_worst(got, expected)]
        conversion = Conversion(
            made=made, original=folded, outputs=lambda model: _outputs(lower(model, host), [worst])[0]
        )
        raise conversion.refusal(difference, how.tolerance, shown=".1%")
    return QuantisedModel(
        model=made,
        difference=difference,
        agreeing=_agreeing(got, expected),
        samples=len(samples),
        points=len(sources),
        drawn=not how.samples,
    )


def _ranges(
    imported: ImportedModel,
    sources: Sequence[Any],
    target: TargetSpec,
    quantiser: Quantiser,
    samples: Sequence[Sequence[Array]],
) -> tuple[list[list[Array]], list[tuple[float, float]]]:
    """The outputs of the model in floats for every sample, and between which values each variable lies."""
    extra = tuple(TensorInfo(name=f"range_{n}", shape=(), dtype="float32") for n in range(2 * len(sources)))
    watched = replace(
        imported,
        module=quantiser.watched(imported.module, sources),
        outputs=(*imported.outputs, *extra),
    )
    found = _outputs(lower(watched, target), samples)
    count = len(imported.outputs)
    extremes = np.array([[float(one) for one in outputs[count:]] for outputs in found])
    lows, highs = extremes[:, 0::2].min(axis=0), extremes[:, 1::2].max(axis=0)
    pairs = [(float(low), float(high)) for low, high in zip(lows, highs, strict=True)]
    return [outputs[:count] for outputs in found], pairs


def _outputs(lowered: LoweredModel, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    running = build_model(lowered, {}, guess=True).open_here()
    return [running.run(values) for values in samples]


def _stacked(found: Sequence[Sequence[Array]]) -> list[Array]:
    return [np.stack(one) for one in zip(*found, strict=True)]


def _worst(got: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> int:
    """The sample whose outputs are furthest off, at least as far as those of all together."""
    moved = [max(map(relative_difference, *pair)) for pair in zip(got, expected, strict=True)]
    return int(np.argmax(moved))


def _agreeing(got: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> float | None:
    """How often the largest of the first output is the same, where that has classes along its last axis."""
    first = expected[0][0]
    if first.ndim != 2 or first.shape[1] < 2:
        return None
    pairs = [(a[0].argmax(axis=1), b[0].argmax(axis=1)) for a, b in zip(got, expected, strict=True)]
    return float(np.mean([np.mean(a == b) for a, b in pairs]))
