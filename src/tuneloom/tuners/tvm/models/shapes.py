"""One model under several sets of shapes: its checks added up, its bundle written with equal weights once."""

import hashlib
import json
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tuneloom.model import CheckResult, OwnRuntime
from tuneloom.tuners.tvm.models.final import PARAMETERS, SHARED, Array, CompiledModel, parameter_name


def variant_folder(number: int) -> str:
    """Where a bundle keeps the model under its nth set of shapes; that of the first, number 0, is its own."""
    return f"shapes_{number}" if number else "."


def added(checks: Sequence[CheckResult]) -> CheckResult:
    """One run under each set of shapes, as one run."""
    if len(checks) == 1:
        return checks[0]
    return CheckResult(
        difference=max(check.difference for check in checks),
        tolerance=checks[0].tolerance,
        tuned_s=_sums([check.tuned_s for check in checks]),
        untuned_s=_sums([check.untuned_s for check in checks]),
        foreign_shares={name: share for check in checks for name, share in check.foreign_shares.items()},
        own_runtime=_own_runtime([check.own_runtime for check in checks]),
        uncompared=next((check.uncompared for check in checks if check.uncompared), ""),
        by_shape=tuple((median(check.untuned_s), median(check.tuned_s)) for check in checks),
    )


def _sums(times: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(starmap(lambda *runs: sum(runs), zip(*times, strict=False)))


def _own_runtime(found: Sequence[OwnRuntime | None]) -> OwnRuntime | None:
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return OwnRuntime(
        name=known[0].name,
        difference=max(one.difference for one in known),
        seconds=_sums([one.seconds for one in known]),
        tuned_s=_sums([one.tuned_s for one in known]),
    )


def export_all(models: Sequence[CompiledModel], folder: Path) -> None:
    """Write the model under all its shapes; weights that variants have in common are there once."""
    models[0].export(folder)
    known = {_digest(value): n for n, value in enumerate(models[0].parameters)}
    for number, model in enumerate(models[1:], 1):
        place = folder / variant_folder(number)
        place.mkdir()
        digests = [_digest(value) for value in model.parameters]
        own: dict[str, Any] = {
            parameter_name(n): model.parameters[n] for n, digest in enumerate(digests) if digest not in known
        }
        model.export_program(place)
        np.savez(place / PARAMETERS, **own)
        (place / SHARED).write_text(json.dumps([known.get(digest) for digest in digests]))


def _digest(value: Array) -> bytes:
    sha = hashlib.sha256(repr((value.shape, str(value.dtype))).encode())
    sha.update(np.ascontiguousarray(value).view(np.uint8).reshape(-1).tobytes())
    return sha.digest()
