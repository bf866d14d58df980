"""A cluster of Ray that others join: ``python -m tests.executors.ray_cluster FOLDER``; ends with its standard input."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.pauses import wait_until

ACCESS = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Variables of the programs that start and join it; it listens on the loopback address alone."""


@contextmanager
def ray_cluster() -> Iterator[str]:
    """Yield the address of a cluster with two processors and a GPU that is none."""
    with (
        tempfile.TemporaryDirectory(prefix="fx", dir="/tmp", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            [sys.executable, "-m", "tests.executors.ray_cluster", folder], env=environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


@contextmanager
def client_server(address: str) -> Iterator[str]:
    """Yield the address of a cluster for programs that are no part of it, which use Ray's client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--address", address, "--host", "127.0.0.1", "--port", str(port), "--mode", "legacy"]
    with subprocess.Popen(
        [sys.executable, "-m", "ray.util.client.server", *options], env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: _answers(port))
            yield f"ray://127.0.0.1:{port}"
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def environment() -> dict[str, str]:
    """Return the environment of programs that use the cluster."""
    return {**os.environ, **ACCESS, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


def _run(folder: str) -> None:
    import ray

    options: dict[str, Any] = {"_temp_dir": folder, "_node_ip_address": "127.0.0.1"}
    ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False, **options)
    sys.stdout.write(f"{ray.get_runtime_context().gcs_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _run(sys.argv[1])
