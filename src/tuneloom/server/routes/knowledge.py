"""What the service knows and has: the bank, devices, and who calls."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from tuneloom import __version__
from tuneloom.app.hosting.seeing import seen_resources
from tuneloom.app.hosting.watching import device_histories
from tuneloom.server.access.callers import Reader
from tuneloom.server.bodies.accounts import AcceptedTold, SelfTold
from tuneloom.server.bodies.knowledge import (
    BankTold,
    DeviceHistoriesTold,
    DevicesTold,
    KernelPage,
    KernelTold,
)
from tuneloom.server.parameters import Limit
from tuneloom.server.problems import documented
from tuneloom.server.state import Served
from tuneloom.server.telling import in_ms, tenant_told

ROUTER = APIRouter(tags=["knowledge"])


@ROUTER.get("/self", responses=documented())
def show_self(service: Served, caller: Reader) -> SelfTold:
    """The tenant and the rights of this token, the tenant's quotas, and what this server accepts."""
    settings = service.settings
    with service.stores.lent() as store:
        tenant = store.tenant(caller.tenant)
        assert tenant is not None, "tokens go with their tenant"
        quota = tenant_told(tenant, store.usage(tenant.id))
    return SelfTold(
        tenant=caller.tenant,
        token=caller.token,
        role=caller.role.value,
        version=__version__,
        quota=quota,
        accepts=AcceptedTold(
            formats=list(settings.formats),
            tuners=list(settings.tuners),
            most_model_bytes=settings.most_model_bytes,
        ),
    )


@ROUTER.get("/bank", responses=documented())
def show_bank(service: Served, caller: Reader) -> BankTold:
    """Records your jobs can start from, by kernel class and target family; administrators see all."""
    with service.stores.lent() as store:
        return BankTold(rows=store.bank(reader=caller.sees))


@ROUTER.get("/bank/kernels", responses=documented(422))
def search_bank(
    service: Served,
    caller: Reader,
    kernel_class: Annotated[str | None, Query(max_length=200, description="only of this class")] = None,
    family: Annotated[str | None, Query(max_length=200, description="only of this target family")] = None,
    text: Annotated[
        str | None, Query(max_length=100, description="only kernels whose name or shapes contain this")
    ] = None,
    after: Annotated[str, Query(max_length=200, description="`next` of the page before")] = "",
    limit: Limit = 50,
) -> KernelPage:
    """Kernels that were tuned, and their best times on each kind of device."""
    with service.stores.lent() as store:
        found = store.known_kernels(
            kernel_class=kernel_class,
            family=family,
            text=text,
            after=after,
            limit=limit,
            reader=caller.sees,
        )
    keys = list(dict.fromkeys(kernel.key for kernel in found))
    told = [
        KernelTold(**{name: value for name, value in asdict(kernel).items() if name != "best_s"}, best_ms=ms)
        for kernel in found
        if (ms := in_ms(kernel.best_s)) is not None
    ]
    return KernelPage(kernels=told, next=keys[-1] if len(keys) >= limit else None)


@ROUTER.get("/devices", responses=documented())
def list_devices(service: Served, caller: Reader) -> DevicesTold:
    """Hosts and devices of the executors, idle ones included."""
    with service.stores.lent() as store:
        seen = seen_resources(store)
    in_detail = caller.sees is None
    return DevicesTold(devices=[resource if in_detail else resource.for_others() for resource in seen])


@ROUTER.get("/devices/history", responses=documented())
def show_device_history(service: Served, caller: Reader) -> DeviceHistoriesTold:
    """How quiet devices were, and when they were lost and returned, according to recent jobs."""
    with service.stores.lent() as store:
        return DeviceHistoriesTold(devices=device_histories(store))
