"""Work between requests: overdue evaluations of saved views, and rows and files that are not needed any more."""

import logging
import threading
from collections.abc import Callable

from framedex.errors import Error
from framedex.service.state import ServiceState

logger = logging.getLogger("framedex.service")
_PERIOD_S = 60.0


class Maintenance:
    """A thread that loads what the first requests need, and cleans up once a minute.

    Args:
        state: the running service.
    """

    def __init__(self, state: ServiceState) -> None:
        self._state = state
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="framedex-service", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a step that has begun is awaited for up to a second."""
        self._stop.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        self._run_step(self._state.workspace.load_engines)
        self.prepare_sign_on()
        while not self._stop.wait(_PERIOD_S):
            self.run_once()

    def prepare_sign_on(self) -> None:
        """Check the identity provider: a mistake in the settings is in the log before the first log-in fails."""
        if (sign_on := self._state.sign_on) is not None and not self._state.auth_off:
            try:
                sign_on.prepare()
            except Error as error:
                logger.error("log-in by OpenID Connect does not work at present: %s", error)

    def run_once(self) -> None:
        """Do each step; one that fails is logged and keeps no other from its turn."""
        workspace, hub = self._state.workspace, self._state.hub
        for step in (workspace.evaluate_views, hub.sweep):
            self._run_step(step)

    def _run_step(self, step: Callable[[], object]) -> None:
        try:
            step()
        except Error as error:
            logger.warning("maintenance failed: %s", error)
        except Exception:  # the thread goes on with other steps
            logger.exception("maintenance failed")
