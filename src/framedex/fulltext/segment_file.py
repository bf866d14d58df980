"""Segment files: written atomically, verified by a checksum when they are opened, and mapped into memory."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.core.atomic import atomic_file
from framedex.core.regular_files import open_binary
from framedex.fulltext.segment import Keys, Segment

SUFFIX = ".text"
_FORMAT = b"framedex full text 1"
_STRINGS = ("word", "folded", "stem")
_ARRAYS = {
    "low": pa.uint64(),
    "high": pa.uint64(),
    "key_text": pa.int32(),
    "field": pa.uint8(),
    "length": pa.int32(),
    "stem_order": pa.int32(),
    "start": pa.int64(),
    "text": pa.int32(),
    "position": pa.int32(),
}


def write_segment(folder: Path, segment: Segment, key: str) -> Path:
    """Write a segment to a folder, which is created if needed, and return its file.

    The file is an Arrow table of one row, whose cells are lists of different lengths. Its name is a hash of its
    content. So it need not be synced: a file that a power cut damaged is detected.

    Args:
        folder: for the file.
        segment: the segment.
        key: the :func:`~framedex.fulltext.tokenizer.tokenizer_key` of its words.

    Raises:
        OSError: the disk is full, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def put(partial: Path, _path: Path) -> None:
        targets.append(partial.replace(folder / f"{_digest(partial)}{SUFFIX}"))

    targets: list[Path] = []
    with atomic_file(folder / "new", put=put) as partial:
        _write(partial, segment, key)
    return targets[0]


def _write(path: Path, segment: Segment, key: str) -> None:
    values = {name: getattr(segment, name) for name in _ARRAYS if name not in ("low", "high")}
    values |= {"low": segment.keys.low, "high": segment.keys.high}
    cells = {name: pa.array(values[name], kind) for name, kind in _ARRAYS.items()}
    cells |= {name: getattr(segment, name) for name in _STRINGS}
    columns = [pa.LargeListArray.from_arrays([0, len(cell)], cell) for cell in cells.values()]
    schema = pa.schema([pa.field(name, column.type) for name, column in zip(cells, columns, strict=True)])
    schema = schema.with_metadata({"format": _FORMAT, "key": key})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def open_segment(path: Path, key: str, *, checked: bool = False) -> Segment | None:
    """Return the segment of a file, mapped into memory; None if it is damaged, of another format, or of another key.

    Args:
        path: the file.
        key: the expected :func:`~framedex.fulltext.tokenizer.tokenizer_key`.
        checked: whether the content was verified before, as after writing.

    Raises:
        FileNotFoundError: it was deleted.
        OSError: it cannot be read.
    """
    if not checked and _digest(path) != path.stem:
        return None
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        metadata = reader.schema.metadata or {}
        if (metadata.get(b"format"), metadata.get(b"key")) != (_FORMAT, key.encode()):
            return None
        batch = reader.get_batch(0)
    except pa.ArrowInvalid:
        return None
    cells = {name: batch.column(name).values for name in (*_ARRAYS, *_STRINGS)}
    arrays = {name: np.asarray(cells[name].to_numpy(zero_copy_only=True)) for name in _ARRAYS}
    keys = Keys(arrays.pop("low"), arrays.pop("high"))
    return Segment(keys=keys, **arrays, **{name: cells[name] for name in _STRINGS})


def is_sound(path: Path) -> bool:
    """Return whether the content of a segment's file fits its name.

    Raises:
        OSError: it cannot be read.
    """
    return _digest(path) == path.stem


def _digest(path: Path) -> str:
    with open_binary(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
