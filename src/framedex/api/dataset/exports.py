"""Exports of a dataset: the part of :class:`framedex.Dataset` about them."""

import os
from collections.abc import Sequence
from typing import Any, Literal, overload

from framedex.api.view import View
from framedex.operations import exports as exporting
from framedex.operations.context import Context
from framedex.records import ExportRecord, ExportResult
from framedex.tasks import ExportTask


class DatasetExports:
    """Exports: each reads one state of the dataset, and its file appears when it is whole."""

    _context: Context
    id: str

    @overload
    def export(
        self,
        path: str | os.PathLike[str],
        format: str = ...,
        include_images: bool = ...,
        media_selection: Sequence[Any] | None = ...,
        wait: Literal[True] = ...,
        *,
        entity_type: str = ...,
        vql: Sequence[Any] | None = ...,
    ) -> ExportResult: ...
    @overload
    def export(
        self,
        path: str | os.PathLike[str],
        format: str = ...,
        include_images: bool = ...,
        media_selection: Sequence[Any] | None = ...,
        *,
        wait: Literal[False],
        entity_type: str = ...,
        vql: Sequence[Any] | None = ...,
    ) -> ExportTask: ...
    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "json",  # noqa: A002 - the interface's word
        include_images: bool = False,
        media_selection: Sequence[Any] | None = None,
        wait: bool = True,
        *,
        entity_type: str = "IMAGES",
        vql: Sequence[Any] | None = None,
    ) -> ExportResult | ExportTask:
        """Write the dataset to a ZIP file; see :meth:`View.export`."""
        view = View(self._context, self.id)
        task = view._export(path, format, include_images, media_selection, entity_type, vql)
        return exporting.finished(task) if wait else task

    def exports(self) -> list[ExportRecord]:
        """Return the exports that were started, by any process, newest first.

        One whose process died is FAILED, "interrupted". Those of a workspace that was opened for reading are not kept.
        """
        return exporting.list_exports(self._context, self.id)

    def export_status(self, export_id: str) -> ExportRecord:
        """Return how an export stands, of whichever process.

        Raises:
            NotFound: the dataset has no export of that id.
        """
        return exporting.get_export(self._context, self.id, export_id)
