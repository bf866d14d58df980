"""Tags of images from the probabilities of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from framedex.core.counts import counted
from framedex.encoders import Encoder, OnnxClassifier, TextEncoder, choose_encoder
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.vocabulary import VocabularyTag, read_lines, read_vocabulary
from framedex.errors import InvalidInput
from framedex.settings import Settings

THRESHOLD = 0.2
"""Default minimum probability of a tag, if neither the tag nor its model has one."""
_SCALE = 100.0  # the maximum logit scale in the training of CLIP models: Radford et al. 2021, section 2.5

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tags:
    """The available tags, and the conditions for assigning them.

    Attributes:
        names: of the tags.
        thresholds: float64, shape (T,): the minimum probability of each tag.
        top_k: the maximum number of tags of an image.
    """

    names: tuple[str, ...]
    thresholds: npt.NDArray[np.float64]
    top_k: int

    def select(self, probabilities: npt.NDArray[np.floating]) -> Codes:
        """Return the tags of images, the most probable first.

        Args:
            probabilities: shape (N, T).

        Returns:
            int32, shape (N, min(top_k, T)): tag numbers, followed by -1.
        """
        some = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.top_k]
        enough = np.take_along_axis(probabilities >= self.thresholds, some, axis=1)
        # Thresholds may differ, so a tag below its threshold may precede one above its own.
        order = np.argsort(~enough, axis=1, kind="stable")
        return np.where(np.take_along_axis(enough, order, axis=1), np.take_along_axis(some, order, axis=1), -1).astype(
            np.int32
        )


class Tagger(Protocol):
    """A model that returns the probabilities of tags.

    Attributes:
        tags: the tags.
        min_side_px: the shorter side, in pixels, of decoded images.
    """

    tags: Tags

    @property
    def min_side_px(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Return the model's input for one image. Several threads may call it at the same time."""
        ...

    def probabilities(self, batch: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag for N prepared images: shape (N, T)."""
        ...


class ZeroShot:
    """Tags by an encoder of images and texts: the softmax of 100 times the cosine with the sentences of each tag.

    Args:
        encoder: of images and texts.
        vocabulary: the tags.
        threshold: of tags without their own.
        top_k: the maximum number of tags of an image.

    Attributes:
        encoder: the encoder.
    """

    def __init__(self, encoder: Encoder, vocabulary: Sequence[VocabularyTag], *, threshold: float, top_k: int) -> None:
        if not isinstance(encoder, TextEncoder):
            raise InvalidInput(f"the encoder {encoder.name!r} knows images only; tags need one that knows texts")
        self.encoder: Encoder = encoder
        limits = [threshold if tag.threshold is None else tag.threshold for tag in vocabulary]
        self.tags = Tags(tuple(tag.name for tag in vocabulary), np.array(limits), top_k)
        means = np.stack([encoder.encode_texts(list(tag.prompts)).mean(axis=0) for tag in vocabulary])
        self._texts = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    @property
    def min_side_px(self) -> int:
        """The shorter side, in pixels, of decoded images."""
        return self.encoder.min_side_px

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Return the encoder's input for one image."""
        return self.encoder.prepare(pixels)

    def probabilities(self, batch: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag for N prepared images: shape (N, T)."""
        return self.of_vectors(self.encoder.encode_images(batch))

    def of_vectors(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag for image vectors of this encoder: shape (N, D), unit length."""
        logits = _SCALE * (vectors @ self._texts.T)
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))


class Classified:
    """Tags by a classifier: the names of its classes.

    Args:
        classifier: the model.
        labels: the name of each class, in the order of its output.
        threshold: the minimum probability.
        top_k: the maximum number of tags of an image.

    Raises:
        InvalidInput: the number of names differs from the number of classes.
    """

    def __init__(self, classifier: OnnxClassifier, labels: Sequence[str], *, threshold: float, top_k: int) -> None:
        if len(labels) != classifier.classes:
            raise InvalidInput(
                f"the classifier {classifier.name!r} has {counted(classifier.classes, 'classes')}; "
                f"{counted(len(labels), 'labels', 'are')} given"
            )
        self._classifier = classifier
        self.tags = Tags(tuple(labels), np.full(len(labels), threshold), top_k)

    @property
    def min_side_px(self) -> int:
        """The shorter side, in pixels, of decoded images."""
        return self._classifier.min_side_px

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Return an image in the model's size."""
        return self._classifier.prepare(pixels)

    def probabilities(self, batch: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag for N prepared images: shape (N, T)."""
        return self._classifier.probabilities(batch.astype(np.uint8, copy=False))


def make_tagger(entry: ModelEntry, settings: Settings) -> Tagger:
    """Return the tagger of a registered model of type IMAGE_TAGGING.

    Raises:
        Error: it cannot be loaded on this machine; see :func:`framedex.encoders.choose_encoder`.
    """
    threshold = THRESHOLD if entry.threshold is None else entry.threshold
    if entry.classifier is not None:
        assert entry.labels is not None, "a classifier has labels"
        labels = read_lines(Path(entry.labels))
        model = OnnxClassifier(entry.classifier, entry.values)
        return Classified(model, labels, threshold=threshold, top_k=entry.top_k)
    assert entry.encoder is not None, "what is no classifier has an encoder"
    assert entry.vocabulary is not None, "and a vocabulary"
    encoder, _ = choose_encoder(entry.encoder, settings)
    return ZeroShot(encoder, read_vocabulary(Path(entry.vocabulary)), threshold=threshold, top_k=entry.top_k)
