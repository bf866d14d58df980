"""The public keys of a provider, read again when they change."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, RSAKey

from framedex.errors import Unavailable

logger = logging.getLogger("framedex.service")

PublicKey = RSAKey | ECKey
_MOST_KEYS = 100
_SHORTEST_RSA = 2048
_KEPT_S = 3600.0  # then the keys are read again, so that those taken back are trusted no longer
_STALE_S = 24 * 3600.0  # for so long they are used if the provider cannot be reached
_PAUSE_S = 30.0  # between two readings, whatever keys tokens name


class SigningKeys:
    """The public keys of a provider. Safe to share between threads.

    The keys are read at the first use, after an hour, and when a token names an unknown one, but at most every 30 s:
    tokens with invented keys cause no flood of requests.

    Args:
        fetch: returns the provider's key set.
        clock: returns a time in seconds.
    """

    def __init__(self, fetch: Callable[[], Mapping[str, Any]], clock: Callable[[], float]) -> None:
        self._fetch, self._clock = fetch, clock
        self._keys: tuple[PublicKey, ...] = ()
        self._read_at = self._tried_at = float("-inf")
        self._lock = threading.Lock()

    def find(self, key_id: str | None, algorithm: str, *, wait: bool) -> list[PublicKey]:
        """Return the keys that may have made a signature, at most two.

        Args:
            key_id: the id of the key in the token; None if it names none.
            algorithm: the algorithm in the token.
            wait: whether to wait while another thread reads the keys; else present ones count, if there are any.

        Raises:
            Unavailable: no keys are known, and they cannot be read.
        """
        now = self._clock()
        if now - self._read_at < _KEPT_S and (found := self._matching(key_id, algorithm)):
            return found
        if self._lock.acquire(blocking=wait or not self._keys):
            try:
                self._read(now, key_id, algorithm)
            finally:
                self._lock.release()
        return self._matching(key_id, algorithm)

    def _matching(self, key_id: str | None, algorithm: str) -> list[PublicKey]:
        kind = ECKey if algorithm.startswith("ES") else RSAKey
        fitting = [key for key in self._keys if isinstance(key, kind) and key.get("alg") in (None, algorithm)]
        if key_id is None:
            return fitting if len(fitting) == 1 else []  # a token must name its key if there are several
        return [key for key in fitting if key.get("kid") == key_id][:2]

    def _read(self, asked_at: float, key_id: str | None, algorithm: str) -> None:
        """Read the keys, unless another thread has just done so."""
        is_missing = not self._matching(key_id, algorithm)
        is_old = asked_at - self._read_at >= _KEPT_S
        if asked_at - self._tried_at < _PAUSE_S or not (is_missing or is_old):
            if not self._keys:
                raise Unavailable("the keys of the identity provider cannot be read; try again in a minute")
            return
        self._tried_at = asked_at
        try:
            self._keys, self._read_at = public_keys(self._fetch()), asked_at
        except Unavailable as error:
            if not self._keys or asked_at - self._read_at >= _STALE_S:
                self._keys = ()
                raise
            logger.warning("the keys of the identity provider stay as they were: %s", error)


def public_keys(document: Mapping[str, Any]) -> tuple[PublicKey, ...]:
    """Return the keys of a key set that can check signatures; others are left out.

    Raises:
        Unavailable: there is none.
    """
    found: list[PublicKey] = []
    listed = document.get("keys")
    for each in listed[:_MOST_KEYS] if isinstance(listed, list) else ():
        if not isinstance(each, dict) or each.get("use") not in (None, "sig"):
            continue
        try:
            key = JWKRegistry.import_key({name: each[name] for name in _PUBLIC if name in each})
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key, ECKey) or (isinstance(key, RSAKey) and key.raw_value.key_size >= _SHORTEST_RSA):
            found.append(key)
    if not found:
        raise Unavailable("the identity provider has no keys for signatures that can be checked")
    return tuple(found)


_PUBLIC = ("kty", "kid", "alg", "n", "e", "crv", "x", "y")
