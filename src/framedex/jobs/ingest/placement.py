"""Where added media belong in a dataset, and the ids that follow from that."""

from dataclasses import dataclass

from framedex.ids import frame_id, media_id
from framedex.media.sources import Item


@dataclass(frozen=True)
class SourcePlacement:
    """Where added media belong in a dataset.

    Attributes:
        root: number of the source root that their paths are relative to.
        prefix: what comes before their paths below that root: empty, or a folder and a slash.
        batch: number of the addition; 0 is the creation.
        others: the places of what a source has below its other roots.
    """

    root: int = 0
    prefix: str = ""
    batch: int = 0
    others: "tuple[Place, ...]" = ()

    def of(self, item: Item) -> "SourcePlacement":
        """Return the place of a source's item."""
        return self.others[item.part - 1] if item.part else self

    def media_id(self, dataset_id: str, path: str) -> str:
        """Return the id of the file at a path, of a picture or a whole video: one name below two roots is two files."""
        return media_id(dataset_id, self._location(path))

    def frame_id(self, dataset_id: str, path: str, number: int) -> str:
        """Return the id of a frame of the video at a path."""
        return frame_id(dataset_id, self._location(path), number)

    def _location(self, path: str) -> str:
        below = self.prefix + path
        # No path has a null character, so none below the first root looks like one below another.
        return f"{self.root}\0{below}" if self.root else below


FIRST_PLACEMENT = SourcePlacement()
