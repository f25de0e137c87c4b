"""The kinds of devices that a farm file may name."""

from tuneloom.app.farm.entries import CPU, CUDA, RPC
from tuneloom.app.farm.kinds.base import DeviceKind
from tuneloom.app.farm.kinds.cpu import CpuKind
from tuneloom.app.farm.kinds.cuda import CudaKind
from tuneloom.app.farm.kinds.rpc import RpcKind
from tuneloom.errors import FarmError

_KINDS: dict[str, DeviceKind] = {CPU: CpuKind(), CUDA: CudaKind(), RPC: RpcKind()}


def device_kind(name: str) -> DeviceKind:
    """How devices of a kind are offered and looked at; raises FarmError for one that can't be used yet."""
    if name not in _KINDS:
        raise FarmError(f"devices of kind {name!r} can't be used; known: {', '.join(sorted(_KINDS))}")
    return _KINDS[name]
