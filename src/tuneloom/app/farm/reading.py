"""Reading a farm file: every complaint has its line and, for a misspelt word, the nearest known one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tuneloom.app.devices.base import DeviceEntry, DeviceKind
from tuneloom.app.devices.describing import device_kind, device_kinds, plain_targets
from tuneloom.app.requests.toml import TomlFile
from tuneloom.model.fields import COUNT, NATURAL, TEXT, FieldType, Words, one_of

RAY = "ray"
THIS_MACHINE = "local"
ENGINES = (RAY, THIS_MACHINE)
AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """What is said of a machine that builds; without `slots` it has one for each core that is left.

    0 slots: nothing is built there, only measured.
    """

    node: str
    slots: int | None = None
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmFile:
    """A farm: its engine, and the machines and devices that were listed.

    Machines that are not listed are used as they are found. If no device is listed, every machine
    offers what it has; otherwise exactly the listed ones are used.
    """

    path: Path
    engine: str = RAY
    address: str | None = None
    hosts: tuple[HostEntry, ...] = ()
    devices: tuple[DeviceEntry, ...] = field(default=())

    def host(self, node: str) -> HostEntry:
        """What is said of a machine; an entry that says nothing if it is not listed."""
        return next((host for host in self.hosts if host.node == node), HostEntry(node=node))

    def devices_with(self, key: str) -> list[DeviceEntry]:
        """The listed devices that have a key."""
        return [device for device in self.devices if device.key == key]

    def target_of(self, key: str) -> str | None:
        """What to compile for a key; None where devices say nothing of it."""
        return next((device.target for device in self.devices_with(key) if device.target), None)


def _is_name(value: Any) -> bool:
    return TEXT.fits(value) and not any(letter.isspace() or letter == "\x1f" for letter in value)


def _is_address(value: Any) -> bool:
    host, _, port = value.rpartition(":") if _is_name(value) else ("", "", "")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 65536


def _is_target(value: Any) -> bool:
    if not TEXT.fits(value):
        return False
    try:
        read = json.loads(value) if value not in plain_targets() else {"kind": value}
    except ValueError:
        return False
    return isinstance(read, dict) and TEXT.fits(read.get("kind"))


NAME = Words(words="text without spaces", fits=_is_name)
ADDRESS = Words(words="an address, as in 'board-3:9090'", fits=_is_address)
VALUE = Words(words="text or a number", fits=lambda value: TEXT.fits(value) or type(value) in (int, float))
CLUSTER = Words(
    words="'auto' or the address of a Ray cluster, as in 'head:6379'",
    fits=lambda value: value == AUTO or _is_address(value),
)

FARM: Mapping[str, FieldType] = {"engine": one_of(ENGINES), "address": CLUSTER}
HOST: Mapping[str, FieldType] = {"node": NAME, "slots": NATURAL}
_OF_EVERY_DEVICE = ("key", "kind", "node")
_ATTRIBUTES = {each.name for each in fields(DeviceEntry)} - {"options", "line"}


def _device_fields() -> dict[str, FieldType]:
    """What may be said of devices; kinds of strangers may have fields that nobody else knows."""
    kinds = device_kinds()
    targets = ", ".join(map(repr, plain_targets()))
    known: dict[str, FieldType] = {
        "key": NAME,
        "kind": one_of(list(kinds)),
        "node": NAME,
        "index": NATURAL,
        "cores": COUNT,
        "address": ADDRESS,
        "target": Words(words=f"{targets} or a TVM target in JSON with its kind", fits=_is_target),
    }
    return {name: VALUE for kind in kinds.values() for name in kind.fields} | known


def read_farm(path: Path) -> FarmFile:
    """The farm that a file describes; raises JobsFileError with file and line."""
    file = TomlFile.read(path)
    file.require_known(file.data, (*FARM, "hosts", "devices"))
    for key in FARM.keys() & file.data.keys():
        file.require(FARM[key], file.data[key], key, key)
    engine = file.data.get("engine", RAY)
    if engine != RAY and "address" in file.data:
        raise file.wrong(f'an address is only for engine = "{RAY}"; omit it', "address")
    hosts = tuple(_host(file, table, place) for place, table in _tables(file, "hosts"))
    devices = tuple(_device(file, table, place) for place, table in _tables(file, "devices"))
    farm = FarmFile(path=path, engine=engine, address=file.data.get("address"), hosts=hosts, devices=devices)
    _require_nodes(file, farm)
    _require_different(file, "hosts", hosts, lambda host: f"node {host.node!r}")
    _require_different(file, "devices", devices, _called)
    _require_one_target(file, farm)
    return farm


def _tables(file: TomlFile, name: str) -> list[tuple[int, dict[str, Any]]]:
    tables = file.data.get(name, [])
    if not isinstance(tables, list):
        raise file.wrong(f"begin each of the {name} with [[{name}]]", name)
    return [(n, file.require_table(table, f"each of the {name}", name, n)) for n, table in enumerate(tables)]


def _host(file: TomlFile, table: dict[str, Any], number: int) -> HostEntry:
    file.require_values(table, HOST, "hosts", number)
    if "node" not in table:
        raise file.wrong("this host has no node; `tuneloom farm check` lists those of Ray", "hosts", number)
    return HostEntry(**table, line=file.lines.of("hosts", number))


def _device(file: TomlFile, table: dict[str, Any], number: int) -> DeviceEntry:
    file.require_values(table, _device_fields(), "devices", number)
    for key, example in (("key", "'my-board'"), ("kind", "'rpc'")):
        if key not in table:
            raise file.wrong(f"this device has no {key}; add one, as in {key} = {example}", "devices", number)
    kind = device_kind(table["kind"])
    _require_own_fields(file, table, kind, number)
    own = {name: table[name] for name in table if name in _ATTRIBUTES}
    options = {name: value for name, value in table.items() if name not in _ATTRIBUTES}
    return DeviceEntry(**own, options=options, line=file.lines.of("devices", number))


def _require_own_fields(file: TomlFile, table: dict[str, Any], kind: DeviceKind, number: int) -> None:
    """A device has the fields of its kind, and all that this needs."""
    name, known = table["kind"], (*_OF_EVERY_DEVICE, *kind.fields, "target")
    for key in table:
        if key not in known:
            message = f"a device of kind {name!r} has no {key!r}; it has: {', '.join(known)}"
            raise file.wrong(message, "devices", number, key)
    for key in kind.needed:
        if key not in table:
            raise file.wrong(f"a device of kind {name!r} needs {_article(key)} {key}", "devices", number)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _require_nodes(file: TomlFile, farm: FarmFile) -> None:
    """In a cluster a device that is part of a machine names it; with one machine there is nothing to name."""
    if farm.engine != RAY and len(farm.hosts) > 1:
        raise file.wrong(f'engine = "{farm.engine}" has one machine, but two hosts are listed', "hosts", 1)
    for number, device in enumerate(farm.devices):
        if farm.engine != RAY and device.node is not None:
            message = f'engine = "{farm.engine}" has one machine, so a device has no node; omit it'
            raise file.wrong(message, "devices", number, "node")
        inside = device_kind(device.kind).in_machine
        if farm.engine == RAY and farm.address and device.node is None and inside:
            raise file.wrong("this device has no node; name the machine that has it", "devices", number)


def _require_different(
    file: TomlFile, name: str, entries: tuple[Any, ...], called: Callable[[Any], str]
) -> None:
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries):
        if (earlier := seen.setdefault(called(entry), entry.line)) != entry.line:
            raise file.wrong(f"{called(entry)} is listed twice, see line {earlier}", name, number)


def _called(device: DeviceEntry) -> str:
    return device_kind(device.kind).called(device)


def _require_one_target(file: TomlFile, farm: FarmFile) -> None:
    """Devices of one key are interchangeable, so they can't be compiled for differently."""
    first: dict[str, DeviceEntry] = {}
    for number, device in enumerate(farm.devices):
        other = first.setdefault(device.key, device)
        if (device.kind, device.target) != (other.kind, other.target):
            message = f"devices with key {device.key!r} differ in kind or target, see line {other.line}"
            raise file.wrong(f"{message}; give them different keys", "devices", number)
