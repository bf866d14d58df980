"""Edits of values: new columns of the media table, and the label issues that follow."""

import pyarrow as pa

from framedex.editable_values import EditableValue
from framedex.jobs.edits.labels import judge_labels
from framedex.jobs.edits.rows import Indices, write_values
from framedex.jobs.index.columns import label_limits
from framedex.storage import tables
from framedex.storage.classes import write_classes
from framedex.storage.generation import Generation, Summary
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table


def update_values(
    media: Table, head: Generation, value: EditableValue, values: pa.Array, indices: Indices
) -> tuple[dict[str, int], Summary]:
    """Write a value of some media; return the table versions and the summary of the new generation.

    A new label can change the label issues of neighbours, so those of all media are computed again.

    Args:
        media: the media table, at its newest version.
        head: the generation that is edited.
        value: the edited value.
        values: the new values.
        indices: int64, shape (rows,): index into *values* for each row; -1 keeps the old value.
    """
    version, summary = write_values(media, value.field, values, indices), head.summary
    if value.decides_label_issues:
        version, agreement = judge_labels(Table(media.path, version), label_limits(head.summary.limits))
        summary = summary.with_(label_agreement=agreement)
    tables.sync(media.path)
    versions = {**head.tables, MEDIA: version}
    return write_classes(media.path, head.tables, versions) if value.decides_label_issues else versions, summary
