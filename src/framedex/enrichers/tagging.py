"""From what a model says of pictures to tags."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from framedex.encoders import Encoder, OnnxClassifier, TextEncoder, choose_encoder
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.vocabulary import Tag, read_lines, read_vocabulary
from framedex.errors import InvalidInput
from framedex.settings import Settings

THRESHOLD = 0.2
"""The least probability of a tag where neither it nor its model says another one."""
_SCALE = 100.0  # the logit scale that CLIP models are trained up to: Radford et al. 2021, section 2.5

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tags:
    """The tags that there are, and when a picture gets one.

    Attributes:
        names: of the tags.
        thresholds: float64, shape (T,): the least probability of each.
        top_k: how many a picture has at most.
    """

    names: tuple[str, ...]
    thresholds: npt.NDArray[np.float64]
    top_k: int

    def chosen(self, probabilities: npt.NDArray[np.floating]) -> Codes:
        """Return the tags of pictures, the most probable first.

        Args:
            probabilities: shape (N, T).

        Returns:
            int32, shape (N, min(top_k, T)): numbers of tags; -1 behind the last one.
        """
        some = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.top_k]
        enough = np.take_along_axis(probabilities >= self.thresholds, some, axis=1)
        # Thresholds may differ, so that one that is not enough may come before one that is.
        order = np.argsort(~enough, axis=1, kind="stable")
        return np.where(np.take_along_axis(enough, order, axis=1), np.take_along_axis(some, order, axis=1), -1).astype(
            np.int32
        )


class Tagger(Protocol):
    """A model that says how probable tags are.

    Attributes:
        tags: the tags.
        min_side_px: pixels of the shorter side that pictures are read with.
    """

    tags: Tags

    @property
    def min_side_px(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Return what the model needs of one picture; called on several threads at once."""
        ...

    def probabilities(self, batch: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag: shape (N, T); N prepared pictures go in."""
        ...


class ZeroShot:
    """Tags by an encoder of pictures and texts: the softmax of 100 times the cosine with the sentences of each tag.

    Args:
        encoder: of pictures and texts.
        vocabulary: the tags.
        threshold: of tags that have none of their own.
        top_k: how many tags a picture has at most.

    Attributes:
        encoder: the encoder.
    """

    def __init__(self, encoder: Encoder, vocabulary: Sequence[Tag], *, threshold: float, top_k: int) -> None:
        if not isinstance(encoder, TextEncoder):
            raise InvalidInput(f"the encoder {encoder.name!r} knows pictures only; tags need one that knows texts")
        self.encoder: Encoder = encoder
        limits = [threshold if tag.threshold is None else tag.threshold for tag in vocabulary]
        self.tags = Tags(tuple(tag.name for tag in vocabulary), np.array(limits), top_k)
        means = np.stack([encoder.encode_texts(list(tag.prompts)).mean(axis=0) for tag in vocabulary])
        self._texts = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    @property
    def min_side_px(self) -> int:
        """Pixels of the shorter side that pictures are read with."""
        return self.encoder.min_side_px

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Return what the encoder needs of one picture."""
        return self.encoder.prepare(pixels)

    def probabilities(self, batch: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag: shape (N, T); N prepared pictures go in."""
        return self.of_vectors(self.encoder.encode_images(batch))

    def of_vectors(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.floating]:
        """Return the same of pictures whose vectors by this encoder are known: shape (N, D), unit length."""
        logits = _SCALE * (vectors @ self._texts.T)
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))


class Classified:
    """Tags by a classifier: the names of its classes.

    Args:
        classifier: the model.
        labels: the name of each class, in the order of its output.
        threshold: the least probability.
        top_k: how many tags a picture has at most.

    Raises:
        InvalidInput: there are more or fewer names than classes.
    """

    def __init__(self, classifier: OnnxClassifier, labels: Sequence[str], *, threshold: float, top_k: int) -> None:
        if len(labels) != classifier.classes:
            raise InvalidInput(
                f"the classifier {classifier.name!r} has {classifier.classes} classes; {len(labels)} labels are given"
            )
        self._classifier = classifier
        self.tags = Tags(tuple(labels), np.full(len(labels), threshold), top_k)

    @property
    def min_side_px(self) -> int:
        """Pixels of the shorter side that pictures are read with."""
        return self._classifier.min_side_px

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Return a picture in the model's size."""
        return self._classifier.prepare(pixels)

    def probabilities(self, batch: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
        """Return the probability of each tag: shape (N, T); N prepared pictures go in."""
        return self._classifier.probabilities(batch.astype(np.uint8, copy=False))


def make_tagger(entry: ModelEntry, settings: Settings) -> Tagger:
    """Return the tagger of a registered model of type IMAGE_TAGGING.

    Raises:
        Error: it cannot be made here; see :func:`framedex.encoders.choose_encoder`.
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
