"""Secrets: planted ones go through the server and the command line, and are then searched for everywhere."""

import base64
import http.client
import json
import stat
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from tests.gallery import make_gallery
from tests.pauses import wait_until
from tests.prepared import prepared
from tests.programs import completed
from tests.service.client import token_of
from tests.service.test_server import ENVIRONMENT, Served, served

FIRST, SECOND, WRONG, TYPED, SHORT = (f"planted-password-{number}" for number in range(5))
MASTER, CLIENT = "planted-master-key-of-thirty-two-characters", "planted-client-secret"
HOOK = "planted-hook"
RECEIVER = {"FRAMEDEX_ON_ALERT_URL": f"http://127.0.0.1:9/{HOOK}?{HOOK}={HOOK}", "FRAMEDEX_ON_ALERT_PRIVATE": "true"}
"""A receiver of alerts that does not answer. Its URL is a secret, as those of chats are."""
HOLDERS = {"service.db", "service.db-wal"}
"""The files that have hashes of passwords."""
PROVIDER = {
    "OIDC_ISSUER": "http://127.0.0.1:9/realm",
    "OIDC_CLIENT_ID": "framedex",
    "OIDC_CLIENT_SECRET": CLIENT,
    "OIDC_REDIRECT_URI": "http://127.0.0.1:8765/api/v1/oidc/callback",
}


