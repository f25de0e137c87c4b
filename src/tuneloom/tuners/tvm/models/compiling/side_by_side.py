"""The kernels of one model compiled side by side: on each core of this process a part of them."""

import ctypes
import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax

_LEAST = 8
"""Kernels a part: fewer are compiled in the time that a fork and one more object to link take."""
_PR_SET_PDEATHSIG = 1
_MOST_PROCESSES, _AHEAD_S = 8, 120
"""How many processes do things ahead, and after how many seconds one that hangs is ended."""


def built(module: Any, target: Any) -> Any:
    """What `relax.build` makes of a module whose passes are done and whose kernels run on the host.

    Runs in the current PassContext. A part whose process fails is compiled here, so its error is raised here.
    """
    from tvm.relax import vm_build

    count = _count(module)
    if count < 2:
        return relax.build(module, target, relax_pipeline=None)
    builder = relax.ExecBuilder()
    kernels = vm_build._filter_tir(vm_build._vmcodegen(builder, module))
    first, *others = _parts(kernels, count)
    libraries = _libraries(first, others, target)
    return vm_build.VMExecutable(vm_build._ffi_api.VMLink(builder, target, *libraries, {}))


def _count(module: Any) -> int:
    """Into how many parts to divide a module."""
    foreign = any(name in (module.attrs or {}) for name in ("external_mods", "const_name_to_constant"))
    return 1 if foreign else min(_free_cores(), len(module.functions) // _LEAST)


def _free_cores() -> int:
    """How many processes may be forked: of one with other threads, locks may stay taken for ever."""
    return len(os.sched_getaffinity(0)) if threading.active_count() == 1 else 1


def _parts(kernels: Any, count: int) -> list[Any]:
    """The kernels as so many modules; of neighbours, which are alike, each gets its share."""
    entries = sorted(kernels.functions.items(), key=lambda entry: str(entry[0].name_hint))
    modules = [dict(entries[number::count]) for number in range(count)]
    return [load_tvm().IRModule(functions, attrs=kernels.attrs) for functions in modules if functions]


def _libraries(first: Any, others: Sequence[Any], target: Any) -> tuple[Any, list[Any]]:
    """The first part compiled here, and the others in processes of their own."""
    build = load_tvm().tirx.build
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        paths = [Path(folder) / f"{number}.o" for number in range(len(others))]
        begun = [_begun(part, target, path) for part, path in zip(others, paths, strict=True)]
        try:
            own = build(first, target=target)
        finally:
            ended = [os.waitpid(process, 0)[1] for process in begun]
        return own, [
            build(part, target=target) if code else _object(part, path)
            for part, path, code in zip(others, paths, ended, strict=True)
        ]


def _begun(part: Any, target: Any, path: Path) -> int:
    """Start a process that writes an object with these kernels; the answer is its number."""
    return _forked(lambda: load_tvm().tirx.build(part, target=target).write_to_file(str(path), "o"))


def done_ahead(work: Sequence[Callable[[], object]]) -> None:
    """Do things in processes of their own, for what they leave on disk; whether they succeed is not told."""
    count = min(_free_cores(), _MOST_PROCESSES, len(work) // 2)
    if count < 2:
        return

    def some(part: Sequence[Callable[[], object]]) -> None:
        signal.alarm(_AHEAD_S)
        for one in part:
            one()

    for process in [_forked(partial(some, work[number::count])) for number in range(count)]:
        os.waitpid(process, 0)


def _forked(do: Callable[[], object]) -> int:
    """Start a process that does something and ends with 0 if it could; the answer is its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TVM's threads wait for work and hold nothing
        process = os.fork()
    if process:
        return process
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        do()
        code = 0
    finally:
        os._exit(code)


def _object(part: Any, path: Path) -> Any:
    names = [str(gvar.name_hint) for gvar in part.get_global_vars()]
    return load_tvm().runtime.load_static_library(str(path), names)
