"""A dataset: what can be done to one."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex import pictures
from framedex.context import Context, open_media
from framedex.errors import Conflict
from framedex.export.files import whole_file
from framedex.records import DatasetRecord, DuplicateGroup, EmbeddingConfig, ExportResult, TaskRecord
from framedex.render import html
from framedex.render.progress import progress_bar
from framedex.report import report_html
from framedex.search import explore as search_explore
from framedex.settings import user_path
from framedex.storage import datasets, task_rows
from framedex.tasks import Task
from framedex.view import ExplorePage, View

if TYPE_CHECKING:
    import pandas as pd


class Dataset:
    """One dataset of a workspace. Readers see its last committed state and never wait.

    Attributes:
        id: the dataset's UUID.
        task: the task that this process started for it, if any.
    """

    def __init__(self, context: Context, dataset_id: str, task: Task | None = None) -> None:
        self._context, self.id, self.task = context, dataset_id, task

    @property
    def info(self) -> DatasetRecord:
        """The interface's Dataset record: status, progress, counts."""
        with self._context.catalog.read() as connection:
            return datasets.find_dataset(connection, self.id)

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.info.display_name

    @property
    def embedding_config(self) -> EmbeddingConfig:
        """The encoder, its dimension and the clustering thresholds that the dataset was indexed with.

        Raises:
            Conflict: it was not indexed yet.
        """
        with self._context.catalog.read() as connection:
            config = datasets.embedding_config(connection, self.id)
        if config is None:
            raise Conflict("Dataset has no embedding config")
        return config

    @property
    def skipped(self) -> dict[str, int]:
        """What ingestion left out, by reason."""
        return dict(open_media(self._context, self.id).generation.summary.get("skipped", {}))

    @property
    def last_task(self) -> TaskRecord | None:
        """The dataset's newest task, of any process; None if there was none."""
        with self._context.catalog.read() as connection:
            found = task_rows.list_tasks(connection, dataset_id=self.id)
        return found[0] if found else None

    def where(self, vql: Sequence[Any]) -> View:
        """Return the media that pass a VQL filter, as in ``[{"labels": {"op": "is", "value": "dog"}}]``.

        Raises:
            InvalidFilter: the filter cannot be understood.
        """
        return self._view().where(vql)

    def explore(
        self,
        entity_type: str = "IMAGES",
        threshold: int = 0,
        page_number: int = 0,
        vql: Sequence[Any] | None = None,
    ) -> ExplorePage:
        """Return a page of 100 clusters, largest first; see :meth:`View.explore`."""
        return self._view().explore(entity_type, threshold, page_number, vql)

    def count(self) -> int:
        """Return the number of media."""
        return self._view().count()

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each media item; see :meth:`View.to_arrow`."""
        return self._view().to_arrow(columns)

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return a row for each media item; see :meth:`View.to_pandas`."""
        return self._view().to_pandas(columns)

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> pa.Table:
        """Return a row for each issue found, worst first; see :meth:`View.issues`."""
        return self._view().issues(issue_type, limit=limit)

    def duplicates(self, threshold: float = 0.96, *, limit: int | None = None) -> list[DuplicateGroup]:
        """Return groups of near-duplicates, largest first; see :meth:`View.duplicates`."""
        return self._view().duplicates(threshold, limit=limit)

    def embeddings(self) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return (media ids, float32 of shape (N, D) and unit length) of the media that have an embedding."""
        return search_explore.vectors(open_media(self._context, self.id))

    def read(self, media_id: str) -> npt.NDArray[np.uint8]:
        """Return a picture: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            NotFound: there is no such media item, or its file is gone.
            CannotDecode: its file is no picture.
        """
        return pictures.full_pixels(open_media(self._context, self.id), media_id, self._context.settings)

    def thumbnail(self, media_id: str) -> bytes:
        """Return a JPEG of a picture whose longer side has at most 256 pixels.

        Raises:
            NotFound: there is no such media item, or its file is gone.
            CannotDecode: its file is no picture.
        """
        folder = self._context.layout.thumbnails(self.id)
        media, keep = open_media(self._context, self.id), not self._context.catalog.read_only
        return pictures.cached_thumbnail(media, media_id, self._context.settings, folder=folder, keep=keep)

    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "json",  # noqa: A002 - the interface's word
        include_images: bool = False,
        media_selection: Sequence[Any] | None = None,
    ) -> ExportResult:
        """Write the dataset to a ZIP file; see :meth:`View.export`."""
        return self._view().export(path, format, include_images, media_selection)

    def report(self, path: str | os.PathLike[str], *, level: int = 3, extra: str = "") -> Path:
        """Write one self-contained HTML page with the issues, the near-duplicates and the clusters; return its path.

        Args:
            path: the file.
            level: the clustering level that is shown, 0 to 4.
            extra: HTML that comes first on the page.

        Raises:
            InvalidInput: the file cannot be written.
        """
        target = user_path(path)
        with progress_bar("Reporting") as watcher:
            content = report_html(
                self.info, self.embedding_config, self._view(), level=level, extra=extra, progress=watcher
            )
        with whole_file(target) as file:
            file.write(content.encode())
        return target

    def __repr__(self) -> str:
        info = self.info
        return f"<framedex.Dataset {info.display_name!r}: {info.n_images} images, {info.status_new}>"

    def _repr_html_(self) -> str:
        info = self.info
        head = html.heading(info.display_name, 2) + html.note(f"{info.n_images:,} images · {info.status_new}")
        try:
            summaries = self._view().issue_summaries()
        except Conflict:
            return html.block(head)
        found = html.bars((summary.issue_type, summary.count) for summary in summaries if summary.count)
        return html.block(head, found) + self._view()._repr_html_()

    def _view(self) -> View:
        return View(self._context, self.id)
