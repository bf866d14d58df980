"""Runs of rows for one thread: several images, or frames of one video that are read in one pass."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from framedex.core.assumed_roles import AssumedRole
from framedex.storage.media import Media

Row = Mapping[str, Any]

RUN_LENGTH = 16
"""Images per run: enough to make the cost of passing a run to a thread negligible."""
_FRAMES = 1024  # frames of one video per pass; limits the rows in memory


@dataclass(frozen=True)
class ImageLocation:
    """Location of an image.

    Attributes:
        location: a path or a URI; None if it is neither.
        role: role to assume for reading it.
        row: the row of the table.
    """

    location: str | None
    role: AssumedRole | None
    row: Row

    @property
    def video(self) -> tuple[str, AssumedRole | None] | None:
        """Location and role of the video of a frame; None if it is not a frame or has no location."""
        if self.location is None or self.row.get("frame_number") is None:
            return None
        return self.location, self.role


Run = list[ImageLocation]
"""Consecutive images, or consecutive frames of one video."""


def runs(media: Media, rows: Iterable[Row], run_length: int = RUN_LENGTH) -> Iterator[Run]:
    """Yield all rows in order, as runs of at most *run_length* images, or of at most 1024 frames of one video."""
    images = (ImageLocation(media.location_of(row), media.role_of(row), row) for row in rows)
    for video, group in groupby(images, key=lambda image: image.video):
        while run := list(islice(group, run_length if video is None else _FRAMES)):
            yield run


def is_long_run(run: Run) -> bool:
    """Return whether a run needs threads of its own: many frames of a video."""
    return len(run) > RUN_LENGTH
