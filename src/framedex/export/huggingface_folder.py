"""The export that ``load_dataset("imagefolder", …)`` of Hugging Face reads: images, and metadata about each.

Each part is a folder with its images beside its metadata. Readers look for the names of parts in all folders, so the
images of a part are in one folder, with the folders of the source in their names. They call images that are not divided
``train``, and must find this word before they look for others in the names of images. So these are in ``all-train``,
which is no part to Framedex.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framedex.annotations.output import column
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput
from framedex.export.annotation_files import objects_left_out
from framedex.export.columns import EXPORTED
from framedex.export.contents import ExportContents
from framedex.export.file_names import find_repeats, hash_names
from framedex.export.image_names import Names, readable_names
from framedex.export.locations import MAX_BYTES, marked_name
from framedex.export.object_columns import BBOX, LABEL
from framedex.export.objects import OBJECTS, objects_field
from framedex.export.samples import parts_of
from framedex.export.single_file import Archive
from framedex.storage.media import Media

FILES = ("all-train/metadata.jsonl", "all-train/<name>.jpg")
LACKING = (
    "original_id", "confidence", "iscrowd", "truncated", "difficult", "attributes", "segmentation", "keypoints"
)  # fmt: skip
"""Values of objects that these exports do not hold."""
_JSON, _PARQUET = "metadata.jsonl", "metadata.parquet"
_UNDIVIDED = "all-train"
_PARTS = {"train", "training", "validation", "valid", "dev", "val", "test", "testing", "eval", "evaluation"}
"""Names of folders that readers take for parts (SPLIT_KEYWORDS in datasets/data_files.py, version 5.2)."""
_MOST_JSON = 10_000  # rows; readers guess types from the first 10 MB
_OBJECTS = objects_field(pa.schema([LABEL, BBOX]))


def write_folder(archive: Archive, contents: ExportContents, progress: ShareProgress) -> tuple[Names, list[str]]:
    """Write the metadata of each part; return the names of the images, and sentences about data left out.

    Metadata are lines of JSON, from which readers guess types; with parts, whose types must be equal, and for many
    images a Parquet file. Columns without any value are left out.

    Raises:
        InvalidInput: readers would not know a part by its name.
    """
    if contents.splits is not None and (odd := sorted(set(contents.splits.names) - _PARTS)):
        raise InvalidInput(
            f"a split for huggingface needs parts that its readers know, train, validation and test, not {odd[0]!r}"
        )
    names = _distinct_names(contents, progress)
    columns = _columns(contents)
    in_parquet = contents.splits is not None or contents.total > _MOST_JSON
    for part, own in parts_of(contents):
        folder = f"{part or _UNDIVIDED}/"
        with archive.member(folder + (_PARQUET if in_parquet else _JSON), compressed=not in_parquet) as member:
            tables = _tables(own, names, columns, folder)
            if in_parquet:
                _write_parquet(member, tables, columns)
            else:
                for table in tables:
                    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
                    member.write("".join(lines).encode("utf-8", "replace"))
    return names, objects_left_out(contents, LACKING, "Hugging Face")


def _write_parquet(member: Any, tables: Iterator[pa.Table], columns: pa.Schema) -> None:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, columns) as writer:
        for table in tables:
            writer.write_table(table)
    member.write(memoryview(sink.getvalue()))


def _distinct_names(contents: ExportContents, progress: ShareProgress) -> Names:
    """Return a function that gives distinct names, with the folder of the part."""
    media = contents.media
    shared = find_repeats(hash_names(_flat(media, block)) for block in contents.locations(progress))
    hashes = np.array(list(shared), np.int64)

    def names_of(media: Media, block: pa.Table) -> pa.Array:
        names = _flat(media, block)
        is_long = pc.greater(pc.binary_length(names), MAX_BYTES).to_numpy(zero_copy_only=False)
        is_odd = (np.isin(hash_names(names), hashes) | is_long).tolist()
        ids = column(block, "media_id")
        rows = zip(names.to_pylist(), is_odd, ids.to_pylist(), strict=True)
        texts = pa.array([marked_name(name, each) if odd else name for name, odd, each in rows], pa.string())
        part = _UNDIVIDED if contents.splits is None else contents.splits.of(ids)
        return pc.binary_join_element_wise(part, texts, "/")

    return names_of


def _flat(media: Media, block: pa.Table) -> pa.Array:
    return pc.replace_substring(readable_names(media, block), "/", "-")


def _columns(contents: ExportContents) -> pa.Schema:
    """Return the columns of the metadata: those for which some image has a value."""
    several = captions = labels = False
    for block in contents.blocks(pa.schema([EXPORTED.field("labels"), EXPORTED.field("caption")]), lambda _share: None):
        counts = pc.fill_null(pc.list_value_length(column(block, "labels")), 0)
        several = several or (pc.max(counts).as_py() or 0) > 1
        labels = labels or (pc.max(counts).as_py() or 0) > 0
        captions = captions or block["caption"].null_count < len(block)
    fields = [pa.field("file_name", pa.string())]
    if contents.boxes_only:
        labels = captions = False
    if labels:
        fields.append(pa.field("labels", pa.list_(pa.string())) if several else pa.field("label", pa.string()))
    if captions:
        fields.append(pa.field("text", pa.string()))
    if contents.n_objects:
        of_objects = [pa.field("bbox", pa.list_(pa.list_(pa.float64()))), pa.field("categories", pa.list_(pa.string()))]
        fields.append(pa.field("objects", pa.struct(of_objects)))
    return pa.schema(fields)


def _tables(contents: ExportContents, names: Names, columns: pa.Schema, folder: str) -> Iterator[pa.Table]:
    media, fields = contents.media, contents.media.table.schema
    location = [fields.field(name) for name in dict.fromkeys([*media.location, "media_id", "format"])]
    own = [EXPORTED.field("labels"), EXPORTED.field("caption")]
    objects = [_OBJECTS] if "objects" in columns.names else []
    for block in contents.blocks(pa.schema([*location, *own, *objects]), lambda _share: None):
        files = names(media, block.select([each.name for each in location])).to_pylist()
        rows = block.select([each.name for each in (*own, *objects)]).to_pylist()
        described = [_row(name, row, columns.names) for name, row in zip(files, rows, strict=True)]
        yield pa.Table.from_pylist(described, columns)


def _row(name: str, row: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    found = {"file_name": name.partition("/")[2], "labels": row["labels"] or [], "text": row["caption"] or ""}
    found["label"] = found["labels"][0] if found["labels"] else None
    if OBJECTS in row:
        objects = row[OBJECTS] or []
        found["objects"] = {
            "bbox": [each["bbox"] for each in objects],
            "categories": [each["label"] for each in objects],
        }
    return {each: found[each] for each in columns}
