"""Everything that Framedex raises on purpose.

Error:
├── InvalidInput (ValueError)       a value that cannot be used; the message says what would be right
│   ├── InvalidFilter               a VQL filter, with the JSON path of the part that is wrong
│   ├── InvalidEmbedding            an embedding, with the row that is wrong
│   ├── NotIndexed                  the dataset was never indexed, and what was asked needs that
│   └── NotRetryable                a task that neither failed nor was aborted, or that cannot be done again here
├── NotFound (KeyError)             no such dataset, media item or file
├── Conflict                        the name is taken, or the dataset's status does not allow it
├── Forbidden                       the settings do not allow it
├── CannotDecode                    the bytes are no picture that we can show, with the reason
├── WorkspaceError (OSError)        the folder cannot be used as a workspace
│   ├── FormatTooNew                a newer version of Framedex wrote it
│   └── ReadOnly                    it was opened for reading
├── Unavailable (OSError)           what holds the media cannot be reached, or lets nothing be read
├── MissingDependency (ImportError) an optional package is not installed
├── TaskFailed                      a task that was waited for ended as FAILED
└── Aborted                         work that was stopped on request
"""

from typing import Any


class Error(Exception):
    """The root of all errors of Framedex."""

    def __str__(self) -> str:
        """Return the message as it was written (KeyError would show its repr)."""
        return str(self.args[0]) if self.args else ""


class InvalidInput(Error, ValueError):
    """A value that cannot be used."""


class InvalidFilter(InvalidInput):
    """A VQL filter that cannot be understood.

    Attributes:
        path: JSON path of the offending part, for example ``$[1].labels.op``.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"invalid filter at {path}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type["InvalidFilter"], tuple[str, str], dict[str, Any]]:
        """Return how to make the error again: pickling would give the message alone to the constructor."""
        return type(self), (self.path, self.reason), self.__dict__


class InvalidEmbedding(InvalidInput):
    """An embedding with the wrong dimension, or with values that are not finite."""


class NotIndexed(InvalidInput):
    """The dataset has no embedding config: it was never indexed."""


class NotRetryable(InvalidInput):
    """A task that cannot be done again: it neither failed nor was aborted, or what it needs is gone."""


class NotFound(Error, KeyError):
    """No such dataset, media item, cluster or file."""


class Conflict(Error):
    """The request does not fit the present state: a taken name, an incompatible status."""


class Forbidden(Error):
    """The settings of this installation do not allow it."""


class CannotDecode(Error):
    """The bytes are not a picture that can be shown; the message is the reason."""


class WorkspaceError(Error, OSError):
    """The folder cannot be used as a workspace."""


class FormatTooNew(WorkspaceError):
    """The workspace was written by a newer version of Framedex."""


class ReadOnly(WorkspaceError):
    """The workspace was opened for reading, or its folder cannot be written."""


class Unavailable(Error, OSError):
    """What holds the media, such as an object store, cannot be reached, or lets nothing be read."""


class MissingDependency(Error, ImportError):
    """An optional package is not installed; the message names the command that installs it."""


class TaskFailed(Error):
    """A task that was waited for ended as FAILED."""


class Aborted(Error):
    """The work was stopped on request; nothing of it is visible."""
