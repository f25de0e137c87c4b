"""Reading a farm file: every complaint has its line and, for a misspelt word, the nearest known one."""

import json
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

from tuneloom.app.farm.entries import (
    AUTO,
    CPU,
    CUDA,
    ENGINES,
    KINDS,
    RAY,
    RPC,
    DeviceEntry,
    FarmFile,
    HostEntry,
)
from tuneloom.app.requests.fields import TEXT, FieldType, Words, one_of
from tuneloom.app.requests.toml_values import TomlFile
from tuneloom.model.numbers import COUNT, NATURAL

_PLAIN_TARGETS = ("cpu", "cuda")


def _is_name(value: Any) -> bool:
    return TEXT.fits(value) and not any(letter.isspace() or letter == "\x1f" for letter in value)


def _is_address(value: Any) -> bool:
    host, _, port = value.rpartition(":") if _is_name(value) else ("", "", "")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 65536


def _is_target(value: Any) -> bool:
    if not TEXT.fits(value):
        return False
    try:
        read = json.loads(value) if value not in _PLAIN_TARGETS else {"kind": value}
    except ValueError:
        return False
    return isinstance(read, dict) and TEXT.fits(read.get("kind"))


NAME = Words(words="text without spaces", fits=_is_name)
ADDRESS = Words(words="an address, as in 'board-3:9090'", fits=_is_address)
TARGET = Words(words="'cpu', 'cuda' or a TVM target in JSON with its kind", fits=_is_target)
CLUSTER = Words(
    words="'auto' or the address of a Ray cluster, as in 'head:6379'",
    fits=lambda value: value == AUTO or _is_address(value),
)

FARM: Mapping[str, FieldType] = {"engine": one_of(ENGINES), "address": CLUSTER}
HOST: Mapping[str, FieldType] = {"node": NAME, "slots": NATURAL}
DEVICE: Mapping[str, FieldType] = {
    "key": NAME,
    "kind": one_of(KINDS),
    "node": NAME,
    "index": NATURAL,
    "cores": COUNT,
    "address": ADDRESS,
    "target": TARGET,
}
_OF_KIND = {
    CPU: ("key", "kind", "node", "cores", "target"),
    CUDA: ("key", "kind", "node", "index", "target"),
    RPC: ("key", "kind", "node", "address", "target"),
}
_NEEDED = {CPU: (), CUDA: (), RPC: ("address", "target")}


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
    _require_different(file, "hosts", hosts, lambda host: host.node)
    _require_different(file, "devices", devices, _identity)
    _require_one_target(file, farm)
    return farm


def _tables(file: TomlFile, name: str) -> list[tuple[int, dict[str, Any]]]:
    tables = file.data.get(name, [])
    if not isinstance(tables, list):
        raise file.wrong(f"begin each of the {name} with [[{name}]]", name)
    return [(n, file.require_table(table, f"each of the {name}", name, n)) for n, table in enumerate(tables)]


def _checked(
    file: TomlFile, table: Mapping[str, Any], known: Mapping[str, FieldType], *place: str | int
) -> None:
    file.require_known(table, known, *place)
    for key, value in table.items():
        file.require(known[key], value, key, *place, key)


def _host(file: TomlFile, table: dict[str, Any], number: int) -> HostEntry:
    _checked(file, table, HOST, "hosts", number)
    if "node" not in table:
        raise file.wrong("this host has no node; `tuneloom farm check` lists those of Ray", "hosts", number)
    return HostEntry(**table, line=file.lines.of("hosts", number))


def _device(file: TomlFile, table: dict[str, Any], number: int) -> DeviceEntry:
    _checked(file, table, DEVICE, "devices", number)
    for key in ("key", "kind"):
        if key not in table:
            raise file.wrong(f"this device has no {key}", "devices", number)
    kind = table["kind"]
    for key in table:
        if key not in _OF_KIND[kind]:
            known = ", ".join(_OF_KIND[kind])
            raise file.wrong(
                f"a device of kind {kind!r} has no {key!r}; it has: {known}", "devices", number, key
            )
    for key in _NEEDED[kind]:
        if key not in table:
            raise file.wrong(f"a device of kind {kind!r} needs {_article(key)} {key}", "devices", number)
    return DeviceEntry(**table, line=file.lines.of("devices", number))


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
        if farm.engine == RAY and farm.address and device.node is None and device.kind != RPC:
            raise file.wrong("this device has no node; name the machine that has it", "devices", number)


def _identity(device: DeviceEntry) -> Hashable:
    """Two entries with the same one would be the same thing twice."""
    if device.kind == RPC:
        return RPC, device.address
    return (device.kind, device.node, device.index) if device.kind == CUDA else (CPU, device.node)


def _require_different(
    file: TomlFile, name: str, entries: tuple[Any, ...], identity: Callable[[Any], Hashable]
) -> None:
    seen: dict[Hashable, int] = {}
    for number, entry in enumerate(entries):
        if (earlier := seen.setdefault(identity(entry), entry.line)) != entry.line:
            what = f"node {entry.node!r}" if isinstance(entry, HostEntry) else str(entry)
            raise file.wrong(f"{what} is listed twice, see line {earlier}", name, number)


def _require_one_target(file: TomlFile, farm: FarmFile) -> None:
    """Devices of one key are interchangeable, so they can't be compiled for differently."""
    first: dict[str, DeviceEntry] = {}
    for number, device in enumerate(farm.devices):
        other = first.setdefault(device.key, device)
        if (device.kind, device.target) != (other.kind, other.target):
            message = f"devices with key {device.key!r} differ in kind or target, see line {other.line}"
            raise file.wrong(f"{message}; give them different keys", "devices", number)
