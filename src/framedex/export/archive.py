"""The ZIP export: metadata as JSON or Parquet, and the pictures if wanted; written as a stream, visible when whole."""

import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from framedex.errors import InvalidInput
from framedex.export.columns import EXPORTED, URL, export_batches, table_schema
from framedex.export.files import whole_file
from framedex.media.files import open_at_once
from framedex.records import Condition, DatasetRecord, ExportResult
from framedex.storage.media import LOCATION, Media, RowIds

SCHEMA_VERSION = "1.1"
Format = Literal["json", "parquet"]
Progress = Callable[[float], None]


def export_archive(
    media: Media,
    dataset: DatasetRecord,
    rows: Condition | RowIds,
    path: Path,
    *,
    format: str,  # noqa: A002 - the public name
    include_images: bool,
    exported_by: str,
    progress: Progress,
) -> ExportResult:
    """Write media to a ZIP file and return what was written. An existing file is replaced when the new one is whole.

    Args:
        media: what is exported.
        dataset: whose media they are.
        rows: which of them.
        path: the ZIP file.
        format: ``json`` or ``parquet``.
        include_images: also put the pictures' files under ``images/``.
        exported_by: who is named as the exporter.
        progress: called with the share that is done; raises to stop, which leaves nothing behind.

    Raises:
        InvalidInput: the format is another one, or the file cannot be written there.
    """
    if format not in ("json", "parquet"):
        raise InvalidInput(f"format must be 'json' or 'parquet', not {format!r}")
    total = media.count(rows) if isinstance(rows, Condition) else len(rows)
    images = 0
    missing: list[str] = []
    with (
        whole_file(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        share = 0.2 if include_images else 1.0
        done = 0

        def count(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
            nonlocal done
            for block in blocks:
                yield block
                done += len(block)
                progress(share * done / max(total, 1))

        if format == "parquet":
            _write_parquet(archive, count(export_batches(media, rows, EXPORTED)))
        else:
            _write_json(archive, _info(dataset, total, exported_by), count(_json_blocks(media, rows)))
        if include_images:
            images, missing = _write_images(archive, media, rows, total, lambda part: progress(0.2 + 0.8 * part))
    return ExportResult(path=str(path), total_media_items=total, images=images, missing_images=missing)


class _Sink(io.RawIOBase):
    """What Arrow needs of a file, over a member of a ZIP, which only takes bytes."""

    def __init__(self, member: Any) -> None:
        self._member, self._written = member, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._member.write(data)
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written


def _write_parquet(archive: zipfile.ZipFile, blocks: Iterator[pa.Table]) -> None:
    with (
        archive.open("metadata.parquet", "w", force_zip64=True) as member,
        pq.ParquetWriter(pa.PythonFile(_Sink(member), mode="w"), EXPORTED, compression="zstd") as writer,
    ):
        for block in blocks:
            writer.write_table(block)


def _write_json(archive: zipfile.ZipFile, info: dict[str, Any], blocks: Iterator[pa.Table]) -> None:
    entry = zipfile.ZipInfo("metadata.json", datetime.now().timetuple()[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(entry, "w", force_zip64=True) as member:
        member.write(b'{"info": ' + _json(info) + b', "media_items": [')
        separator = b"\n"
        for block in blocks:
            for row in block.to_pylist():
                member.write(separator + _json(_item(row)))
                separator = b",\n"
        member.write(b"\n]}\n")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _info(dataset: DatasetRecord, total: int, exported_by: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "dataset": dataset.display_name,
        "description": "",
        "dataset_url": "",
        "export_time": datetime.now(UTC).isoformat(),
        "dataset_creation_time": dataset.created_at.isoformat(),
        "exported_by": exported_by,
        "total_media_items": total,
    }


def _json_blocks(media: Media, rows: Condition | RowIds) -> Iterator[pa.Table]:
    return export_batches(media, rows, EXPORTED.append(URL))


def _item(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "media_id": row["media_id"],
        "media_type": "image",
        "file_name": row["image_filename"],  # so that images/<file_name> is the picture
        "file_path": row["file_path"],
        "file_size": size_text(row["file_size_bytes"]),
        "uniqueness_score": _rounded(row["uniqueness_score"]),
        "height": row["height"],
        "width": row["width"],
        "url": row["url"],
        "cluster_id": row["cluster_id"],
        "metadata_items": list(_metadata_items(row)),
    }


def _metadata_items(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for issue in row["issues"]:
        properties = {"issue_type": issue["issue_type"], "confidence": _rounded(issue["confidence"])}
        if issue["duplicate_group_id"] is not None:
            properties["duplicate_group_id"] = issue["duplicate_group_id"]
            properties["duplicate_threshold"] = _rounded(issue["duplicate_threshold"])
        yield {"type": "issue", "properties": properties}
    for label in row["labels"]:
        yield {
            "type": "image_label",
            "properties": {"original_id": None, "category_name": label, "source": "import"},
        }
    if row["caption"] is not None:
        yield {"type": "caption", "properties": {"text": row["caption"], "source": "import"}}


def _rounded(value: float | None) -> float | None:
    """Return a float32 with the digits that it has, not those of its double."""
    return None if value is None else round(value, 6)


def size_text(size_bytes: int | None) -> str | None:
    """Return a size as people read it, for example ``48.27KB``; one KB is 1024 bytes."""
    if size_bytes is None:
        return None
    value, units = float(size_bytes), ["B", "KB", "MB", "GB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.2f}{units[0]}" if units[0] != "B" else f"{size_bytes}B"


def _write_images(
    archive: zipfile.ZipFile, media: Media, rows: Condition | RowIds, total: int, progress: Progress
) -> tuple[int, list[str]]:
    """Copy the pictures' files into the archive; return how many, and the paths of those that cannot be read."""
    schema = table_schema(media, ["image_filename"])
    written, missing, done = 0, [], 0
    names = (name for block in export_batches(media, rows, schema) for name in block["image_filename"].to_pylist())
    for block in media.blocks(rows, LOCATION):
        for row in block.to_pylist():
            path, name = media.file_of(row), next(names)
            if path is not None and _copy(archive, path, f"images/{name}"):
                written += 1
            else:
                missing.append(_text(path or row["path"]))
            done += 1
            progress(done / max(total, 1))
    return written, missing


def _text(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _copy(archive: zipfile.ZipFile, path: str, name: str) -> bool:
    try:
        picture = open(path, "rb", opener=open_at_once)  # noqa: SIM115 - closed below
    except (OSError, ValueError):  # a name with a null character is a ValueError
        return False
    with picture:
        status = os.fstat(picture.fileno())
        if not stat.S_ISREG(status.st_mode):
            return False
        with archive.open(_zip_entry(status.st_mtime, name), "w", force_zip64=True) as member:
            shutil.copyfileobj(picture, member, 1 << 20)
    return True


def _zip_entry(modified_s: float, name: str) -> zipfile.ZipInfo:
    when = datetime.fromtimestamp(modified_s).timetuple()[:6]
    # ZIP dates begin in 1980 and end in 2107.
    entry = zipfile.ZipInfo(name, when if 1980 <= when[0] <= 2107 else (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    return entry
