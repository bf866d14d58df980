"""Ingestion of precomputed embeddings: an Arrow table or a Parquet file with ``uri`` and ``embedding``."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from framedex.annotations.labels import parse_labels
from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.checks import is_integer
from framedex.core.ids import media_id
from framedex.core.regular_files import engine_file, has_file
from framedex.core.table_rows import python_values
from framedex.errors import InvalidEmbedding, InvalidInput
from framedex.executors import ThreadExecutor
from framedex.jobs.ingest.ingest import NO_CHECKPOINT, Checkpoint, Ingested, SaveCheckpoint, discard_checkpoint
from framedex.jobs.ingest.placement import FIRST_PLACEMENT, SourcePlacement
from framedex.storage import tables
from framedex.storage.id_index import GrowingIds, IdIndex
from framedex.storage.media_rows import DAMAGED, is_relative, media_schema

_Cells = dict[str, list[Any]]  # the values of columns
_ROWS = 8192
_AT_ONCE = 2  # batches that are prepared while one is written
_SCALED = 256  # embeddings that are scaled at a time; they stay in the processor's cache
_UNREADABLE = (OSError, UnicodeDecodeError, pa.ArrowException)
"""Errors that reading a damaged Parquet file raises."""
_OPTIONAL = ("width", "height", "caption", "label", "labels")
THRESHOLDS = (0.04, 0.10, 0.20, 0.30, 0.45)
"""Cosine distances of levels 0 to 4 for embeddings of unknown origin; typical for learned encoders."""


@dataclass(frozen=True)
class EmbeddingTable:
    """A table with precomputed embeddings.

    Attributes:
        open: returns a new iterator over its batches.
        rows: number of rows; None if unknown.
        dimension: of the first embedding.
        root: the folder that relative uris are relative to.
        config: the JSON with which another process can open it; None if no other process can.
        name: its name in messages.
    """

    open: Callable[[], Iterator[pa.RecordBatch]]
    rows: int | None
    dimension: int
    root: str
    config: dict[str, Any] | None = None
    name: str = "the table"


def is_vector_file(path: Path, allowed: AllowedFolders | None = None) -> bool:
    """Return whether a path is a Parquet file with embeddings.

    Args:
        path: the path.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: it is a damaged Parquet file.
        Forbidden: it is in no allowed folder.
    """
    if path.suffix.lower() != ".parquet":
        return False
    try:
        with within(allowed):
            if not has_file(path):
                return False
            source = engine_file(path)
        with source as opened:
            return "embedding" in pq.read_schema(opened).names
    except _UNREADABLE as error:
        raise InvalidInput(f"cannot read {path} as Parquet: {error}") from error


def open_vectors(table: Any, allowed: AllowedFolders | None = None) -> EmbeddingTable:
    """Return the source of a Parquet file's path, or of anything that Arrow converts to a table.

    Args:
        table: the path or the table.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: it is not a table, has no rows, or lacks ``uri`` or ``embedding``.
        InvalidEmbedding: the embeddings are not lists of numbers.
    """
    if isinstance(table, Path):
        try:
            with _open(table, allowed) as source, pq.ParquetFile(source) as file:
                schema, rows = file.schema_arrow, file.metadata.num_rows
        except _UNREADABLE as error:
            raise InvalidInput(f"cannot read {table} as Parquet: {error}") from error

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                # What is read ahead would stay in memory until the end.
                with _open(table, allowed) as source, pq.ParquetFile(source, pre_buffer=False) as file:
                    for batch in file.iter_batches(batch_size=_ROWS, columns=_used_columns(schema)):
                        batch.validate(full=True)  # invalid UTF-8
                        yield batch
            except _UNREADABLE as error:
                raise InvalidInput(f"cannot read {table} as Parquet: {error}") from error
    else:
        arrow_table = _to_table(table)
        schema, rows = arrow_table.schema, arrow_table.num_rows

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in arrow_table.select(_used_columns(schema)).to_batches(max_chunksize=_ROWS):
                try:
                    batch.validate(full=True)
                except pa.ArrowException as error:
                    raise InvalidInput(f"the table is damaged: {error}") from error
                yield batch

    missing = {"uri", "embedding"} - set(schema.names)
    if missing:
        raise InvalidInput(f"the table has the columns {schema.names}; it lacks {', '.join(sorted(missing))}")
    if not rows:
        raise InvalidInput("the table has no rows; there is nothing to make a dataset of")
    root = str(table.absolute().parent) if isinstance(table, Path) else str(Path.cwd())
    name = repr(str(table)) if isinstance(table, Path) else "the table"
    return EmbeddingTable(batches, rows, _dimension(schema, batches()), root, name=name)


def _open(path: Path, allowed: AllowedFolders | None) -> AbstractContextManager[Path | BinaryIO]:
    with within(allowed):
        return engine_file(path)


def _to_table(table: Any) -> pa.Table:
    try:
        return table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        hint = "; write paths to a .txt file, one a line" if isinstance(table, list | tuple) else ""
        raise InvalidInput(
            "a source is a folder, a list file, or an Arrow table with uri and embedding, "
            f"not {type(table).__name__}{hint}"
        ) from error


def _used_columns(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name in ("uri", "embedding", *_OPTIONAL)]


def _dimension(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    kind = schema.field("embedding").type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise InvalidEmbedding(f"column 'embedding' has the type {kind}; it must hold lists of numbers")
    for batch in batches:
        for value in batch.column("embedding"):
            if value.is_valid and len(value):
                return len(value)
    raise InvalidEmbedding("no row of the table has an embedding")


def ingest_vectors(
    source: EmbeddingTable,
    *,
    table: Path,
    dataset_id: str,
    progress: Callable[[float], None],
    placement: SourcePlacement = FIRST_PLACEMENT,
    existing: IdIndex | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    save_checkpoint: SaveCheckpoint = discard_checkpoint,
    of_videos: bool = True,
) -> Ingested:
    """Append the rows of *source* to the table; return the result.

    The images themselves are not opened. A row is skipped if the dataset has its uri. Embeddings are scaled to unit
    length. A row without an embedding, or with an all-zero one, is kept with the reason in ``error``. *checkpoint*,
    *save_checkpoint* and *of_videos* are as in :func:`framedex.jobs.ingest.ingest.ingest`.

    Raises:
        InvalidEmbedding: an embedding has another dimension or a value that is not finite.
        InvalidInput: a uri is missing or occurs twice, or another column has an invalid value.
    """
    schema = media_schema(source.dimension, of_videos=of_videos)
    rows_read, rows_written, version = 0, checkpoint.rows, checkpoint.version
    seen = GrowingIds()
    prepare = partial(_prepare, source.name, placement, dataset_id, schema)
    with ThreadExecutor(_AT_ONCE) as executor:
        for rows in executor.map(prepare, _numbered(source.open())):
            ids = rows.column("media_id")
            if (twice := seen.add(ids)) is not None:
                raise InvalidInput(f"row {rows_read + twice}: the uri {rows.column('path')[twice]} occurs twice")
            some = rows if existing is None else rows.filter(pa.array(~existing.contains(ids.to_pylist())))
            if some.num_rows:
                version = tables.append(table, [some], schema)
                rows_written += some.num_rows
                save_checkpoint(Checkpoint(version, rows_written))
            rows_read += rows.num_rows
            progress(rows_read / max(source.rows or rows_read, 1))
    return Ingested(version, rows_written, 0, rows_read - rows_written)


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (number of the first row, batch) of the batches that have rows."""
    first_row = 0
    for batch in batches:
        if batch.num_rows:
            yield first_row, batch
        first_row += batch.num_rows


