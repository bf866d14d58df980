"""The client for S3 finds what users of AWS set, asks within limits, and says by type why a request failed."""

import os
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_server
from typing import Any

import botocore.exceptions
import pytest

from framedex.core.assumed_roles import AssumedRole
from framedex.errors import CannotDecode, InvalidInput
from framedex.media import s3
from framedex.media.s3 import BadCredentials, BucketAccess, Missing, Refused, Unreachable, client
from tests.buckets import Service, Wire
from tests.environment import Environment
from tests.laws import rest_slow
from tests.processes import run

_LIMIT = 10**6
Answering = Callable[[bytes], str]


@pytest.fixture(autouse=True)
def _own_clients() -> None:
    """Let each test make its clients, in the environment that it sets."""
    s3._CLIENTS.renew()


@pytest.fixture
def wire(service: Service) -> Iterator[Wire]:
    """A way to the service that shows its signatures."""
    opened = Wire(service)
    yield opened
    opened.stop()


@pytest.fixture
def no_credentials(tmp_path: Path, environment: Environment) -> Path:
    """An environment without credentials, with the files of AWS in a folder, which is returned."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        environment.pop(name, None)
    environment["AWS_CONFIG_FILE"] = str(tmp_path / "config")
    environment["AWS_SHARED_CREDENTIALS_FILE"] = str(tmp_path / "credentials")
    return tmp_path


@pytest.fixture
def answering() -> Iterator[Answering]:
    """Start services that give one answer, written out, to all requests, and return the address of each."""
    opened: list[ThreadingHTTPServer] = []

    def start(content: bytes) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.close_connection = True
                self.wfile.write(content)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it overrides
                pass

        opened.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=opened[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{opened[-1].server_address[1]}"

    yield start
    for server in opened:
        server.shutdown()
        server.server_close()


def refusal(status: int, code: str) -> bytes:
    """Return an answer that reports an error."""
    content = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no luck</Message></Error>".encode()
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def read(address: str, **changes: Any) -> bytes:
    """Return the content of an object at a service."""
    return client(BucketAccess(endpoint=address, attempts=1, **changes)).read("bucket", "a.jpg", _LIMIT)[1]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(
    ("status", "code", "expected"),
    rest_slow([
        (404, "NoSuchKey", Missing), (404, "NoSuchBucket", Missing), (404, "Other", Missing),
        (403, "AccessDenied", Refused), (403, "InvalidObjectState", Refused), (400, "Odd", Refused),
        (403, "InvalidAccessKeyId", BadCredentials), (403, "SignatureDoesNotMatch", BadCredentials),
        (400, "ExpiredToken", BadCredentials), (403, "RequestTimeTooSkewed", BadCredentials),
        (401, "Unauthorized", BadCredentials), (503, "SlowDown", Unreachable), (500, "InternalError", Unreachable),
        (502, "Other", Unreachable), (429, "Other", Unreachable), (400, "RequestTimeout", Unreachable),
    ], 5, several=True, long=9),
)  # fmt: skip
def test_errors__of_answers(
    answering: Answering, service: Service, status: int, code: str, expected: type[s3.S3Error]
) -> None:
    """The status and the code of an answer decide which error it is; the reason has the words of the service."""
    with pytest.raises(s3.S3Error) as raised:
        read(answering(refusal(status, code)))
    assert (type(raised.value), str(raised.value)) == (expected, f"{code} (GetObject) no luck")


def test_errors__of_the_engine() -> None:
    """No error of the engine leaves the client as it is."""
    kinds: list[Any] = [each for each in vars(botocore.exceptions).values() if isinstance(each, type)]
    kinds = [each for each in kinds if issubclass(each, botocore.exceptions.BotoCoreError)]
    assert len(kinds) > 50
    for kind in kinds:
        with pytest.raises(s3.S3Error), s3._own_errors():
            raise kind.__new__(kind)


def test_errors__a_bucket_that_no_address_can_have(service: Service) -> None:
    """A bucket whose name cannot be in an address concerns one object and not the credentials."""
    with pytest.raises(Refused):
        client(BucketAccess(attempts=1)).read("a b", "a.jpg", _LIMIT)


@pytest.mark.slow
def test_errors__no_answer(service: Service) -> None:
    """A service that takes connections and is silent is given up after the time of the settings."""
    with create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match="no answer within the time of FRAMEDEX_S3_TIMEOUT_S"):
            read(address, timeout_s=0.1)


@pytest.mark.slow
def test_errors__a_listing_that_is_none(answering: Answering, service: Service) -> None:
    """A page that is not of S3, as a portal sends it for any address, or half a page is no empty bucket."""
    for content in (b"<html>log in!", b"<ListBucketResult><Contents><Key>a</Key>"):
        address = answering(b"HTTP/1.1 200 OK\r\n\r\n" + content)
        with pytest.raises(Unreachable):
            list(client(BucketAccess(endpoint=address, attempts=1)).pages("bucket", ""))


@pytest.mark.slow
def test_read__of_unknown_size(answering: Answering, service: Service) -> None:
    """The limit holds for an answer without a size, too; the time of the last change may also lack."""
    head = b"HTTP/1.1 200 OK\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"
    opened = client(BucketAccess(endpoint=answering(head + bytes(1000)), attempts=1))
    assert opened.read("bucket", "a.jpg", 1000) == (1704067200 * 10**9, bytes(1000))
    with pytest.raises(CannotDecode, match="the object has more than 999 bytes"):
        opened.read("bucket", "a.jpg", 999)
    bare = client(BucketAccess(endpoint=answering(b"HTTP/1.1 200 OK\r\n\r\nx"), attempts=1))
    assert bare.read("bucket", "a.jpg", 1) == (None, b"x")


@pytest.mark.slow
def test_credentials__of_a_profile(
    service: Service, wire: Wire, no_credentials: Path, environment: Environment
) -> None:
    """Profiles in the files of AWS are found; their region is one of Amazon's and does not sign for other services."""
    service.put("bucket/a.jpg", b"x")
    keys = "aws_access_key_id = {0}\naws_secret_access_key = x\n"
    (no_credentials / "credentials").write_text(f"[default]\n{keys.format('usual')}[other]\n{keys.format('other')}")
    (no_credentials / "config").write_text("[default]\nregion = eu-west-3\n[profile other]\nregion = eu-west-1\n")
    assert read(wire.address) == b"x"
    assert wire.signed == {("usual", "us-east-1")}
    environment["AWS_PROFILE"] = "other"
    s3._CLIENTS.renew()
    assert read(wire.address) == b"x"
    assert ("other", "us-east-1") in wire.signed
    assert client(BucketAccess())._engine.meta.region_name == "eu-west-1"
    environment["AWS_PROFILE"] = "none"
    s3._CLIENTS.renew()
    with pytest.raises(BadCredentials, match=r"profile \(none\) could not be found"):
        read(wire.address)


