"""URIs of files in answers: absolute, and signed for a user, so that they work without a header."""

import hmac
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

from framedex.errors import NotAuthenticated

_LABEL = "uri"
_HOUR = 3600
_LIFE_S = 24 * _HOUR


class Uris:
    """Signs URIs of files, and checks them.

    A signature holds for a path, a user and a time; what the user may see is checked when the URI is used. The end of
    its life is rounded up to a full hour, so that a browser's cache meets the same URI again.

    Args:
        derive: returns the secret of a label and some parts.
        now: returns the present time in seconds since 1970.
    """

    def __init__(self, derive: Callable[..., str], now: Callable[[], float] = time.time) -> None:
        self._derive, self._now = derive, now

    def sign(self, path: str, user_id: str, **query: str | int) -> str:
        """Return a path with its signature, for up to 24 hours.

        Args:
            path: below the root of the service, not quoted.
            user_id: the user on whose behalf it is fetched.
            query: further parameters, which are not signed.
        """
        expires = -(-int(self._now() + _LIFE_S - _HOUR) // _HOUR) * _HOUR
        further = f"{urlencode(query)}&" if query else ""
        signature = self._signature(path, user_id, expires)
        return f"{quote(path)}?{further}exp={expires}&user={quote_plus(user_id)}&sig={signature}"

    def user_of(self, path: str, *, user_id: str, expires: str, signature: str) -> str:
        """Return the user of a signed path.

        Raises:
            NotAuthenticated: the signature is wrong, or its time is over.
        """
        is_number = expires.isascii() and expires.isdigit() and len(expires) <= 12
        wanted = self._signature(path, user_id, int(expires)) if is_number else ""
        fits = hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "backslashreplace"))
        if not is_number or not fits or int(expires) <= self._now():
            raise NotAuthenticated("The link is not valid any more; ask for a new one")
        return user_id

    def _signature(self, path: str, user_id: str, expires: int) -> str:
        return self._derive(_LABEL, expires, user_id, path)
