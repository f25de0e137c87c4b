"""A farm file becomes machines and devices, and whatever is wrong with it is named with its line."""

from pathlib import Path

import pytest

from tuneloom.app.devices.base import DeviceEntry
from tuneloom.app.farm.joining import order_for
from tuneloom.app.farm.reading import FarmFile, HostEntry, read_farm
from tuneloom.errors import JobsFileError

ARM = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "mattr": ["+neon"]}'
FULL = f"""
engine = "ray"
address = "auto"

[[hosts]]
node = "build-1"
slots = 12

[[devices]]
key = "h200"
kind = "cuda"
node = "gpu-1"
index = 1

[[devices]]
key = "cortex-a72"
kind = "rpc"
address = "board-3:9090"
target = '{ARM}'

[[devices]]
key = "xeon"
kind = "cpu"
node = "build-1"
cores = 4
"""


def farm_of(tmp_path: Path, text: str) -> FarmFile:
    path = tmp_path / "farm.toml"
    path.write_text(text)
    return read_farm(path)


def test_everything_that_a_farm_file_may_say_is_read(tmp_path: Path) -> None:
    farm = farm_of(tmp_path, FULL)
    assert (farm.engine, farm.address) == ("ray", "auto")
    assert farm.hosts == (HostEntry(node="build-1", slots=12, line=5),)
    assert farm.devices == (
        DeviceEntry(key="h200", kind="cuda", node="gpu-1", index=1, line=9),
        DeviceEntry(key="cortex-a72", kind="rpc", address="board-3:9090", target=ARM, line=15),
        DeviceEntry(key="xeon", kind="cpu", node="build-1", cores=4, line=21),
    )


def test_an_empty_farm_file_is_ray_with_whatever_is_found(tmp_path: Path) -> None:
    farm = farm_of(tmp_path, "")
    assert (farm.engine, farm.address, farm.hosts, farm.devices) == ("ray", None, (), ())


def test_a_device_that_names_no_node_belongs_to_the_machine_that_starts_ray(tmp_path: Path) -> None:
    farm = farm_of(tmp_path, '[[devices]]\nkey = "h200"\nkind = "cuda"\nindex = 0\n')
    assert order_for(farm, "here", "here", here=True).devices == farm.devices
    assert order_for(farm, "there", "there", here=False).devices == ()


def test_a_farm_knows_what_to_compile_for_a_key(tmp_path: Path) -> None:
    farm = farm_of(tmp_path, FULL)
    assert farm.target_of("cortex-a72") == ARM
    assert farm.target_of("xeon") is None and farm.target_of("nobody") is None


BOARD = '[[devices]]\nkey = "a"\nkind = "rpc"\naddress = "b:1"\ntarget = "cpu"\n'
CORES = '[[devices]]\nkey = "a"\nkind = "cpu"\nnode = "n"\n'
WRONG = {
    'engin = "ray"': "line 1: unknown key 'engin'; did you mean 'engine'?",
    '\nengine = "spark"': "line 2: 'engine' must be one of ray, local, got 'spark'",
    'address = "nowhere"': "line 1: 'address' must be 'auto' or the address of a Ray cluster",
    'engine = "local"\naddress = "auto"': 'line 2: an address is only for engine = "ray"; omit it',
    "hosts = 3": "line 1: begin each of the hosts with [[hosts]]",
    "[[hosts]]\nslots = 2": "line 1: this host has no node",
    '[[hosts]]\nnode = "a"\nslot = 2': "line 3: unknown key 'slot'; did you mean 'slots'?",
    '[[hosts]]\nnode = "a"\nslots = -1': "line 3: 'slots' must be a whole number of at least 0, got -1",
    '[[hosts]]\nnode = "a"\n[[hosts]]\nnode = "a"': "line 3: node 'a' is listed twice, see line 1",
    '[[devices]]\nkind = "cpu"': "line 1: this device has no key; add one, as in key = 'my-board'",
    '[[devices]]\nkey = "a"': "line 1: this device has no kind; add one, as in kind = 'rpc'",
    '[[devices]]\nkey = "a b"\nkind = "cpu"': "line 2: 'key' must be text without spaces",
    '[[devices]]\nkey = "a"\nkind = "gpu"': "line 3: 'kind' must be one of cpu, cuda, rpc, got 'gpu'",
    'address = "auto"\n[[devices]]\nkey = "a"\nkind = "cpu"': "line 2: this device has no node",
    f"{CORES}index = 1": "line 5: a device of kind 'cpu' has no 'index'; it has: key, kind, node",
    '[[devices]]\nkey = "a"\nkind = "rpc"': "line 1: a device of kind 'rpc' needs an address",
    '[[devices]]\nkey = "a"\nkind = "rpc"\naddress = "b:1"': "line 1: a device of kind 'rpc' needs a target",
    '[[devices]]\nkey = "a"\nkind = "rpc"\naddress = "b:70000"': "line 4: 'address' must be an address",
    f'{CORES}target = "llvm -mcpu=x"': "line 5: 'target' must be 'cpu', 'cuda' or a TVM target in JSON",
    f"{BOARD}{BOARD}": "line 6: the board at b:1 is listed twice, see line 1",
    f"{CORES}{CORES}": "line 5: the CPU of n is listed twice, see line 1",
    f"{BOARD}{CORES}": "line 6: devices with key 'a' differ in kind or target, see line 1",
    f'engine = "local"\n{CORES}': 'line 5: engine = "local" has one machine, so a device has no node',
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.items())
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(JobsFileError) as caught:
        farm_of(tmp_path, text)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'farm.toml'}, ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobsFileError, match=r"can't read .*farm\.toml: No such file"):
        read_farm(tmp_path / "farm.toml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "farm.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(
        JobsFileError, match=r"can't read .*farm\.toml: it is no text in UTF-8; check the path"
    ):
        read_farm(tmp_path / "farm.toml")
