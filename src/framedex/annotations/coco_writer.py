"""Writer of COCO files, as columns of some thousand images at a time."""

import json as plain_json
import os
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.coco import CAPTIONS_FILE, DETAILS, FILE, IMAGE_LABEL, NUMBER
from framedex.annotations.output import (
    OBJECTS,
    SPLIT,
    AnnotatedImages,
    Files,
    column,
    file_names,
)
from framedex.annotations.progress import part
from framedex.annotations.shapes import area_of_segmentation
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress

_BACKGROUND = 0
_OF_BACKGROUND = "which CVAT, datumaro and detectors of torchvision take for the background"


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write ``annotations.json`` and ``captions.json``, and return sentences about the data that they cannot hold.

    Categories have the ids and the order of the dataset's class list. Images and annotations keep the ids of their
    source; others, and all but the first of several with the same id, get higher numbers. If boxes are written, each
    image lists all its ``labels``, because the categories of its boxes may be others. Otherwise each label of an image
    is an annotation with a box around the whole image and ``image_label``. Captions have a file of their own without
    categories, as readers of COCO expect. If the images are divided, each part also has files of its own, such as
    ``annotations_train.json``.
    """
    classes = images.classes()
    shares = part(progress, 0.0, 0.1)
    captions = _count_captions(images, shares) if images.with_labels else 0
    kinds = [FILE, *[CAPTIONS_FILE] * bool(captions)]
    outputs = [(kind, split) for split in (None, *images.splits) for kind in kinds]
    for number, (kind, split) in enumerate(outputs):
        start, end = (0.1 + 0.9 * (number + step) / len(outputs) for step in (0, 1))
        _write_file(files, images, classes if kind == FILE else None, split, part(progress, start, end))
    if not images.with_boxes:
        return []
    repeated = images.repeated_ids()["count"]
    renumbered = (pc.sum(repeated).as_py() or 0) - len(repeated)
    notes = [f"{counted(renumbered, 'annotations', 'have')} a new id, because others have theirs"] if renumbered else []
    first = classes["name"].filter(pc.equal(classes["id"], _BACKGROUND)).to_pylist()
    return [*notes, *(f"the class {name!r} has the id 0, {_OF_BACKGROUND}" for name in first)]


def _split_file(name: str, split: str | None) -> str:
    """Return the name of a file of one part of the images; that of all images for None."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122
    return name if split is None else f"{stem}_{split}{suffix}"


def _count_captions(images: AnnotatedImages, progress: ShareProgress) -> int:
    return sum(len(block) - column(block, "caption").null_count for block in images.blocks(["caption"], progress))


def _write_file(
    files: Files, images: AnnotatedImages, classes: pa.Table | None, split: str | None, progress: ShareProgress
) -> None:
    """Write the annotations of all images or of one part; without classes the captions."""
    info = {"description": images.title, "contributor": images.author}
    rows = _captions if classes is None else partial(_annotation_texts, classes=classes)
    with files.member(_split_file(CAPTIONS_FILE if classes is None else FILE, split), compressed=True) as member:
        member.write(b'{"info": ' + plain_json.dumps(info, ensure_ascii=False).encode() + b', "licenses": []')
        if classes is not None:
            member.write(b', "categories": [')
            with_keypoints = images.with_boxes and images.box_counts(["keypoints"])["keypoints"] > 0
            member.write(json.join_rows(_category_texts(classes, with_keypoints=with_keypoints)))
            member.write(b"]")
        with_labels = classes is not None and images.with_boxes and images.with_labels
        for name, texts_of in (
            ("images", _image_texts(images, split, part(progress, 0.0, 0.4), with_labels=with_labels)),
            ("annotations", rows(images, split, part(progress, 0.4, 1.0))),
        ):
            member.write(f', "{name}": ['.encode())
            separator = b"\n"
            for texts in texts_of:
                if len(texts):
                    member.write(separator)
                    member.write(json.join_rows(texts))
                    separator = json.LINE_END.encode()
            member.write(b"\n]")
        member.write(b"}\n")


def _category_texts(classes: pa.Table, *, with_keypoints: bool) -> pa.Array:
    """Return the categories as JSON texts. If there are key points, all have their lists, which readers look up."""
    fields = {
        "id": json.integers(column(classes, "id")),
        "name": json.strings(column(classes, "name")),
        "supercategory": json.strings(pc.fill_null(column(classes, "supercategory"), "")),
    }
    plain = json.object_texts(fields, end=json.LINE_END)
    details = pa.array(
        [
            plain_json.dumps({**{key: [] for key in DETAILS}, **plain_json.loads(text or "{}")})
            if with_keypoints
            else text
            for text in classes["details"].to_pylist()
        ],
        pa.string(),
    )
    detailed = pc.binary_join_element_wise(
        pc.utf8_rtrim(json.object_texts(fields), "}"), pc.utf8_slice_codeunits(details, 1), ", "
    )
    return pc.coalesce(pc.binary_join_element_wise(detailed, json.LINE_END, ""), plain)


def _in_split(block: pa.Table, split: str | None) -> pa.Array | None:
    """Return the mask of the images of a part; None for all images."""
    return None if split is None else pc.equal(column(block, SPLIT), split)


