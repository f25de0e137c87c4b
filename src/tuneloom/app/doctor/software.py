"""Versions, tools, GPUs, the port of the server, and the store."""

import os
import platform
import shutil
import socket
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from tuneloom.app.doctor.findings import Finding, broken, good, note, warning
from tuneloom.compiler.linking import require_linker
from tuneloom.errors import StoreError, TargetError
from tuneloom.gpus import InstalledGpu, Nvml, visible_gpus
from tuneloom.store.opening import find_store

NEEDED = ("tuneloom", "apache-tvm", "numpy")
OPTIONAL = ("onnxruntime", "ai-edge-litert", "openvino", "torch", "triton", "ray")
PORT = 8321
_GIB = 1 << 30


def versions() -> Sequence[Finding]:
    """What is installed, of what is needed and of what can be used."""
    found = {name: _version(name) for name in (*NEEDED, *OPTIONAL)}
    missing = [name for name in NEEDED if not found[name]]
    shown = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    findings = good("versions", f"Python {platform.python_version()}, {shown}")
    if missing:
        findings += broken("packages", f"{', '.join(missing)} missing", "pip install tuneloom")
    absent = [name for name in OPTIONAL if not found[name]]
    if absent:
        remedy = f"pip install {' '.join(absent)}, if models are to be compared with these or to use them"
        findings += note("optional packages", f"{', '.join(absent)} not installed", remedy)
    return findings


def tools() -> Sequence[Finding]:
    """The linker that every build needs, and the compiler of kernels in C."""
    try:
        require_linker({})
    except TargetError as error:
        return broken("linker", "missing", str(error))
    if shutil.which("cc") is None:
        return note("C compiler", "missing", "apt install gcc, if you tune kernels in C")
    return good("linker, C compiler", "found")


def gpus() -> Sequence[Finding]:
    """The GPUs of the machine and who else uses them."""
    found = visible_gpus()
    if not found:
        return note("GPUs", "none", "install NVIDIA's driver if there is one, and give containers --gpus all")
    findings = good("GPUs", "; ".join(f"{gpu.name} ({gpu.arch}, {gpu.memory_mib} MiB)" for gpu in found))
    findings += _driver(found[0])
    users = Nvml().users()
    if users:
        findings += warning(
            "programs on GPUs", "; ".join(map(str, users)), "they disturb measurements; stop them"
        )
    return findings


def _driver(gpu: InstalledGpu) -> Sequence[Finding]:
    """The driver, which all GPUs of a machine share, and the newest CUDA that it runs."""
    if not gpu.driver:
        return note("GPU driver", "tells no version", "update NVIDIA's driver")
    runs = f", runs CUDA up to {gpu.cuda[0]}.{gpu.cuda[1]}" if gpu.cuda else ""
    return good("GPU driver", f"{gpu.driver}{runs}")


def port() -> Sequence[Finding]:
    """Whether `tuneloom serve` could listen."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return note(
                f"port {PORT}", "in use", "another server is running there; `serve --port` takes another"
            )
    return good(f"port {PORT}", "free")


def store(place: str | None) -> Sequence[Finding]:
    """Whether the store opens or could be created, and the space for it; the doctor itself creates none."""
    another = "choose another one with --store or TUNELOOM_HOME"
    try:
        where, there = find_store(place)
    except StoreError as error:
        return broken("store", str(error), another)
    if not Path(where).is_absolute():
        return good("store", where)
    folder = next(parent for parent in Path(where).parents if parent.exists())
    if not there and not os.access(folder, os.W_OK | os.X_OK):
        return broken("store", f"{where} can't be created: {folder} is not writable", another)
    free = shutil.disk_usage(folder).free
    shown = f"{where}{'' if there else ' (created by the first job)'}, {free / _GIB:.1f} GiB free"
    return good("store", shown) if free > _GIB else warning("store", shown, "records need space: free some")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
