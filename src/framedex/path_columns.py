"""Columns that are computed from the column ``path`` of media: the file's name, its stem, and its folder.

Filters name these columns in their SQL. The column cache computes each of them once for a table; where columns are
streamed instead, :func:`relation_with` adds them to the relation that a statement reads. So their definitions stand
here alone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

SOURCE = "path"
"""The stored column that the others are computed from."""


@dataclass(frozen=True)
class PathColumn:
    """A column that is computed from the stored column ``path``.

    Attributes:
        name: its name in SQL, which no stored column has.
        sql: the expression over ``path``; NULL where that is.
    """

    name: str
    sql: str


_FILE = f"split_part(rtrim({SOURCE}, '/'), '/', -1)"
_FOLDER = f"left(rtrim({SOURCE}, '/'), greatest(length(rtrim({SOURCE}, '/')) - length({_FILE}) - 1, 0))"
FILE = PathColumn("path__file", _FILE)
FILE_LOWER = PathColumn("path__file_lower", f"lower({_FILE})")
FOLDER = PathColumn("path__folder", _FOLDER)
FOLDER_LOWER = PathColumn("path__folder_lower", f"lower({_FOLDER})")
FILE_STEM = PathColumn("path__file_stem", f"parse_filename({SOURCE}, true, 'both_slash')")
PATH_COLUMNS = {column.name: column for column in (FILE, FILE_LOWER, FILE_STEM, FOLDER, FOLDER_LOWER)}
"""All computed columns, by name."""


def stored(columns: Iterable[str]) -> frozenset[str]:
    """Return the stored columns that some columns, computed ones among them, are read from."""
    return frozenset(SOURCE if name in PATH_COLUMNS else name for name in columns)


def relation_with(columns: Collection[str], relation: str) -> str:
    """Return SQL for a relation with those of some columns that are computed; the relation itself if there are none.

    Args:
        columns: names of columns that a statement reads.
        relation: name of the relation, which has the stored columns.
    """
    computed = [PATH_COLUMNS[name] for name in sorted(columns) if name in PATH_COLUMNS]
    if not computed:
        return relation
    return f"(SELECT *, {', '.join(f'{each.sql} AS {each.name}' for each in computed)} FROM {relation})"
