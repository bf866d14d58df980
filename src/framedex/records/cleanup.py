"""Records of clean-up plans."""

from pydantic import Field

from framedex.records.base import Record
from framedex.records.snapshots import Snapshot


class CleanupSummary(Record):
    """The totals of a clean-up plan.

    ``removed`` media leave the dataset, and ``kept`` media stay in place of others of their groups. ``size_bytes`` is
    the size of the removed media's files. ``counts`` holds the removed media by reason: the name of an issue,
    ``basket``, ``duplicates`` or ``near`` (alike what stays, but no copy of it), and ``sizes`` the size of their files.
    Each media item is counted once. ``warnings`` counts the removed media with labels, or boxes of classes, that the
    image to keep of their group lacks. ``protected`` counts media that stay although the plan might remove them,
    because a person chose them, or because none of their copies would stay. ``unsure`` counts the duplicate groups that
    the plan leaves out, because it is not sure which of their members is the original.
    """

    removed: int
    kept: int
    size_bytes: int
    counts: dict[str, int]
    sizes: dict[str, int] = Field(default_factory=dict)
    warnings: int = 0
    protected: int = 0
    unsure: int = 0


class CleanupResult(Record):
    """The outcome of a clean-up.

    ``removed`` media left the dataset. ``snapshot`` holds the state before; it is None if no media were to be removed.
    Of the files that were to be deleted, ``files_deleted`` were deleted and ``files_left`` were left alone.
    ``files_failed`` lists the first thousand of the latter, each with the reason.
    """

    removed: int
    snapshot: Snapshot | None
    files_deleted: int
    files_left: int
    files_failed: list[tuple[str, str]]
