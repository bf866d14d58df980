"""Previews of sources: how their beginning is understood, without a dataset."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from framedex.annotations import tables
from framedex.annotations.huggingface import CAPTIONS, LABELS, OBJECTS
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import Problems
from framedex.core.allowed_folders import AllowedFolders, each_within, within
from framedex.core.delimited import TextLayout
from framedex.core.name_forms import FilePlaces
from framedex.core.naming import check_name
from framedex.core.printable import escaped
from framedex.core.regular_files import has_file, may_read
from framedex.core.skipped import Skipped
from framedex.core.table_rows import parquet_rows
from framedex.errors import InvalidInput
from framedex.export.table_columns import reserved_names
from framedex.jobs.ingest.content import Content, FilesInput, open_content, open_stored_upload
from framedex.jobs.ingest.source_facts import typed_values
from framedex.jobs.ingest.uploads import upload_archive
from framedex.jobs.ingest.vectors import is_vector_file
from framedex.media.archives import archive_path
from framedex.media.files import allowed_folders
from framedex.media.held_images import HeldImages, held_images
from framedex.media.list_sources import (
    LIST_SUFFIXES,
    PARQUET,
    ListColumns,
    column_names,
    is_blank,
    list_columns,
    list_layout,
    read_list,
    text_columns,
)
from framedex.media.remote import SCHEME
from framedex.media.row_sources import as_table, path_column
from framedex.records import ColumnUse, PreviewColumn, Problem, SourcePreview
from framedex.settings import Settings, user_path

_ROWS, _SHOWN_ROWS, _SHOWN_FILES = 100, 10, 3
_MOST_SHOWN = 200  # characters of a cell or a name
_BOX_COLUMNS = frozenset((*tables.COLUMNS, tables.CONFIDENCE))


@dataclass
class _Beginning:
    """The first rows of a table.

    Attributes:
        names: of the columns.
        rows: the cells of each row, in the order of the columns.
        columns: those with a meaning.
        layout: of a text.
        skipped: what is left out of the rows.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    columns: ListColumns
    layout: TextLayout | None = None
    skipped: Skipped = field(default_factory=Skipped)

    @property
    def is_of_boxes(self) -> bool:
        return set(tables.COLUMNS) <= {name.lower() for name in self.names}

    def values(self, name: str) -> list[Any]:
        """Return the values of a column, without missing ones."""
        at = self.names.index(name)
        return [row[at] for row in self.rows if at < len(row) and not is_blank(row[at])]


