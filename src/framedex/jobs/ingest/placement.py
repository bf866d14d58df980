"""Placement of new media in a dataset, and the ids that depend on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        origins: by location, the text from which an id is computed instead, see :mod:`framedex.jobs.ingest.origins`.
    """

    root: int = 0
    prefix: str = ""
    batch: int = 0
    others: "tuple[SourcePlacement, ...]" = ()
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

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
        location = location_text(self.root, self.prefix + path)
        return self.origins.get(location, location)


def location_text(root: int, path: str) -> str:
    """Return the text from which the id of the file at a path below a source root is computed."""
    # A path has no null character, so ids below the first root differ from ids below other roots.
    return f"{root}\0{path}" if root else path


FIRST_PLACEMENT = SourcePlacement()
