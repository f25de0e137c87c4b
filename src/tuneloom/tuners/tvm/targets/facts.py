"""What has to be known of a target to load code that was built for it."""

from collections.abc import Collection
from typing import Any

from tuneloom.tuners.tvm.targets.cpu import cpu_features_needed, kernel_flags
from tuneloom.tuners.tvm.targets.linking import machine_of, triple_of
from tuneloom.tuners.tvm.targets.target import cpu_features_of, resolve_target
from tuneloom.tuners.tvm.targets.tiles import tile_features


def target_facts(target_text: str, tiles: Collection[str] = ()) -> dict[str, Any]:
    """What has to be known of a target to load code built for it, which may multiply numbers in tiles."""
    spec = resolve_target(target_text)
    features = cpu_features_of(spec.to_tvm()) if spec.kind == "llvm" else ()
    needed = (*cpu_features_needed(features), *tile_features(tiles))
    return {
        "text": spec.text,
        "mcpu": spec.mcpu,
        "triple": triple_of(spec.config),
        "machine": machine_of(spec.config),
        "device": "cuda" if spec.kind == "cuda" else "cpu",
        "cpu_features": list(needed),
        "cpu_flags": kernel_flags(needed),
    }
