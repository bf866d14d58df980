"""Programs and addresses of the operator to which alerts are passed."""

import http.client
import ipaddress
import os
import shlex
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

from framedex.errors import InvalidInput, Unavailable

_COMMAND_S, _CONNECT_S, _ANSWER_S = 60.0, 10.0, 20.0
_MOST_ADDRESSES = 4
_ERROR_BYTES = 500
_UNICAST = ipaddress.ip_network("2000::/3")  # of IPv6, all that is assigned to the public network
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AlertTarget(Protocol):
    """A receiver of alerts.

    Attributes:
        name: ``command`` or ``url``.
    """

    name: str

    def send(self, body: bytes, call_id: str) -> None:
        """Pass an alert.

        Args:
            body: the alert as JSON.
            call_id: the id of the alert, the same in each attempt.

        Raises:
            Unavailable: the receiver did not take it.
        """
        ...


class CommandTarget:
    """A command that gets an alert as JSON on its standard input, and takes it if its status is 0 within a minute.

    Args:
        command: the program with its arguments; no shell runs it.
        without: the names of environment variables that it does not get.
        limit_s: the number of seconds within which it has to end.

    Raises:
        InvalidInput: the command has no program, or an open quotation mark.
    """

    name = "command"

    def __init__(self, command: str, *, without: frozenset[str] = frozenset(), limit_s: float = _COMMAND_S) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise InvalidInput(f"FRAMEDEX_ON_ALERT_COMMAND cannot be read: {error}") from None
        if not self._arguments:
            raise InvalidInput("FRAMEDEX_ON_ALERT_COMMAND has no program")
        self._without, self._limit_s = without, limit_s

    def send(self, body: bytes, call_id: str) -> None:
        """Run the command."""
        environment = {name: value for name, value in os.environ.items() if name.upper() not in self._without}
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(  # noqa: S603 - the operator's own command
                    self._arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise Unavailable(f"{self._arguments[0]!r} cannot be started: {error.strerror or error}") from None
            try:
                process.communicate(body, timeout=self._limit_s)
            except subprocess.TimeoutExpired:
                _kill(process)
                raise Unavailable(f"{self._arguments[0]!r} did not end within {self._limit_s:g} s") from None
            if process.returncode:
                end = errors.seek(0, os.SEEK_END)
                errors.seek(max(end - _ERROR_BYTES, 0))
                said = errors.read().decode("utf-8", "replace").strip()
                raise Unavailable(f"{self._arguments[0]!r} ended with status {process.returncode}: {said!r}")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    process.communicate()


class UrlTarget:
    """An address that gets an alert as the JSON body of a POST, and takes it with a status from 200 to 299.

    The name is resolved for each attempt. The connection goes to the first of the addresses that were checked that can
    be reached, so no second answer of the name server can lead it elsewhere; certificates are checked for the name.
    Redirects are failures.

    Args:
        url: the URL, with ``http`` or ``https``.
        allow_private: whether it may be an address that is not public, such as one of this machine.
        limit_s: the number of seconds for an attempt.
    """

    name = "url"

    def __init__(self, url: str, *, allow_private: bool = False, limit_s: float = _ANSWER_S) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None, "the settings check the URL"
        self._host, self._is_tls = parts.hostname, parts.scheme == "https"
        self._port = parts.port or (443 if self._is_tls else 80)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._allow_private, self._limit_s = allow_private, limit_s

    def send(self, body: bytes, call_id: str) -> None:
        """Send a POST."""
        headers = {"Content-Type": "application/json", "User-Agent": "framedex", "Idempotency-Key": call_id}
        try:
            opened = self._open()
        except (OSError, UnicodeError) as error:
            if isinstance(error, Unavailable):
                raise
            raise Unavailable(f"{self._host} cannot be reached: {error}") from None
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.default_port = 443 if self._is_tls else 80  # which the header Host leaves out
        connection.sock = opened
        timer = threading.Timer(self._limit_s, _cut, [opened])
        timer.start()
        try:
            if isinstance(opened, ssl.SSLSocket):
                opened.do_handshake()
            connection.request("POST", self._path, body=body, headers=headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{self._host} gave no answer: {error or type(error).__name__}") from None
        finally:
            timer.cancel()
            connection.close()
        if not 200 <= status < 300:
            raise Unavailable(f"{self._host} answered {status}")

    def _open(self) -> socket.socket:
        """Return a socket to the host; with TLS the handshake has not begun."""
        opened = self._reached()
        try:
            opened.settimeout(self._limit_s)
            if self._is_tls:
                context = ssl.create_default_context()
                return context.wrap_socket(opened, server_hostname=self._host, do_handshake_on_connect=False)
        except BaseException:
            opened.close()
            raise
        return opened

    def _reached(self) -> socket.socket:
        """Return a socket that is connected to the first address that answers."""
        addresses = self._addresses()
        timeout_s = _CONNECT_S / len(addresses)
        for address in addresses[:-1]:
            with suppress(OSError):
                return socket.create_connection((address, self._port), timeout=timeout_s)
        return socket.create_connection((addresses[-1], self._port), timeout=timeout_s)

    def _addresses(self) -> list[str]:
        """Return the addresses of the host to which alerts may be sent, up to four."""
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        addresses = [str(address[0]) for *_, address in found]
        allowed = [each for each in addresses if self._allow_private or is_public(each)]
        if not allowed:
            raise Unavailable(f"{self._host} has no public address; FRAMEDEX_ON_ALERT_PRIVATE=true allows others, too")
        return allowed[:_MOST_ADDRESSES]


def _cut(opened: socket.socket) -> None:
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def is_public(address: str) -> bool:
    """Return whether an address is one of the public network, also if IPv6 carries one of IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        carried = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if carried is None and found in _NAT64:
            carried = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if carried is not None:
            return is_public(str(carried))
        if found not in _UNICAST:
            return False
    return found.is_global and not found.is_multicast
