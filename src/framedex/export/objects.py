"""The objects of an export, by the media that contain them."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import column
from framedex.core.arrays import RowIds
from framedex.export.columns import merge_blocks
from framedex.export.object_columns import object_columns, stored_columns
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.table_versions import ROW_ID

N_OBJECTS = pa.field("n_objects", pa.int32())
"""The number of exported objects of a media item."""
OBJECTS = "objects"
"""The column with the objects of each media item."""
_HASH = "hash"  # DuckDB's 64-bit hash
_MAX_OBJECTS = 2**15  # objects in memory at a time, with all exported columns


def objects_field(columns: pa.Schema) -> pa.Field:
    """Return a list column with some columns of each media item's objects."""
    return pa.field(OBJECTS, pa.list_(pa.struct(list(columns))))


class ObjectsByMedia:
    """Exported objects by the media that contain them. The order of the object table does not matter.

    Each object takes sixteen bytes of memory: a hash of the media id, and the row.

    Args:
        objects: the dataset's objects.
        rows: the selected objects.

    Attributes:
        objects: the dataset's objects.
        rows: the selected objects, as a condition.
        total: the number of selected objects.
    """

    def __init__(self, objects: Media, rows: Condition | RowIds) -> None:
        self.objects, self.rows = objects, as_condition(rows)
        text = f"SELECT {_HASH}(parent_id) AS parent, {ROW_ID} FROM chosen"
        table = objects.query(text, self.rows, ["parent_id"], keep=False)
        parents, row_ids = (table[name].to_numpy() for name in ("parent", ROW_ID))
        order = np.lexsort((row_ids, parents))
        self._parents, self._row_ids = parents[order], row_ids[order]
        self.total = len(order)

    def added_to(self, blocks: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield blocks of media with a column of their objects. Blocks with many objects are split.

        Args:
            blocks: with all other columns of the schema, and ``media_id``.
            schema: with a column that :func:`objects_field` made, and optionally :data:`N_OBJECTS`.
        """
        for block in blocks:
            first, last = self._bounds(column(block, "media_id"))
            for start, end in _parts(last - first):
                part = block.slice(start, end - start)
                lists = self._lists(column(part, "media_id"), first[start:end], last[start:end], schema.field(OBJECTS))
                added = {OBJECTS: lists, N_OBJECTS.name: pc.list_value_length(lists)}
                columns = [added[field.name] if field.name in added else part[field.name] for field in schema]
                yield pa.table(columns, schema=schema)

    def blocks(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield columns of the objects in table order, some ten thousand rows at a time."""
        for rows in merge_blocks(self.objects.blocks(self.rows, stored_columns(self.objects, schema))):
            yield pa.table(object_columns(self.objects, rows, schema), schema=schema)

    def values(self, text: str, *columns: str) -> pa.Table:
        """Return the result of a statement over the relation ``chosen``: stored columns of the selected objects."""
        return self.objects.query(text, self.rows, columns, keep=False)

    def _bounds(self, media_ids: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first position, and the position behind the last, of each media item's objects."""
        media = self.objects.sql.query(
            f"SELECT {_HASH}(media_id) AS parent FROM held", (), {"held": pa.table({"media_id": media_ids})}
        )
        parents = media["parent"].to_numpy()
        return np.searchsorted(self._parents, parents), np.searchsorted(self._parents, parents, side="right")

    def _lists(
        self, media_ids: pa.Array, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], field: pa.Field
    ) -> pa.ListArray:
        """Return the objects between positions, as one list for each media item."""
        counts = last - first
        ends = np.cumsum(counts)
        positions = np.repeat(first - (ends - counts), counts) + np.arange(int(counts.sum()))
        schema = pa.schema(list(field.type.value_type))
        stored = sorted({*stored_columns(self.objects, schema), "parent_id"})
        rows = self.objects.take(self._row_ids[positions].tolist(), stored)
        owner = np.repeat(np.arange(len(counts)), counts)
        own = pc.equal(column(rows, "parent_id"), media_ids.take(pa.array(owner)))
        if not pc.all(own, min_count=0).as_py():  # two ids with the same hash
            rows, owner = rows.filter(own), owner[own.to_numpy(zero_copy_only=False)]
            counts = np.bincount(owner, minlength=len(counts))
        structs = pa.StructArray.from_arrays(object_columns(self.objects, rows, schema), fields=list(schema))
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), structs)


def _parts(counts: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of runs of media with a limited number of objects; one media item may have more."""
    ends, start = np.cumsum(counts), 0
    while start < len(counts):
        before = ends[start - 1] if start else 0
        end = max(int(np.searchsorted(ends, before + _MAX_OBJECTS, side="right")), start + 1)
        yield start, end
        start = end


def as_condition(rows: Condition | RowIds) -> Condition:
    """Return a condition that is true in the given rows."""
    if isinstance(rows, Condition):
        return rows
    picked = pa.table({"picked": pa.array(rows, pa.uint64())})
    return Condition(f"{ROW_ID} IN (SELECT picked FROM picked_rows)", relations={"picked_rows": picked})


def media_of(objects: Media, rows: Condition | RowIds) -> RowIds:
    """Return the rows of the media that contain the given objects."""
    assert objects.parents is not None, "they are objects"
    holders = objects.query("SELECT DISTINCT parent_id FROM chosen", as_condition(rows), ["parent_id"], keep=False)
    test = "media_id IN (SELECT parent_id FROM holders)"
    return objects.parents.row_ids(Condition(test, (), frozenset({"media_id"}), relations={"holders": holders}))


def objects_in(objects: Media, media_rows: Condition | RowIds) -> RowIds:
    """Return the rows of the objects that the given media contain."""
    assert objects.parents is not None, "they are objects"
    holders = objects.parents.query("SELECT media_id FROM chosen", as_condition(media_rows), ["media_id"], keep=False)
    test = "parent_id IN (SELECT media_id FROM holders)"
    return objects.row_ids(Condition(test, (), frozenset({"parent_id"}), relations={"holders": holders}))
