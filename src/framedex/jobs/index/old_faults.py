"""Kinds of the reasons why files are not decoded, for rows of older versions, which stored the reasons alone."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.progress import Progress
from framedex.errors import CannotDecode, Fault, NotFound, Unavailable
from framedex.jobs.context import JobContext
from framedex.media.files import Reader
from framedex.media.row_images import open_video, read_row
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.media_rows import DAMAGED, OF_FAULTS, VIDEO
from framedex.storage.objects import OBJECTS
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

_STAGE = "reading files that were not decoded"
_DAMAGE = re.compile("truncated|broken data stream|the file is empty|holds only zero bytes", re.I)
"""Words of older versions that tell damage."""
_FAULT = pa.schema([OF_FAULTS.field("fault")])


def name_faults(job: JobContext, table: Table, progress: Progress, roots: Sequence[str]) -> Table:
    """Read the files of rows that have an error of no kind, and write the kind; return the table at its new version.

    A file that can be decoded by now counts as not supported by the version that has read it. Of a file that is gone,
    the reason tells whether it was damaged.

    Args:
        job: the context of the job.
        table: the table of media or objects, at its newest version, with the columns about faults.
        progress: called with the stage and the completed share, 0 to 1; raises to stop.
        roots: source roots by number.
    """
    unnamed = _unnamed(table.scan(["error", "fault"]).read_all())
    total = pc.sum(unnamed).as_py() or 0
    if not total:
        return table
    media = Media(job.dataset_id, job.head, table, Sql(), tuple(roots))
    is_of_objects = table.path.stem == OBJECTS
    done = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal done
        for batch in table.scan([*media.location, "error", "fault"]):
            faults = batch.column("fault").to_pylist()
            for row in pc.indices_nonzero(_unnamed(batch)).to_pylist():
                faults[row] = DAMAGED if is_of_objects else _fault(job, media, batch.slice(row, 1).to_pylist()[0])
                done += 1
                progress(_STAGE, done / total)
            yield pa.RecordBatch.from_arrays([pa.array(faults, pa.string())], schema=_FAULT)

    return Table(table.path, tables.put_columns(table, batches(), _FAULT))


def _unnamed(rows: Any) -> Any:
    return pc.and_(pc.is_valid(rows.column("error")), pc.is_null(rows.column("fault")))


def _fault(job: JobContext, media: Media, row: dict[str, Any]) -> Fault:
    location = media.location_of(row)
    if location is None:  # its embedding cannot be used
        return DAMAGED
    reader = Reader(job.settings, media.role_of(row))
    try:
        if row.get("kind") == VIDEO:
            with open_video(location, reader, job.settings) as video:
                video.find(0, 0.0)
            return "not_supported"
        image = read_row(row, location, reader, job.settings, detail=1)
    except CannotDecode as error:
        return error.fault
    except (NotFound, Unavailable):
        return DAMAGED if _DAMAGE.search(row["error"]) else "unreadable"
    return "not_supported" if image.damage is None else DAMAGED