def _columns(images: AnnotatedImages, *names: str) -> list[str]:
    return ["file_name", "media_id", "source_id", *names, *[SPLIT] * bool(images.splits)]


def _image_texts(
    images: AnnotatedImages, split: str | None, progress: ShareProgress, *, with_labels: bool
) -> Iterator[pa.Array]:
    ids = _ImageIds(images)
    for block in images.blocks(_columns(images, "width", "height", *["labels"] * with_labels), progress):
        fields = {
            "id": ids.of(block),
            "file_name": json.strings(file_names(images, block)),
            "width": json.integers(column(block, "width")),
            "height": json.integers(column(block, "height")),
            "media_id": json.quoted(column(block, "media_id")),
        }
        if with_labels:
            fields["labels"] = json.arrays(column(block, "labels"))
        texts = json.object_texts(fields, end=json.LINE_END)
        chosen = _in_split(block, split)
        yield texts if chosen is None else texts.filter(chosen)


def _annotation_texts(
    images: AnnotatedImages, split: str | None, progress: ShareProgress, *, classes: pa.Table
) -> Iterator[pa.Array]:
    """Yield the boxes, or else the labels, of a block of some thousand images as JSON texts."""
    columns = [OBJECTS] if images.with_boxes else ["labels", "width", "height"]
    ids, image_ids = _Ids(images), _ImageIds(images)
    for block in images.blocks(_columns(images, *columns), progress):
        image = image_ids.of(block)
        lists = column(block, OBJECTS if images.with_boxes else "labels")
        texts = (_box_texts if images.with_boxes else _label_texts)(block, image, classes, ids)
        chosen = _in_split(block, split)
        yield texts if chosen is None else texts.filter(chosen.take(pc.list_parent_indices(lists)))


def _captions(images: AnnotatedImages, split: str | None, progress: ShareProgress) -> Iterator[pa.Array]:
    """Yield the captions of a block of some thousand images as JSON texts."""
    done, image_ids = 0, _ImageIds(images)
    for block in images.blocks(_columns(images, "caption"), progress):
        chosen, lines, rows = _in_split(block, split), [], []
        for row, caption in enumerate(column(block, "caption").to_pylist()):
            of_row = [] if caption is None else _lines(caption)
            lines += of_row
            rows += [row] * len(of_row)
        ids = json.integers(pa.array(np.arange(done + 1, done + len(lines) + 1)))
        owner = pa.array(rows, pa.int64())
        values = {"caption": json.strings(pa.array(lines, pa.string()))}
        texts = _annotations(ids, image_ids.of(block).take(owner), values)
        yield texts if chosen is None else texts.filter(chosen.take(owner))
        done += len(lines)


def _lines(caption: str) -> list[str]:
    """Return the captions that a reader joins to this one: its lines, unless one of them is blank."""
    lines = caption.split("\n")
    return lines if all(line.strip() for line in lines) else [caption]


class _ImageIds:
    """Ids of images block by block: those of the source, and numbers above the highest one for the others."""

    def __init__(self, images: AnnotatedImages) -> None:
        highest, shared = images.image_ids(NUMBER)
        self._last = max(highest, 0)
        self._shared, self._first = (pa.array(values, pa.string()) for values in (list(shared), list(shared.values())))

    def of(self, block: pa.Table) -> pa.Array:
        """Return the ids of a block's images as JSON. Blocks must come in order."""
        ids = column(block, "source_id")
        repeated = pc.and_not(
            pc.is_in(ids, value_set=self._shared), pc.is_in(column(block, "media_id"), value_set=self._first)
        )
        ids = pc.if_else(repeated, None, ids)
        lacking = pc.is_null(ids)
        count = pc.sum(lacking, min_count=0).as_py()
        new = json.integers(pa.array(np.arange(self._last + 1, self._last + count + 1)))
        self._last += count
        return pc.replace_with_mask(_numbers_or_texts(ids), lacking, new)


class _Ids:
    """Ids of annotations block by block: those of the source, and numbers above the highest one for the others."""

    def __init__(self, images: AnnotatedImages) -> None:
        self._last = max(images.highest_id(NUMBER), 0) if images.with_boxes else 0
        self._repeated = column(images.repeated_ids(), "id") if images.with_boxes else pa.array([], pa.string())
        self._used = set[str]()  # of the repeated ones

    def of(self, original: pa.Array) -> pa.Array:
        """Return the ids of a block's boxes as JSON, given those of the source; blocks must come in order.

        Of several boxes with an id the first keeps it, because readers take the last for all of them.
        """
        lacking = pc.is_null(original)
        if len(self._repeated):
            mask = lacking.to_numpy(zero_copy_only=False).copy()
            places = np.flatnonzero(pc.is_in(original, value_set=self._repeated))
            for place, each in zip(places, original.take(pa.array(places)).to_pylist(), strict=True):
                mask[place] = each in self._used
                self._used.add(each)
            lacking = pa.array(mask)
        count = pc.sum(lacking, min_count=0).as_py()
        return pc.replace_with_mask(_numbers_or_texts(original), lacking, self.new(count))

    def new(self, count: int) -> pa.Array:
        """Return *count* new ids as JSON."""
        first, self._last = self._last + 1, self._last + count
        return json.integers(pa.array(np.arange(first, first + count)))


