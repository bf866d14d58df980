"""The export for torchvision's ImageFolder: image files in a folder for each class, and nothing else.

A folder has images of one class, so an image without a label or with several has no place and is left out. In an export
of objects the images are the crops of the objects.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import column
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress
from framedex.export.contents import ExportContents
from framedex.export.file_names import find_repeats, fold_names, hash_names
from framedex.export.image_names import Names, readable_names
from framedex.export.locations import marked_name
from framedex.export.single_file import Archive
from framedex.storage.classes import classes_of
from framedex.storage.media import Media

FILES = "<class>/<name>.jpg"
_READ = r"(?i)\.(jpg|jpeg|png|ppm|bmp|pgm|tif|tiff|webp)$"
"""Suffixes that torchvision reads (IMG_EXTENSIONS in torchvision/datasets/folder.py, version 0.28)."""
_NO_FOLDER = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|]")  # also those that Windows refuses
_MAX_BYTES = 200
_CROP = ".png"
_ID_LETTERS = 13  # 48 bits of the id of an object


def write_folders(_archive: Archive, contents: ExportContents, progress: ShareProgress) -> tuple[Names, list[str]]:
    """Return the names of the images, null for those that are left out, and sentences about these.

    Names are ``<class>/<name>``, or ``<part>/<class>/<name>`` with parts. The name is the last part of the path, with
    a part of the media id where two images of a class would have the same.
    """
    folders = class_folders(classes_of(contents.media)["name"].to_pylist())
    count: Counter[str] = Counter()
    classes: defaultdict[str, set[str]] = defaultdict(set)
    hashes = []
    for block in contents.locations(progress):
        names = _names(contents, contents.shown, block, folders)
        _count(count, block, names)
        for name in names.drop_null().to_pylist():
            part, _, rest = name.rpartition("/")[0].rpartition("/")
            classes[part].add(rest)
        hashes.append(hash_names(names.drop_null()))
    repeats = np.array(list(find_repeats(hashes)), np.int64)

    def names_of(media: Media, block: pa.Table) -> pa.Array:
        names = _names(contents, media, block, folders)
        known = pc.fill_null(names, "")
        is_shared = np.isin(hash_names(known), repeats) & pc.is_valid(names).to_numpy(zero_copy_only=False)
        rows = zip(known.to_pylist(), is_shared.tolist(), column(block, "media_id").to_pylist(), strict=True)
        texts = [marked_name(name, media_id) if shared else name for name, shared, media_id in rows]
        return pc.if_else(pc.is_valid(names), pa.array(texts, pa.string()), None)

    return names_of, [*_left_out(count), *_missing_classes(classes)]


def class_folders(labels: list[str]) -> dict[str, str]:
    """Return a folder name for each label: valid on every system, and different where case does not count."""
    folders: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        plain = _NO_FOLDER.sub("_", label).strip(" .") or "_"
        plain = plain.encode()[:_MAX_BYTES].decode("utf-8", "ignore")
        name, number = plain, 2
        while (folded := fold_names(pa.array([name]))[0]) in taken:
            name, number = f"{plain}-{number}", number + 1
        taken.add(folded)
        folders[label] = name
    return folders


def _names(contents: ExportContents, media: Media, block: pa.Table, folders: Mapping[str, str]) -> pa.Array:
    """Return the names of a block's images; null for images that have no single label."""
    names = pc.replace_substring_regex(readable_names(media, block), r"(?s)^.*/", "")
    if contents.crops:
        ids = pc.utf8_slice_codeunits(column(block, "media_id"), 0, _ID_LETTERS)
        stems = pc.replace_substring_regex(names, r"\.[^.]*$", "")
        names = pc.binary_join_element_wise(stems, "-", ids, _CROP, "")
    classes = pa.array([_folder(each, folders) for each in column(block, "labels").to_pylist()], pa.string())
    parts = [classes, names]
    if contents.splits is not None:
        parts.insert(0, contents.splits.of(column(block, "parent_id" if contents.crops else "media_id")))
    return pc.binary_join_element_wise(*parts, "/")


def _folder(labels: list[str] | None, folders: Mapping[str, str]) -> str | None:
    return folders[labels[0]] if labels is not None and len(labels) == 1 else None


def _count(count: Counter[str], block: pa.Table, names: pa.Array) -> None:
    lengths = pc.fill_null(pc.list_value_length(column(block, "labels")), 0)
    count["none"] += pc.sum(pc.equal(lengths, 0)).as_py() or 0
    count["several"] += pc.sum(pc.greater(lengths, 1)).as_py() or 0
    unread = pc.invert(pc.match_substring_regex(names.drop_null(), _READ))
    count["unread"] += pc.sum(unread).as_py() or 0


def _left_out(count: Counter[str]) -> list[str]:
    """Return sentences about images without a place, and about those that torchvision does not see."""
    return [
        f"{counted(count[name], nouns, verb)} {rest}"
        for name, nouns, verb, rest in (
            ("none", "images without a label", "are", "left out"),
            ("several", "images with several labels", "are", "left out"),
            ("unread", "images", "have", "a suffix that torchvision does not read"),
        )
        if count[name]
    ]


def _missing_classes(classes: Mapping[str, set[str]]) -> list[str]:
    """Return a sentence if parts have different classes: ImageFolder would number these differently."""
    every = set().union(*classes.values())
    lacking = [part for part, own in classes.items() if own != every]
    if not lacking:
        return []
    return [f"not each part has each class, so ImageFolder numbers them differently in {', '.join(sorted(lacking))}"]
