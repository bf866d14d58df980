"""The master key of the service, from which other secrets are computed, so that none of them is stored."""

import base64
import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from framedex.core.atomic import atomic_file
from framedex.core.counts import counted
from framedex.errors import InvalidInput, WorkspaceError
from framedex.storage.service_db.database import KEY_NAME

VARIABLE = "FRAMEDEX_SECRET_KEY"
_BYTES = 32


class MasterKey:
    """The master key of the service.

    Args:
        key: at least 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def derived(self, label: str, *parts: object) -> str:
        """Return the secret of a label and some parts: 32 bytes as URL-safe text without padding."""
        message = ":".join([label, *map(str, parts)]).encode()
        return _text(hmac.digest(self._key, message, "sha256"))

    def deriver(self, label: str, *parts: object) -> Callable[[object], str]:
        """Return a function that returns :meth:`derived` of a label, some parts, and a last one; for many secrets."""
        begun = hmac.new(self._key, ":".join([label, *map(str, parts), ""]).encode(), "sha256")

        def derived(last: object) -> str:
            each = begun.copy()
            each.update(str(last).encode())
            return _text(each.digest())

        return derived


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def load_master_key(folder: Path, *, read_only: bool = False) -> MasterKey:
    """Return the master key of the environment variable ``FRAMEDEX_SECRET_KEY``, or of the file ``service.key``.

    The file is made at the first call, and only its owner may read it.

    Args:
        folder: the folder of the workspace.
        read_only: do not make the file.

    Raises:
        InvalidInput: the variable has fewer than 32 characters.
        WorkspaceError: the file cannot be read or made, is too short, or can be read by others.
    """
    if (text := os.environ.get(VARIABLE)) is not None:
        if len(text) < _BYTES:
            raise InvalidInput(f"{VARIABLE} has {counted(len(text), 'characters')}; a key has at least {_BYTES}")
        return MasterKey(text.encode())
    path = folder / KEY_NAME
    try:
        if not read_only and not path.exists():
            _make(path)
        mode, key = path.stat().st_mode & 0o777, path.read_bytes()
    except OSError as error:
        raise WorkspaceError(f"cannot use the key {path}: {error.strerror}") from error
    if os.name == "posix" and mode & 0o077:
        raise WorkspaceError(f"{path} can be read by other users (mode {mode:o}); run: chmod 600 {path}")
    if len(key) < _BYTES:
        raise WorkspaceError(
            f"{path} has {counted(len(key), 'bytes')}; a key has {_BYTES}. Restore it, or delete it for a new one"
        )
    return MasterKey(key)


def _make(path: Path) -> None:
    """Write a new key; the first of several processes wins."""
    with atomic_file(path, fsync=True, put=_link) as partial:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))


def _link(partial: Path, path: Path) -> None:
    """Move a file to a path, unless the path exists."""
    with suppress(FileExistsError):
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            raise
        except OSError:  # the file system has no links
            if not path.exists():
                partial.replace(path)
