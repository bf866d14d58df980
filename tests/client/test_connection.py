"""The connection of a client: credentials, tokens that are made again, and errors of our classes."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx2
import jwt
import pytest

import framedex
from framedex import Client, Dataset, InvalidInput, NotAuthenticated, Unavailable
from framedex.client.connection import raise_for
from framedex.errors import CODES
from framedex.service.errors import _STATUSES
from tests.service.client import BASE

Keys = tuple[Any, dict[str, tuple[str, str]]]


def answering(respond: Callable[[httpx2.Request], httpx2.Response]) -> Client:
    """Return a client whose requests are answered by a function."""
    return Client("http://example.org/images", "key", "s" * 32, transport=httpx2.MockTransport(respond))


@pytest.mark.slow
@pytest.mark.only_soak
def test_client__with_a_key(keys: Keys, dataset: Dataset) -> None:
    """A client acts as the user of its key, with the user's rights."""
    transport, found = keys
    with (
        Client(BASE, *found["eve"], transport=transport) as eve,
        Client(BASE, *found["vic"], transport=transport) as vic,
    ):
        assert (eve.me.username, eve.me.auth, eve.user) == ("eve", "token", "eve@example.org")
        pets = eve.dataset("pets")
        assert pets.tag(pets.view.limit(1), "seen").created_by == "eve@example.org"
        assert vic.dataset(dataset.id).to_arrow().num_rows == dataset.count()
        with pytest.raises(framedex.Forbidden, match="write access"):
            vic.dataset("pets").tag(dataset.view.media_ids()[:1], "mine")
        with pytest.raises(framedex.NotFound, match="'nothing'"):
            vic.dataset("nothing")
        with pytest.raises(framedex.NotFound, match="Dataset not found"):
            vic.dataset("00000000-0000-0000-0000-0000000000aa")


def test_client__with_wrong_credentials(keys: Keys) -> None:
    """A wrong secret and a missing key are refused; half a pair is refused at once."""
    transport, found = keys
    with Client(BASE, found["eve"][0], "x" * 64, transport=transport) as wrong, pytest.raises(NotAuthenticated):
        wrong.datasets()
    with Client(BASE, transport=transport) as nobody, pytest.raises(NotAuthenticated):
        nobody.datasets()
    for arguments in ((BASE, "key"), ("images.example.com",), ("ftp://a",), ("",)):
        with pytest.raises(InvalidInput):
            Client(*arguments)


@pytest.mark.parametrize(
    ("key", "secret", "message"),
    [
        ("key", "cut-off", "^secret has 7 characters, and the secrets of a service have more than 32: copy the whole"),
        ("key", "", "^secret has 0 characters"),
        ("key", "x", "^secret has 1 character, "),
        ("key", "ü" * 15, "^secret has 15 characters"),
        ("key", b"s" * 43, "^secret must be text, not of type bytes$"),
        (7, "s" * 43, "^key must be text, not of type int$"),
    ],
)
def test_client__with_credentials_that_no_service_made(key: Any, secret: Any, message: str) -> None:
    """A secret that was cut off, or is no text, is refused at once, without a word of it and without a warning."""
    with pytest.raises(InvalidInput, match=message) as error:
        Client(BASE, key, secret)
    assert repr(secret) not in str(error.value)


