"""Records of backups: what one holds, and the proof that it can be restored."""

from datetime import datetime

from framedex.records.base import Record
from framedex.records.maintenance import Finding


class BackupDataset(Record):
    """A dataset in a backup, with the numbers of its media (frames included), videos, objects and snapshots."""

    id: str
    name: str
    namespace: str
    n_media: int
    n_videos: int
    n_objects: int
    n_snapshots: int


class BackupResult(Record):
    """The outcome of :meth:`framedex.Workspace.backup`.

    ``files`` and ``bytes`` are the number and the size of all files of the backup, ``copied_bytes`` is the size of
    those that this call wrote, ``linked_files`` the number of those that are hard links. ``with_users`` tells whether
    the users of the service are in it. ``not_included`` names, in a line each, parts that the workspace has or needs
    and the backup does not hold. ``missing_uploads`` is the number of uploaded images that the workspace itself lacks.
    """

    path: str
    created_at: datetime
    files: int
    bytes: int
    copied_bytes: int
    linked_files: int
    with_users: bool
    datasets: list[BackupDataset]
    not_included: list[str]
    missing_uploads: int


class RestoreResult(Record):
    """The outcome of :meth:`framedex.Workspace.restore_backup`.

    ``files`` and ``bytes`` were compared with the list of the backup. ``datasets`` have the numbers of rows that were
    counted in the restored tables. ``findings`` are the faults that the check of the restored workspace detected.
    """

    path: str
    created_at: datetime
    files: int
    bytes: int
    with_users: bool
    datasets: list[BackupDataset]
    findings: list[Finding]

    @property
    def is_sound(self) -> bool:
        """True if no fault was detected."""
        return not self.findings
