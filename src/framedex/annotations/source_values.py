"""Tags and further values of images, by column, as annotation files and tables give them."""

from collections.abc import Mapping, Sequence
from typing import Any


class SourceValues:
    """Tags and further values by the name of an image. Values are kept by column: a list takes 8 bytes a row."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._tags: list[tuple[str, ...]] = []
        self._columns: dict[str, list[Any]] = {}
        self._known: dict[Any, Any] = {}  # equal texts and tags are in memory once

    def __contains__(self, name: str) -> bool:
        """Return whether an image has tags or values."""
        return name in self._rows

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._rows)

    @property
    def columns(self) -> Sequence[str]:
        """The names of the values, in the order in which they came."""
        return list(self._columns)

    def column(self, name: str) -> Sequence[Any]:
        """Return all values of a name, in no order of images; None for missing ones."""
        return self._columns[name]

    def add(self, name: str, tags: Sequence[str], values: Mapping[str, Any]) -> None:
        """Add tags and values of an image; tags are joined, and the first value of a name counts."""
        row = self._rows.setdefault(name, len(self._tags))
        if row == len(self._tags):
            self._tags.append(())
        if tags:
            joined = tuple(dict.fromkeys((*self._tags[row], *tags)))
            self._tags[row] = self._known.setdefault(joined, joined)
        for key, value in values.items():
            if value is None:
                continue
            column = self._columns.setdefault(key, [])
            column.extend([None] * (row + 1 - len(column)))
            if column[row] is None:
                column[row] = self._known.setdefault(value, value) if isinstance(value, str) else value

    def of(self, name: str) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the tags and the values of an image that has some."""
        row = self._rows[name]
        found = {key: column[row] for key, column in self._columns.items() if row < len(column)}
        return self._tags[row], {key: value for key, value in found.items() if value is not None}