def preview_source(source: Any, settings: Settings) -> SourcePreview:
    """Return how the beginning of a source is understood. Nothing is written, and no image is opened.

    Args:
        source: what :meth:`framedex.Workspace.create_dataset` takes.
        settings: the folders that may be read, and access to buckets.

    Raises:
        InvalidInput: the source cannot be used.
        Forbidden: it is in no allowed folder or bucket.
        Unavailable: it is in a bucket that cannot be reached.
    """
    allowed = allowed_folders(settings)
    if (archive := archive_path(source)) is not None:
        return _of_archive(archive, settings)
    path = user_path(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and path.suffix.lower() in LIST_SUFFIXES and "://" not in os.fspath(source):
        path = Path(os.path.abspath(path))  # noqa: PTH100 - keeps links
        if allowed is not None:
            allowed.check(path)
        is_list = has_file(path) and not is_vector_file(path, allowed)
        if is_list and held_images(path, allowed) is None:
            return _of_list(path, allowed)
    if (images := held_images(source, allowed)) is not None:
        return _of_images(images)
    table = None if path is not None or isinstance(source, list | tuple) else as_table(source)
    if table is not None and "embedding" not in table.schema.names and (column := path_column(table)) is not None:
        return _of_table(table, column, allowed)
    return _of_content(source, open_content(source, "auto", settings))


def _of_list(path: Path, allowed: AllowedFolders | None) -> SourcePreview:
    with within(allowed):
        beginning = _parquet(path) if path.suffix.lower() == PARQUET else _text(path)
    if beginning.is_of_boxes:
        paths = map(str, beginning.values(next(name for name in beginning.names if name.lower() == "filename")))
        valid, problems = _count_boxes(path, allowed)
        beginning.skipped.update(problems.counts)
        for each in problems.sample:
            beginning.skipped.show(each.kind, str(each))
        note = [f"a table of boxes, for boxes={path.name!r}: {valid} of the first rows are valid"]
        return _preview(os.fspath(path), "boxes", beginning, list(paths), path.parent, allowed, note)
    rows = each_within(allowed, partial(read_list, path, beginning.skipped))
    paths_of_rows = [row.path for row in islice(rows, _ROWS) if row.path]
    return _preview(os.fspath(path), "list", beginning, paths_of_rows, path.parent, allowed, [])


def _text(path: Path) -> _Beginning:
    layout = list_layout(path)
    names = column_names(layout)
    return _Beginning(names, layout.sample[:_ROWS], text_columns(layout, names), layout)


def _parquet(path: Path) -> _Beginning:
    names: list[str] = []

    def choose(columns: Sequence[str]) -> Sequence[str]:
        names.extend(columns)
        return columns

    rows = [list(row.values()) for row in islice(parquet_rows(path, choose), _ROWS)]
    columns = list_columns(names, names[0] if names else None)
    if columns is None:
        raise InvalidInput(f"{os.fspath(path)!r} has no columns; one must hold the paths of files")
    return _Beginning(names, rows, columns)


def _of_table(table: pa.Table, path: str, allowed: AllowedFolders | None) -> SourcePreview:
    columns = list_columns(table.schema.names, path)
    assert columns is not None, "a path column is given"
    rows = [list(row.values()) for row in table.slice(0, _ROWS).to_pylist()]
    beginning = _Beginning(table.schema.names, rows, columns)
    paths = [each for each in beginning.values(columns.path) if isinstance(each, str)]
    return _preview("table", "table", beginning, paths, Path.cwd(), allowed, [])


def _of_images(images: HeldImages) -> SourcePreview:
    first = list(islice(images, _ROWS))
    names = list(dict.fromkeys(name for each in first for name in each.row))
    rows = [[each.name, *(each.row.get(name) for name in names)] for each in first]
    labels, caption = (next((name for name in names if name in known), None) for known in (LABELS, CAPTIONS))
    beginning = _Beginning(["path", *names], rows, ListColumns("path", labels, caption), skipped=images.skipped)
    preview = _preview(images.shown, "images", beginning, [], Path.cwd(), None, [])
    return preview.model_copy(update={"files": len(first), "found": None})


def _of_archive(path: Path, settings: Settings) -> SourcePreview:
    """Return how an archive is understood: as its folder, of which the annotations are unpacked for this time."""
    with TemporaryDirectory(prefix="framedex-") as folder:
        names = upload_archive(path, Path(folder), settings, lambda _share: None, has_contents=False)
        return _of_content(path, open_stored_upload(names, "", "auto", settings), kind="archive")


def _of_content(source: Any, content: Content, kind: str | None = None) -> SourcePreview:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    if not isinstance(content, FilesInput):
        return SourcePreview(
            source=escaped(name),
            kind="vectors",
            columns=[],
            rows=[],
            files=0,
            found=None,
            missing=[],
            layout=[],
            problems=[],
        )
    paths = [each.path for each in islice(content.source.items(), _ROWS)]
    is_remote = "://" in content.source.root
    missing = [] if is_remote or kind else [each for each in paths if not _exists(content.source.root, each)]
    skipped = Skipped(content.source.skipped, getattr(content.source.skipped, "examples", {}))
    skipped.update(content.annotations.problems.counts)
    for each in content.annotations.problems.sample:
        skipped.show(each.kind, str(each))
    return SourcePreview(
        source=escaped(name),
        kind=kind or (content.config or {}).get("kind", "list"),
        columns=[],
        rows=[[_text_of(each)] for each in paths[:_SHOWN_ROWS]],
        files=len(paths),
        found=None if is_remote else len(paths) - len(missing),
        missing=list(map(_text_of, missing[:_SHOWN_FILES])),
        layout=list(map(escaped, content.lines(Problems()))),
        problems=_problems(skipped),
    )


def _text_of(value: Any) -> str:
    """Return a value as a short text that JSON and terminals can have; an empty one for a missing value."""
    if is_blank(value):
        return ""
    text = str(value[: _MOST_SHOWN + 1] if isinstance(value, str | bytes) else value)
    return escaped(text[:_MOST_SHOWN]) + "…" * (len(text) > _MOST_SHOWN)


def _exists(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))  # noqa: PTH118 - names may be any bytes


