"""Edits of values: new columns of the media table, and the label issues that follow."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from framedex.editable_values import EditableValue
from framedex.jobs.edits.labels import judge_edited, write_judged
from framedex.jobs.edits.rows import Indices, are_few, read_row_ids, write_values
from framedex.storage import tables
from framedex.storage.classes import write_classes
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.table_names import LABEL_STATISTICS, MEDIA
from framedex.storage.table_versions import edited_table


def update_values(
    media: Media, head: Generation, value: EditableValue, values: pa.Array, indices: Indices
) -> tuple[dict[str, int], Summary]:
    """Write a value of some media; return the table versions and the summary of the new generation.

    A new label can change the label issues of neighbours, so those are computed again.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        value: the edited value.
        values: the new values.
        indices: int64, shape (rows,): index into *values* for each row; -1 keeps the old value.
    """
    path, changed = media.table.path, np.flatnonzero(indices >= 0)
    if not value.decides_label_issues:
        versions = {**head.tables, MEDIA: write_values(media, value.field, values, indices)}
        tables.sync(path)
        return versions, head.summary
    tables_before, judged = head.tables, None
    if len(changed) and are_few(media.table, len(changed)):
        row_ids = read_row_ids(media)[changed]
        order = np.argsort(row_ids)
        judged = write_judged(media, head, row_ids[order], values.take(pa.array(indices[changed][order])))
    if judged is not None:
        tables_before = {name: each for name, each in head.tables.items() if name != LABEL_STATISTICS}
    else:
        version = write_values(media, value.field, values, indices)
        judged = judge_edited(replace(media, table=edited_table(path, version)), head, changed)
    versions = {**tables_before, **judged.versions}
    summary = head.summary.with_(label_agreement=judged.agreement)
    tables.sync(path)
    used = values.take(pa.array(np.unique(indices[indices >= 0])))
    labels = used.flatten().drop_null().unique()
    return write_classes(path, head.tables, versions, new_labels=labels), summary
