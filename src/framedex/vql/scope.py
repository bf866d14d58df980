"""The scope of a filter: the columns, tags, custom fields and additions of a dataset that its names stand for."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from framedex.records import FieldType
from framedex.storage.condition import Condition


@dataclass(frozen=True)
class CustomField:
    """A custom field of a dataset.

    Attributes:
        column: of the media table, which may lack it as long as no media item has a value.
        type: of its values.
        is_multi: whether a media item has a list of values.
        options: the allowed values of type enum.

    Examples:
        >>> from framedex.records import FieldType
        >>> scope = vql.Scope(["field_0"], fields={"rating": vql.CustomField("field_0", FieldType.FLOAT)})
        >>> vql.compile_filter(vql.parse(vql.field("rating", "ge", 4)), scope).params
        (4.0,)
    """

    column: str
    type: FieldType
    is_multi: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Related:
    """Media that a filter selects by a condition on other rows: on the objects in them, or on the media of objects.

    Attributes:
        of_objects: whether the condition is on objects; else it is on media.
        condition: on these rows.
        statement: SQL over the relation ``chosen`` of the rows that meet the condition; it returns ``media_id``.
        columns: those that the statement reads.

    Examples:
        >>> from framedex.storage.condition import Condition
        >>> print(vql.Related(True, Condition("TRUE"), "SELECT parent_id AS media_id FROM chosen", ("parent_id",)))
        objects WHERE TRUE: SELECT parent_id AS media_id FROM chosen
    """

    of_objects: bool
    condition: Condition
    statement: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        """Return the condition and the statement as text."""
        values = f" with {self.condition.params}" if self.condition.params else ""
        return f"{'objects' if self.of_objects else 'media'} WHERE {self.condition.text}{values}: {self.statement}"


def _nothing(_related: Related) -> pa.Table:
    return pa.table({"media_id": pa.array([], pa.string())})


@dataclass(frozen=True)
class Scope:
    """The names that a filter may use, at one generation of a dataset.

    Attributes:
        columns: stored columns of the media table; a test on another column is false for all rows.
        tags: numbers of tags by id and by name; a test for another tag is false for all rows.
        fields: custom fields by name; other fields are an error.
        added: times of addition by the number of the batch; those of other batches are unknown.
        media: of a filter of objects, the scope of the media that they are in; else None.
        find: returns the ids of related media, as the column ``media_id``.
        dataset_id: the dataset, or the id that stands for its objects; clusters of other datasets have no members.

    Examples:
        >>> scope = vql.Scope(columns=["labels"])
        >>> vql.compile_filter(vql.parse(vql.labels("cat")), scope).params
        (['cat'],)
    """

    columns: Collection[str] = ()
    tags: Mapping[str, int] = field(default_factory=dict)
    fields: Mapping[str, CustomField] = field(default_factory=dict)
    added: Mapping[int, datetime] = field(default_factory=dict)
    media: "Scope | None" = None
    find: Callable[[Related], pa.Table] = _nothing
    dataset_id: str = ""
