"""An OpenID Connect provider on a port of this machine, which checks what it gets and misbehaves on request."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from framedex.settings.oidc import OidcSettings

CLIENT, SECRET = "framedex", "s3cret/with+signs"
REDIRECT = "http://127.0.0.1:8765/api/v1/oidc/callback"
DISCOVERY, TOKEN, KEYS, USERINFO = "/.well-known/openid-configuration", "/token", "/keys", "/userinfo"
EVENT = "http://schemas.openid.net/event/backchannel-logout"
Answer = tuple[int, dict[str, str], bytes]


@cache
def rsa_key(name: str) -> RSAKey:
    """Return a key, which is made once."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"})


@cache
def ec_key(name: str) -> ECKey:
    """Return a key on a curve, which is made once."""
    return ECKey.generate_key("P-256", {"kid": name})


class HostileProvider:
    """A provider, and the browser that logs in at it.

    Attributes:
        issuer: its URL.
        document: changes of the discovery document; None removes a field.
        keys: those that it publishes.
        key: the one that signs.
        claims: changes of the claims of ID tokens; None removes one.
        header: changes of the header of ID tokens.
        sign: makes a token of a header and claims, in place of the honest way.
        profile: the claims of the endpoint for users.
        answers: what paths answer in place of the honest answer; it takes the handler.
        requests: the number of requests by path.
    """

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.document: dict[str, Any] = {}
        self.key: RSAKey | ECKey = rsa_key("first")
        self.keys: list[Any] = [self.key]
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any], dict[str, Any]], str] | None = None
        self.profile: dict[str, Any] = {}
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], Answer | None]] = {}
        self.requests = Counter[str]()
        self._codes: dict[str, dict[str, str]] = {}

    def settings(self, **changes: Any) -> OidcSettings:
        """Return settings with which the service logs in here."""
        values = {
            "oidc_issuer": self.issuer,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
            "oidc_redirect_uri": REDIRECT,
            "oidc_timeout_s": 5.0,
        }
        return OidcSettings(**{**values, **changes})

    def authorize(self, url: str, **changes: str) -> dict[str, str]:
        """Log in at a URL as a browser does, and return the parameters of the answer; changes replace them."""
        assert url.startswith(f"{self.issuer}/authorize?")
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT)
        assert (query["redirect_uri"], query["code_challenge_method"]) == (REDIRECT, "S256")
        assert len(query["code_challenge"]) == 43
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return {"code": code, "state": query["state"], **changes}

    def token(self, claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
        """Return a signed token."""
        algorithm = "ES256" if isinstance(self.key, ECKey) else "RS256"
        full = {"alg": algorithm, "kid": self.key.kid, "typ": "JWT", **(header or {})}
        full = {name: value for name, value in full.items() if value is not None}
        if self.sign is not None:
            return self.sign(full, claims)
        return jwt.encode(full, claims, self.key, algorithms=[full["alg"]])

    def claims_of(self, **changes: Any) -> dict[str, Any]:
        """Return the claims that all tokens have; changes replace them, None removes one."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "subject-1", "iat": now, "exp": now + 300, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def logout_token(self, **changes: Any) -> str:
        """Return a logout token; changes replace claims, None removes one."""
        own = {"jti": secrets.token_hex(8), "events": {EVENT: {}}}
        return self.token(self.claims_of(**{**own, **changes}), {"typ": "logout+jwt"})

    def answer(self, handler: BaseHTTPRequestHandler) -> Answer | None:
        """Answer a request; None ends the connection without an answer."""
        path = urlsplit(handler.path).path
        self.requests[path] += 1
        length = int(handler.headers.get("Content-Length", 0))
        form = {name: values[0] for name, values in parse_qs(handler.rfile.read(length).decode()).items()}
        if path in self.answers:
            return self.answers[path](handler)
        if path == DISCOVERY:
            return _json(200, self._discovery())
        if path == KEYS:
            return _json(
                200, {"keys": [each.as_dict(False) if isinstance(each, RSAKey | ECKey) else each for each in self.keys]}
            )
        if path == USERINFO:
            assert handler.headers["Authorization"] == "Bearer opaque"
            return _json(200, self.profile)
        if path == TOKEN:
            return self._redeem(form, handler.headers.get("Authorization", ""))
        return _json(404, {})

    def _discovery(self) -> dict[str, Any]:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": TOKEN, "jwks_uri": KEYS}
        document = {
            "issuer": self.issuer,
            **{name: self.issuer + path for name, path in paths.items()},
            "end_session_endpoint": f"{self.issuer}/logout?realm=1",
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
            **self.document,
        }
        return {name: value for name, value in document.items() if value is not None}

    def _redeem(self, form: dict[str, str], authorization: str) -> Answer:
        kind, _, pair = authorization.partition(" ")
        client, _, secret = base64.b64decode(pair).decode().partition(":")
        if (kind, unquote(client), unquote(secret)) != ("Basic", CLIENT, SECRET):
            return _json(401, {"error": "invalid_client"})
        query = self._codes.pop(form["code"], None)
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        encoded = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if query is None or form["redirect_uri"] != REDIRECT or query["code_challenge"] != encoded:
            return _json(400, {"error": "invalid_grant"})
        claims = self.claims_of(**{"nonce": query["nonce"], **self.claims})
        return _json(
            200, {"access_token": "opaque", "token_type": "Bearer", "id_token": self.token(claims, self.header)}
        )


@contextmanager
def hostile_provider() -> Iterator[HostileProvider]:
    """Run a provider in threads."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        provider: ClassVar[HostileProvider]

        def do_GET(self) -> None:
            answer = self.provider.answer(self)
            self.close_connection = True
            if answer is None:
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:  # the client has enough
                return

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.provider = HostileProvider(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Handler.provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token without a signature."""
    return f"{_part({**header, 'alg': 'none'})}.{_part(claims)}."


def signed_with_public_key(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token with HS256, whose secret is the provider's public key."""
    signed = f"{_part({**header, 'alg': 'HS256'})}.{_part(claims)}"
    signature = hmac.digest(rsa_key("first").as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _json(status: int, body: dict[str, Any]) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()
