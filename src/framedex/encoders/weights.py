"""Weights of encoders: their description, and the check that a dataset still fits them."""

import hashlib
import os
from pathlib import Path
from typing import Protocol, runtime_checkable

from framedex.core import forks
from framedex.core.regular_files import open_binary
from framedex.encoders.base import Encoder
from framedex.errors import InvalidInput, NotFound
from framedex.records import EmbeddingConfig, Weights

Stamp = tuple[str, int, int] | None
"""Path, size in bytes and modification time in nanoseconds of a file; None if it does not exist."""

_HASHES: dict[tuple[str, int, int], str] = {}
_HASHING = forks.Lock()


@runtime_checkable
class Weighted(Protocol):
    """An :class:`~framedex.encoders.Encoder` that was loaded from files, and that its name can load again.

    Attributes:
        weights: the files and settings that its vectors depend on; stored in the dataset's embedding config. None if
            the encoder has no weights.
        files: the files that were read, and absent files that would have changed the encoder. While none of them
            changes, the encoder is not loaded again.

    Examples:
        >>> isinstance(framedex.encoders.OnnxEncoder("classifier.onnx"), framedex.encoders.Weighted)
        True
    """

    weights: Weights | None
    files: tuple[Path, ...]


def weights_of(encoder: Encoder) -> Weights | None:
    """Return the description of an encoder's weights; None if it has none.

    Examples:
        >>> framedex.encoders.weights_of(framedex.encoders.OnnxEncoder("classifier.onnx")).path
        '.../classifier.onnx'
    """
    return encoder.weights if isinstance(encoder, Weighted) else None


def stamp(path: Path) -> Stamp:
    """Return a stamp that changes when a file changes, without reading it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return os.fspath(path), status.st_size, status.st_mtime_ns


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content as 64 hexadecimal digits, cached while the file does not change.

    Raises:
        NotFound: the file does not exist, or cannot be read.
    """
    key = stamp(path)
    with _HASHING:
        if key is not None and key in _HASHES:
            return _HASHES[key]
        try:
            with open_binary(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise NotFound(f"the model file {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
        if key is not None and key == stamp(path):
            _HASHES[key] = digest
        return digest


def check_weights(encoder: Encoder, config: EmbeddingConfig) -> None:
    """Check that an encoder still returns the vectors that a dataset was indexed with.

    Raises:
        InvalidInput: its weights, or other settings that its vectors depend on, have changed.

    Examples:
        >>> encoder = framedex.encoders.OnnxEncoder("classifier.onnx")
        >>> config = ws.create_dataset("more", "new", encoder).embedding_config
        >>> framedex.encoders.check_weights(framedex.encoders.OnnxEncoder("classifier.onnx", colours="bgr"), config)
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidInput: the settings of 'onnx:.../classifier.onnx?colours=bgr' are others than ...
    """
    then, now = config.weights, weights_of(encoder)
    if then is None or then == now:
        return
    remedy = "put back what there was, or create a new dataset: their vectors cannot be compared"
    if now is None:
        raise InvalidInput(f"this dataset was indexed with the weights {then.path!r}, and {encoder.name!r} has none")
    if then.sha256 != now.sha256:
        raise InvalidInput(
            f"the model file {now.path!r} is another one than this dataset was indexed with: its SHA-256 was "
            f"{then.sha256} and is {now.sha256}; {remedy}"
        )
    changes = [
        f"{name} was {then.settings.get(name, 'not set')} and is {now.settings.get(name, 'not set')}"
        for name in sorted(then.settings.keys() | now.settings.keys())
        if then.settings.get(name) != now.settings.get(name)
    ]
    if changes:
        raise InvalidInput(
            f"the settings of {encoder.name!r} are others than this dataset was indexed with: "
            f"{'; '.join(changes)}; {remedy}"
        )
