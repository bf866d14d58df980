"""Identity and liveness of processes, so that work of dead processes is detected at once."""

import os
import socket
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

LEASE = timedelta(seconds=30)
"""Time for which a heartbeat counts."""
_SEEN: dict[str, tuple[datetime, float]] = {}  # by id: a heartbeat that is out of date, and when it was first seen


def this_process() -> str:
    """Return a unique name of this process: host, process id, start time, process namespace."""
    pid = os.getpid()
    return ":".join([socket.gethostname(), str(pid), _started(pid), _namespace()])


def is_gone(owner: str) -> bool:
    """Return whether a process of this machine has ended; False for processes of other machines.

    Args:
        owner: a name returned by :func:`this_process`.
    """
    return _is_alive(owner) is False


def has_died(key: str, owner: str, heartbeat: datetime, *, now: datetime) -> bool:
    """Return whether a process has ended, or has had no heartbeat for the lease.

    A change of the system clock does not affect a live process of this machine: it counts as dead only if its heartbeat
    stays the same for the lease while this process watches, by the monotonic clock. Such a process is stopped or hangs.

    Args:
        key: id of the process's task.
        owner: a name returned by :func:`this_process`.
        heartbeat: time of its last heartbeat.
        now: the present time.
    """
    alive = _is_alive(owner)
    if alive is False:
        return True
    if abs(now - heartbeat) <= LEASE:  # a heartbeat in the future means that the clock was set back
        return False
    if alive is None:
        return True
    previous, since = _SEEN.get(key, (None, 0.0))
    if previous != heartbeat:
        _SEEN[key] = heartbeat, time.monotonic()
        return False
    return time.monotonic() - since > LEASE.total_seconds()


def _is_alive(owner: str) -> bool | None:
    """Return whether a process exists; None if unknown."""
    host, _, rest = owner.partition(":")
    pid, _, rest = rest.partition(":")
    started, _, namespace = rest.partition(":")
    # Containers may share a host name, but not a process namespace.
    if host != socket.gethostname() or namespace != _namespace() or not pid.isdigit():
        return None
    if not namespace:
        return True if int(pid) == os.getpid() else None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process of another user
        pass
    # Process ids may be reused.
    return _started(int(pid)) == started


def _started(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot; empty if unknown."""
    with suppress(OSError, IndexError):
        # The second field, the name, may contain spaces and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _namespace() -> str:
    """Return the process namespace of this process; empty if unknown, as on systems other than Linux."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""
