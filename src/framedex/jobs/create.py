"""The job of a new dataset: ingest, index, commit."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.encoders import Encoder
from framedex.jobs.index import index
from framedex.jobs.ingest import Ingested, ingest
from framedex.jobs.ingest_vectors import VectorSource, ingest_vectors
from framedex.media.annotations import Annotations
from framedex.media.sources import Source
from framedex.records import DatasetStatus, EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import datasets, tables
from framedex.storage.tables import Table
from framedex.tasks import Commit, Report


@dataclass(frozen=True)
class FilesInput:
    """Pictures to be decoded and encoded."""

    source: Source
    annotations: Annotations
    encoder: Encoder
    reason: str = "given in code"


def create(
    content: FilesInput | VectorSource,
    config: EmbeddingConfig,
    *,
    dataset_id: str,
    table: Path,
    settings: Settings,
    report: Report,
) -> Commit:
    """Build a dataset's tables and return the commit that makes them its head."""
    tables.roll_back(table, None)
    # Pictures take longer to read than to compare; vectors are read at once.
    read_share = 0.9 if isinstance(content, FilesInput) else 0.2
    read = report.part("reading pictures", 0.0, read_share)
    if isinstance(content, FilesInput):
        roots = [content.source.root]
        ingested = ingest(
            content.source,
            content.annotations,
            content.encoder,
            table=table,
            dataset_id=dataset_id,
            settings=settings,
            progress=read,
        )
    else:
        roots = [content.root]
        ingested = ingest_vectors(content, table=table, dataset_id=dataset_id, progress=read)
    indexed = index(
        Table(table, ingested.version),
        config.thresholds,
        progress=report.part("comparing and grouping", read_share, 1.0),
    )
    tables.sync(table)
    summary = {"issue_thresholds": indexed.thresholds, **_skipped(content, ingested)}
    return _commit(dataset_id, roots, indexed.version, ingested.rows, config, summary)


def _skipped(content: FilesInput | VectorSource, ingested: Ingested) -> dict[str, Any]:
    skipped = dict(content.source.skipped) if isinstance(content, FilesInput) else {}
    if ingested.unmatched:
        skipped["annotations without a picture"] = ingested.unmatched
    return {"skipped": skipped}


def _commit(
    dataset_id: str,
    roots: list[str],
    version: int,
    rows: int,
    config: EmbeddingConfig,
    summary: dict[str, Any],
) -> Callable[[Any], None]:
    def commit(connection: Any) -> None:
        datasets.put_roots(connection, dataset_id, roots)
        datasets.commit_generation(
            connection,
            dataset_id,
            tables={"media": version},
            n_images=rows,
            status=DatasetStatus.READY,
            config=config,
            summary=summary,
        )

    return commit
