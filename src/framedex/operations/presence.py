"""The files of a dataset, each with what is at its place now: those that are gone, cannot be read, or are marked."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from framedex.media.files import locate
from framedex.media.presence import GONE, Look, Place
from framedex.operations.context import Context, check_indexed, open_media
from framedex.operations.source_files import file_blocks
from framedex.records import MissingFile
from framedex.storage.media import Media
from framedex.storage.media_rows import MISSING_SINCE, path_of_text, text_of_path
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.videos import VIDEOS


class KnownFile(NamedTuple):
    """A file that a dataset has."""

    id: str
    root: int | None
    path: str
    size_bytes: int | None
    content_hash: bytes | None
    is_video: bool


NOT_LOOKED_AT = Look(fault="it is not looked at")
"""Stands for a file that a table names by a URI of its own."""


def looks_of(context: Context, media: Media, faults: dict[int, str]) -> Iterator[tuple[KnownFile, Look]]:
    """Yield each file of a dataset with what is at its place; uploaded files are left out.

    Args:
        context: the open workspace.
        media: the media.
        faults: gets the reason why nothing below a source root can be found, by its number, before its files.
    """
    places: dict[int, Place] = {}
    for block in file_blocks(media):
        of_root: dict[int | None, list[KnownFile]] = defaultdict(list)
        for file in known_files(block):
            of_root[file.root].append(file)
        for number, files in of_root.items():
            if number is None:
                yield from ((each, NOT_LOOKED_AT if _has_uri(each) else Look(fault=GONE)) for each in files)
                continue
            root = media.roots[number]
            if root == BLOBS_ROOT:
                continue
            if number not in places:
                places[number] = Place(root, context.settings, media.generation.summary.role_of(number))
                if (fault := places[number].fault()) is not None:
                    faults[number] = fault
            yield from zip(files, places[number].look([each.path for each in files]), strict=True)


def marked_files(media: Media) -> frozenset[str]:
    """Return the ids of the images and videos that are marked as missing."""
    if MISSING_SINCE.name not in media.table.schema.names:
        return frozenset()
    names = ["media_id", MISSING_SINCE.name, *(["video_id"] if media.has_videos else [])]
    return frozenset(
        row.get("video_id") or row["media_id"]
        for batch in media.table.scan(names)
        for row in batch.filter(batch[MISSING_SINCE.name].is_valid()).to_pylist()
    )


def known_files(block: pa.Table) -> Iterator[KnownFile]:
    """Yield the files of a block of :func:`framedex.operations.source_files.file_blocks`."""
    for row in block.to_pylist():
        path = path_of_text(row["path"], row["path_raw"])
        yield KnownFile(row["id"], row["root"], path, row["size_bytes"], row["content_hash"], row["table"] == VIDEOS)


def _first_frames(media: Media, video_ids: Sequence[str]) -> dict[str, str]:
    """Return the id of the first row of each of some videos."""
    chosen, first = pa.array(video_ids, pa.string()), dict[str, str]()
    for batch in media.table.scan(["media_id", "video_id"]) if video_ids else ():
        for row in batch.filter(pc.is_in(batch["video_id"], value_set=chosen)).to_pylist():
            first.setdefault(row["video_id"], row["media_id"])
    return first


def location_of(file: KnownFile, media: Media) -> str:
    """Return the location of a file; its path alone if it has no place."""
    return file.path if file.root is None else locate(media.roots[file.root], file.path)


def _has_uri(file: KnownFile) -> bool:
    """Return whether a file without a root is named by a path or a URI of its own; else another is at its place."""
    return os.path.isabs(file.path) or ":" in file.path  # noqa: PTH117 - any bytes


def missing_files(context: Context, dataset_id: str) -> list[MissingFile]:
    """Return the files that are gone, or cannot be read now, in the order of the rows; nothing is marked.

    Raises:
        Conflict: the dataset has no index yet.
    """
    media = open_media(context, dataset_id)
    check_indexed(context, media)
    faults: dict[int, str] = {}
    found = [
        (file, look.fault)
        for file, look in looks_of(context, media, faults)
        if look is not NOT_LOOKED_AT and look.fault is not None
    ]
    first_of = _first_frames(media, [file.id for file, _ in found if file.is_video])
    return [
        MissingFile(
            media_id=first_of.get(file.id, file.id),
            file_path=text_of_path(location_of(file, media))[0],
            reason=fault if file.root is None else faults.get(file.root, fault),
            is_gone=fault == GONE and file.root not in faults,
        )
        for file, fault in found
    ]
