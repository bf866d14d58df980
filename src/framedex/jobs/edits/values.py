"""Edits of values: new columns of the media table, and the label issues that follow."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from framedex.editable_values import EditableValue
from framedex.jobs.edits.labels import judge_edited
from framedex.jobs.edits.rows import Indices, write_values
from framedex.storage import tables
from framedex.storage.classes import write_classes
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.table_names import MEDIA
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
    before = media.table
    version, summary = write_values(media, value.field, values, indices), head.summary
    versions = {**head.tables, MEDIA: version}
    if value.decides_label_issues:
        edited = replace(media, table=edited_table(before.path, version))
        judged = judge_edited(edited, head, np.flatnonzero(indices >= 0))
        summary = summary.with_(label_agreement=judged.agreement)
        versions |= judged.versions
    tables.sync(before.path)
    if not value.decides_label_issues:
        return versions, summary
    used = values.take(pa.array(np.unique(indices[indices >= 0])))
    labels = used.flatten().drop_null().unique()
    return write_classes(before.path, head.tables, versions, new_labels=labels), summary
