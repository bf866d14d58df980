"""Alerts for a command and a URL of the operator: what they get, where they may be, and that none is lost."""

import json
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from framedex import InvalidInput, Workspace
from framedex.errors import Unavailable
from framedex.hub import Hub
from framedex.hub.alert_calls import GIVEN_UP, PAUSES_S
from framedex.hub.alert_targets import AlertTarget, CommandTarget, UrlTarget, is_public
from framedex.service.settings import ServiceSettings, alert_targets
from framedex.settings.model import load
from tests.api.test_dataset__saved_views import labelled
from tests.environment import Environment
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS
from tests.hub.people import Clock
from tests.inside import hub_context
from tests.pauses import wait_until
from tests.prepared import prepared
from tests.processes import start
from tests.tuning import Tuning


class Receiver:
    """A receiver that fails as often as it is told to.

    Attributes:
        taken: the ids of the alerts that it took.
        attempts: the ids of all attempts.
    """

    name = "command"

    def __init__(self, failures: int = 0) -> None:
        self._failures = failures
        self.taken, self.attempts = list[str](), list[str]()

    def send(self, body: bytes, call_id: str) -> None:
        """Take an alert, or fail."""
        self.attempts.append(call_id)
        assert json.loads(body)["id"] == call_id
        if len(self.attempts) <= self._failures:
            raise Unavailable("not now")
        self.taken.append(call_id)


@contextmanager
def alerting(folder: Path, clock: Clock, *targets: AlertTarget) -> Iterator[Hub]:
    """Yield the hub of a workspace with a dataset ``pets`` and a view of all its media."""
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace, on_alert=targets, clock=clock) as hub:
        if not workspace.datasets():
            dataset = prepared(workspace, "pets", labelled(0, "abab"), thresholds=THRESHOLDS)
            dataset.save_view("all")
        yield hub


def add(hub: Hub, labels: str) -> None:
    """Add media, and deliver the alert."""
    dataset = hub_context(hub).workspace.dataset("pets")
    dataset.add_media(labelled(dataset.count(), labels))
    hub.notifications.deliver()


def test_calls__are_repeated_until_they_succeed(tmp_path: Path, clock: Clock) -> None:
    """A call that fails is repeated after longer and longer pauses, under the same id; one that succeeds is not."""
    receiver = Receiver(failures=2)
    with alerting(tmp_path / "ws", clock, receiver) as hub:
        add(hub, "ab")
        assert [hub.calls.run_due(), hub.calls.run_due()] == [1, 0]
        clock.move(seconds=PAUSES_S[0] - 1)
        assert hub.calls.run_due() == 0
        clock.move(seconds=1)
        assert hub.calls.run_due() == 1
        clock.move(seconds=PAUSES_S[1])
        assert [hub.calls.run_due(), hub.calls.run_due()] == [1, 0]
        assert (len(set(receiver.attempts)), len(receiver.attempts), len(receiver.taken)) == (1, 3, 1)
        clock.move(days=30)
        hub.sweep()
        assert hub.calls.run_due() == 0


