"""Which process does something, and whether it is still there: so that what a dead one began is known at once."""

import os
import socket
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

LEASE = timedelta(seconds=30)
"""How long a sign of life counts."""
_SEEN: dict[str, tuple[datetime, float]] = {}  # by id: a sign of life that is not of now, and when it was first seen


def this_process() -> str:
    """Return a name of this process that no other one has: host, process id, start, process namespace."""
    pid = os.getpid()
    return ":".join([socket.gethostname(), str(pid), _started(pid), _namespace()])


def is_gone(owner: str) -> bool:
    """Return whether a process of this machine has ended; of others that is not known, so no.

    Args:
        owner: a name by :func:`this_process`.
    """
    return _is_alive(owner) is False


def has_died(key: str, owner: str, heartbeat: datetime, *, now: datetime) -> bool:
    """Return whether a process that did something is gone, or has shown no sign of life for the lease.

    A clock that is set says nothing about a process of this machine that is there. What it does is given up once its
    sign of life stays the same for the lease while this process watches, by a clock that nobody sets: then the process
    is stopped, or hangs.

    Args:
        key: id of what it did.
        owner: a name by :func:`this_process`.
        heartbeat: its last sign of life.
        now: the present time.
    """
    alive = _is_alive(owner)
    if alive is False:
        return True
    if abs(now - heartbeat) <= LEASE:  # one from the future is of before the clock was set
        return False
    if alive is None:
        return True
    seen, since = _SEEN.get(key, (None, 0.0))
    if seen != heartbeat:
        _SEEN[key] = heartbeat, time.monotonic()
        return False
    return time.monotonic() - since > LEASE.total_seconds()


def _is_alive(owner: str) -> bool | None:
    """Return whether a process is there; None where that cannot be known."""
    host, _, rest = owner.partition(":")
    pid, _, rest = rest.partition(":")
    started, _, namespace = rest.partition(":")
    # Containers may share a host name, but then not the numbers of processes.
    if host != socket.gethostname() or namespace != _namespace() or not pid.isdigit():
        return None
    if not namespace:
        return True if int(pid) == os.getpid() else None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    # The number may have been given to another process since.
    return _started(int(pid)) == started


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since the machine did; empty where that cannot be learnt."""
    with suppress(OSError, IndexError):
        # The second field, the name, may hold spaces and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _namespace() -> str:
    """Return which numbering of processes this is: empty where that cannot be learnt, as without Linux."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""
