"""A process that has imported what workers need, and forks them: ``python -m framedex.executors.fork_server FD NAME…``.

It serves :mod:`framedex.executors.forked` over the connection with the given descriptor. Its workers end with it, also
if it is killed; it ends them and itself when the connection closes. It runs no work and starts no thread, and never
imports Lance, which does not survive a fork (:mod:`framedex.storage.engine_calls`).

The idea is that of the `forkserver of multiprocessing
<https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods>`_, whose workers import the main
module of the program.
"""

import ctypes
import gc
import os
import sys
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import NoReturn

from framedex.core.child_processes import KILLED
from framedex.executors.worker import run_worker

_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def serve_forks(connection: Connection) -> None:
    """Start workers, and tell how they ended, until the connection closes.

    A request is the id of a worker, for its exit status (below 0 for the signal that ended it; None while it runs), or
    None and the descriptor of a connection, for the id of a new worker that serves it, or the error if there is none.
    """
    workers = set[int]()
    connection.send(os.getpid())
    try:
        while True:
            pid = connection.recv()
            if pid is None:
                connection.send(_fork(connection, recv_handle(connection), workers))
            else:
                connection.send(_status(pid, workers))
    except (EOFError, OSError):
        pass
    finally:
        for each in workers:
            os.kill(each, KILLED)
        for each in workers:
            os.waitpid(each, 0)


def _fork(connection: Connection, descriptor: int, workers: set[int]) -> int | OSError:
    parent = os.getpid()
    try:
        if not hasattr(os, "fork"):
            raise OSError("this system has no forks")
        pid = os.fork()
    except OSError as error:
        return error
    finally:
        if os.getpid() == parent:
            os.close(descriptor)
    if pid == 0:
        _work(connection, descriptor, parent)
    workers.add(pid)
    return pid


def _work(connection: Connection, descriptor: int, parent: int) -> NoReturn:
    """Run items in the child of a fork; end with it."""
    try:
        connection.close()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, KILLED)
        if os.getppid() == parent:  # it has not ended before the call
            run_worker(Connection(descriptor))
    finally:
        os._exit(1)


def _status(pid: int, workers: set[int]) -> int | None:
    if pid not in workers:  # but of another server, which was killed
        return -KILLED
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    workers.remove(pid)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    gc.disable()  # a tenth of the time of imports, which leave nothing to collect
    for module in sys.argv[2:]:
        import_module(module)
    gc.freeze()  # so that a collection in a worker does not copy pages that it shares
    gc.enable()
    serve_forks(Connection(int(sys.argv[1])))