@dataclass
class Visitor:
    """A client of a server that keeps all that it is answered.

    Attributes:
        server: the server.
        cookie: of the session; empty for none.
        texts: the heads and the bodies of all answers, without the cookies that they set.
    """

    server: Served
    cookie: str = ""
    texts: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request and return the JSON of its answer, whatever its status."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Origin": self.server.url, "Content-Type": "application/json", **headers}
        if self.cookie:
            sent["Cookie"] = self.cookie
        request = urllib.request.Request(f"{self.server.url}/api/v1{path}", data=data, headers=sent, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode(errors="replace")
            if cookie := answer.headers.get("Set-Cookie", ""):
                self.cookie = cookie.partition(";")[0]
            heads = [f"{name}: {value}" for name, value in answer.headers.items() if name.lower() != "set-cookie"]
        self.texts += [*heads, text]
        return json.loads(text) if text.startswith(("{", "[")) else text


def visit(visitor: Visitor, dataset_id: str) -> list[str]:
    """Use the secrets in all ways that there are, and return those that the service made."""
    ask, tokens = visitor.ask, list[str]()
    ask("POST", "/login", {"username": "admin", "password": WRONG})
    ask("POST", "/login", {"username": TYPED, "password": FIRST})
    ask("POST", "/login", {"username": ["admin"], "password": FIRST})
    ask("POST", "/login", {"username": "admin", "password": FIRST})
    tokens.append(visitor.cookie.partition("=")[2])
    ask("POST", "/password", {"current_password": WRONG, "password": SECOND})
    ask("POST", "/password", {"current_password": FIRST, "password": [SHORT]})
    ask("POST", "/password", {"current_password": FIRST, "password": SECOND})
    tokens.append(visitor.cookie.partition("=")[2])
    user = {"username": "eve", "password": SHORT, "firstName": "E", "lastName": "E"}
    created = ask("POST", "/keycloak/admin/users", user)
    ask("POST", "/keycloak/admin/users", {**user, "enabled": "perhaps"})
    ask("POST", f"/keycloak/admin/users/{created['id']}/reset-password", {"password": TYPED})
    for path in ("", f"/{created['id']}", f"/{created['id']}/sessions"):
        ask("GET", f"/keycloak/admin/users{path}")
    keys = [ask("GET", "/api_credentials"), ask("POST", "/api_credentials/rotate")]
    tokens += [each["api_secret"] for each in keys]
    for text in visitor.texts[:]:  # the two answers that show the secret
        if any(each["api_secret"] in text for each in keys):
            visitor.texts.remove(text)
    token = token_of(keys[1]["api_key"], keys[1]["api_secret"])
    cookie, visitor.cookie = visitor.cookie, ""
    for credentials in (token, f"{token}x", WRONG):
        ask("GET", f"/dataset/{dataset_id}", Authorization=f"Bearer {credentials}")
    ask("GET", f"/datasets?password={WRONG}&sig={SHORT}", Authorization=f"Basic {WRONG}")
    tokens.append(token)
    visitor.cookie = cookie
    for path in ("/me", "/admin/settings", "/metrics", "/oidc", "/openapi.json", "/ready", "/oidc/login?next=/"):
        ask("GET", path)
    ask("POST", "/admin/settings", {"key": "OIDC_CLIENT_SECRET", "value": CLIENT})
    ask("GET", "/admin/settings?key=oidc-client-secret")
    ask("GET", f"/dataset/{dataset_id}/export_context_async?file_name=x&export_format=json")
    return tokens


def run(folder: Path, *words: str, typed: str = "", **environment: str) -> str:
    """Run a command and return all that it printed."""
    command = ["-m", "framedex", *words, "--workspace", folder]
    done = completed(command, typed=typed, env={**ENVIRONMENT, **environment})
    return done.stdout + done.stderr


def holding(folder: Path, secret: bytes) -> set[str]:
    """Return the names of the files in a folder that have some bytes."""
    return {path.name for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()}


ACCOUNTS = {"DISABLE_AUTH": "false", "FRAMEDEX_LOG_LEVEL": "DEBUG", **PROVIDER, **RECEIVER}


def work(server: Served, name: str, made: list[str], passwords: list[str]) -> None:
    """Log in, change the password and rotate the key until the server is killed; note the secrets that it makes."""
    visitor = Visitor(server)
    with suppress(OSError, http.client.HTTPException, KeyError, TypeError, ValueError):
        while True:
            visitor.ask("POST", "/login", {"username": name, "password": passwords[-1]})
            made.append(visitor.cookie.partition("=")[2])
            following = f"planted-password-{len(passwords) + 10}"
            passwords.append(following)  # it may be stored, or not
            visitor.ask("POST", "/password", {"current_password": passwords[-2], "password": following})
            made.append(visitor.ask("POST", "/api_credentials/rotate")["api_secret"])


def _exceeds(values: list[str], count: int) -> bool:
    return len(values) > count


@pytest.mark.slow
def test_secrets__after_kills(tmp_path: Path) -> None:
    """A server that is killed while it makes sessions, hashes and keys leaves none of the secrets in any file."""
    folder = tmp_path / "ws"
    Workspace(folder).close()
    made = list[str]()
    for number in range(5):
        name, password = f"user-{number}", f"planted-password-1{number}0"
        run(folder, "users", "create", name, "--admin", "--password-stdin", typed=f"{password}\n")
        passwords = [password]
        with served(folder, FRAMEDEX_SECRET_KEY=MASTER, **ACCOUNTS) as server:
            worker = threading.Thread(target=work, args=(server, name, made, passwords))
            worker.start()
            wait_until(partial(_exceeds, passwords, 2))
            worker.join(0.05 * number)  # it goes on, to another moment
            server.kill()
            worker.join()
        secrets = [*filter(None, made), *passwords, MASTER, CLIENT, HOOK]
        assert len(set(secrets)) > 5 + 2 * number
        assert {secret: names for secret in secrets if (names := holding(folder, secret.encode()))} == {}
        assert [secret for secret in secrets if secret in server.errors.read_text()] == []


@pytest.mark.slow
def test_secrets__are_nowhere(tmp_path: Path) -> None:
    """No file but service.key and service.db has a secret or a hash of one; no log, no answer, no output has any."""
    make_gallery(tmp_path / "gallery")
    folder = tmp_path / "ws"
    with Workspace(folder) as workspace:
        dataset_id = prepared(workspace, "pets", tmp_path / "gallery").id
    printed, visitor = [], None
    accounts = {"FRAMEDEX_ADMIN_PASSWORD": FIRST, **ACCOUNTS}
    with served(folder, **accounts) as server:
        visitor = Visitor(server)
        made = visit(visitor, dataset_id)
        while_open = {secret: holding(folder, secret.encode()) for secret in (*made, FIRST, SECOND)}
        server.stop()
        assert server.process.stdout is not None
        printed += [server.line, server.process.stdout.read(), server.errors.read_text()]
    printed += [
        run(folder, "users", "create", "bob", "--password-stdin", typed=f"{SECOND}\n"),
        run(folder, "users", "create", "bob", "--password-stdin", typed=f"{SECOND}\n"),
        run(folder, "users", "reset-password", "bob", "--password-stdin", typed=f"{SHORT}\n"),
        run(folder, "users", "list", "--json", FRAMEDEX_SECRET_KEY=MASTER),
        run(folder, "settings", FRAMEDEX_SECRET_KEY=MASTER, **accounts),
        run(folder, "settings", "--json", FRAMEDEX_SECRET_KEY=MASTER, **accounts),
        run(folder, "check", FRAMEDEX_SECRET_KEY=MASTER),
        run(folder, "backup", str(tmp_path / "backup"), "--with-users", FRAMEDEX_SECRET_KEY=MASTER, **accounts),
    ]
    assert "eve" in printed[-5]
    assert "OIDC_CLIENT_SECRET" in printed[-4]
    assert all(made)
    key = (folder / "service.key").read_bytes()
    secrets = [*made, FIRST, SECOND, WRONG, TYPED, SHORT, MASTER, CLIENT, HOOK]
    backup = tmp_path / "backup"
    assert {secret: names for secret in secrets if (names := holding(backup, secret.encode()))} == {}
    assert (holding(backup, b"$argon2id$"), holding(backup, key)) == ({"service.db"}, set())
    assert {secret: names for secret, names in while_open.items() if names} == {}
    assert {secret: names for secret in secrets if (names := holding(folder, secret.encode()))} == {}
    assert holding(folder, key) == {"service.key"}
    assert {"service.db"} <= holding(folder, b"$argon2id$") <= HOLDERS
    texts = [key.hex(), base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()]
    assert {text: names for text in texts if (names := holding(folder, text.encode()))} == {}
    shown = "\n".join([*printed, *visitor.texts])
    assert [secret for secret in (*secrets, *texts, "$argon2id$") if secret in shown] == []
    for name in ("service.db", "service.key"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
