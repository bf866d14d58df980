"""The open parts of a running service, which its routes share."""

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from starlette.requests import Request
from starlette.responses import Response

from framedex.api.workspace import Workspace
from framedex.errors import Error
from framedex.hub import Hub
from framedex.hub.sessions import ABSOLUTE
from framedex.service.settings import ServiceSettings
from framedex.service.uris import Uris

if TYPE_CHECKING:
    from framedex.service.oidc.sign_on import SingleSignOn

COOKIE = "SESSION"
"""The name of a session's cookie."""
MIN_FREE_BYTES = 64 * 2**20
"""The least free space of the disk with which the service is ready."""


class StopSignal(threading.Event):
    """An event that also calls functions once it is set, on the thread that sets it, which may run a signal handler."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: set[Callable[[], None]] = set()

    def call(self, function: Callable[[], None]) -> None:
        """Call a function once the event is set, or now."""
        self._calls.add(function)
        if self.is_set():
            function()

    def forget(self, function: Callable[[], None]) -> None:
        """Do not call a function any more."""
        self._calls.discard(function)

    def set(self) -> None:
        """Set the event."""
        super().set()
        for function in list(self._calls):
            function()


@dataclass(frozen=True)
class ServiceState:
    """The open parts of a running service.

    Attributes:
        workspace: the workspace.
        hub: its users.
        settings: the settings of the service.
        uris: signed URIs of files.
        auth_off: whether every request acts as the local user.
        bound: the addresses at which the service listens.
        heavy: limits the number of heavy requests at the same time.
        sign_on: log-in with an identity provider; None if it is off.
        takes_passwords: whether users log in with a password.
        embedders: the origins of other pages that may show the app in a frame.
        stopping: set once the service stops, so that streams end.
    """

    workspace: Workspace
    hub: Hub
    settings: ServiceSettings
    uris: Uris
    auth_off: bool
    bound: Sequence[str]
    heavy: anyio.CapacityLimiter
    sign_on: "SingleSignOn | None" = None
    takes_passwords: bool = True
    embedders: Sequence[str] = ()
    stopping: StopSignal = field(default_factory=StopSignal)

    def can_read(self) -> bool:
        """Return whether the catalog can be read."""
        try:
            self.workspace.namespaces()
        except (Error, OSError):
            return False
        return True

    def write_problem(self) -> str | None:
        """Return why nothing can be changed at present; None if it can."""
        if self.stopping.is_set():
            return "the service stops"
        if not self.can_read():
            return "the workspace cannot be read"
        if self.workspace.read_only:
            return "the workspace is open read-only"
        free = shutil.disk_usage(self.workspace.path).free
        return None if free >= MIN_FREE_BYTES else f"the disk of the workspace has {free // 2**20} MiB left"

    def client_ip(self, request: Request) -> str:
        """Return the address of the client; a proxy's header counts only if the proxy is trusted."""
        client = request.client.host if request.client is not None else ""
        forwarded = [part.strip() for part in request.headers.get("x-forwarded-for", "").split(",") if part.strip()]
        while client in self.settings.trusted_proxies and forwarded:
            client = forwarded.pop()
        return client[:45]

    def is_secure(self, request: Request) -> bool:
        """Return whether the client reaches the service by https."""
        if self.settings.public_url is not None:
            return self.settings.public_url.startswith("https:")
        direct = request.client.host if request.client is not None else ""
        is_trusted = direct in self.settings.trusted_proxies
        return request.url.scheme == "https" or (is_trusted and request.headers.get("x-forwarded-proto") == "https")

    def set_cookie(self, request: Request, response: Response, token: str) -> None:
        """Set the cookie of a session."""
        response.set_cookie(
            COOKIE,
            token,
            max_age=int(ABSOLUTE.total_seconds()),
            path="/",
            secure=self.is_secure(request),
            httponly=True,
            samesite="lax",
        )
