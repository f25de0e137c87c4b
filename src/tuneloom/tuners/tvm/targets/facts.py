"""What has to be known of a target to load code that was built for it."""

from typing import Any

from tuneloom.tuners.tvm.targets.cpu import cpu_features_needed, kernel_flags
from tuneloom.tuners.tvm.targets.linking import machine_of, triple_of
from tuneloom.tuners.tvm.targets.target import cpu_features_of, resolve_target


def target_facts(target_text: str) -> dict[str, Any]:
    """What has to be known of a target to load code built for it."""
    spec = resolve_target(target_text)
    features = cpu_features_of(spec.to_tvm()) if spec.kind == "llvm" else ()
    needed = cpu_features_needed(features)
    return {
        "text": spec.text,
        "mcpu": spec.mcpu,
        "triple": triple_of(spec.config),
        "machine": machine_of(spec.config),
        "device": "cuda" if spec.kind == "cuda" else "cpu",
        "cpu_features": list(needed),
        "cpu_flags": kernel_flags(needed),
    }
