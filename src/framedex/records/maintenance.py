"""Records of the care of a workspace: vacuum, check and recovery."""

from framedex.records.base import Record


class VacuumResult(Record):
    """The outcome of :meth:`framedex.Workspace.vacuum`.

    ``freed_bytes`` is the disk space that was freed; files that a clone shares do not count. ``versions`` counts table
    versions that were deleted, and ``tables`` whole tables that no head or snapshot refers to. ``datasets`` counts
    folders of datasets that are not in the catalog. ``thumbnails`` counts thumbnails of media that are gone.
    ``uploaded_bytes``, a part of ``freed_bytes``, is the size of uploaded files that no head or snapshot refers to.
    ``partial_files`` counts incomplete files, and ``uploads`` upload transactions that expired. ``skipped`` holds, by
    name of a dataset, the reason why it, or the rest of it, was left alone.
    """

    freed_bytes: int
    versions: int
    tables: int
    datasets: int
    thumbnails: int
    uploaded_bytes: int
    partial_files: int
    uploads: int
    skipped: dict[str, str]


class Finding(Record):
    """A fault that a check detected: ``path`` is the file or folder, ``remedy`` the advised repair."""

    path: str
    fault: str
    remedy: str
    repaired: bool = False


class CheckResult(Record):
    """The outcome of :meth:`framedex.Workspace.check`.

    ``counts`` holds the number of checked items by kind: ``datasets, table versions, columns, uploaded files, cached
    files``.
    """

    findings: list[Finding]
    counts: dict[str, int]

    @property
    def is_sound(self) -> bool:
        """True if no fault was detected, or every fault was repaired."""
        return all(finding.repaired for finding in self.findings)


class RecoveryResult(Record):
    """The outcome of :meth:`framedex.Workspace.recover`.

    ``datasets`` are the names of the recovered datasets, oldest first, and ``snapshots`` is the number of their
    snapshots. ``kept_as`` are the files that the damaged catalog, or database of users, was moved to. ``left_out``
    names in a line each what could not be recovered.
    """

    datasets: list[str]
    snapshots: int
    kept_as: list[str]
    left_out: list[str]
