"""Labels and captions as people edit them: new columns of the media table, and what follows from labels."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import pyarrow as pa

from framedex.analysis.labels import label_quality
from framedex.annotations.labels import parse_labels, storable
from framedex.errors import InvalidInput
from framedex.issue_types import JudgedBy, issue_types
from framedex.jobs.edits.rows import Places, write_values
from framedex.jobs.index.columns import label_columns, read_indexed_rows, read_label_codes, to_batches
from framedex.storage import tables
from framedex.storage.generation import Generation
from framedex.storage.media_rows import index_schema
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table

LABELS = pa.field("labels", pa.list_(pa.string()))
CAPTION = pa.field("caption", pa.string())


def label_array(labels: Sequence[Any]) -> pa.ListArray:
    """Return labels of media by the rules of ingestion: as lists, null where there are none.

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
    """Return the captions of media, by id; null where there is none but spaces.

    Raises:
        InvalidInput: one is neither text nor None.
    """
    for media_id, caption in captions.items():
        if caption is not None and not isinstance(caption, str):
            raise InvalidInput(f"a caption is text or None; that of {media_id!r} is {caption!r}")
    texts = [storable(each) if each is not None and each.strip() else None for each in captions.values()]
    return pa.array(texts, CAPTION.type)


def write_captions(media: Table, head: Generation, captions: pa.Array, place: Places) -> dict[str, int]:
    """Write captions of some media; return the versions of the tables of the generation that has them.

    Args:
        media: the media table, at its newest version.
        head: what it is a part of.
        captions: new ones.
        place: int64, shape (N,): which of them a row gets; -1 where the old one stays.
    """
    version = write_values(media, CAPTION, captions, place)
    tables.sync(media.path)
    return {**head.tables, MEDIA: version}


def write_labels(media: Table, head: Generation, labels: pa.Array, place: Places) -> dict[str, int]:
    """Write labels of some media, and what the kept neighbours of all say of them; arguments as :func:`write_captions`.

    A label may make those of neighbours look right or wrong, so all media are judged anew.
    """
    version = judge_labels(Table(media.path, write_values(media, LABELS, labels, place)))
    tables.sync(media.path)
    return {**head.tables, MEDIA: version}


def judge_labels(table: Table) -> int:
    """Write what the kept neighbours of all media say of their labels; return the new version of the media table.

    Args:
        table: the media table, at its newest version, with labels that have changed since it was indexed.
    """
    known = read_indexed_rows(table, None, 0.0)
    labelled = read_label_codes(table, known.positions)
    quality = label_quality(known.graph, known.inverse, labelled.labels)
    count = table.count()
    columns = label_columns(quality, labelled.names, known.positions, count)
    judged = [each for each in issue_types().values() if each.judged_by is JudgedBy.LABELS]
    names = [name for each in judged for name in (*each.computed_columns, each.confidence_column)]
    written = index_schema()
    schema = pa.schema([written.field(name) for name in names])
    return tables.put_columns(table, to_batches(columns, count, names), schema)
