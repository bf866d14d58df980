"""The service of an open workspace in the process of a kernel: no port, no log-in, a thread with an event loop."""

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from framedex.api.dataset import Dataset
from framedex.api.workspace import Workspace, workspace_of
from framedex.errors import Error
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.settings import OidcSettings, ServiceSettings, load_service_settings

_HOST = "127.0.0.1"
_FINISH_S, _STOP_S = 4.0, 8.0
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class KernelRequest:
    """A request of a widget.

    Attributes:
        method: such as GET.
        path: with the query.
        headers: by name.
        body: the body.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def scope(self) -> dict[str, Any]:
        """Return the request as an application takes it (ASGI 3)."""
        parts = urlsplit(self.path)
        sent = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        length = (b"content-length", str(len(self.body)).encode())
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self.method.upper(),
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(b"host", _HOST.encode()), *sent, *([length] if self.body else [])],
            "client": (_HOST, 0),
            "server": (_HOST, 80),
        }


class KernelService:
    """The service of an open workspace in this process.

    Args:
        workspace: the open workspace, which stays open.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._hub = Hub(workspace)
        self._app = create_app(workspace, self._hub, kernel_settings(), oidc=OidcSettings.off(), is_only=False)
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._has_started, self._is_idle = threading.Event(), True
        self._thread = threading.Thread(target=self._run, name="framedex-notebook", daemon=True)
        self._thread.start()
        self._has_started.wait()

    def run(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Run something on the event loop; called on any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def answer(self, request: KernelRequest, send: Send, gone: asyncio.Event | None = None) -> None:
        """Answer a request with the messages of ASGI; called on the event loop.

        Args:
            request: the request.
            send: takes the messages; after it raises CancelledError the answer ends.
            gone: set once nobody waits for the answer.
        """
        body = iter([{"type": "http.request", "body": request.body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in body:
                return message
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        await self._app(request.scope(), receive, send)

    def close(self) -> None:
        """Stop the thread; the workspace stays open. A second call does nothing."""
        if self._thread.is_alive():
            self._app.state.service.stopping.set()
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(_STOP_S)
        if self._is_idle and not self._thread.is_alive():
            with suppress(Error, OSError):  # the workspace may have been closed before
                self._hub.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._has_started.set()
            self._loop.close()

    async def _serve(self) -> None:
        async with self._app.router.lifespan_context(self._app):
            self._has_started.set()
            await self._end.wait()
            await self._finish()

    async def _finish(self) -> None:
        """Wait for answers in progress: their threads use connections, which must not be closed under them."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        late = (await asyncio.wait(others, timeout=_FINISH_S))[1] if others else ()
        self._is_idle = not late
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def kernel_settings() -> ServiceSettings:
    """Return the settings of the environment for a service whose only user is the one of the kernel.

    Raises:
        InvalidInput: a variable has an invalid value.
    """
    return load_service_settings().model_copy(
        update={"disable_auth": True, "public_url": None, "cors_origins": (), "allowed_hosts": ()}
    )


@dataclass
class _Shared:
    service: KernelService
    users: int = 0


_shared: dict[Hashable, _Shared] = {}
_sharing = threading.Lock()


class SharedService:
    """The service of the workspace of a dataset, which all widgets of that workspace and user share.

    It starts with the first of them and stops with the last.

    Args:
        dataset: a dataset of the open workspace.

    Attributes:
        service: the service.
    """

    def __init__(self, dataset: Dataset) -> None:
        workspace = workspace_of(dataset)
        self._key: Hashable = (id(dataset._context.catalog), workspace.user, workspace.namespace)
        with _sharing:
            found = _shared.get(self._key)
            if found is None:
                found = _shared[self._key] = _Shared(KernelService(workspace))
            found.users += 1
        self.service = found.service
        self._is_open = True

    def close(self) -> None:
        """Leave the service. A second call does nothing."""
        with _sharing:
            if not self._is_open:
                return
            self._is_open = False
            found = _shared[self._key]
            found.users -= 1
            if found.users:
                return
            del _shared[self._key]
        found.service.close()


@atexit.register
def _close_all() -> None:
    """Stop what is still open when the kernel ends, before its threads lose the interpreter."""
    with _sharing:
        found = list(_shared.values())
        _shared.clear()
    for each in found:
        each.service.close()
