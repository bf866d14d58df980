"""The COCO export: image-level labels and captions as ``annotations.json``, which ingestion reads."""

import json as plain_json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.export import json_text as json
from framedex.export.chosen import Chosen, Progress, part
from framedex.export.label_columns import IMAGES, all_labels, columns, numbers_of
from framedex.export.picture_names import readable_names
from framedex.export.places import column
from framedex.export.zip_writer import ZipWriter

NAME = "annotations.json"


def write_coco(archive: ZipWriter, chosen: Chosen, progress: Progress) -> list[str]:
    """Write the file; return what it does not hold.

    Images and categories are numbered from 1. The name of an image is its place in the archive with pictures, else the
    path within the source, so that the file can be put beside the pictures.
    """
    known = all_labels(chosen, part(progress, 0.0, 0.1))
    info = {"description": chosen.dataset.display_name, "contributor": chosen.exported_by}
    numbers = json.integers(pa.array(np.arange(1, len(known) + 1)))
    categories = json.text_of(json.objects({"id": numbers, "name": json.strings(known)}, end=json.LINE_END))
    with archive.member(NAME, compressed=True) as member:
        member.write(b'{"info": ' + _json(info) + b', "categories": [')
        member.write(categories)
        member.write(b"]")
        for name, rows in (
            ("images", _images(chosen, part(progress, 0.1, 0.5))),
            ("annotations", _annotations(chosen, known, part(progress, 0.5, 1.0))),
        ):
            member.write(f', "{name}": ['.encode())
            separator = b"\n"
            for texts in rows:
                if len(texts):
                    member.write(separator)
                    member.write(json.text_of(texts))
                    separator = json.LINE_END.encode()
            member.write(b"\n]")
        member.write(b"}\n")
    return []


def _images(chosen: Chosen, progress: Progress) -> Iterator[pa.Array]:
    """Yield the texts of the images."""
    folder, done = IMAGES if chosen.include_images else "", 0
    for block in chosen.blocks(columns(chosen, "width", "height"), progress):
        names = pc.binary_join_element_wise(folder, readable_names(chosen.media, block), "")
        yield json.objects(
            {
                "id": json.integers(pa.array(np.arange(done + 1, done + len(block) + 1))),
                "file_name": json.strings(names),
                "width": json.integers(column(block, "width")),
                "height": json.integers(column(block, "height")),
                "media_id": json.quoted(column(block, "media_id")),
            },
            end=json.LINE_END,
        )
        done += len(block)


def _annotations(chosen: Chosen, known: pa.Array, progress: Progress) -> Iterator[pa.Array]:
    """Yield the texts of the annotations: the labels and then the captions of some thousand images."""
    done, annotations = 0, 0
    for block in chosen.blocks(columns(chosen, "labels", "caption"), progress):
        image = np.arange(done + 1, done + len(block) + 1)
        labels, caption = column(block, "labels"), column(block, "caption")
        of_label = np.repeat(image, pc.list_value_length(labels).to_numpy())
        of_caption = image[pc.is_valid(caption).to_numpy(zero_copy_only=False)]
        number = np.arange(annotations + 1, annotations + len(of_label) + len(of_caption) + 1)
        yield _objects(
            number[: len(of_label)], of_label, "category_id", json.integers(pc.add(numbers_of(labels, known), 1))
        )
        yield _objects(number[len(of_label) :], of_caption, "caption", json.strings(caption.drop_null()))
        done, annotations = done + len(block), annotations + len(number)


def _objects(number: np.ndarray, image: np.ndarray, name: str, values: pa.Array) -> pa.Array:
    ids = {"id": json.integers(pa.array(number)), "image_id": json.integers(pa.array(image))}
    return json.objects(ids | {name: values}, end=json.LINE_END)


def _json(value: object) -> bytes:
    return plain_json.dumps(value, ensure_ascii=False).encode()
