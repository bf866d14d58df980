"""Which process does something, and whether it is still there: so that what a dead one began is known at once."""

import os
import socket
from contextlib import suppress
from pathlib import Path


def this_process() -> str:
    """Return a name of this process that no other one has: host, process id, start, process namespace."""
    pid = os.getpid()
    return ":".join([socket.gethostname(), str(pid), _started(pid), _namespace()])


def is_gone(owner: str) -> bool:
    """Return whether a process of this machine has ended; of others that is not known, so no.

    Args:
        owner: a name by :func:`this_process`.
    """
    host, _, rest = owner.partition(":")
    pid, _, rest = rest.partition(":")
    started, _, namespace = rest.partition(":")
    # Containers may share a host name, but then not the numbers of processes.
    if host != socket.gethostname() or namespace != _namespace() or not pid.isdigit() or not namespace:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is another user's
        return False
    # The number may have been given to another process since.
    return _started(int(pid)) != started


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
