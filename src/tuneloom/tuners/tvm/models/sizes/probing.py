"""A dimension that varies, probed before tuning: programs of a few sizes tell how others can run.

Zeros after the end of the inputs may change outputs, as without a mask in attention, and so may dividing
a run. Nobody promises either: both are tried, with the programs that first guesses make.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.errors import ModelError
from tuneloom.model import ModelRecipe, TensorInfo, VaryingSizes
from tuneloom.model.sizes import range_of
from tuneloom.tuners.tvm.lowering.tasks import extract
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array, OpenModel, timed_for
from tuneloom.tuners.tvm.models.compiling.shapes import digest_of
from tuneloom.tuners.tvm.models.compiling.tolerances import tolerance_for
from tuneloom.tuners.tvm.models.making.lowered import lowered_model
from tuneloom.tuners.tvm.models.making.made import MODELS
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.models.sizes.choosing import (
    MOST_PROGRAMS,
    Dimension,
    choose_sizes,
    interpolated,
    most_programs,
)
from tuneloom.tuners.tvm.runner.sizes import Sizes

_COPIES = 3  # of its weights are in memory for every program: lowered, tuned and untuned
_TIMING_S = 0.2
_FEW_WEIGHTS = 0.25  # a program for one row with more weights of its own is not worth storing these
_SEEDS = (0, 1)
_STRICT = 0.1  # of what rounding may do: padding that moves outputs at all should be seen
Axes = dict[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A model under one size, opened here with first guesses."""

    size: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    program: OpenModel
    weights: dict[bytes, int]
    """How many bytes its weights take, by what is in them."""
    kernels: int
    tolerance: float

    def seconds(self) -> float:
        """What one run takes here, where others may be at work."""
        timer = self.program.timer(seeded_inputs(self.inputs, seed=0))
        timer()
        return min(timed_for(timer, _TIMING_S, least=3))


