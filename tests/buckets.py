"""An S3 service on loopback, and a way to it that can be cut."""

import http.client
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from framedex.settings import Settings

_DENIED = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized</Message></Error></ErrorResponse>"


class Service:
    """A service of buckets, by moto.

    Attributes:
        address: where it is.
        client: writes objects.
    """

    def __init__(self) -> None:
        from botocore.config import Config
        from botocore.session import Session
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.address = f"http://{host}:{port}"
        config = Config(s3={"addressing_style": "path"}, proxies={}, max_pool_connections=16)
        self.client: Any = Session().create_client("s3", "us-east-1", endpoint_url=self.address, config=config)
        self._buckets: set[str] = set()

    def put(self, path: str, content: bytes, *, public: bool = False) -> None:
        """Write an object, ``bucket/key``, for all to read if *public*, and make its bucket if need be."""
        bucket, _, key = path.partition("/")
        if bucket not in self._buckets:
            self.client.create_bucket(Bucket=bucket)
            self._buckets.add(bucket)
        self.client.put_object(Bucket=bucket, Key=key, Body=content, ACL="public-read" if public else "private")

    def settings(self, **changes: Any) -> Settings:
        """Return settings that lead to it."""
        given = {"threads": 2, "user": "tester@example.org", "s3_endpoint": self.address, "s3_attempts": 1}
        return Settings.model_validate(given | changes)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let nobody in who has no account of it, for the duration of the block: nobody has."""
        self._post("reset-auth", b"0")
        try:
            yield
        finally:
            self._post("reset-auth", b"inf")

    def _post(self, name: str, content: bytes) -> None:
        request = urllib.request.Request(
            f"{self.address}/moto-api/{name}", content, {"Content-Type": "text/plain"}, method="POST"
        )
        urllib.request.urlopen(request).close()

    def stop(self) -> None:
        """End it."""
        self._server.stop()


class Wire:
    """A proxy before a service.

    Attributes:
        address: where it is.
        cut: says of each request, (method, path), whether it is answered by half of the answer's content.
        together: objects wait for their contents until so many requests have been under way together.
        asked: the requests so far.
        most_at_a_time: the most requests that were under way together.
        signed: the access keys and the regions of the signatures.
        required: the external ids that trust policies require, by the ARN of the role.
        assumed: the ARNs of the roles that were assumed, with the external ids of the requests.
    """

    def __init__(self, service: Service) -> None:
        self.cut: Callable[[str, str], bool] = lambda _method, _path: False
        self.asked: list[tuple[str, str]] = []
        self.together, self._dead = 0, False
        self._changed, self._now, self.most_at_a_time = threading.Condition(), 0, 0
        self.signed: set[tuple[str, str]] = set()
        self.required: dict[str, str] = {}
        self.assumed: list[tuple[str, str | None]] = []
        wire, target = self, service.address.removeprefix("http://")

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.close_connection = True
                with wire._counted(self.command, self.path, self.headers.get("Authorization", "")):
                    if not wire._dead:
                        self._pass_on()

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_POST(self) -> None:
                self.do_GET()

            def _pass_on(self) -> None:
                connection = http.client.HTTPConnection(target)
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.command == "POST" and not wire._is_trusted(content):
                    self.send_response(403)
                    self.end_headers()
                    self.wfile.write(_DENIED)
                    return
                connection.request(self.command, self.path, content or None, dict(self.headers))
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "date", "server", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if wire.cut(self.command, self.path) else content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it overrides
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @contextmanager
    def _counted(self, method: str, path: str, authorization: str) -> Iterator[None]:
        with self._changed:
            self.asked.append((method, path))
            if signature := re.search(r"Credential=([^/]+)/[^/]+/([^/]+)", authorization):
                self.signed.add((signature[1], signature[2]))
            self._now += 1
            self.most_at_a_time = max(self.most_at_a_time, self._now)
            self._changed.notify_all()
            if method == "GET" and "?" not in path:
                self._changed.wait_for(lambda: self.most_at_a_time >= self.together, 30)
        try:
            yield
        finally:
            with self._changed:
                self._now -= 1

    def _is_trusted(self, content: bytes) -> bool:
        """Return whether trust policies allow a request, which may be one to assume a role."""
        values = {name: value[0] for name, value in parse_qs(content.decode(errors="replace")).items()}
        if values.get("Action") != "AssumeRole":
            return True
        role, external_id = values["RoleArn"], values.get("ExternalId")
        if self.required.get(role, external_id) != external_id:
            return False
        self.assumed.append((role, external_id))
        return True

    def cut_all(self) -> None:
        """Close each connection without an answer, from now on."""
        self._dead = True

    def mend(self) -> None:
        """Let all through again."""
        self._dead = False

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it: connections are refused."""
        self._server.shutdown()
        self._server.server_close()
