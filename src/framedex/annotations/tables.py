"""Annotation tables, CSV and Parquet: one with a row for each image, and one with a row for each box.

``image_annotations`` has the columns ``filename`` and ``label`` or ``caption``. ``object_annotations`` has ``filename,
col_x, row_y, width, height, label`` and, if there are any, ``confidence``. Other columns are ignored. Lengths are in
pixels. Ids and flags of boxes have no column and are left out. Delimiter, encoding and decimal commas of a CSV file are
seen from its beginning.

A spreadsheet takes a text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, which may come from a stranger.
In CSV files such a text is written with a ``'`` before it, which reading takes away.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.boxes import Box, finite_number, is_confidence, label_of
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.labels import parse_labels
from framedex.annotations.output import OBJECTS, AnnotatedImages, Files, column, file_names, omissions
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.core.delimited import named_rows
from framedex.core.progress import ShareProgress
from framedex.core.table_rows import parquet_rows
from framedex.errors import InvalidInput

LABELS_CSV, LABELS_PARQUET = "image_annotations.csv", "image_annotations.parquet"
BOXES_CSV, BOXES_PARQUET = "object_annotations.csv", "object_annotations.parquet"
LABEL_COLUMNS = ("filename", "label", "caption")
COLUMNS = ("filename", "col_x", "row_y", "width", "height", "label")
CONFIDENCE = "confidence"
_SHOWN = 20  # columns in a message
_READ = frozenset((*LABEL_COLUMNS, *COLUMNS, CONFIDENCE))
_LINE_END = "\r\n"  # RFC 4180
_FORMULA = r"^('*[=+\-@\t\r\n])"
_MARKED_FORMULA = re.compile(f"^'{_FORMULA[1:]}")


# Reading labels and captions


def read_csv_labels(path: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the rows of a CSV file with labels and captions, and the rows that are not CSV as problems.

    Raises:
        InvalidInput: the file cannot be read as CSV, or lacks a column.
    """
    rows = _csv_rows(path, _check_label_columns)
    yield from (row if isinstance(row, AnnotationProblem) else _labels(*row) for row in rows)


