"""Evaluation of batches that a process left when it was killed, in the background of a workspace that was opened."""

import threading
from contextlib import suppress

from framedex.core import forks
from framedex.errors import Aborted
from framedex.operations.context import Context
from framedex.operations.monitoring import evaluate_dataset
from framedex.storage import view_rows
from framedex.tasks.runner import is_exiting

DELAY_S = 1.0
"""The time after opening at which the evaluation begins; scripts that end earlier do not wait for it."""
_PAUSE_S = 0.05


class CatchUp:
    """A thread that evaluates the batches which are due when a workspace is opened for writing.

    Without saved views there is no thread. The evaluation ends at its next step when the workspace is closed or the
    interpreter exits; its batches then stay due. An evaluation that another process runs at the same time does not
    matter: the first one stores the points.

    Args:
        context: the open workspace.
        delay_s: time in seconds before the evaluation begins.
    """

    def __init__(self, context: Context, delay_s: float | None = None) -> None:
        self._context, self._delay_s = context, DELAY_S if delay_s is None else delay_s
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        forks.renew_after_forks(self)

    def renew(self) -> None:
        """Forget the thread in the child of a fork: it belongs to the parent."""
        self._thread, self._stopped = None, threading.Event()

    def start(self) -> None:
        """Start the thread, if the workspace can be written and has saved views; never raise."""
        if self._context.catalog.read_only:
            return
        with suppress(Exception):  # `framedex check` must be able to open the workspace
            with self._context.catalog.read() as connection:
                dataset_ids = view_rows.monitored_datasets(connection)
            if dataset_ids:
                self._thread = threading.Thread(target=self._run, args=(dataset_ids,), name="framedex-catch-up")
                self._thread.start()

    def close(self) -> None:
        """Stop the evaluation at its next step, and wait for that."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, dataset_ids: list[str]) -> None:
        with suppress(Aborted):
            for _ in range(round(self._delay_s / _PAUSE_S)):
                if self._stopped.wait(_PAUSE_S) or not threading.main_thread().is_alive():
                    return
            for dataset_id in dataset_ids:
                self._check()
                with suppress(Exception):  # the batches stay due; other datasets are evaluated
                    evaluate_dataset(self._context, dataset_id, check=self._check)

    def _check(self) -> None:
        if self._stopped.is_set() or is_exiting():
            raise Aborted("the workspace was closed")
