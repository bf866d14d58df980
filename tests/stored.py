"""Stored tables as the media of a dataset, and what is stored of their labels."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset
from framedex.analysis.labels import LabelStatistics, label_quality
from framedex.issue_types import LabelLimits
from framedex.jobs.index.columns import label_columns, read_indexed_rows, read_label_codes
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_decisions import NO_LABEL_DECISIONS
from framedex.storage.label_statistics import read_label_statistics
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from tests.inside import stored_media


def media_of(table: Table) -> Media:
    """Return the media of a table that belongs to no dataset."""
    generation = Generation(
        id="generation",
        dataset_id="dataset",
        tables={MEDIA: table.version},
        n_images=table.count(),
        created_at=datetime.now(UTC),
        summary=Summary(),
    )
    return Media("dataset", generation, table, Sql(), ())


JUDGED = ("label_support", "label_distance", "suggested_label", "issue_mislabels", "issue_label_outlier")
"""The columns about labels."""


def assert_judged(dataset: Dataset, right: Collection[str] = ()) -> None:
    """Check that the columns about labels are those of all media by the stored statistics of labels, if there are any.

    Args:
        dataset: the dataset.
        right: ids of the media whose labels are right by decision.
    """
    media = stored_media(dataset)
    table, indexed = media.table, read_indexed_rows(media.table, None, 0.0)
    labelled = read_label_codes(table, indexed.positions, NO_LABEL_DECISIONS)
    ids = table.scan(["media_id"]).read_all().column(0).take(pa.array(indexed.positions)).to_pylist()
    labelled = replace(labelled, are_right=np.array([each in right for each in ids], dtype=bool))
    statistics = read_label_statistics(table.path, media.generation.tables, labelled.names)
    quality = label_quality(
        indexed.graph,
        indexed.inverse,
        labelled.labels,
        limits=LabelLimits(),
        agreement=media.generation.summary.label_agreement,
        statistics=None if statistics is None else LabelStatistics(*statistics),
    )
    columns = label_columns(quality, labelled, indexed.positions, table.count())
    found = table.scan(JUDGED).read_all()
    for name in JUDGED:
        values = columns[name]
        expected = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, from_pandas=True)
        assert found[name].to_pylist() == pytest.approx(expected.to_pylist(), abs=1e-5, nan_ok=True), name