def chosen_sizes(recipe: ModelRecipe) -> VaryingSizes:
    """How a dimension varies, and for which sizes the budget buys programs; raises ModelError."""
    low, high = range_of(recipe.ranges)
    probes = [_probe(recipe, size) for size in sorted({low, (low + high) // 2, high})]
    inputs = _varying([probe.inputs for probe in probes], probes, "input")
    outputs = _varying([probe.outputs for probe in probes], probes, "output")
    if any(factor != 1 for axes in inputs.values() for _, factor in axes):
        raise ModelError(
            f"{recipe.source}: an input grows by a multiple of the dimension that varies; fix it"
        )
    places = {name: tuple(axis for axis, _ in axes) for name, axes in inputs.items()}
    trial = SizeTrial(places, outputs, probes)
    pads = all(trial.pads(seed) for seed in _SEEDS)
    splits = pads and trial.divisible and all(trial.splits(seed) for seed in _SEEDS)
    dimension = Dimension(low=low, high=high, pads=pads, splits=splits)
    if not pads and high - low >= MOST_PROGRAMS:
        raise ModelError(
            f"{recipe.source}: zeros after the end of its inputs change its outputs, so each of the "
            f"{high - low + 1} sizes in {low}..{high} needs a program of its own, and {MOST_PROGRAMS} are "
            "made at most; give a smaller range, or an input that masks the end"
        )
    expected_s = interpolated({probe.size: probe.seconds() for probe in probes})
    most = most_programs(recipe.trials, probes[-1].kernels, _room_for(probes[-1]))
    least = low + 1 if pads and _own_weights(probes[0], probes[-1]) > _FEW_WEIGHTS else low
    programs = choose_sizes(dimension, expected_s, most, dict(recipe.asked), least)
    for probe in probes:
        MODELS.forget(_at(recipe, probe.size))
    return VaryingSizes(
        low=low, high=high, inputs=places, outputs=outputs, programs=programs, pads=pads, splits=splits
    )


def _at(recipe: ModelRecipe, size: int) -> ModelRecipe:
    """The model under one size, for this machine: GPUs and boards are not at hand where models are opened."""
    asked = resolve_target(recipe.target)
    target = recipe.target if backend_of(asked).on_host and not asked.cross else "cpu"
    return replace(recipe.at([size]), key=f"{recipe.key}:size {size}", target=target)


def _probe(recipe: ModelRecipe, size: int) -> Probe:
    lowered = lowered_model(_at(recipe, size))
    compiled = build_model(lowered, {}, guess=True)
    return Probe(
        size=size,
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        program=compiled.open_here(),
        weights={digest_of(value): value.nbytes for value in compiled.parameters},
        kernels=max(1, len(extract(lowered))),
        tolerance=tolerance_for(lowered.module),
    )


def _room_for(probe: Probe) -> int:
    """How many programs fit into half of this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return memory // (2 * _COPIES * max(1, sum(probe.weights.values())))


def _own_weights(probe: Probe, other: Probe) -> float:
    """Which part of a program's weights another one does not have: a single row may want them otherwise."""
    own = sum(count for digest, count in probe.weights.items() if digest not in other.weights)
    return own / max(1, sum(probe.weights.values()))


def _varying(interfaces: Sequence[tuple[TensorInfo, ...]], probes: Sequence[Probe], kind: str) -> Axes:
    """Which axes of tensors vary with the dimension, and by which factor; raises ModelError for others."""
    found: Axes = {}
    for infos in zip(*interfaces, strict=True):
        for axis, extents in enumerate(zip(*(info.shape for info in infos), strict=True)):
            if len(set(extents)) == 1:
                continue
            factor = extents[0] // probes[0].size
            if any(extent != factor * probe.size for extent, probe in zip(extents, probes, strict=True)):
                words = ", ".join(map(str, extents))
                raise ModelError(
                    f"dimension {axis} of {kind} {infos[0].name!r} is {words} for sizes "
                    f"{', '.join(str(probe.size) for probe in probes)}; only multiples of the size may vary"
                )
            found[infos[0].name] = (*found.get(infos[0].name, ()), (axis, factor))
    return found


class SizeTrial:
    """Runs a size in the program of another, as a bundle would, and compares."""

    def __init__(self, inputs: dict[str, tuple[int, ...]], outputs: Axes, probes: Sequence[Probe]) -> None:
        self._inputs, self._outputs = inputs, outputs
        self._middle, self._high = probes[(len(probes) - 1) // 2], probes[-1]

    @property
    def divisible(self) -> bool:
        """Whether every output is made of what the parts of a run give, one after the other."""
        return all(len(self._outputs.get(info.name, ())) == 1 for info in self._high.outputs)

    def pads(self, seed: int) -> bool:
        """Whether the middle size has the same outputs in the program of the greatest."""
        return self._same(self._middle, self._high, seed)

    def splits(self, seed: int) -> bool:
        """Whether the greatest size has the same outputs in several runs of the middle one."""
        return self._same(self._high, self._middle, seed)

    def _same(self, own: Probe, other: Probe, seed: int) -> bool:
        values = self._values(own, seed)
        runs = [0] * -(-own.size // other.size)
        manifest = {
            "inputs": [asdict(info) for info in self._high.inputs],
            "outputs": [asdict(info) for info in self._high.outputs],
            "sizes": {
                "low": own.size,
                "high": own.size,
                "programs": [other.size],
                "table": [runs],
                "inputs": self._inputs,
                "outputs": self._outputs,
            },
        }
        got = Sizes(manifest).run(values, lambda _, rows: other.program.run(rows))
        pairs = zip(got, own.program.run(values), strict=True)
        return max(relative_difference(a, b) for a, b in pairs) <= _STRICT * own.tolerance

    def _values(self, probe: Probe, seed: int) -> list[Array]:
        """Seeded values; whole numbers may be masks, which should let something through."""
        values = seeded_inputs(probe.inputs, seed)
        for value, info in zip(values, probe.inputs, strict=True):
            if value.dtype.kind in "biu":
                for axis in self._inputs.get(info.name, ()):
                    value[(slice(None),) * axis + (0,)] = 1
        return values
