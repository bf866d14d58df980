"""Small disks, which tests fill."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """A small disk.

    Attributes:
        path: where it is mounted.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._filler = path, path / "filler"

    @contextlib.contextmanager
    def full(self, left: int) -> Iterator[None]:
        """Leave no more than some bytes free until the block ends."""
        free = shutil.disk_usage(self.path).free
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            file.write(bytes(max(free - left, 0)))
        try:
            yield
        finally:
            self._filler.unlink()


@contextlib.contextmanager
def small_disk(path: Path, size_bytes: int) -> Iterator[Disk]:
    """Mount a disk in memory at a new folder; skip the test where nothing can be mounted."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here: that takes root")
    yield Disk(path)
    subprocess.run(["umount", "-l", str(path)], check=True)
