"""The table of a dataset's objects: boxes in its media, each a row with the columns of media and those of its box.

Whatever reads a media table reads this one, too: :func:`objects_generation` shows a generation so that its objects
stand where media are. They have a dataset id of their own, made of the dataset's, for the ids of their groups and the
names of what is cached of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from framedex.ids import media_id
from framedex.records import Generation
from framedex.storage.media import Media
from framedex.storage.tables import Table

OBJECTS = "objects"
"""Its name in a generation, and in that one's summary."""
TABLES = {"media": OBJECTS, "cells": "object_cells", "means": "object_means"}
"""The tables of objects, by the names of those of media that are made in the same way."""


def objects_path(media: Path) -> Path:
    """Return the folder of the table of objects beside that of media."""
    return media.with_name(f"{OBJECTS}.lance")


def objects_dataset(dataset_id: str) -> str:
    """Return the id under which the objects of a dataset have their groups and caches; that of no dataset."""
    return media_id(dataset_id, "\0objects")


def objects_generation(generation: Generation) -> Generation | None:
    """Return a generation with its objects in the place of its media; None if it has none."""
    if OBJECTS not in generation.tables:
        return None
    others = {name: version for name, version in generation.tables.items() if name not in {*TABLES, *TABLES.values()}}
    own = {name: generation.tables[of] for name, of in TABLES.items() if of in generation.tables}
    summary = generation.summary | generation.summary[OBJECTS]
    return generation.model_copy(
        update={
            "id": f"{generation.id}/{OBJECTS}",
            "dataset_id": objects_dataset(generation.dataset_id),
            "tables": others | own,
            "n_images": summary["n_objects"],
            "summary": summary,
        }
    )


def with_objects(
    tables: Mapping[str, int], summary: Mapping[str, Any], versions: Mapping[str, int], of_objects: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the tables and the summary of a generation with other objects.

    Args:
        tables: of the generation.
        summary: of the generation.
        versions: of the tables of objects, by the names of those of media.
        of_objects: what the summary says of objects alone.
    """
    left = {name: version for name, version in tables.items() if name not in TABLES.values()}
    return left | {TABLES[name]: version for name, version in versions.items()}, {**summary, OBJECTS: dict(of_objects)}


def count_objects(generation: Generation) -> int:
    """Return how many objects a generation has."""
    return int(generation.summary[OBJECTS]["n_objects"]) if OBJECTS in generation.tables else 0


def objects_of(media: Media) -> Media | None:
    """Return the objects in media, as media are; None if there are none.

    They are all objects of that state of the dataset. Their ``parents`` are the media.
    """
    generation = objects_generation(media.generation)
    if generation is None:
        return None
    path, version = objects_path(media.table.path), generation.tables["media"]
    table = Table(path, version) if media.columns is None else media.columns.open(path, version)
    return replace(media, dataset_id=generation.dataset_id, generation=generation, table=table, found={}, parents=media)
