"""Labels that are probably wrong, by pairs of present and suggested labels."""

from collections import Counter
from typing import NamedTuple

import pyarrow.compute as pc

from framedex import vql
from framedex.api.dataset import Dataset

_MISLABELS = "mislabels"


class LabelPair(NamedTuple):
    """Labels that are probably wrong, with the one that is suggested instead.

    Attributes:
        labels: the present labels of the media.
        suggested_label: the label that their nearest media have.
        n_media: the number of the media.
        confidence: the highest confidence among them.
    """

    labels: tuple[str, ...]
    suggested_label: str
    n_media: int
    confidence: float


def label_pairs(dataset: Dataset, confidence: float, *, without_tag: str | None = None) -> list[LabelPair]:
    """Return the pairs of present and suggested labels among probably wrong labels, the largest first.

    Args:
        dataset: the dataset.
        confidence: the lowest confidence of an issue, 0 to 1.
        without_tag: the name of a tag whose media are left out; it need not exist.
    """
    counts: Counter[tuple[tuple[str, ...], str]] = Counter()
    highest: dict[tuple[tuple[str, ...], str], float] = {}
    for _, labels, suggested, value in _mislabels(dataset, confidence, without_tag):
        counts[labels, suggested] += 1
        highest[labels, suggested] = max(value, highest.get((labels, suggested), 0.0))
    pairs = [LabelPair(*pair, count, highest[pair]) for pair, count in counts.items()]
    return sorted(pairs, key=lambda pair: (-pair.n_media, pair.labels, pair.suggested_label))


def mislabelled(
    dataset: Dataset, labels: list[str], suggested_label: str, confidence: float, *, without_tag: str | None = None
) -> list[str]:
    """Return the ids of the media of a pair, the worst first; the arguments are those of :func:`label_pairs`."""
    wanted = (tuple(labels), suggested_label)
    return [media_id for media_id, *pair, _ in _mislabels(dataset, confidence, without_tag) if tuple(pair) == wanted]


def _mislabels(
    dataset: Dataset, confidence: float, without_tag: str | None
) -> list[tuple[str, tuple[str, ...], str, float]]:
    """Return id, labels, suggested label and confidence of the mislabels, the worst first."""
    view = dataset.view
    if without_tag is not None and any(tag.name == without_tag for tag in dataset.tags()):
        view = view.where(~vql.tags(without_tag))
    table = view.issues(_MISLABELS).to_arrow()
    table = table.filter(
        pc.and_(pc.greater_equal(table["confidence"], confidence), table["suggested_label"].is_valid())
    )
    ids = table["media_id"].to_pylist()
    if not ids:
        return []
    rows = dataset.select(ids).to_arrow(["media_id", "labels"])
    labels = dict(zip(rows["media_id"].to_pylist(), rows["labels"].to_pylist(), strict=True))
    return [
        (media_id, tuple(labels[media_id] or ()), suggested, value)
        for media_id, suggested, value in zip(
            ids, table["suggested_label"].to_pylist(), table["confidence"].to_pylist(), strict=True
        )
    ]
