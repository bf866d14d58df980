"""A publisher of model files on this machine: a server whose faults can be chosen."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Publisher:
    """The behaviour of the server, and the requests that it got.

    Attributes:
        content: of each file.
        ranges: whether parts of files can be requested.
        tag: the ETag of the files; none if it is empty.
        cut: after how many bytes of an answer the connection ends; None for never.
        status: of each answer that is not 200.
        redirect: where the path ``/old`` leads.
        silent: the event for which the server waits before it answers.
        pause: the event for which the server waits in the middle of an answer.
        announced: the size in the answers, if it is not that of the content.
        closes: whether the end of the connection is that of the content, instead of a size in the answer.
        headers: of all answers, further ones.
        requests: the path and the range of each request.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self.tag, self.ranges = content, '"1"', True
        self.cut: int | None = None
        self.status: int | None = None
        self.redirect = "/file"
        self.silent: threading.Event | None = None
        self.pause: threading.Event | None = None
        self.announced: int | None = None
        self.closes = False
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []
        self.host, self.port = "127.0.0.1", 0

    @property
    def sha256(self) -> str:
        """The hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def url(self, path: str = "/file") -> str:
        """Return the address of a path."""
        return f"http://{self.host}:{self.port}{path}"

    def list_file(self, path: Path, name: str, **keys: str) -> Path:
        """Write a list with one model of this publisher, and return its path."""
        table = {"about": "for tests", "licence": "MIT", "page": self.url("/page"), **keys}
        lines = [f"[{name}]", f'addresses = ["{self.url()}"]', f'hosts = ["{self.host}"]']
        path.write_text("\n".join([*lines, *(f'{key} = "{value}"' for key, value in table.items())]))
        return path


@contextmanager
def publish(content: bytes) -> Iterator[Publisher]:
    """Yield a publisher that serves while the block runs."""
    publisher = Publisher(content)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, publisher)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((publisher.host, 0), Handler)
    server.daemon_threads = True
    publisher.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield publisher
    finally:
        for event in (publisher.silent, publisher.pause):
            if event is not None:
                event.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, publisher: Publisher) -> None:
    wanted = handler.headers.get("Range", "")
    publisher.requests.append((handler.path, wanted))
    if publisher.silent is not None:
        publisher.silent.wait(20)
        handler.close_connection = True
        return
    if publisher.status is not None or handler.path == "/old":
        handler.send_response(publisher.status or 302)
        handler.send_header("Location", publisher.redirect)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    start, size = 0, len(publisher.content)
    if wanted and publisher.ranges and handler.headers.get("If-Range", publisher.tag) == publisher.tag:
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
    if start >= size:
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{size}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
    if publisher.closes:
        handler.send_header("Connection", "close")
    else:
        handler.send_header("Content-Length", str(publisher.announced or size - start))
    if publisher.tag:
        handler.send_header("ETag", publisher.tag)
    for name, value in publisher.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    body = publisher.content[start:]
    if publisher.cut is not None:
        body = body[: publisher.cut]
        handler.close_connection = True
    if publisher.pause is not None:
        handler.wfile.write(body[: len(body) // 2])
        handler.wfile.flush()
        publisher.pause.wait(20)
        body = body[len(body) // 2 :]
    handler.wfile.write(body)
