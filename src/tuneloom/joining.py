"""Joins modules to one file, for machines that don't have Tuneloom: they run bundles, or serve as boards.

Needs nothing but Python, and modules that are joined need nothing of Tuneloom but each other.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

_RUNNER, _SERVING = "tuneloom.tuners.tvm.runner", "tuneloom.tuners.tvm.boards.serving"
RUNNER = (
    *(f"{_RUNNER}.{name}" for name in ("refused", "flags", "machine", "weights", "tensors", "padding")),
    *(f"{_RUNNER}.{name}" for name in ("asked", "sizes", "state", "runtimes", "parts", "programs")),
    *(f"{_RUNNER}.{name}" for name in ("model", "command")),
)
SERVER = (
    f"{_RUNNER}.flags",
    *(f"{_SERVING}.{name}" for name in ("callers", "sessions", "line", "server", "with_tvm", "command")),
)
"""Modules, each after those that it imports; the last has a function `main`."""
_RUNNING = """\
Runs the bundle that this file is in. Needs NumPy and TVM's runtime, or the runtime that the model needs.

python run.py --input x.npy... --output y.npy...
"""
_SERVES = """\
Serves this machine as a board over TVM's RPC protocol. Needs Python and TVM's runtime.

python server.py --key KEY

Whoever reaches the port can run code: listen on loopback, in a trusted network or behind a tunnel.
"""


def run_py() -> str:
    """The program that runs the bundle in whose folder it is."""
    return joined(RUNNER, _RUNNING)


def server_py() -> str:
    """The program that serves a machine as a board."""
    return joined(SERVER, _SERVES)


@cache
def joined(modules: Sequence[str], purpose: str) -> str:
    """One program of several modules."""
    sources = [_source(name) for name in modules]
    needed = "\n".join(sorted(set(_imports(sources)), key=lambda line: (line.startswith("from"), line)))
    start = 'if __name__ == "__main__":\n    sys.exit(main())\n'
    return "\n\n".join((f'"""{purpose}"""\n\n{needed}\n', *map(_own, sources), start))


def _source(module: str) -> str:
    return Path(__file__).parent.parent.joinpath(*module.split(".")).with_suffix(".py").read_text()


def _imports(sources: Sequence[str]) -> Iterator[str]:
    """What modules import from elsewhere, one name a line."""
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.Import):
            yield from (f"import {ast.unparse(alias)}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith("tuneloom."):
            yield from (f"from {node.module} import {ast.unparse(alias)}" for alias in node.names)


def _own(source: str) -> str:
    """What a module has below its imports."""
    above = (ast.Import, ast.ImportFrom)
    docstring, *rest = ast.parse(source).body
    last = next((node for node in reversed(rest) if isinstance(node, above)), docstring)
    return "\n".join(source.splitlines()[last.end_lineno :]).strip("\n") + "\n"
