"""The job of a new dataset: ingest, index, commit."""

from pathlib import Path
from typing import Any

from framedex.jobs.content import Content, FilesInput
from framedex.jobs.finish import finish
from framedex.jobs.index import index
from framedex.jobs.ingest import FIRST_PLACE, Ingested, Place, ingest
from framedex.jobs.ingest_vectors import ingest_vectors
from framedex.records import DatasetStatus, EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.known_ids import KnownIds
from framedex.storage.tables import Table
from framedex.tasks import Commit, Report


def create(
    content: Content,
    config: EmbeddingConfig,
    *,
    dataset_id: str,
    table: Path,
    settings: Settings,
    report: Report,
) -> Commit:
    """Build a dataset's tables and return the commit that makes them its head."""
    tables.roll_back(table, None)
    end = read_share(content)
    ingested = read(content, dataset_id=dataset_id, table=table, settings=settings, report=report, end=end)
    indexed = index(Table(table, ingested.version), config.thresholds, tell=report.stages(end, 1.0))
    return finish(
        indexed,
        config,
        dataset_id=dataset_id,
        table=table,
        rows=ingested.rows,
        status=DatasetStatus.READY,
        summary={"skipped": skipped(content, ingested), "batches": 1},
        roots=[root_of(content)],
    )


def read_share(content: Content) -> float:
    """Return the share of a job that reading takes: pictures take longer to read than to compare, vectors do not."""
    return 0.9 if isinstance(content, FilesInput) else 0.2


def root_of(content: Content) -> str:
    """Return the folder that relative paths of a content are relative to."""
    return content.source.root if isinstance(content, FilesInput) else content.root


def read(
    content: Content,
    *,
    dataset_id: str,
    table: Path,
    settings: Settings,
    report: Report,
    end: float,
    place: Place = FIRST_PLACE,
    known: KnownIds | None = None,
) -> Ingested:
    """Append a content's rows to the media table; its progress takes the job from 0 to *end*."""
    if isinstance(content, FilesInput):
        return ingest(
            content.source,
            content.annotations,
            content.encoder,
            table=table,
            dataset_id=dataset_id,
            settings=settings,
            progress=report.part("reading pictures", 0.0, end),
            place=place,
            known=known,
        )
    progress = report.part("reading vectors", 0.0, end)
    return ingest_vectors(content, table=table, dataset_id=dataset_id, progress=progress, place=place, known=known)


def skipped(content: Content, ingested: Ingested) -> dict[str, Any]:
    """Return what was left out, by reason."""
    found = dict(content.source.skipped) if isinstance(content, FilesInput) else {}
    if ingested.unmatched:
        found["annotations without a picture"] = ingested.unmatched
    if ingested.present:
        found["media that are there already"] = ingested.present
    return found