@pytest.mark.slow
def test_calls__end_after_days(tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """An alert that nobody takes is given up after three days, which the log says."""
    receiver = Receiver(failures=10**6)
    with alerting(tmp_path / "ws", clock, receiver) as hub:
        add(hub, "a")
        for _ in range(200):
            hub.calls.run_due()
            clock.move(hours=1)
        assert 60 < len(receiver.attempts) <= GIVEN_UP.days * 24 + len(PAUSES_S)
        assert "is not passed to the command" in caplog.text


@pytest.mark.slow
def test_calls__after_a_restart(tmp_path: Path, clock: Clock) -> None:
    """A call that was not made is made by the next process; one for a receiver that is gone ends."""
    with alerting(tmp_path / "ws", clock, Receiver(failures=1)) as hub:
        add(hub, "a")
        hub.calls.run_due()
    clock.move(hours=1)
    receiver = Receiver()
    with alerting(tmp_path / "ws", clock, receiver) as hub:
        assert (hub.calls.run_due(), len(receiver.taken)) == (1, 1)
        add(hub, "b")
    with alerting(tmp_path / "ws", clock) as hub:
        assert (hub.calls.run_due(), hub.calls.run_due()) == (1, 0)
        add(hub, "ab")
        assert hub.calls.run_due() == 0


@pytest.mark.slow
def test_calls__by_their_own_thread(tmp_path: Path) -> None:
    """The threads of a hub deliver an alert and make its calls, without waiting for a receiver."""
    receiver = Receiver()
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace, Hub(workspace, on_alert=[receiver]) as hub:
        hub.feed.start()
        hub.calls.start()
        dataset = workspace.create_dataset("pets", labelled(0, "abab"), thresholds=THRESHOLDS)
        dataset.save_view("all")
        dataset.add_media(labelled(10, "a"))
        wait_until(lambda: len(receiver.taken) == 1)


class Waiting(Receiver):
    """A receiver that takes no alert before it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = threading.Event()

    def send(self, body: bytes, call_id: str) -> None:
        """Wait, and take an alert."""
        self.attempts.append(call_id)
        self.allowed.wait(60)
        self.taken.append(call_id)


@pytest.mark.slow
def test_calls__of_a_receiver_that_hangs(tmp_path: Path) -> None:
    """A receiver that does not answer keeps no other one from its alerts."""
    hanging, other = Waiting(), Receiver()
    other.name = "url"
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace, Hub(workspace, on_alert=[hanging, other]) as hub:
        dataset = workspace.create_dataset("pets", labelled(0, "abab"), thresholds=THRESHOLDS)
        for name in ("one", "two"):
            dataset.save_view(name)
        hub.feed.start()
        hub.calls.start()
        dataset.add_media(labelled(10, "a"))
        wait_until(lambda: len(other.taken) == 2 and len(hanging.attempts) > 0)
        assert (len(hanging.attempts), hanging.taken) == (1, [])
        hanging.allowed.set()
        wait_until(lambda: sorted(hanging.taken) == sorted(other.taken))


KILLED = """
    import os, signal, sys, framedex
    from framedex.hub import Hub
    from tests.gallery import SETTINGS

    class Target:
        name = "command"
        def send(self, body, call_id):
            print(call_id, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace, Hub(workspace, on_alert=[Target()]) as hub:
        hub.calls.run_due()
"""


@pytest.mark.slow
def test_calls__of_a_process_that_was_killed(tmp_path: Path, clock: Clock) -> None:
    """A process that is killed in an attempt leaves it to the next one, which uses the same id."""
    clock.time = datetime.now(UTC)
    with alerting(tmp_path / "ws", clock, Receiver()) as hub:
        add(hub, "a")
    process = start(KILLED, tmp_path / "ws")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    receiver = Receiver()
    with alerting(tmp_path / "ws", clock, receiver) as hub:
        assert hub.calls.run_due() == 0  # the attempt may still go on
        clock.move(hours=1)
        hub.calls.run_due()
    assert receiver.taken == out.split()


def test_command__gets_json_and_no_secrets(tmp_path: Path, environment: Environment) -> None:
    """A command gets the alert on its standard input, without a shell and without the secrets of the service."""
    environment["FRAMEDEX_SECRET_KEY"] = "planted"
    environment["FRAMEDEX_ON_ALERT_URL"] = "http://x/planted"
    script = tmp_path / "take it.py"
    script.write_text("import os, sys\nopen(sys.argv[1], 'w').write(sys.stdin.read() + repr(dict(os.environ)))\n")
    command = f"{sys.executable} '{script}' '{tmp_path / 'out; $HOME'}'"
    (target,) = alert_targets(ServiceSettings(on_alert_command=command, on_alert_url=None))
    target.send(b'{"id": "1"}', "the id")
    written = (tmp_path / "out; $HOME").read_text()
    assert written.startswith('{"id": "1"}{')
    assert "planted" not in written


def test_command__that_fails(tmp_path: Path) -> None:
    """A command that ends badly, does not end, or does not exist is a failure that says why."""

    def python(code: str, **options: Any) -> CommandTarget:
        return CommandTarget(f'{sys.executable} -c "{code}"', **options)

    with pytest.raises(Unavailable, match="ended with status 3: 'no luck'"):
        python("import sys; sys.stderr.write('no luck'); sys.exit(3)").send(b"{}", "x")
    with pytest.raises(Unavailable, match=r"did not end within 0\.5 s"):
        python("import threading; threading.Event().wait()", limit_s=0.5).send(b"{}", "x")
    with pytest.raises(Unavailable, match="cannot be started"):
        CommandTarget(str(tmp_path / "missing")).send(b"{}", "x")
    python("pass").send(b"{}" * 10**6, "x")
    for wrong in ("'open", "  "):
        with pytest.raises(InvalidInput, match="FRAMEDEX_ON_ALERT_COMMAND"):
            CommandTarget(wrong)


class _Handler(BaseHTTPRequestHandler):
    """Answers with the status of the path, and keeps what it got."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Location", "/elsewhere/200")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def hook() -> Iterator[tuple[str, list[Any]]]:
    """A server on loopback: its address, and the requests that it got."""
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    server.got = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", server.got  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def test_url__gets_a_post(hook: tuple[str, list[Any]]) -> None:
    """A URL gets the alert as the body of a POST with its id in a header; redirects are not followed."""
    url, got = hook
    UrlTarget(f"{url}/a%20b/204", allow_private=True).send(b'{"a":1}', "the id")
    ((path, headers, body),) = got
    assert (path, headers["Content-Type"], headers["Idempotency-Key"], body) == (
        "/a%20b/204", "application/json", "the id", b'{"a":1}',
    )  # fmt: skip
    assert headers["Host"] == url.removeprefix("http://")
    for status in (302, 307, 404, 500):
        with pytest.raises(Unavailable, match=f"127.0.0.1 answered {status}"):
            UrlTarget(f"{url}/{status}", allow_private=True).send(b"{}", "x")
    assert all("elsewhere" not in path for path, _, _ in got)


def test_url__of_private_addresses(hook: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses that are not public are refused at each attempt, whatever the name was resolved to before."""
    url, got = hook
    port = url.rpartition(":")[2]
    with pytest.raises(Unavailable, match="has no public address; FRAMEDEX_ON_ALERT_PRIVATE=true"):
        UrlTarget(f"{url}/200").send(b"{}", "x")
    target, names = UrlTarget(f"http://hooks.test:{port}/200"), list[str]()

    def resolve(name: str, *_: Any, **__: Any) -> Any:
        names.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1" if len(names) > 1 else "10.1.2.3", 0))]

    with monkeypatch.context() as patch:
        patch.setattr("framedex.hub.alert_targets.socket.getaddrinfo", resolve)
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"hooks\.test has no public address"):
                target.send(b"{}", "x")
    assert names == ["hooks.test"] * 2
    assert got == []


def test_url__connects_to_the_address_that_was_checked(
    hook: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is resolved once for each attempt, and the header names the host of the URL."""
    url, got = hook
    port = url.rpartition(":")[2]
    target, asked = UrlTarget(f"http://hooks.test:{port}/200", allow_private=True), list[str]()
    real = socket.getaddrinfo

    def resolve(name: str, *given: Any, **options: Any) -> Any:
        asked.append(name)
        return real("127.0.0.1" if name == "hooks.test" else name, *given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    target.send(b"{}", "x")
    assert asked.count("hooks.test") == 1
    assert got[0][1]["Host"] == f"hooks.test:{port}"


def test_url__of_several_addresses(hook: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of the host at which nobody listens is followed by the next one."""
    url, got = hook
    port = int(url.rpartition(":")[2])
    target, found, real = (
        UrlTarget(f"http://hooks.test:{port}/200", allow_private=True),
        list[str](),
        socket.getaddrinfo,
    )

    def resolve(name: str, *given: Any, **options: Any) -> Any:
        if name != "hooks.test":
            return real(name, *given, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    found[:] = ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
    target.send(b"{}", "x")
    assert len(got) == 1
    found[:] = ["127.0.0.2", "127.0.0.3"]
    with pytest.raises(Unavailable, match=r"hooks\.test cannot be reached"):
        target.send(b"{}", "x")
    assert len(got) == 1


def test_url__has_its_time_to_answer(tuning: Tuning) -> None:
    """The time for a connection is not that for the answer."""
    tuning.alert_connect_s = 0.2
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            opened, _ = server.accept()
            with opened:
                request = b""
                while not request.endswith(b"{}"):
                    request += opened.recv(2**16)
                opened.settimeout(2.5 * tuning.alert_connect_s)
                with pytest.raises(TimeoutError):
                    opened.recv(1)  # the client does not hang up
                opened.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        UrlTarget(f"http://127.0.0.1:{server.getsockname()[1]}/", allow_private=True).send(b"{}", "x")
        thread.join()


def certificate(folder: Path, name: str) -> Path:
    """Return a file with a key and a certificate of a host, which it signed itself."""
    key, own = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(own, own, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *plain) + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.parametrize(
    ("host", "trusted", "refusal"),
    [("localhost", True, ""), ("localhost", False, "CERTIFICATE_VERIFY_FAILED"), ("elsewhere.test", True, "mismatch")],
)
def test_url__with_a_certificate(
    tmp_path: Path, environment: Environment, host: str, trusted: bool, refusal: str
) -> None:
    """With https the certificate must be trusted and name the host of the URL."""
    path = certificate(tmp_path, host)
    environment["SSL_CERT_FILE"] = str(path if trusted else tmp_path / "none")
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    server.got = []  # type: ignore[attr-defined]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    target = UrlTarget(f"https://localhost:{server.server_port}/200", allow_private=True)
    if refusal:
        with pytest.raises(Unavailable, match=f"(?i){refusal}"):
            target.send(b"{}", "x")
    else:
        target.send(b"{}", "x")
    thread.join()
    server.server_close()
    assert len(server.got) == (not refusal)  # type: ignore[attr-defined]


def test_url__that_does_not_answer() -> None:
    """A server that takes a connection and says nothing is given up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = UrlTarget(f"http://127.0.0.1:{server.getsockname()[1]}/", allow_private=True, limit_s=0.3)
        with pytest.raises(Unavailable, match="gave no answer"):
            target.send(b"{}", "x")
    for url in ("http://127.0.0.1:1/", "http://no-such-name.invalid/", "http://" + "x" * 70 + ".invalid/"):
        with pytest.raises(Unavailable, match="cannot be reached"):
            UrlTarget(url, allow_private=True).send(b"{}", "x")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2606:4700::1111", True), ("10.0.0.1", False), ("127.0.0.1", False), ("0.0.0.0", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("224.0.0.1", False), ("::1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False), ("::ffff:10.0.0.1", False), ("::ffff:8.8.8.8", True), ("64:ff9b::a00:1", False),
        ("64:ff9b::808:808", True), ("2002:a00:1::", False), ("ff02::1", False), ("::127.0.0.1", False),
        ("fec0::1", False), ("64:ff9b:1::a00:1", False), ("::ffff:0:127.0.0.1", False), ("2a00:1450:4001::1", True),
    ],
)  # fmt: skip
def test_addresses__that_are_public(address: str, public: bool) -> None:
    """Only addresses of the public network count, also where IPv6 carries one of IPv4."""
    assert is_public(address) is public


def test_settings__of_receivers(environment: Environment) -> None:
    """Receivers come from the environment; a URL that is none is an error that does not show it."""
    assert alert_targets(ServiceSettings()) == []
    environment["FRAMEDEX_ON_ALERT_COMMAND"] = "notify-send 'new images'"
    environment["FRAMEDEX_ON_ALERT_URL"] = "https://hooks.example.com/planted"
    assert [each.name for each in alert_targets(load(ServiceSettings))] == ["command", "url"]
    assert "planted" not in repr(load(ServiceSettings))
    for wrong in ("ftp://planted", "https://", "https://user:planted@host/"):
        environment["FRAMEDEX_ON_ALERT_URL"] = wrong
        with pytest.raises(InvalidInput, match="FRAMEDEX_ON_ALERT_URL") as caught:
            load(ServiceSettings)
        assert "planted" not in str(caught.value)
