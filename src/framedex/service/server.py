"""The server: one process that serves a workspace until it is stopped."""

import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI
from filelock import FileLock, Timeout

from framedex.api.workspace import Workspace
from framedex.core.atomic import atomic_file
from framedex.errors import Conflict, InvalidInput
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.middleware import JsonFormatter
from framedex.service.protocol import MAX_HEAD_BYTES, JsonProtocol
from framedex.service.settings import OidcSettings, ServiceSettings, alert_targets, auth_is_off, is_loopback
from framedex.service.state import ServiceState

logger = logging.getLogger("framedex.service")

_ADDRESS = "service.json"
_LOCK = "service.lock"
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
    announce: Callable[[str], None],
    warn: Callable[[str], None],
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
        announce: takes the URL once requests are answered.
        warn: takes a sentence about what may be unsafe.

    Raises:
        Conflict: another server serves the workspace; the message has its address.
        InvalidInput: the address, or the settings of log-in by OpenID Connect, cannot be used.
        WorkspaceError: the folder or its databases cannot be used.
    """
    with (
        _only_server(folder),
        Workspace(folder, read_only=read_only) as workspace,
        Hub(workspace, ingest_path_role=settings.ingest_path_role, on_alert=alert_targets(settings)) as hub,
    ):
        _warn(settings, host, hub, warn)
        _create_admin(settings, hub, auth_off=auth_is_off(settings, host))
        app = create_app(workspace, hub, settings, host=host, oidc=oidc, on_stop=partial(_close, workspace, hub))
        config = server_config(app, host=host, port=port)
        listener = _bind(config, host, port)
        bound_port = listener.getsockname()[1]
        url = _url(settings, host, bound_port)
        _write_address(folder, url)
        set_up_logs(workspace.settings.log_level)
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


def _bind(config: uvicorn.Config, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol, asyncio sends short answers at once; without, each waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(config.backlog)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot listen at {host}:{port}: {reason}") from None
    listener.set_inheritable(False)
    return listener


def _url(settings: ServiceSettings, host: str, port: int) -> str:
    if settings.public_url is not None:
        return settings.public_url
    is_any = ip_address(host).is_unspecified if host.replace(".", "").isdigit() or ":" in host else False
    name = ("[::1]" if ":" in host else "127.0.0.1") if is_any else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


@contextmanager
def _only_server(folder: Path) -> Iterator[None]:
    """Hold the place of the one server of a workspace; it is free again when the process ends, however it ends."""
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        address = "an address that is not known yet"
        with suppress(OSError, ValueError, KeyError):
            address = json.loads((folder / _ADDRESS).read_text(encoding="utf-8"))["url"]
        raise Conflict(f"{folder} is served already, at {address}") from None
    try:
        yield
    finally:
        (folder / _ADDRESS).unlink(missing_ok=True)
        lock.release()


def _write_address(folder: Path, url: str) -> None:
    with atomic_file(folder / _ADDRESS) as partial:
        partial.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")


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
    """Write the logs of the service and of the library as lines of JSON to the standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name in ("framedex", "uvicorn"):
        each = logging.getLogger(name)
        each.handlers[:] = [handler]
        each.propagate = False
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("framedex").setLevel(level or logging.INFO)
