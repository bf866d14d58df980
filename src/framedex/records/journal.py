"""The journal of a dataset."""

from datetime import datetime

from framedex.records.base import Record


class JournalStep(Record):
    """A step by which a user edited a dataset.

    Attributes:
        step: its number, ascending in time.
        operation: what was done, as ``set_labels``.
        n_media: the number of media that it changed.
        created_by, created_at: who did it, and when.
        undone_by, undone_at: who has undone it, and when; None if it holds.
        reason: why it cannot be undone; None if it can.
        lost_files: in what an undo returns, the number of media that it brought back without their file, because the
            clean-up that is undone deleted it; None for none.
    """

    step: int
    operation: str
    n_media: int
    created_by: str
    created_at: datetime
    undone_by: str | None = None
    undone_at: datetime | None = None
    reason: str | None = None
    lost_files: int | None = None
