"""Conditions on the rows of media, as SQL."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Condition:
    """A condition on the rows of the relation ``media``.

    Attributes:
        text: an SQL expression that is TRUE or FALSE for each row, never NULL.
        params: the values of ``$1``, ``$2``…
        columns: names of the columns that the text reads, stored or of :mod:`framedex.core.path_columns`.
        searches: the search tests of the condition, in the order of *relations*.
        relations: the rows that each search returned, by the name of its relation in the text. The comparison of
            conditions ignores them and uses the searches.
    """

    text: str = "TRUE"
    params: tuple[Any, ...] = ()
    columns: frozenset[str] = frozenset()
    searches: tuple[Any, ...] = ()
    relations: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def numbered_from(self, first: int) -> str:
        """Return the text with the numbers of its parameters raised, so that *first* is that of the first one.

        The text has no literals with ``$``: values are parameters.
        """
        return re.sub(r"\$(\d+)", lambda match: f"${int(match[1]) + first - 1}", self.text)

    def with_equal(self, column: str, value: Any) -> "Condition":
        """Return the condition that also holds a stored column to a value.

        Args:
            column: the name of the column.
            value: what rows must have there; not None.
        """
        text = f"({self.text}) AND {column} IS NOT DISTINCT FROM ${len(self.params) + 1}"
        return replace(self, text=text, params=(*self.params, value), columns=self.columns | {column})
