"""Encoders state what their vectors depend on, and datasets check it."""

import hashlib
import os
from pathlib import Path

import pytest

from framedex.encoders import check_weights, weights_of
from framedex.encoders.gist import Gist
from framedex.encoders.weights import sha256_of, stamp
from framedex.errors import InvalidInput, NotFound
from framedex.records import EmbeddingConfig, Weights

CUTS = (0.1, 0.2, 0.3, 0.4, 0.5)


class Learned(Gist):
    """An encoder with weights."""

    def __init__(self, weights: Weights | None) -> None:
        self.weights = weights
        self.files: tuple[Path, ...] = ()


def config(weights: Weights | None) -> EmbeddingConfig:
    """Return the config of a dataset that was indexed with weights."""
    return EmbeddingConfig(encoder="gist", dimension=610, thresholds=CUTS, weights=weights)


ONE = Weights(path="/one", sha256="1" * 64, settings={"size": "224", "crop": "1"})
OTHER = Weights(path="/one", sha256="2" * 64, settings={"size": "224", "crop": "1"})
RESIZED = Weights(path="/one", sha256="1" * 64, settings={"size": "256", "mean": "0"})
MOVED = Weights(path="/two", sha256="1" * 64, settings={"size": "224", "crop": "1"})


def test_hash__is_that_of_the_content(tmp_path: Path) -> None:
    """The hash is SHA-256, and changes with the file."""
    path = tmp_path / "weights"
    for content in (b"", b"one", b"two", bytes(3_000_000)):
        path.write_bytes(content)
        os.utime(path, ns=(0, len(content) + content[:1].count(b"t")))
        assert sha256_of(path) == hashlib.sha256(content).hexdigest()


def test_hash__is_computed_once(tmp_path: Path) -> None:
    """While size and time do not change, the file is not read again."""
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    known = path.stat()
    first = sha256_of(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert sha256_of(path) == first


def test_hash__of_what_is_not_there(tmp_path: Path) -> None:
    """A file that cannot be read is named."""
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(NotFound, match="cannot be read"):
            sha256_of(path)
    assert stamp(tmp_path / "missing") is None


def test_weights__of_encoders_without() -> None:
    """An encoder without stated weights has none."""
    assert weights_of(Gist()) is None
    assert weights_of(Learned(None)) is None
    assert weights_of(Learned(ONE)) == ONE


@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param(ONE, ONE, id="the same"),
        pytest.param(ONE, MOVED, id="moved"),
        pytest.param(None, None, id="none"),
        pytest.param(None, ONE, id="not stated then"),
    ],
)
def test_check__fits(then: Weights | None, now: Weights | None) -> None:
    """Equal content and settings fit, at any path."""
    check_weights(Learned(now), config(then))


@pytest.mark.parametrize(
    ("now", "message"),
    [
        pytest.param(OTHER, f"'/one' is another one .* was {'1' * 64} and is {'2' * 64}", id="content"),
        pytest.param(
            RESIZED, "crop was 1 and is not set; mean was not set and is 0; size was 224 and is 256", id="settings"
        ),
        pytest.param(None, "indexed with the weights '/one', and 'gist' has none", id="none"),
    ],
)
def test_check__does_not_fit(now: Weights | None, message: str) -> None:
    """The differing value is named, with its old and new value."""
    with pytest.raises(InvalidInput, match=message):
        check_weights(Learned(now), config(ONE))


def test_config__round_trip() -> None:
    """Weights are stored as JSON with the rest; a config without them belongs to an encoder without weights."""
    assert EmbeddingConfig.model_validate_json(config(ONE).model_dump_json()) == config(ONE)
    older = config(None).model_dump(mode="json")
    del older["weights"]
    assert EmbeddingConfig.model_validate(older) == config(None)
