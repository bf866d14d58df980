"""The exceptions of Framedex.

Error:
├── InvalidInput (ValueError)       a value that cannot be used; the message says what would be right
│   ├── InvalidFilter               a VQL filter, with the JSON path of the part that is wrong
│   ├── InvalidEmbedding            an embedding, with the row that is wrong
│   ├── OutOfRange (IndexError)      a position of a row that a view does not have
│   ├── NotIndexed                  the dataset has no index yet, and the operation needs one
│   └── NotRetryable                a task that neither failed nor was aborted, or that cannot be repeated here
├── NotFound (KeyError)             no such dataset, media item or file
│   └── Gone                        results or a plan that existed, and were kept for a limited time
├── Conflict                        the name is taken, or the dataset's status does not allow it
├── Forbidden                       the settings or the user's permissions do not allow it
├── NotAuthenticated                nobody is logged in, or the credentials are not valid
├── TooManyAttempts                 an attempt too soon after others that failed
├── CannotDecode                    the bytes cannot be decoded as an image; the message has the reason
├── WorkspaceError (OSError)        the folder cannot be used as a workspace
│   ├── FormatTooNew                a newer version of Framedex wrote it
│   └── ReadOnly                    the workspace was opened read-only
├── TimedOut                        the time limit of a call has ended
├── Unavailable (OSError)           the storage of the media cannot be reached, or denies access
├── MissingDependency (ImportError) an optional package is not installed
├── TaskFailed                      a task ended as FAILED
└── Aborted                         the work was stopped on request

EmptyResultWarning (UserWarning)    a result is empty; the message says why
"""

from collections.abc import Sequence
from typing import Any, Literal

Fault = Literal["damaged", "not_supported", "over_limit", "unreadable"]
"""The kind of reason why a file is not shown, or not wholly.

``damaged``: a part of its content is missing or wrong. ``not_supported``: its content is of a kind that is not decoded.
``over_limit``: a limit forbids to decode it. ``unreadable``: its content could not be read, so it may be in order.
"""


class Error(Exception):
    """The base class of all errors of Framedex.

    Examples:
        >>> try:
        ...     ws.dataset("cats")
        ... except framedex.Error as error:
        ...     print(error)
        no dataset 'cats'; there are: 'new', 'pets'
    """

    def __str__(self) -> str:
        """Return the message itself (KeyError would return its repr)."""
        return str(self.args[0]) if self.args else ""


class InvalidInput(Error, ValueError):
    """A value that cannot be used.

    Examples:
        >>> ws.create_dataset("pets/2", "photos")
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidInput: the name of a dataset must not contain slashes, as 'pets/2' does
    """


