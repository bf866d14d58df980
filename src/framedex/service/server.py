"""The server: one process that serves a workspace until it is stopped."""

import logging
import signal
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
from framedex.service.middleware import JsonFormatter
from framedex.service.place import listening, only_server, write_address
from framedex.service.protocol import MAX_HEAD_BYTES, JsonProtocol
from framedex.service.settings import OidcSettings, ServiceSettings, alert_targets, auth_is_off, is_loopback
from framedex.service.state import ServiceState

logger = logging.getLogger("framedex.service")

_STOPPED = "the service stopped"
_GRACE_S = 2
_KEPT_S = 75  # longer than proxies keep their connections: else a request meets the end of its connection


class _Server(uvicorn.Server):
    """A server whose streams end as soon as it is told to stop, so that it stops at once.

    Args:
        config: the configuration.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after a signal."""
        self.config.app.state.service.stopping.set()  # type: ignore[union-attr] # the application
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

    Raises:
        Conflict: another server serves the workspace; the message has its address.
        InvalidInput: the address, or the settings of log-in by OpenID Connect, cannot be used.
        WorkspaceError: the folder or its databases cannot be used.
    """
    warnings.filterwarnings("ignore", category=EmptyResultWarning)  # answers have these as a field
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
        config = server_config(app, host=host, port=port)
        write_address(folder, url)
        set_up_logs(log_level)
        if not workspace.read_only:
            workspace.retry_interrupted()
        _invite_admin(app.state.service, url, warn)
        server = _Server(config)
        with _signals_end(server):
            announce(url)
            server.run(sockets=[listener])


def server_config(app: FastAPI, *, host: str, port: int) -> uvicorn.Config:
    """Return the configuration of a server of an application."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        timeout_keep_alive=_KEPT_S,
        http=JsonProtocol,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        proxy_headers=False,
    )


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
    elif not hub.users.count() and settings.admin_password is None:
        warn("there are no users yet; create one: framedex users create --admin NAME")


def set_up_logs(level: str | None) -> None:
    """Write the logs of the service and of the library as lines of JSON to the standard error.

    Args:
        level: where the settings, applied when the workspace was opened, name none; None for INFO.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name in ("framedex", "uvicorn"):
        each = logging.getLogger(name)
        each.handlers[:] = [handler]
        each.propagate = False
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    if logging.getLogger("framedex").level == logging.NOTSET:
        logging.getLogger("framedex").setLevel(level or logging.INFO)
