"""A service on a port of this machine, in a thread of the test."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.place import listening
from framedex.service.server import Server
from framedex.service.settings import OidcSettings, ServiceSettings
from framedex.service.state import ServiceState
from tests.pauses import wait_until


class _Server(Server):
    """A server that closes what is open after its time to stop, as the end of its process does."""

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop, and break off the connections whose answers nobody has taken."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)


@contextmanager
def live_service(
    workspace: Workspace,
    hub: Hub,
    settings: ServiceSettings,
    *,
    port: int = 0,
    oidc: OidcSettings | None = None,
) -> Iterator[tuple[str, ServiceState]]:
    """Serve a workspace at a port, by default any free one; yield the URL, and the open parts of the service."""
    app = create_app(workspace, hub, settings, oidc=oidc)
    with listening("127.0.0.1", port) as listener:
        server = _Server(app, host="127.0.0.1", port=port)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive())
        state: ServiceState = app.state.service
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", state
        finally:
            state.stopping.set()
            server.should_exit = True
            thread.join(10)
