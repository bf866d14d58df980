"""What is open: handed to everything that works on a dataset."""

from dataclasses import dataclass

from framedex.errors import Conflict
from framedex.search.vectors.indices import VectorIndices
from framedex.settings import Settings
from framedex.storage import datasets
from framedex.storage.catalog import Catalog
from framedex.storage.column_cache import ColumnCache
from framedex.storage.heads import Heads
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.storage.objects import open_objects
from framedex.storage.sql import Sql
from framedex.tasks import Exports, Runner


@dataclass(frozen=True)
class Context:
    """The open parts of one workspace.

    Attributes:
        layout: where things lie.
        catalog: everything small and transactional.
        sql: the filter engine.
        runner: starts tasks.
        exports: starts exports.
        settings: limits and defaults.
        indices: the vectors that were searched last.
        columns: the columns that were filtered last.
        heads: the heads that were read last.
    """

    layout: Layout
    catalog: Catalog
    sql: Sql
    runner: Runner
    exports: Exports
    settings: Settings
    indices: VectorIndices
    columns: ColumnCache
    heads: Heads


def open_media(context: Context, dataset_id: str) -> Media:
    """Return a dataset's media as its head names them: the same state for as long as the caller holds it.

    Raises:
        Conflict: the dataset has no head yet.
    """
    with context.catalog.read() as connection:
        head = context.heads.read(connection, dataset_id)
        if head is None:
            record = datasets.find_dataset(connection, dataset_id)
            raise Conflict(
                f"dataset {record.display_name!r} has nothing to show yet; its status is {record.status_new}"
            )
    table = context.columns.open(context.layout.media(dataset_id), head.generation.tables["media"])
    return Media(dataset_id, head.generation, table, context.sql, head.roots, columns=context.columns)


def open_entities(context: Context, dataset_id: str, *, objects: bool) -> Media:
    """Return a dataset's media as :func:`open_media` does, or the objects in them, of which there may be none.

    Raises:
        Conflict: the dataset has no head yet.
    """
    media = open_media(context, dataset_id)
    return open_objects(media) if objects else media
