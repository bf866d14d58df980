"""Exports of a dataset: the part of :class:`framedex.Dataset` about them."""

import os
from collections.abc import Sequence
from typing import Any

from framedex.api.view import View
from framedex.operations import exports as exporting
from framedex.operations.context import Context
from framedex.records import ExportRecord
from framedex.tasks import ExportTask


class DatasetExports(exporting.Exportable):
    """Exports: each reads one state of the dataset, and its file appears when it is whole."""

    _context: Context
    id: str

    def _export(
        self,
        path: str | os.PathLike[str],
        format: str,  # noqa: A002 - the interface's word
        include_images: bool,
        media_selection: Sequence[Any] | None,
        entity_type: str | None,
        vql: Sequence[Any] | None,
    ) -> ExportTask:
        view = View(self._context, self.id)
        return view._export(path, format, include_images, media_selection, entity_type, vql)

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
