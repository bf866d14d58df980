"""The export that ``load_dataset("parquet", …)`` of Hugging Face reads: Parquet files that hold the images, too."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framedex.annotations.progress import part
from framedex.core.progress import ShareProgress
from framedex.export.annotation_files import objects_left_out
from framedex.export.columns import EXPORTED
from framedex.export.contents import ExportContents
from framedex.export.huggingface_folder import LACKING
from framedex.export.images import CopyResult
from framedex.export.parquet_file import MemberSink
from framedex.export.samples import Sample, class_names, has_one_label, parts_of, samples
from framedex.export.zip_writer import ZipWriter

FILES = ("data/00000-of-00001.parquet",)
_SHARD_BYTES = 512 * 2**20
_GROUP_BYTES = 64 * 2**20
_GROUP_ROWS = 100
_BYTES_A_PIXEL = 0.5  # of a frame as JPEG
_TEXT = {"dtype": "string", "_type": "Value"}


def write_parquet_shards(
    archive: ZipWriter, contents: ExportContents, progress: ShareProgress
) -> tuple[CopyResult, list[str]]:
    """Write the files of each part; return the counts of the images, and sentences about data left out.

    Names of files begin with that of their part. Columns are ``image`` (its file and its name), ``media_id``, ``label``
    if each image has one label, ``labels``, ``caption``, ``tags`` and, if there are objects, ``objects`` with ``bbox``
    and ``categories``. An export of objects has no labels and captions of images. Labels and categories are numbers of
    the class list, whose names the files have.
    """
    layout = _Layout(
        class_names(contents),
        with_labels=not contents.boxes_only,
        with_label=has_one_label(contents),
        with_objects=contents.with_objects,
    )
    copied, done = CopyResult(), 0
    for name, own in parts_of(contents):
        share = part(progress, done / max(contents.total, 1), (done + own.total) / max(contents.total, 1))
        found = samples(own, copied, share)
        count = max(1, math.ceil(_bytes_of(own) / _SHARD_BYTES))
        rows = math.ceil(max(own.total, 1) / count)
        for number in range(count):
            file = f"data/{f'{name}-' if name else ''}{number:05}-of-{count:05}.parquet"
            with (
                archive.member(file) as member,
                pa.PythonFile(MemberSink(member), mode="w") as sink,
                pq.ParquetWriter(sink, layout.schema, compression="none", write_statistics=False) as writer,
            ):
                for table in _groups(layout, found, rows if number < count - 1 else own.total):
                    writer.write_table(table)
        done += own.total
    return copied, objects_left_out(contents, LACKING, "Hugging Face")


def _bytes_of(contents: ExportContents) -> float:
    """Return about how many bytes the image files have; a frame is no file, so its pixels count."""
    fields = [EXPORTED.field(name) for name in ("file_size_bytes", "width", "height", "frame_number")]
    total = 0.0
    for block in contents.blocks(pa.schema(fields), lambda _share: None):
        pixels = pc.multiply(pc.fill_null(block["width"], 0).cast(pa.float64()), pc.fill_null(block["height"], 0))
        files = pc.fill_null(block["file_size_bytes"], 0).cast(pa.float64())
        is_frame = pc.is_valid(block["frame_number"])
        total += pc.sum(pc.if_else(is_frame, pc.multiply(pixels, _BYTES_A_PIXEL), files)).as_py() or 0.0
    return total


def _groups(layout: "_Layout", found: Iterator[Sample], count: int) -> Iterator[pa.Table]:
    """Yield the next samples, at most *count*, as tables of limited size."""
    rows: list[dict[str, Any]] = []
    size = taken = 0
    while taken < count and (sample := next(found, None)) is not None:
        rows.append(layout.row(sample))
        size, taken = size + len(sample.data), taken + 1
        if len(rows) >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_pylist(rows, layout.schema)
            rows, size = [], 0
    if rows:
        yield pa.Table.from_pylist(rows, layout.schema)


class _Layout:
    """The columns of a file, with the features by which ``datasets`` knows them."""

    def __init__(self, classes: list[str], *, with_labels: bool, with_label: bool, with_objects: bool) -> None:
        self._numbers = {name: number for number, name in enumerate(classes)}
        self._with_labels, self._with_label, self._with_objects = with_labels, with_label, with_objects
        number = {"names": classes, "_type": "ClassLabel"}
        features: dict[str, Any] = {"image": {"_type": "Image"}, "media_id": _TEXT}
        fields = [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("media_id", pa.string())]
        if with_label:
            features["label"] = number
            fields.append(("label", pa.int64()))
        if with_labels:
            features |= {"labels": _list(number), "caption": _TEXT}
            fields += [("labels", pa.list_(pa.int64())), ("caption", pa.string())]
        features["tags"] = _list(_TEXT)
        fields.append(("tags", pa.list_(pa.string())))
        if with_objects:
            sides = _list({"dtype": "float64", "_type": "Value"}, 4)
            features["objects"] = {"bbox": _list(sides), "categories": _list(number)}
            boxes = ("bbox", pa.list_(pa.list_(pa.float64(), 4)))
            fields.append(("objects", pa.struct([boxes, ("categories", pa.list_(pa.int64()))])))
        text = json.dumps({"info": {"features": features}}, ensure_ascii=False)
        self.schema = pa.schema(fields, metadata={"huggingface": text})

    def row(self, sample: Sample) -> dict[str, Any]:
        """Return the row of a sample."""
        about = sample.about
        labels = [self._numbers[each] for each in about["labels"] or []]
        row = {
            "image": {"bytes": sample.data, "path": sample.name},
            "media_id": about["media_id"],
            "tags": about["tags"] or [],
        }
        if self._with_labels:
            row |= {"labels": labels, "caption": about["caption"]}
        if self._with_label:
            row["label"] = labels[0]
        if self._with_objects:
            objects = about["objects"] or []
            row["objects"] = {
                "bbox": [each["bbox"] for each in objects],
                "categories": [self._numbers[each["label"]] for each in objects],
            }
        return row


def _list(feature: Any, length: int = -1) -> dict[str, Any]:
    """Return the feature of a list, by the name that all versions of ``datasets`` read."""
    return {"feature": feature, "length": length, "_type": "Sequence"}
