"""The jobs of a dataset that is there: add media to it, and index all of it anew."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.jobs.content import Content, FilesInput
from framedex.jobs.create import read, read_share, root_of, skipped
from framedex.jobs.finish import MEDIA, WRITTEN, finish, read_cells, read_sums
from framedex.jobs.index import Indexed, index
from framedex.jobs.index_added import index_added
from framedex.jobs.ingest import Place
from framedex.records import DatasetStatus, EmbeddingConfig, Generation
from framedex.settings import Settings
from framedex.storage import datasets, tables
from framedex.storage.known_ids import KnownIds
from framedex.storage.tables import Table
from framedex.tasks import Commit, Report


@dataclass(frozen=True)
class Base:
    """What a job on a dataset starts from.

    Attributes:
        dataset_id: the dataset.
        head: its head when the job was accepted; nothing else may change it until the job is done.
        config: how it was encoded, and the thresholds to group it by.
        roots: source roots, by number.
        table: folder of the media table.
        apart: sets of media ids of which no two are duplicates.
        settings: limits.
    """

    dataset_id: str
    head: Generation
    config: EmbeddingConfig
    roots: tuple[str, ...]
    table: Path
    apart: Sequence[Sequence[str]]
    settings: Settings

    @property
    def kept(self) -> dict[str, int]:
        """The versions of the tables that the job does not write."""
        return {name: version for name, version in self.head.tables.items() if name not in WRITTEN}


def add(base: Base, content: Content, *, auto_reindex: bool, report: Report) -> Commit:
    """Append media and return the commit; without *auto_reindex* they join what is there, and all else stays.

    Media that are there already are left out. If nothing is new, the commit stores only how many those were, unless
    earlier additions are still to be indexed.
    """
    version = tables.roll_back(base.table, base.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    end = 0.3 if auto_reindex else read_share(content)
    place, roots = _place(base, content)
    ingested = read(
        content,
        dataset_id=base.dataset_id,
        table=base.table,
        settings=base.settings,
        report=report,
        end=end,
        place=place,
        known=KnownIds(Table(base.table, version)),
    )
    summary = {**base.head.summary, "skipped": skipped(content, ingested)}
    if ingested.rows:
        version, summary["batches"] = ingested.version, place.batch + 1
    elif not (auto_reindex and base.head.summary.get("partial")):
        return _nothing_new(base, summary)
    table, tell = Table(base.table, version), report.stages(end, 1.0)
    indexed = _index(base, table, tell) if auto_reindex else _index_added(base, table, tell)
    return finish(
        indexed,
        base.config,
        dataset_id=base.dataset_id,
        table=base.table,
        rows=base.head.n_images + ingested.rows,
        status=DatasetStatus.READY if auto_reindex else DatasetStatus.PARTIAL_INDEX,
        summary=summary,
        others=base.kept,
        roots=roots if ingested.rows else (),
    )


def reindex(base: Base, *, report: Report) -> Commit:
    """Index all media anew and return the commit."""
    version = tables.roll_back(base.table, base.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    return finish(
        _index(base, Table(base.table, version), report.stages(0.0, 1.0)),
        base.config,
        dataset_id=base.dataset_id,
        table=base.table,
        rows=base.head.n_images,
        status=DatasetStatus.READY,
        summary=base.head.summary,
        others=base.kept,
    )


def _index(base: Base, table: Table, tell: Any) -> Indexed:
    summary = base.head.summary
    return index(
        table,
        base.config.thresholds,
        tell=tell,
        first_free=summary.get("first_free"),
        settled=summary.get("settled"),
        apart=base.apart,
    )


def _index_added(base: Base, table: Table, tell: Any) -> Indexed:
    return index_added(
        table,
        base.config.thresholds,
        base.head.summary,
        centroids=read_cells(base.table, base.head.tables),
        sums=read_sums(base.table, base.head),
        tell=tell,
        apart=base.apart,
    )


def _place(base: Base, content: Content) -> tuple[Place, list[str]]:
    """Return where media belong: to a source root that holds their folder, else to a new one; and all roots then.

    The uris of a table stay as they are, so only the very folder that they are relative to will do.
    """
    root, batch = root_of(content), int(base.head.summary.get("batches", 1))
    for number, known in enumerate(base.roots):
        inside = isinstance(content, FilesInput) and root.startswith(known.rstrip(os.sep) + os.sep)
        if root == known or inside:
            below = root[len(known.rstrip(os.sep)) + 1 :]
            return Place(number, f"{below}/" if below else "", batch), list(base.roots)
    return Place(len(base.roots), "", batch), [*base.roots, root]


def _nothing_new(base: Base, summary: Mapping[str, Any]) -> Commit:
    partial = bool(base.head.summary.get("partial"))

    def commit(connection: Any) -> None:
        datasets.commit_generation(
            connection,
            base.dataset_id,
            tables=base.head.tables,
            n_images=base.head.n_images,
            status=DatasetStatus.PARTIAL_INDEX if partial else DatasetStatus.READY,
            config=base.config,
            summary=dict(summary),
        )

    return commit
