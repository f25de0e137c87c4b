"""Convolutions and products of int8 numbers for the accelerator: claimed, tuned, and put into models."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tuneloom.backends.implementers import Claim, Configuration, Implementer, Insert, Knobs, ModelKernel
from tuneloom.backends.meaning import TensorType
from tuneloom.backends.wrapping import calling_with
from tuneloom.model import Failure, Measurement
from tuneloom_vta.backend.objects import objects_of
from tuneloom_vta.configuration import Configuration as Accelerator
from tuneloom_vta.errors import VtaError
from tuneloom_vta.measuring import build, profile, refused
from tuneloom_vta.schedules.knobs import Knobs as KnobValues
from tuneloom_vta.schedules.knobs import space_of
from tuneloom_vta.schedules.tiling import Tiling
from tuneloom_vta.schedules.workloads import Convolution

WORKLOAD = "tuneloom_vta.workload"
"""The attribute of a kernel that says what it computes."""
_GUESSES = 4


@dataclass(frozen=True)
class VtaClaim:
    """A convolution on an accelerator, with the knobs of the published schedules."""

    workload: Convolution
    accelerator: Accelerator

    @cached_property
    def space(self) -> Knobs:
        space = space_of(self.workload, self.accelerator)
        knobs = {name: tuple(int(value) for value in values) for name, values in space.knobs.items()}
        rows = [{name: int(v) for name, v in space.configuration(p).items()} for p in space.points()]
        fitting = [row for row in rows if not self.refusal(row)]
        guesses = tuple(sorted(fitting, key=self._traffic)[:_GUESSES])
        return Knobs(knobs=knobs, guesses=guesses, learned=True)

    def refusal(self, configuration: Configuration) -> str:
        """What building would find out, for guesses and what other kernels give; the search is not told."""
        try:
            return refused(Tiling(self.workload, KnobValues.of(configuration), self.accelerator))
        except VtaError as error:
            return str(error)

    def _traffic(self, configuration: Mapping[str, int]) -> float:
        """Bytes moved, and twice as many where only one thread runs: then nothing overlaps."""
        tiling = Tiling(self.workload, KnobValues.of(configuration), self.accelerator)
        each = self.accelerator.element_bytes
        moved = tiling.steps * (tiling.inputs * each["inp"] + tiling.weights * each["wgt"])
        rounds = (
            self.workload.out_height * self.workload.out_width * self.workload.out_channels / tiling.results
        )
        alone = 2.0 if tiling.threads == 1 else 1.0
        return alone * rounds * moved


class VtaImplementer(Implementer):
    """Makes programs for the accelerator. Its simulator is part of the model's library."""

    name: ClassVar[str] = "vta"

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator

    def claim(self, kernel: ModelKernel) -> Claim | None:
        told = (kernel.module["main"].attrs or {}).get(WORKLOAD)
        if told is None:
            return None
        claim = VtaClaim(Convolution(**json.loads(str(told))), self._accelerator)
        return claim if claim.space.guesses else None

    def alone(self, claim: VtaClaim, configuration: Configuration) -> bytes | Failure:
        """The program; its data are the same random ones in every process."""
        program = build(claim.workload, configuration, claim.accelerator)
        return program if isinstance(program, Failure) else pickle.dumps((claim.workload, program))

    def timed(self, alone: bytes) -> Measurement | Failure:
        workload, program = pickle.loads(alone)
        return profile(workload, program, self._accelerator)

    def insert(self, claim: VtaClaim, configuration: Configuration, symbol: str) -> Insert | Failure:
        program = build(claim.workload, configuration, claim.accelerator)
        if isinstance(program, Failure):
            return program
        modules = objects_of(program, claim.workload, claim.accelerator, symbol)
        data, weight, planes = types_of(claim.workload, claim.accelerator)
        return Insert(function=calling_with(symbol, [data, weight], [planes]), modules=modules)


def types_of(workload: Convolution, accelerator: Accelerator) -> tuple[TensorType, TensorType, TensorType]:
    """Data, weights and results of a kernel, as they lie in memory."""
    blocks_in, blocks_out = workload.blocks(accelerator)
    block_in, block_out = accelerator.block_in, accelerator.block_out
    size, kernel = (workload.out_height, workload.out_width), (workload.kernel, workload.kernel)
    return (
        TensorType(shape=(blocks_in, workload.height, workload.width, block_in), dtype="int8"),
        TensorType(shape=(blocks_out, blocks_in, *kernel, block_out, block_in), dtype="int8"),
        TensorType(shape=(workload.planes, blocks_out, *size, block_out), dtype="int8"),
    )
