"""Checks of the source files of datasets: whether they are there, and whether they are those that were indexed."""

import shlex

from framedex.core.counts import counted
from framedex.errors import CannotDecode, Conflict, Unavailable
from framedex.media.files import Reader, locate
from framedex.media.presence import GONE
from framedex.operations.context import open_media
from framedex.operations.integrity.inspection import Inspection
from framedex.operations.presence import NOT_LOOKED_AT, looks_of
from framedex.storage.media_rows import text_of_path


def check_source_files(inspection: Inspection, dataset_id: str, name: str, *, content: bool) -> None:
    """Look for the files of a dataset; a source of which nothing answers is one finding.

    Args:
        inspection: the check.
        dataset_id: the dataset.
        name: its name.
        content: whether to compare their content, too.
    """
    context, sync = inspection.context, f"`framedex sync {shlex.quote(name)}`"
    missing = f"{sync} finds it where it is, or marks or removes it"

    def add(location: str, fault: str, remedy: str, kind: str) -> None:
        words = f"{fault}; dataset {name!r} has it"
        inspection.add(text_of_path(location)[0], words, remedy, kind=f"{kind} of dataset {name!r}")

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
            add(file.path, "is missing, as another file is in its place", missing, "missing files")
            continue
        if file.root in faults:
            counts[file.root] = counts.get(file.root, 0) + 1
            continue
        location = locate(media.roots[file.root], file.path)
        if look.fault == GONE:
            add(location, "is missing", missing, "missing files")
        elif look.fault is not None:
            add(location, look.fault, "make it readable", "unreadable files")
        elif content and file.content_hash is not None:
            reader = readers.setdefault(
                file.root, Reader(context.settings, media.generation.summary.role_of(file.root))
            )
            inspection.counts["source files compared"] += 1
            if (fault := _fault_of_content(reader, location, file.content_hash)) is not None:
                add(location, fault, f"{sync} reads it again", "changed files")
    for number, fault in faults.items():
        files = f"{fault}; dataset {name!r} has {counted(counts.get(number, 0), 'files')} of it"
        inspection.add(text_of_path(media.roots[number])[0], files, "`framedex relocate` tells where it is now")


def _fault_of_content(reader: Reader, location: str, content_hash: bytes) -> str | None:
    try:
        digest = reader.digest(location)
    except (CannotDecode, Unavailable) as error:
        return str(error)
    return None if digest == content_hash else "is not what was indexed: its content has changed"
