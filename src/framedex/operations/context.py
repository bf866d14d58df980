"""The open parts of a workspace, which all operations share."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from framedex.browse.media_uris import LocalUris, MakeUri, MediaUris, ServedUris
from framedex.core.lru_cache import LruCache
from framedex.errors import Conflict, NotFound, NotIndexed
from framedex.records import DatasetRecord, EmbeddingConfig
from framedex.search.vectors.indices import VectorIndices
from framedex.settings import LiveSettings, Settings
from framedex.storage import datasets
from framedex.storage.catalog import Catalog
from framedex.storage.column_cache import ColumnCache
from framedex.storage.early_table import EarlyTable
from framedex.storage.heads import Heads
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.storage.objects import open_objects
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
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
        live_settings: limits and defaults, some of which can change.
        indices: cache of vector indices.
        columns: cache of filtered columns.
        heads: cache of heads.
        selections: cache of rows that views put in order, and of what they need beside columns.
        namespace: the namespace in which datasets are created and found by name.
        creator_id: the user account of the service for which datasets are created; None for no account.
        make_uri: returns the URIs of media in results; None for those of this machine's files.
    """

    layout: Layout
    catalog: Catalog
    sql: Sql
    runner: Runner
    exports: Exports
    live_settings: LiveSettings
    indices: VectorIndices
    columns: ColumnCache
    heads: Heads
    selections: LruCache[Hashable, Any]
    namespace: str = ""
    creator_id: str | None = None
    make_uri: MakeUri | None = None

    @property
    def settings(self) -> Settings:
        """The settings at this moment, with the acting user as ``user``."""
        return self.live_settings.current

    def acting_as(self, user: str, *, creator_id: str | None = None) -> "Context":
        """Return a context that shares everything and acts for another user, whose name was checked."""
        return replace(self, live_settings=self.live_settings.acting_as(user), creator_id=creator_id)

    def in_namespace(self, namespace: str) -> "Context":
        """Return a context that shares everything and creates and finds datasets in another namespace."""
        return replace(self, namespace=namespace)


def media_uris(context: Context, media: Media) -> MediaUris:
    """Return the URIs of media, or of objects, in results."""
    if context.make_uri is not None:
        return ServedUris(context.make_uri)
    return LocalUris(context.layout.thumbnails(media.dataset_id))


def open_media(context: Context, dataset_id: str, *, early: bool = False) -> Media:
    """Return a dataset's media at its current head; they stay the same while the caller uses them.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        early: whether the rows that its creation has read so far, without an index, will do.

    Raises:
        Conflict: the dataset has no head yet.
    """
    with context.catalog.read() as connection:
        head = context.heads.read(connection, dataset_id)
        if head is None:
            first = context.heads.read_early(connection, dataset_id)
            if first is None or not early:
                raise _no_head(datasets.find_dataset(connection, dataset_id), is_read=first is not None)
            head = first
    path, version = context.layout.media(dataset_id), head.generation.tables[MEDIA]
    if not head.generation.summary.early:
        table = context.columns.open(path, version)
    else:
        try:
            table = EarlyTable(path, version)
        except NotFound:  # the creation ended meanwhile
            return open_media(context, dataset_id)
    return Media(dataset_id, head.generation, table, context.sql, head.roots, columns=context.columns)


def check_indexed(context: Context, media: Media) -> None:
    """Check that media have an index.

    Raises:
        Conflict: the dataset is being created, and they are what was read so far.
    """
    if media.generation.summary.early:
        with context.catalog.read() as connection:
            raise _no_head(datasets.find_dataset(connection, media.generation.dataset_id), is_read=True)


def _no_head(record: DatasetRecord, *, is_read: bool) -> Conflict:
    if not is_read:
        return Conflict(f"dataset {record.display_name!r} has nothing to show yet; its status is {record.status_new}")
    return Conflict(
        f"dataset {record.display_name!r} can be explored and filtered, but has no index yet; its status is "
        f"{record.status_new}"
    )


def read_embedding_config(context: Context, dataset_id: str) -> EmbeddingConfig:
    """Return the encoder, the embedding dimension and the cluster thresholds of a dataset's index.

    Raises:
        NotIndexed: the dataset has no index yet.
    """
    with context.catalog.read() as connection:
        config = datasets.embedding_config(connection, dataset_id)
    if config is None:
        raise NotIndexed("Dataset has no embedding config")
    return config


def open_entities(context: Context, dataset_id: str, *, objects: bool, early: bool = False) -> Media:
    """Return a dataset's media as :func:`open_media` does, or its objects, of which there can be none.

    Raises:
        Conflict: the dataset has no head yet.
    """
    media = open_media(context, dataset_id, early=early)
    return open_objects(media) if objects else media
