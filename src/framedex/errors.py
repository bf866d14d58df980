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
"""

from collections.abc import Sequence
from typing import Any


class Error(Exception):
    """The base class of all errors of Framedex."""

    def __str__(self) -> str:
        """Return the message itself (KeyError would return its repr)."""
        return str(self.args[0]) if self.args else ""


class InvalidInput(Error, ValueError):
    """A value that cannot be used."""


class InvalidFilter(InvalidInput):
    """An invalid VQL filter.

    Attributes:
        path: the JSON path of the invalid element, for example ``$[1].labels.op``.
        reason: the error.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"invalid filter at {path}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type["InvalidFilter"], tuple[str, str], dict[str, Any]]:
        """Return the arguments for unpickling; by default, the constructor would get the message alone."""
        return type(self), (self.path, self.reason), self.__dict__


class InvalidEmbedding(InvalidInput):
    """An embedding with the wrong dimension, or with values that are not finite."""


class OutOfRange(InvalidInput, IndexError):
    """A position of a row that a view does not have."""


class NotIndexed(InvalidInput):
    """A dataset without an embedding config, because it was never indexed."""


class NotRetryable(InvalidInput):
    """A task that cannot be retried: it neither failed nor was aborted, or its input is gone."""


class NotFound(Error, KeyError):
    """A dataset, media item, cluster or file that does not exist."""


class Gone(NotFound):
    """Results, or a plan, that are not kept any more; they can be made again."""


class Conflict(Error):
    """A conflict with the current state, such as a taken name or an incompatible status."""


class Forbidden(Error):
    """An operation that the settings of this installation, or the permissions of the user, do not allow."""


class NotAuthenticated(Error):
    """An operation that needs a user, without valid credentials of one."""


class TooManyAttempts(Error):
    """An attempt that came too soon after others that failed.

    Attributes:
        retry_after_s: the number of seconds after which another attempt is allowed.
    """

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type["TooManyAttempts"], tuple[str, int], dict[str, Any]]:
        """Return the arguments for unpickling; by default, the constructor would get the message alone."""
        return type(self), (self.args[0], self.retry_after_s), self.__dict__


class CannotDecode(Error):
    """Bytes that cannot be decoded as an image; the message is the reason."""


class WorkspaceError(Error, OSError):
    """A folder that cannot be used as a workspace."""


class FormatTooNew(WorkspaceError):
    """A workspace that was written by a newer version of Framedex."""


class ReadOnly(WorkspaceError):
    """A workspace that was opened read-only, or whose folder cannot be written."""


class TimedOut(Error):
    """The time limit of a call has ended, as that of a search over HTTP."""


class Unavailable(Error, OSError):
    """A storage service, such as an object store, that cannot be reached or denies access."""


class MissingDependency(Error, ImportError):
    """An optional package that is not installed; the message has the command to install it."""


class TaskFailed(Error):
    """A task that ended as FAILED while it was waited for."""


class Aborted(Error):
    """Work that was stopped on request; none of its results are visible."""


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
