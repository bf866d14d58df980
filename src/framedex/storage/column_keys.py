"""Keys of column contents, equal for two versions of a table that share these columns."""

from collections.abc import Collection, Hashable
from typing import Any

from framedex.storage.engine_calls import engine_call
from framedex.storage.failures import on_table
from framedex.storage.tables import Table


@engine_call
@on_table("read")
def columns_key(table: Table, columns: Collection[str]) -> Hashable:
    """Return a key that is equal for two versions of a table only if both have the same rows and column values.

    Files are written once under random names. So equal file names mean equal content, and an equal deletion file means
    the same remaining rows.

    Args:
        table: the table at a version.
        columns: names of the columns; a missing column is part of the key, too.

    Raises:
        WorkspaceError: the table is damaged.
    """
    import lance

    dataset: Any = lance.dataset(str(table.path), version=table.version)
    field_ids = {
        number for field in dataset.lance_schema.fields() if field.name() in columns for number in _numbers(field)
    }
    fragments = tuple(_fragment_key(each.metadata, field_ids) for each in dataset.get_fragments())
    return str(table.path), fragments, table.overlay.key(columns)


def _numbers(field: Any) -> list[int]:
    """Return the field ids of a field and of its nested fields."""
    return [field.id(), *(number for child in field.children() for number in _numbers(child))]


def _fragment_key(fragment: Any, field_ids: set[int]) -> Hashable:
    files = tuple(
        (file.path, tuple(sorted(field_ids & {*file.fields}))) for file in fragment.files if field_ids & {*file.fields}
    )
    deletions = fragment.deletion_file
    return (
        fragment.id,
        fragment.physical_rows,
        files,
        None if deletions is None else (deletions.read_version, deletions.id),
    )
