"""Conditions on the rows of media, as SQL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
