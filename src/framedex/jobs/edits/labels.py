"""Label issues of all media, after labels were edited."""

import pyarrow as pa

from framedex.analysis.labels import label_quality
from framedex.issue_types import JudgedBy, LabelLimits, issue_types
from framedex.jobs.index.columns import label_columns, read_indexed_rows, read_label_codes, to_batches
from framedex.storage import tables
from framedex.storage.media_rows import index_schema
from framedex.storage.tables import Table


def judge_labels(table: Table, limits: LabelLimits, *, agreement: float | None = None) -> tuple[int, float | None]:
    """Compute the label issues of all media from their stored neighbours.

    Args:
        table: the table of media or objects, at its newest version, with labels that have changed since it was indexed.
        limits: limits of the issues.
        agreement: the agreement of the labels with the neighbours, if they have not changed; None to compute it.

    Returns:
        The new version of the table, and the agreement of the labels with the neighbours, for the summary.
    """
    indexed = read_indexed_rows(table, None, 0.0)
    labelled = read_label_codes(table, indexed.positions)
    quality = label_quality(indexed.graph, indexed.inverse, labelled.labels, limits=limits, agreement=agreement)
    count = table.count()
    columns = label_columns(quality, labelled.names, indexed.positions, count)
    judged = [each for each in issue_types().values() if each.judged_by is JudgedBy.LABELS]
    names = [name for each in judged for name in (*each.computed_columns, each.confidence_column)]
    written = index_schema()
    schema = pa.schema([written.field(name) for name in names])
    return tables.put_columns(table, to_batches(columns, count, names), schema), quality.agreement
