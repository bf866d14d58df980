"""Boxes in tables: ``object_annotations.csv`` and ``object_annotations.parquet``, a row an object.

The columns are ``filename, col_x, row_y, width, height, label`` and, if there are any, ``confidence``; others are
not looked at. Lengths are in pixels. Ids and flags have no column and are not kept.
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from framedex.errors import InvalidInput
from framedex.media.box_files import whole_file
from framedex.media.boxes import (
    Box,
    Problem,
    Problems,
    Source,
    is_confidence,
    label_of,
    number,
    problem,
    without_problems,
)
from framedex.media.csv_fields import long_fields
from framedex.regular_files import open_text, regular

COLUMNS = ("filename", "col_x", "row_y", "width", "height", "label")
CONFIDENCE = "confidence"
_ROWS = 2**16  # of a batch


def read_csv_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a CSV file, row by row.

    Args:
        path: of the file, in UTF-8, with a line of column names.
        problems: rows that lack something are added; the rest is yielded.

    Raises:
        InvalidInput: it cannot be read as CSV, or lacks a column.
    """
    try:
        with open_text(path, newline="") as text, long_fields():
            rows = csv.DictReader(text, strict=True)
            _check_columns(path, rows.fieldnames or [])
            places = ((f"{path.name}: line {rows.line_num}", row) for row in rows)
            yield from without_problems((_box(place, row, "csv") for place, row in places), problems)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r} as CSV: {error}") from error


def read_parquet_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a Parquet file, batch by batch.

    Args:
        path: of the file.
        problems: rows that lack something are added; the rest is yielded.

    Raises:
        InvalidInput: it cannot be read as Parquet, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(regular(path)) as file:
            there = file.schema_arrow.names
            _check_columns(path, there)
            columns = [name for name in (*COLUMNS, CONFIDENCE) if name in there]
            done = 0
            for batch in file.iter_batches(columns=columns, batch_size=_ROWS):
                rows = enumerate(batch.to_pylist(), done)
                done += len(batch)
                found = (_box(f"{path.name}: row {place}", row, "parquet") for place, row in rows)
                yield from without_problems(found, problems)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r} as Parquet: {error}") from error


def _check_columns(path: Path, names: Sequence[str]) -> None:
    if missing := [name for name in COLUMNS if name not in names]:
        raise InvalidInput(
            f"{os.fspath(path)!r} lacks the columns {', '.join(missing)}; a table of boxes has {', '.join(COLUMNS)} "
            f"and may have {CONFIDENCE}"
        )


def _box(place: str, row: Mapping[str, Any], source: Source) -> Box | Problem:
    name, label = row["filename"], label_of(row["label"])
    if not isinstance(name, str) or not name:
        return problem(place, name, "'filename' must be the name of a picture")
    if not label:
        return problem(place, row["label"], "'label' must be the name of a class")
    x, y, width, height = (number(row[column]) for column in COLUMNS[1:5])
    if x is None or y is None or width is None or height is None:
        shown = {column: row[column] for column in COLUMNS[1:5]}
        return problem(place, shown, "col_x, row_y, width and height must be finite numbers of pixels")
    told = row.get(CONFIDENCE)
    if told in (None, "") or told != told:  # noqa: PLR0124 - tables say "missing" by an empty cell or by NaN
        told = None
    confidence = number(told)
    if told is not None and not is_confidence(confidence):
        return problem(place, told, "'confidence' must be a number from 0 to 1, or nothing")
    return Box(name, x, y, width, height, label, confidence, source=source, place=place)


def write_csv_boxes(path: Path, boxes: Iterable[Box]) -> None:
    """Write a CSV file whose boxes :func:`read_csv_boxes` gives back to the last bit; nothing is left on an error.

    Raises:
        InvalidInput: a name is no Unicode text, or the file cannot be written.
    """
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_text(boxes))


def csv_text(boxes: Iterable[Box]) -> Iterator[str]:
    """Yield the lines of a CSV file; see :func:`write_csv_boxes`.

    Raises:
        InvalidInput: a name is no Unicode text.
    """
    yield f"{','.join((*COLUMNS, CONFIDENCE))}\r\n"  # RFC 4180
    line = io.StringIO()
    writer = csv.writer(line)
    for box in boxes:
        writer.writerow(_cells(box))
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def write_parquet_boxes(path: Path, boxes: Iterable[Box]) -> None:
    """Write a Parquet file whose boxes :func:`read_parquet_boxes` gives back to the last bit.

    Raises:
        InvalidInput: a name is no Unicode text, or the file cannot be written; nothing is left of it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [pa.string(), *[pa.float64()] * 4, pa.string(), pa.float64()]
    schema = pa.schema(list(zip((*COLUMNS, CONFIDENCE), kinds, strict=True)))
    pending = iter(boxes)
    with whole_file(path) as partial, pq.ParquetWriter(partial, schema) as file:
        while rows := [_cells(box) for box in islice(pending, _ROWS)]:
            columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            file.write_batch(pa.record_batch(columns, schema=schema))


def _cells(box: Box) -> tuple[Any, ...]:
    try:
        box.name.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"the name {box.name!r} is no Unicode text, which tables are made of") from None
    return box.name, box.x, box.y, box.width, box.height, box.label, box.confidence
