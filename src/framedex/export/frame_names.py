"""Paths of video frames in an export, where each frame is an image of its own."""

import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage.media import Media
from framedex.storage.videos import VIDEOS, read_videos, videos_path

_SUFFIX = r"\.[^./]*$"
_FRAME = r"_frame_[0-9]{6,}\.jpg$"
_DIGITS = 6


def with_frame_paths(media: Media, block: pa.Table) -> tuple[pa.Table, pa.Array | None]:
    """Return a block in which frames have their own paths, such as ``clip_frame_000123.jpg`` beside ``clip.mp4``.

    Args:
        media: the dataset's media.
        block: rows with the columns ``path``, ``root`` and ``frame_number``.

    Returns:
        block: with the paths of frames.
        shared: bool, true in the rows whose path another row may have, too; None if all are distinct. Such rows are
            frames of videos whose names differ in the suffix only, and images named like a frame of a video.
    """
    numbers = block["frame_number"].combine_chunks()
    path, root = block["path"].combine_chunks(), block["root"].combine_chunks()
    is_frame = pc.is_valid(numbers)
    stem = pc.replace_substring_regex(path, _SUFFIX, "")
    digits = pc.utf8_lpad(pc.cast(pc.fill_null(numbers, 0), pa.string()), _DIGITS, "0")
    named = pc.if_else(is_frame, pc.binary_join_element_wise(stem, "_frame_", digits, ".jpg", ""), path)
    of_video = pc.replace_substring_regex(pc.if_else(is_frame, path, None), _SUFFIX, "")
    image_row = pc.if_else(
        pc.and_not(pc.match_substring_regex(path, _FRAME), is_frame), pc.replace_substring_regex(path, _FRAME, ""), None
    )
    shared, stems = _stems(videos_path(media.table.path), media.generation.tables[VIDEOS])
    odd = np.zeros(len(block), dtype=bool)
    for values, among in ((of_video, shared), (image_row, stems)):
        if among and values.null_count < len(values):
            rows = zip(root.to_pylist(), values.to_pylist(), strict=True)
            odd |= np.fromiter((row in among for row in rows), dtype=bool, count=len(block))
    position = block.schema.get_field_index("path")
    return block.set_column(position, "path", named), pa.array(odd) if odd.any() else None


@lru_cache(maxsize=4)
def _stems(path: Path, version: int) -> tuple[frozenset[tuple[int | None, str]], frozenset[tuple[int | None, str]]]:
    """Return the paths of videos without their suffixes, by root: those of several videos, and all."""
    stems: set[tuple[int | None, str]] = set()
    shared: set[tuple[int | None, str]] = set()
    for row in read_videos(path, version, ("root", "path")).to_pylist():
        stem = row["root"], re.sub(_SUFFIX, "", row["path"])
        (shared if stem in stems else stems).add(stem)
    return frozenset(shared), frozenset(stems)
