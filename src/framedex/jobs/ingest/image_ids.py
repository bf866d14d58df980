"""The ids that images have in their annotation files, as a column of the media table."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from framedex.annotations.source_lists import SourceLists
from framedex.jobs.ingest.placement import SourcePlacement, path_in_source
from framedex.storage import tables
from framedex.storage.media_rows import SOURCE_ID
from framedex.storage.table_versions import Table

_PATH = ("path", "path_raw", "root")


def write_image_ids(
    table: Table, lists: Sequence[SourceLists], *, first: int = 0, placement: SourcePlacement | None = None
) -> int:
    """Write the ids of images that have none yet; return the table's new version, the same if nothing changes.

    Args:
        table: the media table, at its newest version.
        lists: of annotation files; the first with an id of an image counts.
        first: first row to write.
        placement: placement of the annotated paths; None if they are relative to the dataset's own roots.
    """
    if not any(each.has_image_ids for each in lists):
        return table.version
    names = set(table.schema.names)
    columns = [name for name in (*_PATH, "kind", SOURCE_ID.name) if name in names]
    for each in lists:
        each.find_images(lambda: media_paths(table, placement), several_roots=placement is None)
    ids: list[str | None] = []
    changed = False
    for batch in table.scan(columns):
        for row in batch.to_pylist():
            existing, found = row.get(SOURCE_ID.name), None
            if existing is None and len(ids) >= first and row.get("kind") is None:
                path = path_in_source(row, placement)
                known = () if path is None else (part.image_id(path) for part in lists)
                found = next((each for each in known if each is not None), None)
            changed = changed or found is not None
            ids.append(found if existing is None else existing)
    if not changed:
        return table.version
    schema = pa.schema([SOURCE_ID])
    return tables.put_columns(table, _batches(pa.array(ids, pa.string()), schema), schema)


def media_paths(table: Table, placement: SourcePlacement | None) -> Iterator[str]:
    """Yield the paths within a source of the images in a media table; see :func:`path_in_source`."""
    names = set(table.schema.names)
    for batch in table.scan([name for name in (*_PATH, "kind") if name in names]):
        for row in batch.to_pylist():
            if row.get("kind") is None and (path := path_in_source(row, placement)) is not None:
                yield path


def _batches(values: pa.Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = 65_536
    for start in range(0, len(values), rows):
        yield pa.RecordBatch.from_arrays([values.slice(start, rows)], schema=schema)
