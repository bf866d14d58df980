"""The files of a source that a dataset has and that are not there any more, and marked ones that are there again."""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow.compute as pc

from framedex.core.counts import counted
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.media.presence import GONE, Place
from framedex.media.remote_sources import RemoteSource
from framedex.media.sources import FolderSource, Source
from framedex.settings import Settings
from framedex.storage.media_rows import MISSING_SINCE, path_of_text, text_of_path
from framedex.storage.table_versions import Table

GONE_FILES = "files of it that are gone"
"""The reason in the counts of an addition."""
UNREADABLE_FILES = "files of it that are known and cannot be read now"


@dataclass(frozen=True)
class KnownFiles:
    """The files of a source that a dataset has, as they are now.

    Attributes:
        counts: the number of those that are gone, or cannot be read, by reason.
        back: the ids of images and videos that were marked as missing and are there again.
    """

    counts: Counter[str] = field(default_factory=Counter)
    back: frozenset[str] = frozenset()

    def words(self) -> list[str]:
        """Return what the task says of them."""
        gone = self.counts[GONE_FILES]
        return [f"{counted(gone, 'files', 'are')} gone"] if gone else []


def look_at_known(source: Source, table: Table, placement: SourcePlacement, settings: Settings) -> KnownFiles:
    """Look for the files that a dataset has of a folder, or of a prefix of a bucket; other sources are not looked at.

    Args:
        source: the source, after its files were read.
        table: the media table before them.
        placement: of the source.
        settings: allowed folders, and the access to buckets.
    """
    if not isinstance(source, FolderSource | RemoteSource):
        return KnownFiles()
    place = Place(source.root, settings, source.role)
    if isinstance(source, RemoteSource):
        if not {"size_bytes", "modified_ns"} <= set(source.table.schema.names):  # a list names what is added, no more
            return KnownFiles()
        place.know(source.table)
    counts, back = Counter[str](), set[str]()
    seen: str | None = None
    prefix = text_of_path(placement.prefix)[0]
    marks = {MISSING_SINCE.name, "video_id"} & set(table.schema.names)
    for batch in table.scan(["media_id", "path", "path_raw", "root", *sorted(marks)]):
        known: list[tuple[str, str, bool]] = []
        is_below = pc.and_(pc.equal(batch["root"], placement.root), pc.starts_with(batch["path"], prefix))
        for row in batch.filter(is_below).to_pylist():
            file_id = row.get("video_id") or row["media_id"]
            path = path_of_text(row["path"], row["path_raw"])
            if file_id == seen or not path.startswith(placement.prefix):
                continue
            seen = file_id  # frames of one video follow each other
            known.append((file_id, path.removeprefix(placement.prefix), row.get(MISSING_SINCE.name) is not None))
        looks = place.look([path for _, path, _ in known])
        for (file_id, _, is_marked), look in zip(known, looks, strict=True):
            if look.fault is None and is_marked:
                back.add(file_id)
            elif look.fault is not None:
                counts[GONE_FILES if look.fault == GONE else UNREADABLE_FILES] += 1
    return KnownFiles(counts, frozenset(back))
