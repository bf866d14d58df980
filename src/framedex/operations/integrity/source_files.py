"""Checks of the source files of datasets: whether they are there, and whether they are those that were indexed."""

from framedex.core.counts import counted
from framedex.errors import CannotDecode, Conflict, Unavailable
from framedex.media.files import Reader, locate
from framedex.media.presence import GONE
from framedex.operations.context import open_media
from framedex.operations.integrity.inspection import Inspection
from framedex.operations.presence import NOT_LOOKED_AT, looks_of
from framedex.storage.media_rows import text_of_path

_SYNC = "`framedex sync` finds it where it is, or marks or removes it"


def check_source_files(inspection: Inspection, dataset_id: str, name: str, *, content: bool) -> None:
    """Look for the files of a dataset; a source of which nothing answers is one finding.

    Args:
        inspection: the check.
        dataset_id: the dataset.
        name: its name.
        content: whether to compare their content, too.
    """
    context = inspection.context
    try:
        media = open_media(context, dataset_id)
    except Conflict:  # it has no media yet
        return
    faults: dict[int, str] = {}
    counts: dict[int, int] = {}
    readers: dict[int, Reader] = {}
    for file, look in looks_of(context, media, faults):
        inspection.step()
        if look is NOT_LOOKED_AT:
            inspection.counts["files of tables, not looked at"] += 1
            continue
        inspection.counts["source files"] += 1
        if file.root is None:
            inspection.add(
                text_of_path(file.path)[0], "is missing, as another file is in its place", _SYNC, kind="missing files"
            )
            continue
        if file.root in faults:
            counts[file.root] = counts.get(file.root, 0) + 1
            continue
        location = locate(media.roots[file.root], file.path)
        if look.fault == GONE:
            inspection.add(text_of_path(location)[0], "is missing", _SYNC, kind="missing files")
        elif look.fault is not None:
            inspection.add(text_of_path(location)[0], look.fault, "make it readable", kind="unreadable files")
        elif content and file.content_hash is not None:
            reader = readers.setdefault(
                file.root, Reader(context.settings, media.generation.summary.role_of(file.root))
            )
            inspection.counts["source files compared"] += 1
            if (fault := _fault_of_content(reader, location, file.content_hash)) is not None:
                inspection.add(text_of_path(location)[0], fault, "`framedex sync` reads it again", kind="changed files")
    for number, fault in faults.items():
        files = f"{fault}; dataset {name!r} has {counted(counts.get(number, 0), 'files')} of it"
        inspection.add(text_of_path(media.roots[number])[0], files, "`framedex relocate` tells where it is now")


def _fault_of_content(reader: Reader, location: str, content_hash: bytes) -> str | None:
    try:
        digest = reader.digest(location)
    except (CannotDecode, Unavailable) as error:
        return str(error)
    return None if digest == content_hash else "is not what was indexed: its content has changed"
