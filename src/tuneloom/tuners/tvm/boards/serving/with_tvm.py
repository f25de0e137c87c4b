"""A session of TVM's RPC, and what a board with TVM says of itself."""

import os
import platform
import secrets
import socket
from pathlib import Path

from tuneloom.tuners.tvm.runner.flags import cpu_flags


class NotServed(Exception):  # noqa: N818 - the name is the message
    """The server can't start; the text says why and what to do."""


def serve_tvm(connection: socket.socket, folder: str) -> None:
    """One session of TVM's RPC; files that the client uploads live in the folder."""
    import tvm
    import tvm_ffi

    def within(name: str) -> str:
        return str(Path(folder) / Path(name).name)

    os.chdir(folder)
    tvm_ffi.register_global_func("tvm.rpc.server.workpath", within, override=True)
    tvm_ffi.register_global_func(
        "tvm.rpc.server.load_module", lambda name: tvm.runtime.load_module(within(name)), override=True
    )
    tvm_ffi.get_global_func("rpc.ServerLoop")(connection.fileno())


def tvm_facts() -> list[str]:
    """What a client should know of this board, as words of a greeting. Imports TVM, once for all sessions."""
    os.environ.setdefault("TVM_USE_RUNTIME_LIB", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import tvm
        import tvm.rpc
    except ImportError as error:
        raise NotServed(f"TVM is not installed here ({error}); pip install apache-tvm") from error
    facts = {
        "machine": platform.machine(),
        "tvm": tvm.__version__,
        "cores": os.cpu_count() or 1,
        "life": secrets.token_hex(8),
    }
    return [f"-{name}={value}" for name, value in facts.items()] + [f"-flags={','.join(cpu_flags())}"]
