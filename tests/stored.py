"""Stored tables as the media of a dataset."""

from datetime import UTC, datetime

from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table


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
