"""Upload transactions of a dataset: files that are sent in many calls and processed together."""

import os
from collections.abc import Sequence
from typing import Protocol

from framedex.api.record_list import RecordList
from framedex.core.counts import counted
from framedex.encoders import Encoder
from framedex.operations import uploads
from framedex.operations.context import Context
from framedex.operations.starting import wait_for
from framedex.operations.uploads import CreationOptions
from framedex.records import UploadRecord, UploadState
from framedex.tasks import Task


class BinaryReader(Protocol):
    """A file opened for reading bytes, or an object that is read like one."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to *size* bytes; none at the end."""
        ...


FileContent = bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryReader
"""Content of a file to upload: bytes, the path of a file, or a file opened for reading bytes."""


class UploadTransaction:
    """An upload of files in many calls, by any number of threads and processes at once.

    Its files become part of the dataset when :meth:`process` has ended. A transaction survives the end of its process;
    one that is not changed for 7 days is removed, with its files.

    Attributes:
        id: a number, unique in the workspace, with which :meth:`Dataset.find_upload` finds the transaction again.
        task: the task that this object started, if any.

    Examples:
        >>> transaction = ws.create_draft("inbox").open_upload()
        >>> record = transaction.add([("cat.jpg", "new/cat-9.jpg"), ("dog.jpg", "new/dog-9.jpg")])
        >>> task = transaction.process()
        >>> ws.dataset("inbox")
        <framedex.Dataset 'inbox': 2 images, READY>
    """

    def __init__(self, context: Context, dataset_id: str, upload_id: int) -> None:
        self._context, self._dataset_id, self.id = context, dataset_id, upload_id
        self.task: Task | None = None

    @property
    def record(self) -> UploadRecord:
        """The record of the transaction: state, counts and times.

        Examples:
            >>> transaction.record.n_files, str(transaction.record.state)
            (1, 'open')
        """
        return uploads.get_upload(self._context, self._dataset_id, self.id)

    @property
    def state(self) -> UploadState:
        """The state: open, processing, done or failed.

        Examples:
            >>> print(transaction.state)
            open
        """
        return self.record.state

    def add(self, files: Sequence[tuple[str, FileContent]]) -> UploadRecord:
        """Add files, all of them or none; they are on the disk when this returns.

        Contents are copied in parts. Images, videos and annotation files (by their exact names, such as
        ``annotations.json``) are accepted. The limits are in docs/settings.md.

        Args:
            files: up to 1,000 pairs of a name and the content: bytes, a binary file, or the path of a file. Only the
                last part of a name is used. Files of an equal name are images of their own, if their contents differ.

        Returns:
            the record, which counts each file that was received.

        Raises:
            InvalidInput: a file has an unsupported format or cannot be read, or a limit is exceeded.
            Conflict: the transaction is being processed, or was processed.
            NotFound: the transaction or its dataset does not exist any more.
            WorkspaceError: the workspace cannot be written.

        Examples:
            >>> transaction.add([("dog.jpg", "new/dog-9.jpg")]).n_files
            2
        """
        return uploads.add_files(self._context, self._dataset_id, self.id, files)

    def process(
        self,
        *,
        auto_reindex: bool = False,
        encoder: str | Encoder = "auto",
        thresholds: Sequence[float] | None = None,
        frames_per_second: float = 1.0,
        scene_changes: bool = False,
        display_range: tuple[float, float] | None = None,
        wait: bool = True,
    ) -> Task:
        """Start the task that makes the files part of the dataset; call it after all calls of :meth:`add`.

        A draft becomes a dataset: the task has the type DATASET_CREATION. To other datasets the files are added, by a
        task of type MEDIA_ADDITION. If the task fails or is aborted, the files stay for 7 days, and any process can
        retry it.

        Args:
            auto_reindex: rebuild the whole index after an addition.
            encoder: as in :meth:`Workspace.create_dataset`; like the next four, for drafts only.
            thresholds: cluster thresholds, as there.
            frames_per_second: sampling of videos, as there.
            scene_changes: sampling of videos, as there.
            display_range: of images of more than 8 bits, as there.
            wait: return when the task is done, showing progress; else at once.

        Raises:
            InvalidInput: the transaction holds no files, an annotation file is malformed, or an argument cannot be
                used. The transaction stays open.
            Conflict: the transaction is processed already, another task is running, or the dataset's status does not
                allow it.
            Forbidden: the settings do not allow additions.
            NotFound: the transaction does not exist any more.
            WorkspaceError: the workspace cannot be written, or the list of the files or an annotation file is lost.

        Examples:
            >>> task = transaction.process()
            >>> transaction
            <framedex.UploadTransaction 1: 1 file, done>
        """
        options = CreationOptions(encoder, thresholds, frames_per_second, scene_changes, display_range)
        self.task = uploads.process_upload(self._context, self._dataset_id, self.id, options, auto_reindex=auto_reindex)
        if wait:
            wait_for(self.task, f"Processing transaction {self.id}")
        return self.task

    def discard(self) -> None:
        """Remove the transaction with its files, unless it is processed or done. The dataset stays.

        A dataset whose creation from this transaction failed becomes a draft again.

        Raises:
            Conflict: the transaction is being processed, or is done.
            NotFound: the transaction does not exist any more.

        Examples:
            >>> transaction.discard()
            >>> ws.dataset("inbox").uploads()
            []
        """
        uploads.discard_upload(self._context, self._dataset_id, self.id)

    def __repr__(self) -> str:
        record = self.record
        return f"<framedex.UploadTransaction {self.id}: {counted(record.n_files, 'files')}, {record.state}>"


class DatasetUploads:
    """Transactions of a dataset through which files are uploaded in many calls."""

    _context: Context
    id: str

    def open_upload(self) -> UploadTransaction:
        """Open an upload transaction, for a draft (:meth:`Workspace.create_draft`) or for an addition.

        A dataset can have up to 20 open transactions.

        Raises:
            Conflict: the status is not DRAFT, READY or PARTIAL INDEX, a task is running, or there are 20 open ones.
            Forbidden: the settings do not allow additions.
            InvalidInput: the dataset was created from embeddings.

        Examples:
            >>> ds.open_upload()
            <framedex.UploadTransaction 1: 0 files, open>
        """
        return UploadTransaction(self._context, self.id, uploads.open_upload(self._context, self.id))

    def find_upload(self, upload_id: int) -> UploadTransaction:
        """Return an upload transaction of this dataset, opened by any process.

        Raises:
            NotFound: the dataset has no transaction of that id.

        Examples:
            >>> transaction = ds.open_upload()
            >>> ds.find_upload(transaction.id)
            <framedex.UploadTransaction 1: 0 files, open>
        """
        uploads.get_upload(self._context, self.id, upload_id)
        return UploadTransaction(self._context, self.id, upload_id)

    def uploads(self) -> list[UploadRecord]:
        """Return the records of the upload transactions, oldest first, with those that are done.

        Examples:
            >>> transaction = ds.open_upload()
            >>> [(each.id, str(each.state)) for each in ds.uploads()]
            [(1, 'open')]
        """
        return RecordList(uploads.get_uploads(self._context, self.id))
