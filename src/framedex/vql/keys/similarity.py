"""The key ``similarity``."""

from typing import Literal

from framedex.vql.expression import Expression
from framedex.vql.key_test import SearchTest
from framedex.vql.values import Distance, Text


class SimilarityTest(SearchTest):
    """A search for images similar to a media item, or to an image that was uploaded for it.

    ``value`` is a media id (``media``) or the anchor id of the upload (``upload``). ``threshold`` is the largest cosine
    distance of the results, 0 (the same direction) to 2 (the opposite one); it is not a level of clusters.

    Examples:
        >>> vql.parse(vql.similarity("media", ds.media_id("cat-1.jpg"), 0.3))[0]
        SimilarityTest(op='media', value='...', threshold=0.3)
    """

    key = "similarity"
    op: Literal["upload", "media"]
    value: Text
    threshold: Distance | None = None


def similarity(op: str, value: str, threshold: float | None = None) -> Expression:
    """Return a search for images like a ``media`` item or an ``upload``, with a largest cosine distance, 0 to 2.

    Examples:
        >>> cat = ds.media_id("cat-1.jpg")
        >>> ds.where(vql.similarity("media", cat, 0.02)).count()
        2
    """
    return Expression.of(SimilarityTest, op, value, threshold=threshold)