def _preview(
    source: str,
    kind: str,
    beginning: _Beginning,
    paths: Sequence[str],
    folder: Path,
    allowed: AllowedFolders | None,
    notes: list[str],
) -> SourcePreview:
    with within(allowed):
        places = FilePlaces(os.fspath(folder))
        placed = [places.place(path) for path in paths if not path.startswith(SCHEME)]
        missing = [path for path in placed if not (may_read(path) and os.path.lexists(path))]
    layout = beginning.layout
    return SourcePreview(
        source=escaped(source),
        kind=kind,
        encoding=layout and layout.encoding_name,
        delimiter=layout and layout.delimiter_name,
        has_header=None if layout is None else layout.header is not None,
        columns=[_column(number, name, beginning) for number, name in enumerate(beginning.names)],
        rows=[list(map(_text_of, row)) for row in beginning.rows[:_SHOWN_ROWS]],
        files=len(paths),
        found=len(placed) - len(missing) if placed or not paths else None,
        missing=list(map(_text_of, missing[:_SHOWN_FILES])),
        layout=notes,
        problems=_problems(beginning.skipped),
    )


def _problems(skipped: Skipped) -> list[Problem]:
    return [
        Problem(reason=reason, count=count, examples=skipped.examples.get(reason, []))
        for reason, count in skipped.items()
    ]


def _column(number: int, name: str, beginning: _Beginning) -> PreviewColumn:
    values = [row[number] for row in beginning.rows if number < len(row) and not is_blank(row[number])]
    use, reason = _use(name, values, beginning)
    return PreviewColumn(
        name=_text_of(name) or f"column {number + 1}", type=typed_values(values)[0], becomes=use, reason=reason
    )


def _use(name: str, values: Sequence[Any], beginning: _Beginning) -> tuple[ColumnUse, str | None]:
    columns = beginning.columns
    if beginning.is_of_boxes:
        own = name.lower() in _BOX_COLUMNS
        return (ColumnUse.BOXES, None) if own else (ColumnUse.NOTHING, "a table of boxes has no such column")
    uses = {columns.path: ColumnUse.PATH, columns.labels: ColumnUse.LABELS, columns.caption: ColumnUse.CAPTION}
    if name and name in uses:
        return uses[name], None
    if beginning.layout is None and name == OBJECTS and any(isinstance(each, dict) for each in values):
        return ColumnUse.BOXES, None
    if not name:
        return ColumnUse.NOTHING, "it has no name: a first line with names says what it is"
    if name.lower() == "split" and any(part_tags(str(value)) for value in values):
        return ColumnUse.TAGS, None
    try:
        check_name("field", name, reserved=reserved_names())
    except InvalidInput as error:
        return ColumnUse.NOTHING, str(error)
    return (ColumnUse.FIELD, None) if values else (ColumnUse.NOTHING, "the first rows have no value")


def _count_boxes(path: Path, allowed: AllowedFolders | None) -> tuple[int, Problems]:
    """Return the number of valid boxes among the first rows of a table, and the problems of the others."""
    problems = Problems(os.fspath(path.parent))
    read: Callable[[], Iterator[Any]] = partial(
        tables.read_parquet_boxes if path.suffix.lower() == PARQUET else tables.read_csv_boxes, path, problems
    )
    count = 0
    for _ in each_within(allowed, read):
        count += 1
        if count + problems.count >= _ROWS:
            break
    return count, problems
