"""Edits of labels and captions: new columns of the media table, and the label issues that follow."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import pyarrow as pa

from framedex.analysis.labels import label_quality
from framedex.annotations.labels import parse_labels, storable
from framedex.errors import InvalidInput
from framedex.issue_types import JudgedBy, issue_types
from framedex.jobs.edits.rows import Indices, write_values
from framedex.jobs.index.columns import label_columns, read_indexed_rows, read_label_codes, to_batches
from framedex.storage import tables
from framedex.storage.generation import Generation
from framedex.storage.media_rows import index_schema
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table

LABELS = pa.field("labels", pa.list_(pa.string()))
CAPTION = pa.field("caption", pa.string())


def label_array(labels: Sequence[Any]) -> pa.ListArray:
    """Return labels of media by the rules of ingestion: one list per item, null for no labels.

    Raises:
        InvalidInput: an element is neither a label nor a list of labels: texts or numbers.
    """
    for each in labels:
        parts = each if isinstance(each, list | tuple) else [each]
        if not all(part is None or isinstance(part, str | Real) for part in parts):
            raise InvalidInput(f"the labels of a media item are a list of texts, or one text, not {each!r}")
        if any(isinstance(part, str) and "\0" in part for part in parts):
            raise InvalidInput(f"a label has no null characters; this is {each!r}")
    return pa.array([list(parse_labels(each)) or None for each in labels], LABELS.type)


def caption_array(captions: Mapping[str, Any]) -> pa.StringArray:
    """Return the captions of a mapping from media ids; blank captions become null.

    Raises:
        InvalidInput: a caption is neither text nor None.
    """
    for media_id, caption in captions.items():
        if caption is not None and not isinstance(caption, str):
            raise InvalidInput(f"a caption is text or None; that of {media_id!r} is {caption!r}")
    texts = [storable(each) if each is not None and each.strip() else None for each in captions.values()]
    return pa.array(texts, CAPTION.type)


def update_captions(media: Table, head: Generation, captions: pa.Array, indices: Indices) -> dict[str, int]:
    """Write captions of some media; return the table versions of the new generation.

    Args:
        media: the media table, at its newest version.
        head: the generation that is edited.
        captions: the new captions.
        indices: int64, shape (rows,): index into *captions* for each row; -1 keeps the old caption.
    """
    version = write_values(media, CAPTION, captions, indices)
    tables.sync(media.path)
    return {**head.tables, MEDIA: version}


def update_labels(media: Table, head: Generation, labels: pa.Array, indices: Indices) -> dict[str, int]:
    """Write labels of some media and judge the labels of all media again; arguments as for :func:`update_captions`.

    A new label can change the label issues of neighbours, so those of all media are computed again.
    """
    version = judge_labels(Table(media.path, write_values(media, LABELS, labels, indices)))
    tables.sync(media.path)
    return {**head.tables, MEDIA: version}


def judge_labels(table: Table) -> int:
    """Compute the label issues of all media from their stored neighbours; return the new version of the media table.

    Args:
        table: the media table, at its newest version, with labels that have changed since it was indexed.
    """
    indexed = read_indexed_rows(table, None, 0.0)
    labelled = read_label_codes(table, indexed.positions)
    quality = label_quality(indexed.graph, indexed.inverse, labelled.labels)
    count = table.count()
    columns = label_columns(quality, labelled.names, indexed.positions, count)
    judged = [each for each in issue_types().values() if each.judged_by is JudgedBy.LABELS]
    names = [name for each in judged for name in (*each.computed_columns, each.confidence_column)]
    written = index_schema()
    schema = pa.schema([written.field(name) for name in names])
    return tables.put_columns(table, to_batches(columns, count, names), schema)
