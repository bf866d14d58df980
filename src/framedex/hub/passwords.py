"""Passwords: their limits and their argon2id hashes."""

import base64
import secrets
import threading
from typing import Any

from framedex.errors import InvalidInput, MissingDependency

SHORTEST, LONGEST = 8, 1024
_AT_ONCE = 2  # each takes 64 MiB


class Passwords:
    """Hashes of passwords, by the low-memory parameters of RFC 9106 (argon2id, 64 MiB, 3 passes, 4 lanes).

    At most two are computed at a time.

    Raises:
        MissingDependency: argon2-cffi is not installed.
    """

    def __init__(self) -> None:
        try:
            import argon2
        except ImportError:
            raise MissingDependency("accounts need argon2-cffi: pip install 'framedex[http]'") from None
        self._argon2 = argon2
        parameters = argon2.profiles.RFC_9106_LOW_MEMORY
        self._hasher, self._of_nobody = argon2.PasswordHasher.from_parameters(parameters), _unmatched_hash(parameters)
        self._slots = threading.BoundedSemaphore(_AT_ONCE)

    def hash(self, password: str) -> str:
        """Return the hash of a password, with its salt and parameters, as text.

        Raises:
            InvalidInput: the password has fewer than 8 or more than 1,024 characters, or is no valid text.
        """
        check_password(password)
        with self._slots:
            return self._hasher.hash(password)

    def matches(self, password_hash: str | None, password: str) -> bool:
        """Return whether a password has a hash; it takes equally long if there is no hash."""
        try:
            encoded = password.encode()
        except UnicodeEncodeError:
            return False
        if len(password) > LONGEST:  # nobody's
            password_hash, encoded = None, b""
        with self._slots:
            try:
                self._hasher.verify(password_hash or self._of_nobody, encoded)
            except (self._argon2.exceptions.VerificationError, self._argon2.exceptions.InvalidHashError):
                return False
        return password_hash is not None

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether a hash has other parameters than those of new ones."""
        return self._hasher.check_needs_rehash(password_hash)


def _unmatched_hash(parameters: Any) -> str:
    """Return a hash with some parameters that no password has, made of random bytes."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(length)).rstrip(b"=").decode()
        for length in (parameters.salt_len, parameters.hash_len)
    )
    costs = f"m={parameters.memory_cost},t={parameters.time_cost},p={parameters.parallelism}"
    return f"$argon2id$v={parameters.version}${costs}${salt}${digest}"


def check_password(password: str) -> None:
    """Check the length of a new password.

    Raises:
        InvalidInput: the password has fewer than 8 or more than 1,024 characters, or is no valid text.
    """
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"a password has {SHORTEST} to {LONGEST:,} characters")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a password is valid Unicode text") from None
