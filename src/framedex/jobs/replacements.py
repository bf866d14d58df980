"""The step of the journal about media whose files changed: what they have from before the change."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.editable_values import editable_values
from framedex.jobs.context import JobContext
from framedex.jobs.edits.decisions import read_decisions
from framedex.jobs.edits.journal import AFTER, BEFORE, MOST_MEDIA, NewStep
from framedex.jobs.index.replaced_rows import is_edited
from framedex.storage.objects import OBJECTS, objects_path
from framedex.storage.table_versions import Table

REPLACED = "replace_media"
"""The operation of these steps."""
_ID, _HASH, _BOXES, _DECISIONS = "media_id", "content_hash", "boxes", "decisions"


def replacement_step(job: JobContext, before: Table, after: Table, replaced: npt.NDArray[np.bool_]) -> NewStep:
    """Return the step about replaced rows. Undoing it returns to the state before the addition.

    Its values are the labels, captions, tags, fields and places in the basket, the numbers of bounding boxes and of
    decisions, and the hashes of both contents as hexadecimal text.

    Args:
        job: the dataset before.
        before: the media table without the added rows.
        after: the table with the added rows.
        replaced: bool, shape (rows before,): true for replaced rows.
    """
    n_media = int(np.count_nonzero(replaced))
    if n_media > MOST_MEDIA:
        return NewStep(REPLACED, n_media, is_state=True)
    names = [name for name in before.schema.names if name in editable_values() or is_edited(name)]
    rows = before.scan([_ID, _HASH, *names]).read_all().filter(pa.array(replaced)).combine_chunks()
    ids = rows[_ID].combine_chunks()
    new = after.scan([_ID, _HASH]).read_all().slice(len(replaced))
    columns = {_ID: ids, **{BEFORE + name: rows[name] for name in names}}
    columns[BEFORE + _BOXES] = _counted(ids, _box_owners(job))
    columns[BEFORE + _DECISIONS] = _counted(ids, pa.array([*_decided(job)], pa.string()))
    columns[BEFORE + _HASH] = _hexadecimal(rows[_HASH])
    columns[AFTER + _HASH] = _hexadecimal(new[_HASH].take(pc.index_in(ids, value_set=new[_ID].combine_chunks())))
    return NewStep(REPLACED, n_media, values=pa.table(columns), is_state=True)


def _box_owners(job: JobContext) -> pa.ChunkedArray:
    """Return the media id of each bounding box."""
    version = job.head.tables.get(OBJECTS)
    if version is None:
        return pa.chunked_array([], pa.string())
    return Table(objects_path(job.table), version).scan(["parent_id"]).read_all().column(0)


def _decided(job: JobContext) -> Iterator[str]:
    """Yield the media of each decision about duplicates or labels."""
    for decision in read_decisions(job.table, job.head.tables):
        yield from decision.media_ids
    for of_labels in job.label_decisions.records():
        yield from of_labels.media_ids


def _counted(ids: pa.Array, owners: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return how often each of some ids is among others."""
    counts = Counter(owners.filter(pc.is_in(owners, value_set=ids)).to_pylist())
    return pa.array([counts[each] for each in ids.to_pylist()], pa.int64())


def _hexadecimal(hashes: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if each is None else each.hex() for each in hashes.to_pylist()], pa.string())
