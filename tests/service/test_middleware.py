"""The outermost layer of the service, without a server around it."""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from framedex.service.middleware import RequestMiddleware

SCOPE = {"type": "http", "method": "GET", "path": "/api/v1/datasets", "headers": [(b"host", b"localhost")]}


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Message], list[int]]]:
    """Answer a request whose work is cut off; return what is sent, and the statuses that are counted."""
    monkeypatch.setattr(RequestMiddleware, "_refuses", lambda *_: False)

    def answer(*, stops: bool, begun: bool = False) -> tuple[list[Message], list[int]]:
        sent, statuses, stopping = list[Message](), list[int](), threading.Event()
        if stops:
            stopping.set()

        async def cut_off(_scope: Scope, _receive: Receive, send: Send) -> None:
            if begun:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            raise asyncio.CancelledError

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        state: Any = SimpleNamespace(stopping=stopping, embedders=())
        layer = RequestMiddleware(cut_off, state, lambda _method, _route, status, _s: statuses.append(status))
        with ThreadPoolExecutor(1) as thread:  # this one may have the loop of a browser
            thread.submit(asyncio.run, layer(dict(SCOPE), receive, send)).result()
        return sent, statuses

    return answer


def test_request__that_a_stop_cuts_off(answered: Callable[..., tuple[list[Message], list[int]]]) -> None:
    """A request whose work outlasts the time to stop is told so, not that something is wrong."""
    (start, body), statuses = answered(stops=True)
    assert (start["status"], statuses) == (503, [503])
    assert json.loads(body["body"])["detail"] == "The service stops; try again later"


@pytest.mark.parametrize("case", [{"stops": False}, {"stops": True, "begun": True}])
def test_request__that_is_cut_off_otherwise(
    answered: Callable[..., tuple[list[Message], list[int]]], case: dict[str, bool]
) -> None:
    """Who has left, or has a part of the answer, is told nothing."""
    with pytest.raises(asyncio.CancelledError):
        answered(**case)
