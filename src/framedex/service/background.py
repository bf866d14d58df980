"""A server in a thread of a process that does other things, too, at a free port of this machine."""

import threading

from framedex.api.workspace import Workspace
from framedex.errors import Unavailable
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.place import listening
from framedex.service.server import Server
from framedex.service.settings import OidcSettings, ServiceSettings
from framedex.service.state import ServiceState

_HOST = "127.0.0.1"
_START_S, _STOP_S, _PAUSE_S = 20.0, 5.0, 0.01
LOCAL_PAGES = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "vscode-webview:")
"""The pages of this machine that may show the app in a frame: of Jupyter and of VS Code."""


class BackgroundServer:
    """A server of an open workspace in a thread; pages of notebooks on this machine may show it in a frame.

    Args:
        workspace: the open workspace, which stays open.
        settings: of the service.

    Attributes:
        url: its address.

    Raises:
        Unavailable: it does not start.
    """

    def __init__(self, workspace: Workspace, settings: ServiceSettings) -> None:
        self._hub = Hub(workspace)
        app = create_app(
            workspace, self._hub, settings, oidc=OidcSettings.off(), is_only=False, embedders=LOCAL_PAGES
        )  # fmt: skip
        self._state: ServiceState = app.state.service
        self._place = listening(_HOST, 0)
        listener = self._place.__enter__()
        port = listener.getsockname()[1]
        self.url = f"http://{_HOST}:{port}"
        self._server = Server(app, host=_HOST, port=port)
        listener.make_room = self._server.make_room
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="framedex-server", daemon=True
        )  # fmt: skip
        self._thread.start()
        self._await_start()

    def close(self) -> None:
        """Stop the server; the workspace stays open. A second call does nothing."""
        if not self._thread.is_alive():
            return
        self._state.stopping.set()
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        self._place.__exit__(None, None, None)
        self._hub.close()

    def _await_start(self) -> None:
        for _ in range(int(_START_S / _PAUSE_S)):
            if self._server.started:
                return
            self._thread.join(_PAUSE_S)
            if not self._thread.is_alive():
                break
        raise Unavailable("the server of the app does not start; the log has the reason")
