"""Columns that are computed from the column ``path`` of media: the file's name, its stem, and its folder.

The SQL of filters uses these columns. The column cache computes each column once for a table. If columns are streamed
instead, :func:`relation_with` adds them to the relation that a statement reads.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

SOURCE = "path"
"""The stored column from which the other columns are computed."""


@dataclass(frozen=True)
class PathColumn:
    """A column that is computed from the stored column ``path``.

    Attributes:
        name: the name in SQL, which differs from the names of stored columns.
        sql: the expression over ``path``; NULL if ``path`` is NULL.
    """

    name: str
    sql: str


# Not split_part and an unconditional rtrim, which give the same and take three times as long.
_TRIMMED = f"CASE WHEN ends_with({SOURCE}, '/') THEN rtrim({SOURCE}, '/') ELSE {SOURCE} END"
_FILE = f"parse_filename({_TRIMMED}, false, 'forward_slash')"
_FOLDER = f"left({_TRIMMED}, greatest(length({_TRIMMED}) - length({_FILE}) - 1, 0))"
FILE = PathColumn("path__file", _FILE)
FILE_LOWER = PathColumn("path__file_lower", f"lower({_FILE})")
FOLDER = PathColumn("path__folder", _FOLDER)
FOLDER_LOWER = PathColumn("path__folder_lower", f"lower({_FOLDER})")
FILE_STEM = PathColumn("path__file_stem", f"parse_filename({SOURCE}, true, 'both_slash')")
PATH_COLUMNS = {column.name: column for column in (FILE, FILE_LOWER, FILE_STEM, FOLDER, FOLDER_LOWER)}
"""All computed columns, by name."""


def stored(columns: Iterable[str]) -> frozenset[str]:
    """Return the stored columns from which stored or computed columns are read."""
    return frozenset(SOURCE if name in PATH_COLUMNS else name for name in columns)


def relation_with(columns: Collection[str], relation: str) -> str:
    """Return SQL for a relation with the computed columns among *columns*; the relation itself if it needs none.

    Args:
        columns: the names of the columns that a statement reads.
        relation: the name of the relation with the stored columns.
    """
    computed = [PATH_COLUMNS[name] for name in sorted(columns) if name in PATH_COLUMNS]
    if not computed:
        return relation
    return f"(SELECT *, {', '.join(f'{each.sql} AS {each.name}' for each in computed)} FROM {relation})"