def _prepare(
    name: str, placement: SourcePlacement, dataset_id: str, schema: pa.Schema, numbered: tuple[int, pa.RecordBatch]
) -> pa.RecordBatch:
    """Return the rows of the table for a batch of the source."""
    first_row, batch = numbered
    cells = _cells(batch, name)
    return _to_rows(batch, cells, first_row=first_row, placement=placement, dataset_id=dataset_id, schema=schema)


def _cells(batch: pa.RecordBatch, source: str) -> _Cells:
    """Return the columns other than ``embedding`` as Python objects.

    Raises:
        InvalidInput: a column has a value that Python has not.
    """
    names = [name for name in batch.schema.names if name != "embedding"]
    return {name: python_values(batch.column(name), name, source) for name in names}


def _to_rows(
    batch: pa.RecordBatch,
    cells: _Cells,
    *,
    first_row: int,
    placement: SourcePlacement,
    dataset_id: str,
    schema: pa.Schema,
) -> pa.RecordBatch:
    dimension = schema.field("embedding").type.list_size
    uris = cells["uri"]
    for offset, uri in enumerate(uris):
        if not isinstance(uri, str) or not uri or "\0" in uri:
            raise InvalidInput(f"row {first_row + offset}: the uri {uri!r} is no text that names an image")
    vectors, errors = _unit_vectors(batch.column("embedding"), first_row, dimension)
    missing: list[Any] = [None] * len(uris)
    columns: dict[str, Any] = {
        "media_id": [media_id(dataset_id, uri) for uri in uris],
        "path": uris,
        "root": [placement.root if is_relative(uri) else None for uri in uris],
        "batch": [placement.batch] * len(uris),
        "width": _sizes(cells.get("width", missing), "width", first_row),
        "height": _sizes(cells.get("height", missing), "height", first_row),
        "labels": [list(parse_labels(label)) or None for label in cells.get("label", cells.get("labels", missing))],
        "caption": [None if caption is None else str(caption) for caption in cells.get("caption", missing)],
        "error": errors,
        "fault": [None if error is None else DAMAGED for error in errors],
    }
    unusable = pa.array([error is not None for error in errors])
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension, mask=unusable)
    if "width" in batch.schema.names and "height" in batch.schema.names:
        columns["aspect_ratio"] = [
            None if not w or not h else min(w, h) / max(w, h)
            for w, h in zip(columns["width"], columns["height"], strict=True)
        ]
    arrays = [
        columns[field.name]
        if isinstance(columns.get(field.name), pa.Array)
        else pa.array(columns.get(field.name, [None] * len(uris)), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _unit_vectors(column: pa.Array, first_row: int, dimension: int) -> tuple[npt.NDArray[np.float32], list[str | None]]:
    """Return float32 (N, D) of unit length; for rows without a usable embedding, zeros and the reason."""
    errors: list[str | None] = [None] * len(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(valid & (lengths != dimension))
    if len(wrong):
        row = int(wrong[0])
        raise InvalidEmbedding(
            f"row {first_row + row} has an embedding of dimension {lengths[row]}; the first row has {dimension}"
        )
    flat = column.drop_null().flatten()
    if flat.null_count:
        raise InvalidEmbedding(f"an embedding of rows {first_row} to {first_row + len(column) - 1} has missing values")
    for missing in np.flatnonzero(~valid):
        errors[missing] = "the embedding is missing"
    values, rows = flat.to_numpy(zero_copy_only=False).reshape(-1, dimension), np.flatnonzero(valid)
    vectors = np.zeros((len(column), dimension), dtype=np.float32)
    for start in range(0, len(rows), _SCALED):
        part = slice(start, start + _SCALED)
        # Float64 until the end: the values may exceed the range of float32.
        some = values[part].astype(np.float64)
        largest = np.maximum(some.max(axis=1), -some.min(axis=1))  # NaN if a value is
        broken = np.flatnonzero(~np.isfinite(largest))
        if len(broken):
            row, wrong_one = int(rows[part][broken[0]]), some[broken[0]]
            position = int(np.flatnonzero(~np.isfinite(wrong_one))[0])
            raise InvalidEmbedding(
                f"row {first_row + row} has the value {wrong_one[position]} at place {position} of its embedding; "
                "embeddings must be finite"
            )
        for zero in rows[part][largest == 0]:
            errors[zero] = "the embedding is all zeros"
        some /= np.where(largest == 0, 1, largest)[:, None]
        some /= np.maximum(np.sqrt(np.einsum("ij,ij->i", some, some)), 1)[:, None]
        vectors[rows[part]] = some
    return vectors, errors


def _sizes(values: list[Any], name: str, first_row: int) -> list[int | None]:
    return [_size(value, name, first_row + offset) for offset, value in enumerate(values)]


def _size(value: Any, name: str, row: int) -> int | None:
    # Data frames store integers as floats if some are missing.
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return None
    is_whole = is_integer(value) or (isinstance(value, float) and value.is_integer())
    if not is_whole or not 0 < value < 2**31:
        raise InvalidInput(f"row {row}: the {name} {value!r} is no number of pixels above 0")
    return int(value)
