"""What has to be known of a target to load code that was built for it."""

from collections.abc import Iterable
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.linking import machine_of, triple_of
from tuneloom.compiler.target import TargetSpec


def target_facts(target: TargetSpec, kernels: Iterable[str] = ()) -> dict[str, Any]:
    """What has to be known of a target to load code built for it, with kernels of these names."""
    return {
        "text": target.text,
        "backend": target.backend,
        "mcpu": str(target.config.get("mcpu", "")),
        "triple": triple_of(target.config),
        "machine": machine_of(target.config),
        "device": target.device,
        **backend_of(target).facts(target, kernels),
    }
