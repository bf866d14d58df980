"""The state of a log-in on its way through the browser: signed, for one browser, for ten minutes."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from framedex.errors import InvalidInput

LIFE_S = 600
"""The number of seconds within which a log-in has to end."""
_BROWSER = re.compile(r"[A-Za-z0-9_-]{43}")
_STATE = re.compile(
    r"(?P<random>[A-Za-z0-9_-]{22})\.(?P<expires>[0-9]{1,12})\.(?P<path>[A-Za-z0-9_-]*)\.(?P<signature>.{43})"
)
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
_LONGEST_PATH = 2048
_LONGEST_STATE = 4096


@dataclass(frozen=True)
class LoginState:
    """A log-in that has begun.

    Attributes:
        state: what the provider returns with its answer.
        nonce: what the ID token must contain.
        verifier: the secret of PKCE, which never leaves this service before the code is redeemed.
        path: where the browser goes after the log-in.
        expires: the end of its life, in seconds since 1970.
    """

    state: str
    nonce: str
    verifier: str
    path: str
    expires: int


class LoginStates:
    """Makes and checks states of log-ins. Nothing is stored, so beginning a log-in costs no row.

    A state is signed together with the secret of the browser's cookie, from which, with the state, nonce and verifier
    are derived. So another browser cannot use it, and several tabs of one browser can log in at a time.

    Args:
        derive: returns the secret of a label and some parts.
    """

    def __init__(self, derive: Callable[..., str]) -> None:
        self._derive = derive

    def new(self, browser: str, path: str, *, now: int) -> LoginState:
        """Return a new state.

        Args:
            browser: the secret of the browser's cookie.
            path: where the browser goes after the log-in; it was checked.
            now: the present time in seconds since 1970.
        """
        encoded = base64.urlsafe_b64encode(path.encode()).rstrip(b"=").decode()
        payload = f"{secrets.token_urlsafe(16)}.{now + LIFE_S}.{encoded}"
        return self._with_secrets(f"{payload}.{self._signature(payload, browser)}", browser, path, now + LIFE_S)

    def check(self, state: str, browser: str, *, now: int) -> LoginState:
        """Return the log-in of a state that the provider sent back.

        Args:
            state: the state.
            browser: the secret of the browser's cookie; empty without one.
            now: the present time in seconds since 1970.

        Raises:
            InvalidInput: the state is not one of this browser, or its time is over.
        """
        match = _STATE.fullmatch(state) if len(state) <= _LONGEST_STATE else None
        if match is None or not is_browser_secret(browser):
            raise InvalidInput("the log-in was not begun in this browser; begin again")
        payload, signature = state.rpartition(".")[0], match["signature"]
        if not hmac.compare_digest(self._signature(payload, browser).encode(), signature.encode()):
            raise InvalidInput("the log-in was not begun in this browser; begin again")
        if int(match["expires"]) <= now:
            raise InvalidInput(f"the log-in took longer than {LIFE_S // 60} minutes; begin again")
        path = base64.urlsafe_b64decode(match["path"] + "=" * (-len(match["path"]) % 4)).decode()
        return self._with_secrets(state, browser, path, int(match["expires"]))

    def _with_secrets(self, state: str, browser: str, path: str, expires: int) -> LoginState:
        nonce, verifier = (self._derive(label, browser, state) for label in ("oidc-nonce", "oidc-verifier"))
        return LoginState(state, nonce, verifier, path, expires)

    def _signature(self, payload: str, browser: str) -> str:
        return self._derive("oidc-state", browser, payload)


def new_browser_secret() -> str:
    """Return a new secret for the cookie of a browser."""
    return secrets.token_urlsafe(32)


def is_browser_secret(text: str) -> bool:
    """Return whether a cookie has the form of a browser's secret."""
    return _BROWSER.fullmatch(text) is not None


def state_hash(state: str) -> bytes:
    """Return what is stored of a state once it was used."""
    return hashlib.sha256(b"oidc-state:" + state.encode()).digest()


def local_path(text: str) -> str:
    """Return where a browser goes after a log-in: a path within this service, or ``/`` for anything else."""
    return text if len(text) <= _LONGEST_PATH and text.isascii() and _PATH.fullmatch(text) else "/"
