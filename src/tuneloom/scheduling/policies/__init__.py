"""The policies by name."""

from collections.abc import Callable, Mapping

from tuneloom.errors import InputError
from tuneloom.scheduling.policies.base import Policy
from tuneloom.scheduling.policies.interleaved import Interleaved
from tuneloom.scheduling.policies.load_aware.policy import LoadAware
from tuneloom.scheduling.policies.sequential import Sequential
from tuneloom.scheduling.policies.synchronous import Synchronous

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "load-aware": LoadAware,
    "interleaved": Interleaved,
    "sequential": Sequential,
    "synchronous": Synchronous,
}
"""Every policy under the name users give; the first is the default."""


def policy_named(name: str) -> Policy:
    """A fresh policy; raises InputError naming the known ones."""
    make = POLICIES.get(name.replace("_", "-"))
    if make is None:
        known = ", ".join(repr(other) for other in POLICIES)
        raise InputError(f"no policy named {name!r}; known: {known}")
    return make()


__all__ = ["POLICIES", "Policy", "policy_named"]