def read_parquet_labels(path: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the rows of a Parquet file with labels and captions.

    Raises:
        InvalidInput: the file cannot be read as Parquet, or lacks a column.
    """
    yield from (_labels(*row) for row in _parquet_rows(path, LABEL_COLUMNS, _check_label_columns))


def _check_label_columns(path: Path, names: Sequence[str]) -> None:
    if "filename" not in names or not {"label", "caption"} & set(names):
        raise InvalidInput(
            f"{os.fspath(path)!r} has the columns {list(names[:_SHOWN])}; it needs 'filename' and 'label' or 'caption'"
        )


def _labels(location: str, row: Mapping[str, Any]) -> ImageLabels | AnnotationProblem:
    label, caption = row.get("label"), row.get("caption")
    if not row["filename"]:
        return problem(location, row["filename"], "'filename' must be the name of an image")
    is_list = isinstance(label, list) or (isinstance(label, str) and label.strip().startswith("["))
    return ImageLabels(
        str(row["filename"]), parse_labels(label), None if caption is None else str(caption), complete=is_list
    )


# Reading boxes


def read_csv_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a CSV file, row by row.

    Args:
        path: the file, with a line of column names; any layout of :mod:`framedex.core.delimited`.
        problems: collects the problems of invalid rows.

    Raises:
        InvalidInput: the file cannot be read as CSV, or lacks a column.
    """
    rows = (
        row if isinstance(row, AnnotationProblem) else _box(*row, "csv") for row in _csv_rows(path, _check_box_columns)
    )
    yield from without_problems(rows, problems)


def read_parquet_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a Parquet file, batch by batch.

    Args:
        path: the file.
        problems: collects the problems of invalid rows.

    Raises:
        InvalidInput: the file cannot be read as Parquet, or lacks a column.
    """
    rows = _parquet_rows(path, (*COLUMNS, CONFIDENCE), _check_box_columns)
    yield from without_problems((_box(location, row, "parquet") for location, row in rows), problems)


def _check_box_columns(path: Path, names: Sequence[str]) -> None:
    if missing := [name for name in COLUMNS if name not in names]:
        raise InvalidInput(
            f"{os.fspath(path)!r} lacks the columns {', '.join(missing)}; a table of boxes has {', '.join(COLUMNS)} "
            f"and may have {CONFIDENCE}"
        )


def _box(location: str, row: Mapping[str, Any], source: str) -> Box | AnnotationProblem:
    name, label = row["filename"], label_of(row["label"])
    if not isinstance(name, str) or not name:
        return problem(location, name, "'filename' must be the name of an image")
    if not label:
        return problem(location, row["label"], "'label' must be the name of a class")
    x, y, width, height = (finite_number(row[name]) for name in COLUMNS[1:5])
    if x is None or y is None or width is None or height is None:
        numbers_as_read = {name: row[name] for name in COLUMNS[1:5]}
        return problem(location, numbers_as_read, "col_x, row_y, width and height must be finite numbers of pixels")
    cell = row.get(CONFIDENCE)
    if cell in (None, "") or cell != cell:  # noqa: PLR0124 - an empty cell or NaN is a missing value
        cell = None
    confidence = finite_number(cell)
    if cell is not None and not is_confidence(confidence):
        return problem(location, cell, "'confidence' must be a number from 0 to 1, or nothing")
    return Box(name, x, y, width, height, label, confidence, source=source, location=location)


# Rows of CSV and Parquet files


def _csv_rows(path: Path, check: Any) -> Iterator[tuple[str, dict[str, Any]] | AnnotationProblem]:
    """Yield (place, row) of a CSV file, after a check of its column names; a row that is not CSV is a problem."""
    broken: list[str] = []
    for line, row in named_rows(path, _READ, check, broken.append):
        yield from _broken(path, broken)
        yield (
            f"{path.name}: line {line}",
            {
                name: _MARKED_FORMULA.sub(r"\1", cell) if cell and cell[0] == "'" else cell
                for name, cell in row.items()
                if name in _READ
            },
        )
    yield from _broken(path, broken)


def _broken(path: Path, faults: list[str]) -> Iterator[AnnotationProblem]:
    yield from (problem(f"{path.name}: {fault.partition(': ')[0]}", "", fault) for fault in faults)
    faults.clear()


def _parquet_rows(path: Path, columns: Sequence[str], check: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) of some columns of a Parquet file, after a check of its column names."""

    def choose(names: Sequence[str]) -> list[str]:
        check(path, names)
        return [name for name in columns if name in names]

    yield from ((f"{path.name}: row {position}", row) for position, row in enumerate(parquet_rows(path, choose)))


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write the CSV tables, and return sentences about the data that they cannot hold.

    The table of boxes is written only if boxes are exported.
    """
    if not images.with_boxes:
        write_label_table(files, images, progress)
        return []
    write_label_table(files, images, part(progress, 0.0, 0.5))
    _write_boxes(files, images, part(progress, 0.5, 1.0))
    lacking = ("original_id", "iscrowd", "truncated", "difficult", "attributes", "segmentation", "keypoints")
    return omissions(images, lacking, "CSV")


def write_label_table(files: Files, images: AnnotatedImages, progress: ShareProgress) -> None:
    """Write the table of labels and captions: one row for each image, with its labels as a JSON array.

    Images without labels and captions get a row, too. Otherwise a reader would give them the labels of another image
    with the same base name.
    """
    if not images.with_labels:
        return
    with files.member(LABELS_CSV, compressed=True) as member:
        member.write(f"{','.join(LABEL_COLUMNS)}{_LINE_END}".encode())
        for block in images.blocks(["file_name", "labels", "caption"], progress):
            labels = _label_cells(column(block, "labels"), with_empty=images.with_boxes)
            names = _quoted(file_names(images, block))
            member.write(_lines(names, _quoted(labels), _quoted(column(block, "caption"))))


def _write_boxes(files: Files, images: AnnotatedImages, progress: ShareProgress) -> None:
    with files.member(BOXES_CSV, compressed=True) as member:
        member.write(f"{','.join((*COLUMNS, CONFIDENCE))}{_LINE_END}".encode())
        for block in images.blocks(["file_name", OBJECTS], progress):
            objects = column(block, OBJECTS)
            values = objects.flatten()
            edges = pc.cast(values.field("bbox").flatten(), pa.string())
            sides = (edges.take(pa.array(np.arange(side, len(edges), 4))) for side in range(4))
            names = file_names(images, block).take(pc.list_parent_indices(objects))
            confidence = pc.fill_null(pc.cast(values.field("confidence"), pa.string()), "")
            member.write(_lines(_quoted(names), *sides, _quoted(values.field("label")), confidence))


def _lines(*cells: Any) -> memoryview:
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, ","), _LINE_END, "")
    return json.join_rows(lines, end="")


def _label_cells(labels: pa.Array, *, with_empty: bool) -> pa.Array:
    """Return JSON arrays; null for an empty list, unless boxes would then become labels of an unlabelled image."""
    cells = json.arrays(labels)
    return cells if with_empty else pc.if_else(pc.equal(cells, "[]"), None, cells)


def _quoted(texts: pa.Array) -> Any:
    texts = pc.replace_substring_regex(texts, pattern=_FORMULA, replacement=r"'\1")
    return pc.fill_null(pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', ""), "")
