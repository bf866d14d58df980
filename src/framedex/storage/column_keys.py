"""What some columns of a table depend on: two versions may have them in common, whatever else was changed."""

from collections.abc import Collection, Hashable
from typing import Any

from framedex.storage.failures import own_errors
from framedex.storage.tables import READING, Table


def columns_key(table: Table, columns: Collection[str]) -> Hashable:
    """Return what is the same for two versions of a table only if both have the same rows, and the same in them.

    Files are written once and named at random: the same files hold the same content, and the same rows are left of
    them if the same file says which were deleted.

    Args:
        table: the table at a version.
        columns: the columns that matter; those that it lacks count as such.

    Raises:
        WorkspaceError: the table is damaged.
    """
    import lance

    with own_errors(f"read {table.path}"), READING.using():
        dataset: Any = lance.dataset(str(table.path), version=table.version)
        wanted = {
            number for field in dataset.lance_schema.fields() if field.name() in columns for number in _numbers(field)
        }
        return str(table.path), tuple(_fragment_key(each.metadata, wanted) for each in dataset.get_fragments())


def _numbers(field: Any) -> list[int]:
    """Return the numbers of a field and of those within it."""
    return [field.id(), *(number for child in field.children() for number in _numbers(child))]


def _fragment_key(fragment: Any, wanted: set[int]) -> Hashable:
    files = tuple(
        (file.path, tuple(sorted(wanted & {*file.fields}))) for file in fragment.files if wanted & {*file.fields}
    )
    gone = fragment.deletion_file
    return fragment.id, fragment.physical_rows, files, None if gone is None else (gone.read_version, gone.id)
