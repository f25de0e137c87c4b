"""What the service knows and has: the bank, devices, and who calls."""

from dataclasses import asdict

from fastapi import APIRouter

from tuneloom import __version__
from tuneloom.app.service.seeing import seen_resources
from tuneloom.app.service.watching import device_histories
from tuneloom.server.bodies import (
    AcceptedTold,
    BankRowTold,
    BankTold,
    DeviceHistoriesTold,
    DeviceHistoryTold,
    DevicesTold,
    DeviceTold,
    SelfTold,
)
from tuneloom.server.callers import Administrator, Reader, Served
from tuneloom.server.problems import documented
from tuneloom.server.telling import finite, tenant_told

ROUTER = APIRouter(tags=["knowledge"])


@ROUTER.get("/self", responses=documented())
def show_self(service: Served, caller: Reader) -> SelfTold:
    """Whose token this is, what its tenant may use, and what this server accepts."""
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
def show_bank(service: Served, caller: Administrator) -> BankTold:
    """How much is known by kernel class and target family, of all tenants."""
    with service.stores.lent() as store:
        return BankTold(rows=[BankRowTold(**asdict(row)) for row in store.bank()])


@ROUTER.get("/devices", responses=documented())
def list_devices(service: Served, caller: Reader) -> DevicesTold:
    """Hosts and devices of the executors that carry something out."""
    with service.stores.lent() as store:
        resources = seen_resources(store)
    told = [asdict(resource) for resource in resources]
    if caller.sees is not None:
        told = [each | {"now": "busy" if each["taken"] else "idle"} for each in told]
    return DevicesTold(devices=[DeviceTold(**each) for each in told])


@ROUTER.get("/devices/history", responses=documented())
def show_device_history(service: Served, caller: Reader) -> DeviceHistoriesTold:
    """How quiet devices were, and when they were lost and returned, as recent jobs noted."""
    with service.stores.lent() as store:
        found = device_histories(store)
    return DeviceHistoriesTold(devices=[DeviceHistoryTold(**finite(asdict(each))) for each in found])
