"""The warm process: imports everything, then forks on request until whoever started it ends."""

import gc
import importlib
import os
import pkgutil
import selectors
import signal
import socket
import sys
import warnings
from contextlib import suppress

import tuneloom
from support.warm.fork import become
from support.warm.orders import NUMBER, receive_order
from tuneloom.engine.worker import die_with_parent
from tuneloom.tuners.tvm.warmth import warm_up

_LEFT_OUT = ("tuneloom.testing", "tuneloom.engine.nursery")


def main() -> None:
    """Serve at the listening socket that was passed; its address comes second."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries may keep sleeping threads; no fork uses what they hold.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork.*")
    warm_up()
    for module in pkgutil.walk_packages(tuneloom.__path__, "tuneloom."):
        if not module.name.startswith(_LEFT_OUT):
            with suppress(ImportError):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    _serve(listener, sys.argv[2])


def _serve(listener: socket.socket, address: str) -> None:
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                _begin(listener, selector, address)
            else:
                selector.unregister(key.fd)
                os.close(key.fd)
                _tell_end(*key.data)


def _begin(listener: socket.socket, selector: selectors.BaseSelector, address: str) -> None:
    connection, _ = listener.accept()
    order, descriptors = receive_order(connection)
    pid = os.fork()
    if pid == 0:
        become(order, descriptors, address)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(OSError):
        connection.sendall(NUMBER.pack(pid))
    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))


def _tell_end(pid: int, connection: socket.socket) -> None:
    status = os.waitpid(pid, 0)[1]
    with suppress(OSError):
        connection.sendall(NUMBER.pack(status))
    connection.close()


if __name__ == "__main__":
    main()