@pytest.mark.slow
def test_credentials__none(service: Service, wire: Wire, no_credentials: Path) -> None:
    """Without credentials public objects are read, and no role is assumed."""
    service.put("bucket/a.jpg", b"x", public=True)
    assert read(wire.address) == b"x"
    assert wire.signed == set()
    with pytest.raises(BadCredentials, match="there are no credentials to assume the role 'arn:aws:iam::1:role/x'"):
        read(wire.address, role=AssumedRole("arn:aws:iam::1:role/x"))
    with pytest.raises(InvalidInput, match="no role can be assumed without credentials"):
        read(wire.address, role=AssumedRole("arn:aws:iam::1:role/x"), anonymous=True)


@pytest.mark.slow
def test_credentials__a_role_that_is_denied(answering: Answering, wire: Wire, environment: Environment) -> None:
    """A role that may not be assumed is no fault of an object."""
    environment["AWS_ENDPOINT_URL_STS"] = answering(refusal(403, "AccessDenied"))
    with pytest.raises(BadCredentials, match=r"AssumeRole"):
        read(wire.address, role=AssumedRole("arn:aws:iam::1:role/denied"))
    assert wire.asked == []


@pytest.mark.slow
def test_credentials__a_role_that_requires_an_external_id(
    service: Service, wire: Wire, environment: Environment
) -> None:
    """A role is assumed with its external id alone, and credentials with one id do not serve for another."""
    service.put("bucket/a.jpg", b"x")
    environment["AWS_ENDPOINT_URL_STS"] = wire.address
    arn = "arn:aws:iam::123456789012:role/reader"
    wire.required[arn] = "ours"
    assert read(service.address, role=AssumedRole(arn, "ours")) == b"x"
    for external_id in (None, "theirs"):
        with pytest.raises(BadCredentials, match="AccessDenied"):
            read(service.address, role=AssumedRole(arn, external_id))
    assert wire.assumed == [(arn, "ours")]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(("variable", "value"), [("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "eu-west-2")])
def test_region__of_the_environment(
    service: Service, no_credentials: Path, environment: Environment, variable: str, value: str
) -> None:
    """The region is that of the settings, else of the environment, else what any service takes."""

    def region(**changes: Any) -> str:
        s3._CLIENTS.renew()
        return str(client(BucketAccess(**changes))._engine.meta.region_name)

    other = "http://127.0.0.1:1"
    assert region(endpoint=other) == region() == "us-east-1"
    environment[variable] = value
    assert region(endpoint=other) == region() == value
    assert region(endpoint=other, region="eu-north-1") == "eu-north-1"


@pytest.mark.slow
def test_endpoint__of_the_environment(service: Service, wire: Wire, environment: Environment) -> None:
    """The service that the environment names is asked, by paths and not by a proxy."""
    service.put("bucket/a.jpg", b"x")
    environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
    environment["AWS_ENDPOINT_URL_S3"] = f"{wire.address}/"
    environment["HTTP_PROXY"] = "http://127.0.0.1:1"
    assert client(BucketAccess()).read("bucket", "a.jpg", 1)[1] == b"x"
    assert wire.asked == [("GET", "/bucket/a.jpg")]


@pytest.mark.parametrize("wrong", [{"endpoint": "http://a b"}, {"region": "a b"}])
def test_endpoint__that_is_invalid(service: Service, wrong: dict[str, str]) -> None:
    """A wrong address or region is said, before anything is asked."""
    with pytest.raises(InvalidInput, match=r"the settings for S3 have an invalid endpoint or region: .*a b"):
        client(BucketAccess(**wrong))  # type: ignore[arg-type]  # both are texts


def test_certificates__of_the_system(tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's certificates are trusted, else the system's; on Debian they are a file in a folder."""
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        environment.pop(name, None)
    environment["SSL_CERT_FILE"] = str(tmp_path / "own.pem")
    (tmp_path / "own.pem").touch()
    assert s3._certificates(s3._session()) == str(tmp_path / "own.pem")
    paths: Any = ssl.get_default_verify_paths()
    paths = paths._replace(cafile=None, capath=str(tmp_path))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    assert s3._certificates(s3._session()) is None
    (tmp_path / "ca-certificates.crt").touch()
    assert s3._certificates(s3._session()) == str(tmp_path / "ca-certificates.crt")
    for name in ("REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"):
        environment[name] = name
        assert s3._certificates(s3._session()) == name


@pytest.mark.slow
def test_client__is_kept(service: Service) -> None:
    """Equal options have one client, and others have another."""
    access = BucketAccess(endpoint=service.address)
    assert client(access) is client(BucketAccess(endpoint=service.address))
    assert client(access) is not client(BucketAccess(endpoint=service.address, attempts=1))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_client__of_a_forked_child() -> None:
    """A process keeps its connection to a service, and a child of a fork opens its own."""
    code = """
    import faulthandler, os, threading, warnings
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from framedex.media.s3 import BucketAccess, client

    class Ports(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            content = str(self.client_address[1]).encode()
            self.send_response(200)
            self.send_header("Content-Length", len(content))
            self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Ports)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    access = BucketAccess(endpoint=f"http://127.0.0.1:{server.server_address[1]}", anonymous=True, attempts=1)

    def port():
        return client(access).read("bucket", "a.jpg", 10)[1]

    mine = port()
    assert port() == mine
    warnings.simplefilter("ignore")  # of forks beside threads
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(60, exit=True)
        theirs = port()
        os._exit(theirs == mine or port() != theirs)
    assert os.waitpid(child, 0)[1] == 0
    assert port() == mine
    server.shutdown()
    """
    run(code)