def _numbers_or_texts(ids: pa.Array) -> pa.Array:
    """Return ids as JSON: numbers as such, other texts in quotes."""
    is_number = pc.fill_null(pc.match_substring_regex(ids, NUMBER), False)
    return pc.if_else(is_number, ids, json.strings(ids))


def _box_texts(block: pa.Table, image: pa.Array, classes: pa.Table, ids: _Ids) -> pa.Array:
    objects = column(block, OBJECTS)
    values = objects.flatten()
    original, confidence, bbox = (values.field(name) for name in ("original_id", "confidence", "bbox"))
    texts = ids.of(original)
    edges = bbox.flatten().to_numpy().reshape(-1, 4)
    fields = {
        "category_id": _category_ids(values.field("label"), classes),
        "bbox": pc.binary_join_element_wise("[", json.join_lists(json.exact(bbox.flatten()), bbox), "]", ""),
        "area": json.exact(pc.coalesce(_areas(values), pa.array(edges[:, 2] * edges[:, 3]))),
        "iscrowd": json.integers(pc.cast(values.field("iscrowd"), pa.int8())),
        "segmentation": pc.fill_null(values.field("segmentation"), "[]"),
    }
    rows = _annotations(texts, image.take(pc.list_parent_indices(objects)), fields)
    keypoints = values.field("keypoints")
    counts = [None if text is None else _count_visible(text) for text in keypoints.to_pylist()]
    further = {"score": (confidence, json.exact(confidence)), "keypoints": (keypoints, keypoints)}
    further["num_keypoints"] = (keypoints, json.integers(pa.array(counts, pa.int64())))
    attributes = _attributes(values)
    further["attributes"] = (attributes, attributes)
    for name, (column_, text) in further.items():
        if column_.null_count < len(column_):
            rows = pc.if_else(pc.is_valid(column_), _with_field(rows, name, text), rows)
    return rows


def _areas(values: pa.StructArray) -> pa.Array:
    """Return the areas of objects with a shape: that of the source, or else of the outline or mask; null for others."""
    areas, texts = values.field("area"), values.field("segmentation")
    lacking = pc.and_(pc.is_null(areas), pc.is_valid(texts))
    computed = [area_of_segmentation(text) for text in texts.filter(lacking).to_pylist()]
    return pc.replace_with_mask(areas, lacking, pa.array(computed, pa.float64())) if computed else areas


def _attributes(values: pa.StructArray) -> pa.Array:
    """Return the attributes of objects as JSON, with ``truncated`` and ``difficult`` among them; null for none."""
    texts, flags = values.field("attributes"), {name: values.field(name) for name in ("truncated", "difficult")}
    marks = [pc.if_else(pc.fill_null(flag, False), f',"{name}":true', "") for name, flag in flags.items()]
    own = pc.fill_null(pc.binary_join_element_wise(",", pc.utf8_slice_codeunits(texts, 1, stop=-1), ""), "")
    joined = pc.binary_join_element_wise(own, *marks, "")
    text = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")
    return pc.if_else(pc.equal(joined, ""), None, text)


def _count_visible(keypoints: str) -> int:
    return sum(each > 0 for each in plain_json.loads(keypoints)[2::3])


def _with_field(rows: pa.Array, name: str, values: pa.Array) -> pa.Array:
    """Return JSON objects with their line ends and a further field."""
    ends = len("}" + json.LINE_END)
    start = pc.utf8_slice_codeunits(rows, 0, stop=-ends)
    return pc.binary_join_element_wise(start, f', "{name}": ', values, "}" + json.LINE_END, "")


def _label_texts(block: pa.Table, image: pa.Array, classes: pa.Table, ids: _Ids) -> pa.Array:
    """Return the labels of images as annotations, each with a box around the whole image."""
    lists = column(block, "labels")
    width, height = (pc.fill_null(column(block, name), 0) for name in ("width", "height"))
    box = pc.binary_join_element_wise("[0, 0, ", json.integers(width), ", ", json.integers(height), "]", "")
    area = json.integers(pc.multiply(pc.cast(width, pa.int64()), pc.cast(height, pa.int64())))
    owner = pc.list_parent_indices(lists)
    fields = {
        "category_id": _category_ids(lists.flatten(), classes),
        "bbox": box.take(owner),
        "area": area.take(owner),
        "iscrowd": "0",
        "segmentation": "[]",
        IMAGE_LABEL: "true",
    }
    return _annotations(ids.new(len(owner)), image.take(owner), fields)


def _category_ids(labels: pa.Array, classes: pa.Table) -> pa.Array:
    position = pc.index_in(labels, value_set=column(classes, "name"))
    return json.integers(column(classes, "id").take(position))


def _annotations(ids: pa.Array, image: pa.Array, values: Mapping[str, pa.Array | str]) -> pa.Array:
    return json.object_texts({"id": ids, "image_id": image, **values}, end=json.LINE_END)
