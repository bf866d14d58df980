"""Names of exported pictures by which they are found again when a dataset is made of the export."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.folders import stems
from framedex.export.chosen import Chosen
from framedex.export.file_names import hashes, repeated
from framedex.export.places import image_names, marked_name
from framedex.progress import ShareProgress
from framedex.storage.media import Media
from framedex.suffixes import IMAGE_SUFFIXES, is_image

Names = Callable[[Media, pa.Table], pa.Array]
"""Returns the names of pictures below ``images/`` for a block of :meth:`Chosen.places`."""
_ANNOTATIONS = ("annotations", "Annotations")
_ODD = r"(^|/)\.|\\"
_IMAGE = rf"(?i)({'|'.join(map(re.escape, sorted(IMAGE_SUFFIXES)))})$"


def readable_names(media: Media, block: pa.Table) -> pa.Array:
    """Return names that a folder is searched for: not hidden, with the suffix of a picture, without backslashes."""
    names = image_names(media, block)
    odd = pc.or_(pc.match_substring_regex(names, _ODD), pc.invert(pc.match_substring_regex(names, _IMAGE)))
    return _replaced(names, odd, block, _readable)


def _readable(name: str, row: dict[str, str | None]) -> str:
    name = re.sub(r"(^|/)\.", r"\1_.", name.replace("\\", "_"))
    by_format = f"{name}.{row['format']}"
    return next((each for each in (name, by_format) if is_image(each)), f"{name}.jpg")


def plain_names(_chosen: Chosen, _progress: ShareProgress) -> Names:
    """Return :func:`readable_names`, for formats that do not name files after images."""
    return readable_names


def yolo_names(chosen: Chosen, progress: ShareProgress) -> Names:
    """Return a function that gives :func:`readable_names` without two that differ in the suffix only.

    The label file of a picture has its name with another suffix, below ``labels`` in the place of the last ``images``
    of its path. Finding out takes eight bytes for each picture.
    """
    return _without_folders(chosen, progress, ("images",))


def voc_names(chosen: Chosen, progress: ShareProgress) -> Names:
    """Return names as :func:`yolo_names`, for files below ``annotations`` beside ``images``.

    Without pictures, files lie where those of the source would be, whose folders keep their names.
    """
    return _without_folders(chosen, progress, _ANNOTATIONS if chosen.include_images else ())


def with_clashes(chosen: Chosen) -> Chosen:
    """Return what is exported with the names known that would be those of several files on some system."""
    clashes = repeated(hashes(image_names(chosen.media, block)) for block in chosen.places(lambda _share: None))
    if chosen.objects is not None:
        chosen.objects.objects = replace(chosen.objects.objects, name_clashes=clashes)
    return replace(chosen, media=replace(chosen.media, name_clashes=clashes))


def _without_folders(chosen: Chosen, progress: ShareProgress, folders: tuple[str, ...]) -> Names:
    shared = repeated(hashes(stems(readable_names(chosen.media, block))) for block in chosen.places(progress))
    taken = f"(^|/)({'|'.join(folders)})"

    def names(media: Media, block: pa.Table) -> pa.Array:
        found = readable_names(media, block)
        odd = pc.match_substring_regex(found, f"{taken}/") if folders else pa.repeat(pa.scalar(False), len(found))
        if shared:
            odd = pc.or_(odd, pa.array(np.isin(hashes(stems(found)), np.array(list(shared), np.int64))))
        return _replaced(found, odd, block, lambda name, _row: re.sub(f"{taken}(?=/)", r"\1pictures", name))

    return names


def _replaced(
    names: pa.Array, odd: pa.Array, block: pa.Table, better: Callable[[str, dict[str, str | None]], str]
) -> pa.Array:
    """Return names of which the odd ones are replaced by better ones, kept apart by a part of the media id."""
    if not pc.any(odd, min_count=0).as_py():
        return names
    rows = block.select(["media_id", "format"]).filter(odd).to_pylist()
    texts = [
        marked_name(better(name, row), row["media_id"])
        for name, row in zip(names.filter(odd).to_pylist(), rows, strict=True)
    ]
    return pc.replace_with_mask(names, odd, pa.array(texts, pa.string()))
