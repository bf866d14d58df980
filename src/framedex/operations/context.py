"""The open parts of a workspace, which all operations share."""

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
    """The open parts of a workspace.

    Attributes:
        layout: paths of the workspace.
        catalog: transactional records.
        sql: the filter engine.
        runner: starts tasks.
        exports: starts exports.
        settings: limits and defaults.
        indices: cache of vector indices.
        columns: cache of filtered columns.
        heads: cache of heads.
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
    """Return a dataset's media at its current head; they stay the same while the caller uses them.

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
    """Return a dataset's media as :func:`open_media` does, or its objects, of which there can be none.

    Raises:
        Conflict: the dataset has no head yet.
    """
    media = open_media(context, dataset_id)
    return open_objects(media) if objects else media
