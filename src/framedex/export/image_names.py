"""Names of exported images, under which ingestion of the unpacked export finds them."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.folders import stems
from framedex.annotations.output import column
from framedex.annotations.parts import PART_FOLDER
from framedex.annotations.yolo import label_stems
from framedex.core.progress import ShareProgress
from framedex.core.suffixes import IMAGE_SUFFIXES, is_image
from framedex.export.contents import ExportContents
from framedex.export.file_names import find_repeats, hash_names
from framedex.export.locations import image_names, marked_name
from framedex.storage.media import Media

Names = Callable[[Media, pa.Table], pa.Array]
"""Return the names of images below ``images/`` for a block of :meth:`ExportContents.places`."""
_RESERVED = "(^|/)(annotations|Annotations)"
_ODD = r"(^|/)\.|\\"
_IMAGE = rf"(?i)({'|'.join(map(re.escape, sorted(IMAGE_SUFFIXES)))})$"


def readable_names(media: Media, block: pa.Table) -> pa.Array:
    """Return names that ingestion reads: visible, with an image suffix, and without backslashes."""
    names = image_names(media, block)
    odd = pc.or_(pc.match_substring_regex(names, _ODD), pc.invert(pc.match_substring_regex(names, _IMAGE)))
    return _replaced(names, odd, block, _readable)


def _readable(name: str, row: dict[str, str | None]) -> str:
    name = re.sub(r"(^|/)\.", r"\1_.", name.replace("\\", "_"))
    by_format = f"{name}.{row['format']}"
    return next((each for each in (name, by_format) if is_image(each)), f"{name}.jpg")


def plain_names(contents: ExportContents, _progress: ShareProgress) -> Names:
    """Return :func:`readable_names`, for formats whose files are not named after images."""
    return _in_splits(contents, readable_names)


def yolo_names(contents: ExportContents, progress: ShareProgress) -> Names:
    """Return a function that gives :func:`readable_names` with distinct label files.

    Image files are all below one folder ``images``, so folders of that name in the source are left out. Without image
    files, names are the paths within the source. Names that would share a label file get a part of the media id. The
    check for equal names takes eight bytes of memory an image.
    """
    if not contents.include_images:
        return _distinct(contents, progress, readable_names, label_stems)

    return _in_splits(contents, _distinct(contents, progress, _without_images, stems))


def _without_images(media: Media, block: pa.Table) -> pa.Array:
    """Return :func:`readable_names` without folders called ``images``."""
    return pc.replace_substring_regex(readable_names(media, block), r"(^|/)(?:images/)+", r"\1")


def labelme_names(contents: ExportContents, progress: ShareProgress) -> Names:
    """Return a function that gives :func:`readable_names` of which no two differ in the suffix only.

    An image's annotation file lies beside it. Where images are written and not divided, folders that are named after a
    part get another name, as their images would come back as this part. The check for equal names takes eight bytes of
    memory an image.
    """
    distinct = _distinct(contents, progress, readable_names, stems)
    if not contents.include_images or contents.splits is not None:
        return _in_splits(contents, distinct)

    def names(media: Media, block: pa.Table) -> pa.Array:
        readable = distinct(media, block)
        odd = pc.match_substring_regex(readable, PART_FOLDER)
        return _replaced(readable, odd, block, lambda name, _row: f"all-{name}")

    return names


def voc_names(contents: ExportContents, progress: ShareProgress) -> Names:
    """Return a function that gives :func:`readable_names` of which no two differ in the suffix only.

    An image's annotation file has its name with another suffix, below ``annotations`` beside ``images``. So folders
    called ``annotations`` get another name, and those called ``images`` are left out. Without image files, the
    annotation files have the paths that the source would have, with unchanged folder names. The check for equal names
    takes eight bytes of memory an image.
    """
    if not contents.include_images:
        return _distinct(contents, progress, readable_names, stems)
    distinct = _distinct(contents, progress, _without_images, stems)

    def names(media: Media, block: pa.Table) -> pa.Array:
        readable = distinct(media, block)
        odd = pc.match_substring_regex(readable, f"{_RESERVED}/")
        return _replaced(readable, odd, block, lambda name, _row: re.sub(f"{_RESERVED}(?=/)", r"\1files", name))

    return names


def _distinct(
    contents: ExportContents, progress: ShareProgress, names: Names, stems_of: Callable[[pa.Array], pa.Array]
) -> Names:
    """Return names of which no two have the same stem: those that would get a part of the media id."""
    shared = find_repeats(hash_names(stems_of(names(contents.media, block))) for block in contents.locations(progress))
    if not shared:
        return names
    hashes = np.array(list(shared), np.int64)

    def distinct(media: Media, block: pa.Table) -> pa.Array:
        plain = names(media, block)
        odd = pa.array(np.isin(hash_names(stems_of(plain)), hashes))
        return _replaced(plain, odd, block, lambda name, _row: name)

    return distinct


def _in_splits(contents: ExportContents, names: Names) -> Names:
    """Return names with the folder of their part, if image files are written in parts."""
    splits = contents.splits
    if splits is None or not contents.include_images:
        return names

    def placed(media: Media, block: pa.Table) -> pa.Array:
        return pc.binary_join_element_wise(splits.of(column(block, "media_id")), names(media, block), "/")

    return placed


def with_clashes(contents: ExportContents) -> ExportContents:
    """Return the selection with the hashes of names that some file system treats as equal."""
    blocks = iter(()) if contents.crops else contents.locations(lambda _share: None)  # crops have names of their own
    clashes = find_repeats(hash_names(image_names(contents.media, block)) for block in blocks)
    if contents.objects is not None:
        contents.objects.objects = replace(contents.objects.objects, name_clashes=clashes)
    return replace(contents, media=replace(contents.media, name_clashes=clashes))


def _replaced(
    names: pa.Array, odd: pa.Array, block: pa.Table, better: Callable[[str, dict[str, str | None]], str]
) -> pa.Array:
    """Return names in which odd ones are replaced, with a part of the media id to keep them distinct."""
    if not pc.any(odd, min_count=0).as_py():
        return names
    rows = block.select(["media_id", "format"]).filter(odd).to_pylist()
    texts = [
        marked_name(better(name, row), row["media_id"])
        for name, row in zip(names.filter(odd).to_pylist(), rows, strict=True)
    ]
    return pc.replace_with_mask(names, odd, pa.array(texts, pa.string()))
