"""Definition of an editable value."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class EditableValue:
    """A value of a media item that users set, as a column of the media table and of exports.

    Attributes:
        name: the name of the column.
        type: the Arrow type of the column.
        parse: returns the stored form of a value, None if the value is empty; raises InvalidInput.
        from_source: whether ingestion reads the value, too. If so, all media tables have the column; else a table has
            it from the first edit on.
        decides_label_issues: whether the label issues of all media depend on the value.
    """

    name: str
    type: pa.DataType
    parse: Callable[[Any], Any]
    from_source: bool = False
    decides_label_issues: bool = False

    @property
    def field(self) -> pa.Field:
        """The column."""
        return pa.field(self.name, self.type)

    def array(self, values: Iterable[Any]) -> pa.Array:
        """Return values as a column; empty values become null.

        Raises:
            InvalidInput: a value is invalid.
        """
        return pa.array([self.parse(each) for each in values], self.type)
