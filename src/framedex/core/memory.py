"""The memory of this machine, or of the container that this process runs in."""

import os
from pathlib import Path, PurePosixPath

_UNKNOWN = 16 * 2**30
_GROUPS = Path("/sys/fs/cgroup")
_FREE = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")


def usable_memory() -> int:
    """Return the bytes of memory that this process may use: those of the machine, or a lower limit of its container."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else _UNKNOWN
    return min([physical, *_limits(_GROUPS, _OWN_GROUPS)])


def free_memory() -> int:
    """Return the bytes of memory that programs can still take, at most :func:`usable_memory`."""
    try:
        lines = _FREE.read_text().splitlines()
        free = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):  # no Linux
        return usable_memory() // 2
    return min(free, usable_memory())


def _limits(groups: Path, own: Path) -> list[int]:
    """Return the limits of memory of a process's control groups, of either version; "max" is none.

    Args:
        groups: the folder of control groups.
        own: the file with a line ``number:controllers:path`` for each group of the process.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:  # no Linux
        return []
    found = []
    for parts in lines:
        if len(parts) == 3 and (parts[0] == "0" or "memory" in parts[1].split(",")):
            folder, name = (groups, "memory.max") if parts[0] == "0" else (groups / "memory", "memory.limit_in_bytes")
            path = PurePosixPath(parts[2].lstrip("/"))
            for group in (path, *path.parents):  # a limit holds for all groups within
                try:
                    found.append(int((folder / group / name).read_text()))
                except (OSError, ValueError):
                    continue
    return found
