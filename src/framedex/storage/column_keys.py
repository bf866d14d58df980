"""Keys of column contents, equal for two versions of a table that share these columns."""

from collections.abc import Collection, Hashable

from framedex.storage.table_versions import Table

ColumnsKey = tuple[str, tuple[Hashable, ...], tuple[Hashable, ...], tuple[str, ...]]


def columns_key(table: Table, columns: Collection[str]) -> ColumnsKey:
    """Return a key that is equal for two versions of a table only if both have the same rows and column values.

    Files are written once under random names. So equal file names mean equal content, and an equal deletion file means
    the same remaining rows.

    Args:
        table: the table at a version.
        columns: names of the columns; a missing column is part of the key, too.

    Raises:
        WorkspaceError: the table is damaged.
    """
    return str(table.path), table.layout.rows, files_key(table, columns), table.overlay.key(columns)


def extends(key: ColumnsKey, before: ColumnsKey) -> bool:
    """Return whether a version of a table has all rows of another one, with the same values, and only appends rows.

    Args:
        key: of some columns of the version.
        before: of the same columns of the other version.
    """
    (path, rows, files, edits), n_fragments = key, len(before[1])
    return (path, rows[:n_fragments], files[:n_fragments], edits) == before


def files_key(table: Table, columns: Collection[str]) -> tuple[Hashable, ...]:
    """Return the files of some columns, whatever rows were deleted and edited; see :func:`columns_key`."""
    layout = table.layout
    numbers = frozenset(number for name in columns for number in layout.fields.get(name, ()))
    return tuple(
        tuple((path, tuple(sorted(numbers & fields))) for path, fields in each if numbers & fields)
        for each in layout.files
    )
