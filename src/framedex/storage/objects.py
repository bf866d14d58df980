"""The table of a dataset's objects: one row for each bounding box, with the columns of media and of the box.

Code that reads a media table can read this one, too: :func:`objects_generation` returns a generation whose media are
the objects. Objects have a dataset id of their own, derived from the dataset's id, for the ids of their groups and the
names of their caches.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from framedex.core.ids import objects_dataset
from framedex.errors import NotFound
from framedex.storage.generation import Generation, ObjectSummary, Summary
from framedex.storage.media import Media, time_fragment
from framedex.storage.table_names import CELLS, MEANS, MEDIA
from framedex.storage.table_versions import Table

OBJECTS = "objects"
"""Name of the table in a generation, and key of its part in the generation's summary."""
TABLES = {MEDIA: OBJECTS, CELLS: "object_cells", MEANS: "object_means"}
"""Names of the tables of objects, by the names of the corresponding tables of media."""


def objects_path(media: Path) -> Path:
    """Return the folder of the objects table beside a media table."""
    return media.with_name(f"{OBJECTS}.lance")


def objects_generation(generation: Generation) -> Generation | None:
    """Return a generation with its objects as media; None if it has no objects."""
    if OBJECTS not in generation.tables:
        return None
    others = {name: version for name, version in generation.tables.items() if name not in {*TABLES, *TABLES.values()}}
    own = {name: generation.tables[of] for name, of in TABLES.items() if of in generation.tables}
    of_objects = generation.summary.objects or ObjectSummary()
    return generation.model_copy(
        update={
            "id": f"{generation.id}/{OBJECTS}",
            "dataset_id": objects_dataset(generation.dataset_id),
            "tables": others | own,
            "n_images": of_objects.n_objects,
            "summary": generation.summary.of_objects(),
        }
    )


def with_objects(
    tables: Mapping[str, int], summary: Summary, versions: Mapping[str, int], of_objects: ObjectSummary
) -> tuple[dict[str, int], Summary]:
    """Return the tables and the summary of a generation with its objects replaced.

    Args:
        tables: the generation's table versions.
        summary: the generation's summary.
        versions: versions of the tables of objects, by the names of the corresponding tables of media.
        of_objects: the objects' part of the summary.
    """
    own = {name: version for name, version in tables.items() if name not in TABLES.values()}
    return own | {TABLES[name]: version for name, version in versions.items()}, summary.with_(objects=of_objects)


def count_objects(generation: Generation) -> int:
    """Return the number of objects in a generation."""
    return generation.n_objects


def objects_of(media: Media) -> Media | None:
    """Return a view of the objects in media; None if the dataset has no objects.

    It contains all objects of the generation. Its ``parents`` are the media.
    """
    generation = objects_generation(media.generation)
    if generation is None:
        return None
    path, version = objects_path(media.table.path), generation.tables[MEDIA]
    table = Table(path, version) if media.columns is None else media.columns.open(path, version)
    return replace(
        media, dataset_id=generation.dataset_id, generation=generation, table=table, row_id_of={}, parents=media
    )


def open_objects(media: Media) -> Media:
    """Return a view of the objects in media, or a placeholder (:func:`is_empty_object_view`) if there are none."""
    return objects_of(media) or replace(media, parents=media)


def is_empty_object_view(media: Media) -> bool:
    """Return whether this is the placeholder view of a dataset that has no objects; filters on it match nothing."""
    return media.parents is not None and media.table is media.parents.table


def media_containing(media: Media, item_id: str) -> Media:
    """Return the view that contains an item: the given view, or its objects, or for objects their media.

    Raises:
        NotFound: no view contains it.
    """
    related = objects_of(media) if media.parents is None else media.parents
    for each in (media, related):
        if each is not None and not is_empty_object_view(each) and (found := each.find_row_ids([item_id])):
            return replace(each, row_id_of={**each.row_id_of, **found})
    raise NotFound(f"no media {item_id!r:.80} in this dataset")


def table_path(media: Media, name: str) -> Path:
    """Return the folder of a table derived from media, by its name in a generation: ``cells``, ``means``."""
    return media.table.path.with_name(f"{name if media.parents is None else TABLES.get(name, name)}.lance")


def object_uri(media: Media, row: Mapping[str, Any]) -> str:
    """Return the URI of a box's pixels: that of its image with the box, as ``….jpg#xywh=10,20,30,40``.

    The box is in whole pixels and equals the crop; in a frame, it follows the time (Media Fragments URI 1.0, W3C 2012).

    Args:
        media: the objects.
        row: a row with the columns of :attr:`Media.location`.
    """
    left, top = max(math.floor(row["box_x"]), 0), max(math.floor(row["box_y"]), 0)
    right, bottom = math.ceil(row["box_x"] + row["box_width"]), math.ceil(row["box_y"] + row["box_height"])
    box = f"xywh={left},{top},{right - left},{bottom - top}"
    time_s = row.get("frame_time_s")
    file = media.uri_of({**row, "frame_time_s": None})
    return f"{file}#{box}" if time_s is None else f"{file}{time_fragment(time_s)}&{box}"
