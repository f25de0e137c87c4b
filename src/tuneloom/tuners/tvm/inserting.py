"""Configurations of implementers as code in the place of kernels."""

import hashlib
from collections.abc import Iterator

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import Claim, Implementer, Insert, ModelKernel
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import Failure, FailureKind, Measurement
from tuneloom.model.space import implementer_of, values_in


def claims_on(kernel: ModelKernel) -> Iterator[tuple[Implementer, Claim]]:
    """Who can make code for a kernel beside TVM's schedules; a claim that fails is none."""
    for implementer in backend_of(kernel.target).implementers(kernel.target):
        try:
            claim = implementer.claim(kernel)
        except Exception:  # somebody else's package may fail in any way: TVM's schedules remain
            continue
        if claim is not None:
            yield implementer, claim


def symbol_of(key: str, configuration: str) -> str:
    """What the code of a configuration is called, by the key of its task: the same in trials and in models.

    Compilers that remember what they compiled, as Triton does, then have a model's kernels from its trials.
    """
    return f"tuneloom_{hashlib.sha256(f'{key} {configuration}'.encode()).hexdigest()[:16]}"


def inserted(kernel: ModelKernel, configuration: str, symbol: str) -> Insert | Failure:
    """What a configuration puts in the place of a kernel; all its names begin with `symbol`."""
    wanted = implementer_of(configuration)
    for implementer, claim in claims_on(kernel):
        if implementer.name == wanted:
            try:
                return implementer.insert(claim, values_in(configuration), symbol)
            except Exception as error:
                return _failure(f"{wanted}: {error}")
    return _failure(f"no implementer {wanted!r} takes this kernel here; install what brings it")


def alone(kernel: ModelKernel, configuration: str) -> tuple[str, bytes] | Failure | None:
    """Who measures a configuration by a clock of its own, and what it runs for that; None: nobody does."""
    wanted = implementer_of(configuration)
    for implementer, claim in claims_on(kernel):
        if implementer.name == wanted:
            try:
                made = implementer.alone(claim, values_in(configuration))
            except Exception as error:
                return _failure(f"{wanted}: {error}")
            return (wanted, made) if isinstance(made, bytes) else made
    return None


def timed(target: TargetSpec, implementer: str, made: bytes) -> Measurement | Failure:
    """Run what `alone` returned, by the clock of its device."""
    (maker,) = (one for one in backend_of(target).implementers(target) if one.name == implementer)
    return maker.timed(made)


def _failure(message: str) -> Failure:
    return Failure(kind=FailureKind.BUILD_ERROR, message=message)