def test_tokens__are_made_again_before_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token serves until a minute before its end, ten minutes after it was made."""
    seen: list[str] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["authorization"].removeprefix("Bearer "))
        return httpx2.Response(200, json=[])

    now = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    client = answering(respond)
    for moment in (0, 100, 539, 541, 600):
        now[0] = 1_000_000.0 + moment
        client.datasets()
    assert len(set(seen)) == 2
    assert seen[0] == seen[1] == seen[2] != seen[3] == seen[4]
    claims = jwt.decode(seen[3], "s" * 32, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
    assert claims == {"sub": "key", "iss": "sdk", "iat": 1_000_541, "exp": 1_001_141}
    assert jwt.get_unverified_header(seen[3])["kid"] == "key"


def test_url__with_a_path() -> None:
    """The path of the address is kept, and ids in paths are quoted."""
    seen: list[str] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path.decode())
        body = [{"tag_id": "a/b", "name": "x", "created_at": "2026-01-01T00:00:00Z", "created_by": "", "count": 0}]
        return httpx2.Response(200, json=body)

    pets = framedex.client.ClientDataset(answering(respond)._connection, "an id")
    pets.delete_tag("x")
    assert seen == ["/images/api/v1/dataset/an%20id/tags", "/images/api/v1/dataset/an%20id/tags/a%2Fb"]


@pytest.mark.parametrize(("kind", "code"), CODES, ids=lambda each: str(getattr(each, "__name__", each)))
def test_errors__come_back_as_ours(kind: type[framedex.Error], code: str) -> None:
    """Each error that the service answers comes back as an error of the same class, or of its base class."""
    sentence = "Invalid filter at $[0].labels: no such operator"
    body = {"detail": sentence, "code": code, **({"fault": "over_limit"} if code == "cannot_decode" else {})}
    answer = httpx2.Response(_STATUSES[code], json=body, headers={"Retry-After": "7"})
    with pytest.raises(framedex.Error) as raised:
        raise_for(answer)
    assert type(raised.value) is kind
    if isinstance(raised.value, framedex.InvalidFilter):
        assert (raised.value.path, raised.value.reason) == ("$[0].labels", "no such operator")
    elif isinstance(raised.value, framedex.TooManyAttempts):
        assert raised.value.retry_after_s == 7
    else:
        assert str(raised.value) == sentence
    if isinstance(raised.value, framedex.CannotDecode):
        assert raised.value.fault == "over_limit"


def test_errors__of_other_answers() -> None:
    """Answers that are no JSON of ours, and a service that is away, have an error that says so."""
    for status, expected in ((500, framedex.Error), (502, Unavailable), (404, framedex.Error), (413, framedex.Error)):
        with pytest.raises(expected, match=str(status)):
            raise_for(httpx2.Response(status, text="<html>"))
    with pytest.raises(framedex.Error, match="request 12"):
        raise_for(
            httpx2.Response(500, json={"detail": "Internal server error", "code": "internal", "request_id": "12"})
        )
    with Client("http://127.0.0.1:1", timeout_s=5) as away, pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        away.datasets()


def test_explore__that_is_empty(client: Client) -> None:
    """A page without clusters says why, and warns, as that of the library does."""
    with pytest.warns(framedex.EmptyResultWarning, match="there is no label 'nothing'"):
        page = client.dataset("pets").explore(labels=["nothing"])
    assert len(page.notes) == 1


def test_errors__of_bad_input(client: Client) -> None:
    """What the library refuses the client refuses, with the same classes."""
    pets = client.dataset("pets")
    with pytest.raises(framedex.InvalidFilter, match=r"\$\[0\]"):
        pets.where([{"labls": {}}])
    with pytest.raises(InvalidInput, match="nothing"):
        pets.to_arrow(["nothing"])
    with pytest.raises(InvalidInput, match="columns must be a list"):
        pets.to_arrow("media_id")
    with pytest.raises(framedex.NotFound):
        pets.select(["nobody"])
    with pytest.raises(framedex.OutOfRange):
        pets.view[10_000]
    with pytest.raises(InvalidInput, match="step 1"):
        pets.view[::2]
    with pytest.raises(framedex.Conflict):
        pets.undo()
    with pytest.raises(InvalidInput):
        pets.tag({"a": 1}, "x")
    with pytest.raises(InvalidInput, match="Exactly one"):
        pets.add_media()


@pytest.mark.slow
def test_import__is_lazy() -> None:
    """The package imports no HTTP library before the client is used."""
    show = "print(int('httpx2' in sys.modules))"
    text = f"import framedex, sys; {show}; framedex.Client; {show}"
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert json.loads(f"[{','.join(out.split())}]") == [0, 1]
