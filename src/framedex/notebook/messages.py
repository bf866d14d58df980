"""The messages between the views of a widget and the service of its kernel.

A message has the name of a view, a list of items, and buffers in the order of the items that have one. Jupyter's server
drops messages beyond 1,000 in a second (jupyter_server 2.21.1), so items that are there at the same time go together.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from framedex.notebook.kernel_service import KernelRequest, KernelService

logger = logging.getLogger("framedex.notebook")
_GATHER_S = 0.005
_PART_BYTES = 2**20
_TAKEN_S = 0.5  # an answer that takes longer is announced, so that the view does not hold the kernel for busy
_SILENT_S = 120.0  # a view that has said nothing for so long is gone: it says something every ten seconds
_SWEEP_S = 30.0
_STREAM = b"text/event-stream"
SendMessage = Callable[[dict[str, Any], list[bytes]], None]


@dataclass
class _View:
    heard: float
    tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    gone: dict[str, asyncio.Event] = field(default_factory=dict)
    unfinished: dict[str, tuple[Mapping[str, Any], list[bytes]]] = field(default_factory=dict)
    items: list[dict[str, Any]] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=list)
    is_due: bool = False


class Messages:
    """The connection of all views of a widget to the service of its kernel.

    Args:
        service: the service.
        send: sends a message to all views; called on the thread of the service.
        assets: returns the headers and the content of the built app.
    """

    def __init__(
        self, service: KernelService, send: SendMessage, assets: Callable[[], tuple[Mapping[str, str], bytes]]
    ) -> None:
        self._service, self._send, self._assets = service, send, assets
        self._views: dict[str, _View] = {}
        self._sweeper = service.run(self._sweep())

    def receive(self, content: Any, buffers: Sequence[Any]) -> None:
        """Take a message of a view; called on any thread, which does not wait. Other messages are ignored."""
        if isinstance(content, Mapping) and isinstance(content.get("view"), str):
            self._service.run(self._take(content, [bytes(each) for each in buffers]))

    def close(self) -> None:
        """Cancel all requests."""
        self._sweeper.cancel()
        self._service.run(self._forget_all())

    async def _take(self, content: Mapping[str, Any], buffers: list[bytes]) -> None:
        name = content["view"]
        view = self._views.setdefault(name, _View(0.0))
        view.heard = time.monotonic()
        bodies = iter(buffers)
        items = content.get("items")
        for item in items if isinstance(items, list) else ():
            if not isinstance(item, Mapping):
                continue
            body = next(bodies, b"") if item.get("has_body") else b""
            match item.get("do"), str(item.get("id")):
                case "request", item_id:
                    view.unfinished[item_id] = (item, [body])
                    if not item.get("more"):
                        self._start(name, view, item_id)
                case "part", item_id if item_id in view.unfinished:
                    view.unfinished[item_id][1].append(body)
                    if not item.get("more"):
                        self._start(name, view, item_id)
                case "abort", item_id:
                    view.unfinished.pop(item_id, None)
                    if (gone := view.gone.get(item_id)) is not None:
                        gone.set()
                case "alive", item_id:
                    self._put(name, view, {"id": item_id, "end": True})
                case "assets", item_id:
                    headers, content_of_app = self._assets()
                    head = {"id": item_id, "status": 200, "headers": list(headers.items()), "end": True}
                    self._put(name, view, head, content_of_app)
                case "close", _:
                    self._forget(name)

    def _start(self, name: str, view: _View, item_id: str) -> None:
        """Begin to answer a request whose body is complete."""
        item, parts = view.unfinished.pop(item_id)
        headers = {str(key): str(value) for key, value in dict(item.get("headers") or {}).items()}
        request = KernelRequest(str(item.get("method")), str(item.get("path")), headers, b"".join(parts))
        most_bytes = item.get("most_bytes")
        view.gone[item_id] = asyncio.Event()
        task = asyncio.create_task(self._answer(name, view, item_id, request, most_bytes))
        view.tasks[item_id] = task
        task.add_done_callback(partial(_forget_task, view, item_id))

    async def _answer(
        self, name: str, view: _View, item_id: str, request: KernelRequest, most_bytes: int | None
    ) -> None:
        head: dict[str, Any] = {}
        parts: list[bytes] = []
        gone = view.gone[item_id]
        is_stream = is_larger = has_ended = False

        async def send(message: Mapping[str, Any]) -> None:
            nonlocal is_stream, is_larger, has_ended
            if gone.is_set():  # files are closed as after a fault; a task that is cancelled would leave them open
                raise asyncio.CancelledError
            if message["type"] == "http.response.start":
                announcement.cancel()
                pairs = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in message["headers"]]
                head.update(status=message["status"], headers=pairs)
                is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(_STREAM)
                is_larger = most_bytes is not None and _length_of(message["headers"]) > most_bytes
                return
            if is_larger:  # the head says how large it is
                self._put(name, view, {"id": item_id, **head, "end": True})
                has_ended = True
                raise asyncio.CancelledError
            parts.append(message.get("body", b""))
            has_ended = not message.get("more_body", False)
            if has_ended or is_stream or sum(map(len, parts)) >= _PART_BYTES:
                self._put(name, view, {"id": item_id, **head, "end": has_ended}, b"".join(parts))
                head.clear()
                parts.clear()
                await asyncio.sleep(0)

        announcement = asyncio.get_running_loop().call_later(
            _TAKEN_S, lambda: self._put(name, view, {"id": item_id, "taken": True})
        )
        try:
            await self._service.answer(request, send, gone)
        except asyncio.CancelledError:
            has_ended = True
            if not (gone.is_set() or is_larger):
                raise
        except Exception:  # the service has logged its own faults
            logger.exception("%s %s failed", request.method, request.path[:1000])
        finally:
            announcement.cancel()
        if not has_ended and not gone.is_set():
            self._put(name, view, {"id": item_id, "status": 500, "headers": [], **head, "end": True}, b"".join(parts))

    def _put(self, name: str, view: _View, item: dict[str, Any], body: bytes = b"") -> None:
        """Put an item into the next message to a view."""
        item["has_body"] = bool(body)
        view.items.append(item)
        if body:
            view.buffers.append(body)
        if sum(map(len, view.buffers)) >= _PART_BYTES:
            self._flush(name, view)
        elif not view.is_due:
            view.is_due = True
            asyncio.get_running_loop().call_later(_GATHER_S, self._flush, name, view)

    def _flush(self, name: str, view: _View) -> None:
        view.is_due = False
        items, buffers, view.items, view.buffers = view.items, view.buffers, [], []
        if items:
            try:
                self._send({"view": name, "items": items}, buffers)
            except Exception:  # the connection has ended; the view says so
                logger.debug("a message could not be sent", exc_info=True)

    def _forget(self, name: str) -> None:
        if (view := self._views.pop(name, None)) is not None:
            for gone in view.gone.values():
                gone.set()

    async def _forget_all(self) -> None:
        for name in list(self._views):
            self._forget(name)

    async def _sweep(self) -> None:
        """Forget views that are gone without having said so, as when the page was loaded again."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            oldest = time.monotonic() - _SILENT_S
            for name in [name for name, view in self._views.items() if view.heard < oldest]:
                self._forget(name)


def _length_of(headers: Sequence[tuple[bytes, bytes]]) -> int:
    """Return the length of an answer by its head; 0 if that does not say it."""
    return int(dict(headers).get(b"content-length", b"0"))


def _forget_task(view: _View, item_id: str, _task: "asyncio.Task[None]") -> None:
    view.tasks.pop(item_id, None)
    view.gone.pop(item_id, None)
