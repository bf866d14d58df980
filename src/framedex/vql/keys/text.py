"""The key ``text``."""

from typing import Literal

from framedex.vql.expression import Expression
from framedex.vql.key_test import SearchTest
from framedex.vql.values import Share, Text


class TextTest(SearchTest):
    """A search for text: in captions (``fts``), or by meaning (``semantic``).

    ``threshold`` is the smallest similarity of the results, 0 to 1.

    Examples:
        >>> vql.parse(vql.text("fts", "cat"))[0]
        TextTest(op='fts', value='cat', threshold=None)
    """

    key = "text"
    op: Literal["fts", "semantic"]
    value: Text
    threshold: Share | None = None


def text(op: str, value: str, threshold: float | None = None) -> Expression:
    """Return a search for text: ``fts`` in captions, ``semantic`` by meaning, with a smallest similarity, 0 to 1.

    Examples:
        >>> ds.where(vql.text("fts", "sofa")).count()
        3
    """
    return Expression.of(TextTest, op, value, threshold=threshold)
