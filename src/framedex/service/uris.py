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
        deriver: returns, for a label and some parts, the function that returns their secret with a last part.
        now: returns the present time in seconds since 1970.
    """

    def __init__(self, deriver: Callable[..., Callable[[str], str]], now: Callable[[], float] = time.time) -> None:
        self._deriver, self._now = deriver, now

    def sign(self, path: str, user_id: str, **query: str | int) -> str:
        """Return a path with its signature, for up to 24 hours.

        Args:
            path: below the root of the service, not quoted.
            user_id: the user on whose behalf it is fetched.
            query: further parameters, which are not signed.
        """
        return self.signer(user_id)(path, **query)

    def signer(self, user_id: str) -> Callable[..., str]:
        """Return a function that signs paths as :meth:`sign` does for a user, for the many files of one answer."""
        expires = -(-int(self._now() + _LIFE_S - _HOUR) // _HOUR) * _HOUR
        signed_for, signature = f"exp={expires}&user={quote_plus(user_id)}&sig=", self._signature(user_id, expires)

        def sign(path: str, **query: str | int) -> str:
            further = f"{urlencode(query)}&" if query else ""
            return f"{quote(path)}?{further}{signed_for}{signature(path)}"

        return sign

    def user_of(self, path: str, *, user_id: str, expires: str, signature: str) -> str:
        """Return the user of a signed path.

        Raises:
            NotAuthenticated: the signature is wrong, or its time is over.
        """
        is_number = expires.isascii() and expires.isdigit() and len(expires) <= 12
        wanted = self._signature(user_id, int(expires))(path) if is_number else ""
        fits = hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "backslashreplace"))
        if not is_number or not fits or int(expires) <= self._now():
            raise NotAuthenticated("The link is not valid any more; ask for a new one")
        return user_id

    def _signature(self, user_id: str, expires: int) -> Callable[[str], str]:
        """Return the function that returns the signature of a path."""
        return self._deriver(_LABEL, expires, user_id)
