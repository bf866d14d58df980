"""The starting state of a job on a dataset."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from framedex.core.ids import objects_dataset
from framedex.records import EmbeddingConfig
from framedex.settings import Settings
from framedex.storage.column_cache import ColumnCache
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_decisions import LabelDecisions, read_label_decisions
from framedex.storage.layout import SPILL
from framedex.storage.table_names import INDEX_TABLES


@dataclass(frozen=True)
class JobContext:
    """The starting state of a job on a dataset.

    Attributes:
        dataset_id: the dataset.
        head: the head when the job was accepted; nothing else changes it until the job ends.
        config: encoder, dimension and cluster thresholds of the dataset.
        roots: source roots, by number.
        table: folder of the media table.
        thumbnails: folder of cached thumbnails.
        cannot_link: sets of media ids; no two media of a set are duplicates.
        settings: limits.
        columns: the cache of columns; None without a cache.
    """

    dataset_id: str
    head: Generation
    config: EmbeddingConfig
    roots: tuple[str, ...]
    table: Path
    thumbnails: Path
    cannot_link: Sequence[Sequence[str]]
    settings: Settings
    columns: ColumnCache | None = field(default=None, repr=False, compare=False)

    @classmethod
    def for_new_dataset(
        cls, dataset_id: str, config: EmbeddingConfig, table: Path, thumbnails: Path, settings: Settings
    ) -> "JobContext":
        """Return the context of a job that creates a dataset; its head has no tables and is in no catalog."""
        head = Generation(
            id="", dataset_id=dataset_id, tables={}, n_images=0, created_at=datetime.now(UTC), summary=Summary()
        )
        return cls(dataset_id, head, config, (), table, thumbnails, (), settings)

    def with_added(self, versions: Mapping[str, int], summary: Summary) -> "JobContext":
        """Return the context for reading media that the job itself has added.

        Args:
            versions: of the tables of media and videos.
            summary: has the roles to assume for reading.
        """
        summary = self.head.summary.with_roles_of(summary)
        head = self.head.model_copy(update={"tables": {**self.head.tables, **versions}, "summary": summary})
        return replace(self, head=head)

    def forced(self) -> "JobContext":
        """Return the context of a job that may take any time."""
        return replace(self, settings=self.settings.model_copy(update={"index_hours": math.inf}))

    @property
    def namespace(self) -> str:
        """The dataset id from which media ids are derived; for a clone, that of the original dataset."""
        return self.head.summary.namespace or self.dataset_id

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits of issues that users set, by issue type."""
        return self.head.summary.limits

    @property
    def label_decisions(self) -> LabelDecisions:
        """The decisions that labels are right."""
        return read_label_decisions(self.table, self.head.tables)

    @property
    def kept(self) -> dict[str, int]:
        """The versions of the tables that indexing does not write."""
        return {name: version for name, version in self.head.tables.items() if name not in INDEX_TABLES}

    @property
    def object_thumbnails(self) -> Path:
        """The folder of cached thumbnails of objects."""
        return self.thumbnails.with_name(objects_dataset(self.dataset_id))

    @property
    def spill(self) -> Path:
        """The folder of temporary files of the dataset's tasks."""
        return self.thumbnails.parents[1] / SPILL / self.dataset_id

    @property
    def keypoints(self) -> Path:
        """The folder of cached keypoints."""
        return self.thumbnails.parents[1] / "keypoints" / self.dataset_id
