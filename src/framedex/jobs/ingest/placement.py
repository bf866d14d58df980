"""Placement of new media in a dataset, and the ids that depend on it."""

from dataclasses import dataclass

from framedex.core.ids import frame_id, media_id
from framedex.media.sources import Item


@dataclass(frozen=True)
class SourcePlacement:
    """Placement of new media in a dataset.

    Attributes:
        root: number of the source root that paths are relative to.
        prefix: prefix of paths below that root: empty, or a folder and a slash.
        batch: number of the addition; 0 is the creation.
        others: placements of the other roots of a source.
    """

    root: int = 0
    prefix: str = ""
    batch: int = 0
    others: "tuple[SourcePlacement, ...]" = ()

    def of(self, item: Item) -> "SourcePlacement":
        """Return the placement of an item of a source."""
        return self.others[item.part - 1] if item.part else self

    def media_id(self, dataset_id: str, path: str) -> str:
        """Return the id of the image or video at a path; equal paths below different roots have different ids."""
        return media_id(dataset_id, self._location(path))

    def frame_id(self, dataset_id: str, path: str, number: int) -> str:
        """Return the id of a frame of the video at a path."""
        return frame_id(dataset_id, self._location(path), number)

    def _location(self, path: str) -> str:
        below = self.prefix + path
        # A path has no null character, so ids below the first root differ from ids below other roots.
        return f"{self.root}\0{below}" if self.root else below


FIRST_PLACEMENT = SourcePlacement()
