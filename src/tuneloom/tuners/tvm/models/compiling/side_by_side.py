"""The kernels of one model compiled side by side: on each core of this process a part of them."""

import ctypes
import os
import pickle
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.models.compiling.kept_kernels import KeptKernels

T = TypeVar("T")
_LEAST = 8
"""Kernels a part: fewer are compiled in the time that a fork and one more object to link take."""
_PR_SET_PDEATHSIG = 1
_MOST_PROCESSES, _AHEAD_S = 8, 120
"""How many processes do things ahead, and after how many seconds one that hangs is ended."""


def built(
    module: Any,
    target: Any,
    made: Mapping[str, bytes] = MappingProxyType({}),
    kept: KeptKernels | None = None,
) -> Any:
    """What `relax.build` makes of a module whose passes are done and whose kernels run on the host.

    Runs in the current PassContext. `made` are object files of kernels, by name; what is compiled beside them
    is kept, and linked again if it was `kept` before. A part whose process fails is compiled here, so its
    error is raised here.
    """
    from tvm.relax import vm_build

    count = _count(module, made)
    if not made and (_has_other_code(module) or (count < 2 and kept is None)):
        return relax.build(module, target, relax_pipeline=None)
    builder = relax.ExecBuilder()
    kernels = vm_build._filter_tir(vm_build._vmcodegen(builder, module))
    if kept is not None:
        made = {**_objects(kernels, target, made, kept), **made}
    first, *others = [*_libraries(_parts(kernels, count, made), target), *_linkable(made)]
    return vm_build.VMExecutable(vm_build._ffi_api.VMLink(builder, target, first, others, {}))


def compiled_ahead(
    module: Any, names: Collection[str], target: Any, kept: KeptKernels, seconds: float
) -> bool:
    """Compile kernels of a module whose passes are done, for so long; whether none of these is left.

    Runs in the current PassContext.
    """
    ends = time.monotonic() + seconds
    functions = {name: module[name] for name in sorted(names)}
    missing = functions.keys() - kept.of(functions.items(), target).keys()
    for done, name in enumerate(sorted(missing)):
        if done and time.monotonic() > ends:
            return False
        kept.keep(functions, _compiled_alone({name: functions[name]}, module.attrs, target), target)
    return True


def _has_other_code(module: Any) -> bool:
    return any(name in (module.attrs or {}) for name in ("external_mods", "const_name_to_constant"))


def _count(module: Any, made: Mapping[str, bytes]) -> int:
    """Into how many parts to divide a module."""
    if _has_other_code(module):
        return 1
    return max(1, min(_free_cores(), (len(module.functions) - len(made)) // _LEAST))


def _objects(kernels: Any, target: Any, made: Mapping[str, bytes], kept: KeptKernels) -> dict[str, bytes]:
    """Object files of all kernels that are not made, each one's own, by name; kept from now on."""
    named = {str(gvar.name_hint): function for gvar, function in kernels.functions.items()}
    wanted = {name: function for name, function in named.items() if name not in made}
    found = kept.of(wanted.items(), target)
    missing = {name: function for name, function in wanted.items() if name not in found}
    codes = _compiled_alone(missing, kernels.attrs, target)
    kept.keep(missing, codes, target)
    every = found | codes
    return {name: every[name] for name in sorted(every)}


def _compiled_alone(functions: Mapping[str, Any], attrs: Any, target: Any) -> dict[str, bytes]:
    """Kernels compiled one by one, on all cores of this process."""
    module, names = load_tvm().IRModule, sorted(functions)
    count = max(1, min(_free_cores(), len(names) // _LEAST))
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        paths = {name: Path(folder) / f"{number}.o" for number, name in enumerate(names)}

        def write(some: Sequence[str]) -> None:
            for name in some:
                _write_object(module({name: functions[name]}, attrs=attrs), target, paths[name])

        shares = [names[number::count] for number in range(count)]
        begun = [_forked(partial(write, share)) for share in shares[1:]]
        try:
            write(shares[0])
        finally:
            ended = [os.waitpid(process, 0)[1] for process in begun]
        for share, code in zip(shares[1:], ended, strict=True):
            write(share if code else [])
        return {name: path.read_bytes() for name, path in paths.items()}


def _free_cores() -> int:
    """How many processes may be forked: of one with other threads, locks may stay taken for ever."""
    return len(os.sched_getaffinity(0)) if threading.active_count() == 1 else 1


def _parts(kernels: Any, count: int, made: Mapping[str, bytes]) -> list[Any]:
    """Kernels not made yet as so many modules; of neighbours, which are alike, each gets its share."""
    left = [entry for entry in kernels.functions.items() if entry[0].name_hint not in made]
    entries = sorted(left, key=lambda entry: str(entry[0].name_hint))
    modules = [dict(entries[number::count]) for number in range(count)]
    return [load_tvm().IRModule(functions, attrs=kernels.attrs) for functions in modules if functions]


def _libraries(parts: Sequence[Any], target: Any) -> list[Any]:
    """The first part compiled here, and the others in processes of their own."""
    build = load_tvm().tirx.build
    if len(parts) < 2:
        return [build(part, target=target) for part in parts]
    first, *others = parts
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        own, *paths = [Path(folder) / f"{number}.o" for number in range(len(parts))]
        begun = [_begun(part, target, path) for part, path in zip(others, paths, strict=True)]
        try:
            _write_object(first, target, own)
        finally:
            ended = [os.waitpid(process, 0)[1] for process in begun]
        for part, path, code in zip(others, paths, ended, strict=True):
            if code:
                _write_object(part, target, path)
        return [_object(part, path) for part, path in zip(parts, (own, *paths), strict=True)]


def _linkable(made: Mapping[str, bytes]) -> list[Any]:
    """Object files of single kernels, each as a library that can be linked."""
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        for number, code in enumerate(made.values()):
            (Path(folder) / f"{number}.o").write_bytes(code)
        load = load_tvm().runtime.load_static_library
        return [load(str(Path(folder) / f"{number}.o"), [name]) for number, name in enumerate(made)]


def _begun(part: Any, target: Any, path: Path) -> int:
    """Start a process that writes an object with these kernels; the answer is its number."""
    return _forked(lambda: _write_object(part, target, path))


def _write_object(part: Any, target: Any, path: Path) -> None:
    """Compile kernels down to machine code, which takes a third of the time."""
    load_tvm().tirx.build(part, target=target).write_to_file(str(path), "o")


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


def made_beside(make: Callable[[], T]) -> Callable[[], T | None]:
    """Begin to make a value in a process of its own; the answer waits for it.

    It gives None if that process failed, or was not begun because this one may use no other core.
    """
    return _begun_value(make) if _free_cores() > 1 else lambda: None


def made_apart(make: Callable[[], T]) -> T | None:
    """Make a value in a process of its own; None if that failed, or this process must not fork."""
    return _begun_value(make)() if threading.active_count() == 1 else None


def _begun_value(make: Callable[[], T]) -> Callable[[], T | None]:
    folder = tempfile.TemporaryDirectory(prefix="tuneloom-")
    path = Path(folder.name) / "value"
    process = _forked(lambda: path.write_bytes(pickle.dumps(make())))

    def value() -> T | None:
        with folder:
            code = os.waitpid(process, 0)[1]
            made: T | None = None if code else pickle.loads(path.read_bytes())
            return made

    return value


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
