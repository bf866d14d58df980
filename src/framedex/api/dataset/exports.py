"""Export methods of :class:`framedex.Dataset`."""

import os
from collections.abc import Sequence
from typing import Any

from framedex.api.record_list import RecordList
from framedex.api.view import View
from framedex.export.options import ExportOptions
from framedex.operations import exports as exporting
from framedex.operations.context import Context
from framedex.records import ExportRecord
from framedex.tasks import ExportTask


class DatasetExports(exporting.Exportable):
    """Exports of a dataset. Each export reads one state; its file appears when it is complete."""

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
        options: ExportOptions,
    ) -> ExportTask:
        view = View(self._context, self.id)
        return view._export(path, format, include_images, media_selection, entity_type, vql, options)

    def _selector_of(self, vql: Any) -> exporting.Selector:
        return View(self._context, self.id)._selector_of(vql)

    def count_export(
        self,
        media_selection: Sequence[Any] | None = None,
        *,
        entity_type: str | None = None,
        vql: Sequence[Any] | None = None,
    ) -> int:
        """Return the number of media or objects that :meth:`export` would select; see :meth:`View.count_export`.

        Examples:
            >>> ds.count_export(vql=vql.labels("cat"))
            9
        """
        view = View(self._context, self.id)
        return view.count_export(media_selection, entity_type=entity_type, vql=vql)

    def exports(self) -> list[ExportRecord]:
        """Return the exports of all processes, newest first.

        An export whose process died is FAILED, "interrupted". Exports of a read-only workspace are not recorded.

        Examples:
            >>> record = ds.export("pets.zip")
            >>> [(str(each.status), each.result_message) for each in ds.exports()]
            [('COMPLETED', '33 media, 9 objects')]
        """
        return RecordList(exporting.list_exports(self._context, self.id))

    def export_status(self, export_id: str) -> ExportRecord:
        """Return the record of an export of any process.

        Raises:
            NotFound: the export does not exist.

        Examples:
            >>> record = ds.export("pets.zip")
            >>> print(ds.export_status(ds.exports()[0].id).status)
            COMPLETED
        """
        return exporting.get_export(self._context, self.id, export_id)
