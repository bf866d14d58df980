"""The report of a view of a service: the page of the library, made of what the service answers."""

import os
from pathlib import Path

from framedex.api.view.report import ReportSource, report_html
from framedex.export.files import whole_file
from framedex.records import DatasetRecord
from framedex.render.progress import progress_bar
from framedex.settings import user_path


def write_report(
    dataset: DatasetRecord,
    view: ReportSource,
    objects: ReportSource | None,
    path: str | os.PathLike[str],
    *,
    level: int,
    extra: str,
) -> Path:
    """Write the report of a view, and return its path.

    Args:
        dataset: the record of the dataset.
        view: the media, or the objects.
        objects: the objects in the media; None for no section about them.
        path: the file.
        level: the cluster level of the page, 0 to 4.
        extra: HTML for the top of the page.

    Raises:
        InvalidInput: the file cannot be written, or *extra* is no valid text.
    """
    target = user_path(path)
    with progress_bar("Reporting") as progress:
        content = report_html(dataset, None, view, objects=objects, level=level, extra=extra, progress=progress)
    with whole_file(target) as file:
        file.write(content.encode())
    return target