class InvalidFilter(InvalidInput):
    """An invalid VQL filter.

    Attributes:
        path: the JSON path of the invalid element, for example ``$[1].labels.op``.
        reason: the error.

    Examples:
        >>> ds.where([{"labels": {"op": "like", "value": "cat"}}])
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidFilter: invalid filter at $[0].labels.op: Input should be 'is', 'is_not',
          'one_of' or 'not_one_of'; found 'like'
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"invalid filter at {path}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type["InvalidFilter"], tuple[str, str], dict[str, Any]]:
        """Return the arguments for unpickling; by default, the constructor would get the message alone."""
        return type(self), (self.path, self.reason), self.__dict__


class InvalidEmbedding(InvalidInput):
    """An embedding with the wrong dimension, or with values that are not finite.

    Examples:
        >>> import pyarrow as pa
        >>> table = pa.table({"uri": ["1.jpg", "2.jpg"], "embedding": [[0.6, 0.8], [1.0, float("nan")]]})
        >>> ws.create_dataset("vectors", table)
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidEmbedding: row 1 has the value nan at place 1 of its embedding; embeddings must
          be finite
    """


class OutOfRange(InvalidInput, IndexError):
    """A position of a row that a view does not have.

    Examples:
        >>> ds.view[100]
        Traceback (most recent call last):
            ...
        framedex.errors.OutOfRange: no row 100 in a view of 33 media
    """


class NotIndexed(InvalidInput):
    """A dataset without an embedding config, because it was never indexed.

    Examples:
        >>> ws.create_draft("inbox").embedding_config
        Traceback (most recent call last):
            ...
        framedex.errors.NotIndexed: Dataset has no embedding config
    """


class NotRetryable(InvalidInput):
    """A task that cannot be retried: it neither failed nor was aborted, or its input is gone.

    Examples:
        >>> ws.task(ds.last_task.task_id).retry()
        Traceback (most recent call last):
            ...
        framedex.errors.NotRetryable: task ... is COMPLETED; only FAILED and ABORTED tasks can be retried
    """


class NotFound(Error, KeyError):
    """A dataset, media item, cluster or file that does not exist.

    Examples:
        >>> ds.media_id("cat.jpg")
        Traceback (most recent call last):
            ...
        framedex.errors.NotFound: no media at 'cat.jpg' in this dataset
    """


class Gone(NotFound):
    """Results, or a plan, that are not kept any more; they can be made again.

    Examples:
        >>> found = client.dataset("pets").search("cat")
        >>> try:
        ...     print(found.count())
        ... except framedex.Gone:
        ...     print("the results were not kept; search again")
        10
    """


class Conflict(Error):
    """A conflict with the current state, such as a taken name or an incompatible status.

    Examples:
        >>> ws.create_draft("pets")
        Traceback (most recent call last):
            ...
        framedex.errors.Conflict: a dataset named 'pets' exists already; choose another name or delete it first
    """


class Forbidden(Error):
    """An operation that the settings of this installation, or the permissions of the user, do not allow.

    Examples:
        >>> settings = ws.change_settings(add_media_enabled=False)
        >>> ds.add_media("new")
        Traceback (most recent call last):
            ...
        framedex.errors.Forbidden: Add media feature is not enabled
    """


class NotAuthenticated(Error):
    """An operation that needs a user, without valid credentials of one.

    Examples:
        >>> with framedex.Client(url, key, secret[::-1]) as client:
        ...     client.me
        Traceback (most recent call last):
            ...
        framedex.errors.NotAuthenticated: Invalid or expired token
    """


class TooManyAttempts(Error):
    """An attempt that came too soon after others that failed.

    Attributes:
        retry_after_s: the number of seconds after which another attempt is allowed.

    Examples:
        >>> error = framedex.TooManyAttempts("try again in 30 s", retry_after_s=30)
        >>> error.retry_after_s
        30
    """

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type["TooManyAttempts"], tuple[str, int], dict[str, Any]]:
        """Return the arguments for unpickling; by default, the constructor would get the message alone."""
        return type(self), (self.args[0], self.retry_after_s), self.__dict__


class CannotDecode(Error):
    """Bytes that cannot be decoded as an image; the message is the reason.

    Attributes:
        fault: the kind of reason: ``damaged``, ``not_supported``, ``over_limit`` or ``unreadable``.

    Examples:
        >>> try:
        ...     ds.read(ds.media_id("broken.jpg"))
        ... except framedex.CannotDecode as error:
        ...     print(error.fault, error, sep=": ")
        damaged: '.../broken.jpg' cannot be shown: it ends early: ... % of the image is there
    """

    def __init__(self, reason: str, fault: Fault = "damaged") -> None:
        super().__init__(reason)
        self.fault: Fault = fault


class WorkspaceError(Error, OSError):
    """A folder that cannot be used as a workspace.

    Examples:
        >>> framedex.Workspace("photos")
        Traceback (most recent call last):
            ...
        framedex.errors.WorkspaceError: .../photos holds other files and no framedex.toml; choose an empty ...
    """


class FormatTooNew(WorkspaceError):
    """A workspace that was written by a newer version of Framedex.

    Examples:
        >>> marker = ws.path / "framedex.toml"
        >>> size = marker.write_text("format_version = 99")
        >>> framedex.Workspace(ws.path)
        Traceback (most recent call last):
            ...
        framedex.errors.FormatTooNew: .../framedex has format version 99; this Framedex reads up to 1: install a
          newer Framedex
    """


class ReadOnly(WorkspaceError):
    """A workspace that was opened read-only, or whose folder cannot be written.

    Examples:
        >>> framedex.Workspace("~/framedex", read_only=True).create_draft("inbox")
        Traceback (most recent call last):
            ...
        framedex.errors.ReadOnly: .../framedex/catalog.db was opened for reading; nothing was changed
    """


class TimedOut(Error):
    """The time limit of a call has ended, as that of a search over HTTP.

    Examples:
        >>> try:
        ...     print(client.dataset("pets").search("cat", limit=5).count())
        ... except framedex.TimedOut:
        ...     print("the service is busy")
        5
    """


class Unavailable(Error, OSError):
    """A storage service, such as an object store, that cannot be reached or denies access.

    Examples:
        >>> framedex.Client("http://127.0.0.1:9").datasets()
        Traceback (most recent call last):
            ...
        framedex.errors.Unavailable: the service at http://127.0.0.1:9 cannot be reached: ...
    """


class MissingDependency(Error, ImportError):
    """An optional package that is not installed; the message has the command to install it.

    Examples:
        >>> try:
        ...     images = ds.to_torch(target=None)
        ... except framedex.MissingDependency as error:
        ...     print(error)
    """


class TaskFailed(Error):
    """A task that ended as FAILED while it was waited for.

    Examples:
        >>> failed.wait()
        Traceback (most recent call last):
            ...
        framedex.errors.TaskFailed: task ... failed: RuntimeError: the encoder is out of order
    """


class Aborted(Error):
    """Work that was stopped on request; none of its results are visible.

    Examples:
        >>> record = running.abort()
        >>> running.wait()
        Traceback (most recent call last):
            ...
        framedex.errors.Aborted: aborted on request
    """


class EmptyResultWarning(UserWarning):
    """A warning that a result is empty and why, as a name in a filter that the dataset does not have.

    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always", framedex.EmptyResultWarning)
        ...     count = ds.where(vql.labels("dgo")).count()
        >>> print(count, caught[0].message)
        0 the result is empty: there is no label 'dgo'; did you mean 'dog'?
    """


CODES: Sequence[tuple[type[Error], str]] = (
    (NotAuthenticated, "not_authenticated"),
    (TooManyAttempts, "rate_limited"),
    (Gone, "gone"),
    (NotFound, "not_found"),
    (NotIndexed, "not_indexed"),
    (NotRetryable, "not_retryable"),
    (Conflict, "conflict"),
    (Forbidden, "forbidden"),
    (InvalidFilter, "invalid_filter"),
    (CannotDecode, "cannot_decode"),
    (InvalidInput, "invalid"),
    (TimedOut, "timeout"),
    (Unavailable, "unavailable"),
    (WorkspaceError, "workspace"),
    (MissingDependency, "missing_dependency"),
)
"""The codes of errors in answers of the service. The first row that fits counts: a subclass stands before its base."""
