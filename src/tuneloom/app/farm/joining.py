"""From a farm file to an engine whose machines are ready, or to one line that says what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuneloom.app.devices.base import DeviceEntry
from tuneloom.app.devices.describing import MachineOrder
from tuneloom.app.devices.watching import DeviceWatch, occupied
from tuneloom.app.farm.reading import RAY, FarmFile
from tuneloom.app.farm.surveying import COMPARED, SURVEY, facts_of, versions
from tuneloom.engine.api import Engine
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.errors import FarmError
from tuneloom.model import LOCAL

if TYPE_CHECKING:
    from tuneloom.engine.ray.engine import RayEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """How workers are prepared: a function for their parent, and variables that it finds."""

    warm_up: str | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyMachine:
    """This machine, as its watch knows it; tells what an engine of several machines tells of those."""

    watch: DeviceWatch
    facts: Mapping[str, Mapping[str, Any]]
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def offers(self) -> tuple[Offer, ...]:
        return self.watch.offers

    @property
    def away(self) -> Mapping[str, str]:
        return self.watch.away


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFarm:
    """A farm that is ready: its engine, and its machines and devices as they are whenever somebody asks."""

    file: FarmFile
    engine: Engine
    machines: "RayEngine | OnlyMachine"

    @property
    def fleet(self) -> Fleet:
        """What can be used now."""
        return Fleet(offers=self.machines.offers)

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """What machines that are ready told of themselves."""
        return self.machines.facts

    @property
    def troubles(self) -> dict[str, str]:
        """Devices that can't be used now, and why."""
        present = {offer.resource.name for offer in self.machines.offers}
        first = {name: why for facts in self.facts.values() for name, why in facts["troubles"].items()}
        return {name: why for name, why in {**first, **self.machines.away}.items() if name not in present}


def join(farm: FarmFile, warmth: Warmth, *, device_cores: int = 1, insecure: bool = False) -> JoinedFarm:
    """Get a farm ready; the caller closes its engine. Raises FarmError for a farm that can't be used."""
    if farm.engine == RAY:
        return _join_ray(farm, warmth, device_cores, insecure)
    return _join_here(farm, warmth, device_cores)


def _join_here(farm: FarmFile, warmth: Warmth, device_cores: int) -> JoinedFarm:
    slots = farm.hosts[0].slots if farm.hosts else None
    devices = farm.devices or None
    order = MachineOrder(name=LOCAL, slots=slots, devices=devices, device_cores=device_cores)
    description, watch = occupied(order)
    engine = LocalEngine(warmth.warm_up, warmth.environment, watch)
    here = OnlyMachine(watch=watch, facts={LOCAL: facts_of(description)})
    return JoinedFarm(file=farm, engine=engine, machines=here)


def _join_ray(farm: FarmFile, warmth: Warmth, device_cores: int, insecure: bool) -> JoinedFarm:
    try:
        from tuneloom.engine.ray.cluster import connect
    except ImportError as error:
        raise FarmError("Ray is not installed; install it with `pip install tuneloom[farm]`") from error
    from tuneloom.engine.ray.engine import RayEngine
    from tuneloom.engine.ray.messages import AgentSpec, Node

    def spec(node: Node) -> AgentSpec | None:
        order = order_for(farm, node.label, node.name, here=node.here, device_cores=device_cores)
        if order.slots == 0 and order.devices == () and not node.here:
            return None  # nothing is wanted of it
        return AgentSpec(
            machine=node.name,
            survey=SURVEY,
            argument=order,
            warm_up=warmth.warm_up,
            environment=warmth.environment,
        )

    cluster = connect(farm.address, insecure=insecure)
    engine = RayEngine(cluster, spec)
    try:
        require_nodes(farm, [node.label for node in cluster.nodes()])
        engine.prepare()
        require_same_versions(engine.facts)
    except BaseException:
        engine.close()
        raise
    return JoinedFarm(file=farm, engine=engine, machines=engine)


def order_for(farm: FarmFile, label: str, name: str, *, here: bool, device_cores: int = 1) -> MachineOrder:
    """What the machine of a node is asked to offer; what names no node belongs to the run's machine."""
    devices = tuple(device for device in farm.devices if _is_on(device, label, here=here))
    return MachineOrder(
        name=name,
        slots=farm.host(label).slots,
        devices=devices if farm.devices else None,
        device_cores=device_cores,
    )


def require_nodes(farm: FarmFile, labels: Sequence[str]) -> None:
    """Raise FarmError for a node that the cluster does not have."""
    named = [(host.node, host.line) for host in farm.hosts]
    named += [(device.node, device.line) for device in farm.devices if device.node is not None]
    for node, line in named:
        if node not in labels:
            known = ", ".join(repr(label) for label in sorted(set(labels)))
            raise FarmError(
                f"{farm.path}, line {line}: Ray has no node {node!r}; known: {known}. "
                "`ray start --node-name` names one"
            )


def require_same_versions(facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise FarmError if machines have other versions than this one of what has to be the same."""
    own = versions()
    for machine, told in facts.items():
        for package, called in COMPARED.items():
            theirs = told["versions"].get(package)
            if theirs != own[package]:
                here = own[package]
                raise FarmError(
                    f"{machine} has {called} {theirs}, this machine has {here}; install the same on both"
                )


def _is_on(device: DeviceEntry, label: str, *, here: bool) -> bool:
    return device.node == label or (device.node is None and here)
