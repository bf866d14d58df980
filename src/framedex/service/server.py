"""The server: one process that serves a workspace until it is stopped."""

import asyncio
import logging
import signal
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from framedex.api.workspace import Workspace
from framedex.errors import EmptyResultWarning, InvalidInput
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.connections import ClientConnection, Connections, raise_descriptor_limit
from framedex.service.logs import set_up_logs
from framedex.service.place import listening, only_server, write_address
from framedex.service.protocol import JsonProtocol
from framedex.service.settings import OidcSettings, ServiceSettings, alert_targets, auth_is_off, is_loopback
from framedex.service.state import ServiceState

logger = logging.getLogger("framedex.service")

_STOPPED = "the service stopped"
_GRACE_S = 2
_LOOK, _LOG = 2, 10  # tenths of a second between two looks for overdue connections, and between lines about them
_KEPT_S = 75  # longer than proxies keep their connections: else a request meets the end of its connection


class Server(uvicorn.Server):
    """A server of an application, whose connections are bounded in number and in the time that clients take.

    Its streams end as soon as it is told to stop, so that it stops at once.

    Args:
        app: the application.
        host: the address at which it listens.
        port: the port.
        on_stop: called once it is told to stop by a signal.
    """

    def __init__(self, app: FastAPI, *, host: str, port: int, on_stop: Callable[[], None] = lambda: None) -> None:
        self._state: ServiceState = app.state.service
        self._guard: Connections | None = None
        self._on_stop = on_stop
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=_KEPT_S,
                http=partial(JsonProtocol, guard=self._guard_of),  # type: ignore[arg-type] # it is only called
                ws="none",
                proxy_headers=False,
            )
        )

    def _guard_of(self, connections: set[ClientConnection]) -> Connections:
        if self._guard is None:
            settings = self._state.settings
            self._guard = Connections(
                connections, head_timeout_s=settings.head_timeout_s, body_timeout_s=settings.body_timeout_s
            )
        return self._guard

    def make_room(self) -> int:
        """End connections of slow clients, as there are no file descriptors left; return their number."""
        return 0 if self._guard is None else self._guard.make_room(asyncio.get_running_loop().time())

    async def on_tick(self, counter: int) -> bool:
        """Do what is done every tenth of a second; return whether the server is to stop."""
        if self._guard is not None:
            try:
                if counter % _LOOK == 0:
                    self._guard.end_overdue(asyncio.get_running_loop().time())
                if counter % _LOG == 0:
                    self._guard.write_log()
            except Exception:  # the server goes on
                logger.exception("overdue connections cannot be ended")
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; slow clients are not waited for."""
        if self._guard is not None:
            self._guard.end_waiting(asyncio.get_running_loop().time())
            self._guard.write_log()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after a signal."""
        self._on_stop()
        self._state.stopping.set()
        super().handle_exit(sig, frame)


def serve(
    folder: Path,
    settings: ServiceSettings,
    *,
    host: str,
    port: int,
    oidc: OidcSettings | None = None,
    read_only: bool = False,
    begin: Callable[[Workspace, str], None] = lambda _workspace, _url: None,
    announce: Callable[[str], None],
    warn: Callable[[str], None],
    log_level: str | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serve a workspace until a signal ends it.

    Tasks that the end of an earlier server interrupted continue.

    Args:
        folder: of the workspace, which must exist.
        settings: the settings of the service.
        host: the address to listen at.
        port: the port; 0 for a free one.
        oidc: the settings of log-in by OpenID Connect; None for none.
        read_only: whether nothing in the workspace may be changed.
        begin: called with the open workspace and the URL before the application is made. Requests wait from then on.
        announce: takes the URL once requests are answered.
        warn: takes a sentence about what may be unsafe.
        log_level: of the logs, where the settings name none.
        on_stop: called once a signal tells the server to stop.

    Raises:
        Conflict: another server serves the workspace; the message has its address.
        InvalidInput: the address, or the settings of log-in by OpenID Connect, cannot be used.
        WorkspaceError: the folder or its databases cannot be used.
    """
    warnings.filterwarnings("ignore", category=EmptyResultWarning)  # answers have these as a field
    raise_descriptor_limit()
    with (
        only_server(folder),
        listening(host, port) as listener,
        Workspace(folder, read_only=read_only) as workspace,
        _closing(workspace),
        Hub(workspace, ingest_path_role=settings.ingest_path_role, on_alert=alert_targets(settings)) as hub,
    ):
        url = _url(settings, host, listener.getsockname()[1])
        begin(workspace, url)
        _warn(settings, host, hub, warn)
        _create_admin(settings, hub, auth_off=auth_is_off(settings, host))
        app = create_app(workspace, hub, settings, host=host, oidc=oidc, on_stop=partial(_close, workspace, hub))
        write_address(folder, url)
        set_up_logs(log_level)
        if not workspace.read_only:
            workspace.retry_interrupted()
        _invite_admin(app.state.service, url, warn)
        # Before the first connection: an import that fails half-way, as there are no descriptors left, cannot be tried
        # again in the same process.
        workspace.load_engines()
        server = Server(app, host=host, port=port, on_stop=on_stop)
        listener.make_room = server.make_room
        with _signals_end(server):
            announce(url)
            server.run(sockets=[listener])


def _close(workspace: Workspace, hub: Hub) -> None:
    """Close what a service uses, once its last request has ended."""
    hub.feed.close()
    hub.calls.close()
    workspace.close(_STOPPED)


@contextmanager
def _closing(workspace: Workspace) -> Iterator[None]:
    """Close a workspace at the end, so that another server continues its tasks, whatever ended this one."""
    try:
        yield
    finally:
        workspace.close(_STOPPED)


@contextmanager
def _signals_end(server: uvicorn.Server) -> Iterator[None]:
    """Let a server return that is told to stop.

    It watches for signals itself while it runs. One that comes before is kept for it, and at its end it raises them
    again, which would end the process.
    """
    former = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _url(settings: ServiceSettings, host: str, port: int) -> str:
    if settings.public_url is not None:
        return settings.public_url
    is_any = ip_address(host).is_unspecified if host.replace(".", "").isdigit() or ":" in host else False
    name = ("[::1]" if ":" in host else "127.0.0.1") if is_any else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def _create_admin(settings: ServiceSettings, hub: Hub, *, auth_off: bool) -> None:
    """Create the first user with the password of the environment, if there is no user yet."""
    if settings.admin_password is not None and not auth_off:
        try:
            hub.users.create_first_admin(settings.admin_password)
        except InvalidInput as error:
            raise InvalidInput(f"FRAMEDEX_ADMIN_PASSWORD cannot be used: {error}") from None


def _invite_admin(state: ServiceState, url: str, warn: Callable[[str], None]) -> None:
    """Show the link with which the first user becomes the admin, if users log in with an identity provider."""
    if state.sign_on is not None and not state.auth_off and not state.hub.users.count():
        warn(f"who logs in first with this link is the admin: {state.sign_on.first_admin_link(url)}")


def _warn(settings: ServiceSettings, host: str, hub: Hub, warn: Callable[[str], None]) -> None:
    if auth_is_off(settings, host):
        if not is_loopback(host):
            warn(f"authentication is off: who reaches {host} can see and change everything")
    else:
        if not hub.users.count() and settings.admin_password is None:
            warn("there are no users yet; create one: framedex users create --admin NAME")
        if settings.public_url is not None and not settings.trusted_proxies:
            warn(
                "FRAMEDEX_PUBLIC_URL names a proxy, and FRAMEDEX_TRUSTED_PROXIES does not: all users have the address "
                "of the proxy, so failed log-ins of one let the others wait"
            )
