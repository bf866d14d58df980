"""Placement of new media in a dataset, and the ids that depend on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framedex.core.ids import frame_id, media_id
from framedex.media.sources import Item
from framedex.storage.media_rows import path_of_text


@dataclass(frozen=True)
class SourcePlacement:
    """Placement of new media in a dataset.

    Attributes:
        root: number of the source root that paths are relative to.
        prefix: prefix of paths below that root: empty, or a folder and a slash.
        batch: number of the addition; 0 is the creation.
        others: placements of the other roots of a source.
        origins: by location, the text from which an id is computed instead, see :mod:`framedex.jobs.ingest.origins`.
        names: the name within the upload of files that have another one in the dataset.
        uploads: numbers of the source roots of the dataset that are uploads.
    """

    root: int = 0
    prefix: str = ""
    batch: int = 0
    others: "tuple[SourcePlacement, ...]" = ()
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    names: Mapping[str, str] = field(default_factory=dict)
    uploads: tuple[int, ...] = ()

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


def path_in_source(row: Mapping[str, Any], placement: SourcePlacement | None) -> str | None:
    """Return the path of a row of the media table within the source that brought it, by which annotations name it.

    Args:
        row: has the columns ``path``, ``path_raw`` and ``root``.
        placement: of the source; None if its paths are relative to the dataset's own roots.

    Returns:
        The path; None if the row is below another root, or if another file of the source has its name.
    """
    path = path_of_text(row["path"], row["path_raw"])
    if placement is None:
        return path
    if row["root"] != placement.root:
        return None
    path = path.removeprefix(placement.prefix)
    return placement.names.get(path, path) or None
