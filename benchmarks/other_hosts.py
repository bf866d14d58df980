"""Connections of a Python process to other hosts: each is written down and refused.

``web_peers.py`` copies this module as ``sitecustomize.py`` into a folder on the ``PYTHONPATH`` of the servers that it
starts, so that all their processes import it. It sees what Python's sockets do, and nothing of native code that opens
its own. The file that it appends to is named by ``BENCH_OTHER_HOSTS``; its lines are names of hosts.
"""

import os
import socket
import sys
from typing import Any

VARIABLE = "BENCH_OTHER_HOSTS"
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "")


def watch() -> None:
    """Watch this process, where the variable names a file."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    local = {*_LOCAL, socket.gethostname()}

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        host = _host(event, arguments)
        if host is None or host in local or host.startswith("127."):
            return
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - nothing is imported in each process for it
            file.write(f"{host}\n")
        raise OSError(f"the benchmark refuses connections to other hosts: {host}")

    sys.addaudithook(hook)


def _host(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the host of an event, if it is about one."""
    if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = arguments[0]
    elif event in {"socket.connect", "socket.sendto"} and isinstance(arguments[1], tuple):
        host = arguments[1][0]  # the address of a Unix socket is no tuple
    else:
        return None
    return host.decode() if isinstance(host, bytes) else host


watch()
