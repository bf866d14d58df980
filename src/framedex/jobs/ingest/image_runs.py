"""Rows of a dataset, gathered into what one thread looks at: pictures, or frames that are found in one pass."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from framedex.storage.media import Media

Row = Mapping[str, Any]

PICTURES = 16
"""How many pictures one thread looks at in a row: enough that handing them over costs nothing."""
_FRAMES = 1024  # of one video that are found in one pass; bounds the rows that are held


@dataclass(frozen=True)
class ImageLocation:
    """Where a picture is.

    Attributes:
        location: a path or an object's URI; None for neither.
        role: to assume for reading it.
        row: what the table says of it.
    """

    location: str | None
    role: str | None
    row: Row

    @property
    def video(self) -> tuple[str, str | None] | None:
        """Location and role of the video that the picture is a frame of; None if it is none that can be read."""
        if self.location is None or self.row.get("frame_number") is None:
            return None
        return self.location, self.role


Run = list[ImageLocation]
"""Pictures, or frames of one video, that follow each other."""


def runs(media: Media, rows: Iterable[Row], pictures: int = PICTURES) -> Iterator[Run]:
    """Yield all rows in their order, as runs of up to so many pictures, or of up to 1024 frames of one video."""
    places = (ImageLocation(media.location_of(row), media.role_of(row), row) for row in rows)
    for video, group in groupby(places, key=lambda place: place.video):
        while run := list(islice(group, pictures if video is None else _FRAMES)):
            yield run


def is_long_run(run: Run) -> bool:
    """Return whether a run is worth threads of its own: many frames of a video."""
    return len(run) > PICTURES
