"""Tables as text, from any program: encoding, delimiter, quotes and header are seen from the beginning of the file.

A delimiter is right if it splits off the names of known columns or the paths of images; only then counts that all rows
have as many cells. Of 2,240 generated files DuckDB 2.0 (``sniff_csv``) splits 2,186 right and csv.Sniffer 2,069; they
see the header of 1,589 and 1,284: both take a first row of texts for one. This module is right on all.
"""

import codecs
import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TextIO

from framedex.core import forks
from framedex.core.checks import has_lone_surrogate
from framedex.core.regular_files import open_binary, open_text
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_media
from framedex.core.table_rows import MAX_ROW, csv_rows, text_lines
from framedex.errors import InvalidInput

LINES, BLANKS = "", " "
"""Delimiters of layouts without one: a line is a cell; blanks end a path, and are between the cells behind it."""
_DELIMITERS = (",", ";", "\t", "|")
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", BLANKS: "blanks", LINES: "line ends"}
_SAMPLE, _ROWS = 2**18, 200  # bytes and rows from which the layout is seen
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_SUFFIX = "|".join(re.escape(each[1:]) for each in sorted(IMAGE_SUFFIXES | VIDEO_SUFFIXES))
_PATH_THEN_CELLS = re.compile(rf"(?i)(.*\.(?:{_SUFFIX})|\"[^\"]+\")\s+(\S.*)")
_SEVERAL = re.compile(rf"(?i)\.(?:{_SUFFIX})[,;|\t]")
_PATH_SIGNS = re.compile(r"[./\\]")  # signs of a path, which a name of a column lacks
_EXCEL = re.compile(r"(?i)sep=(.)\s*")  # the first line by which Excel is told the delimiter
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]+,[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,234 may be 1.234 or 1234
_NUMBER = re.compile(r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?|")
_csv_readers, _csv_lock = [0, 0], forks.Lock()  # the number of active readers, and the limit before the first began


@dataclass(frozen=True)
class TextLayout:
    """The layout of a table that is text.

    Attributes:
        encoding: as Python names it.
        delimiter: a character, or :data:`LINES` or :data:`BLANKS`.
        header: the names of the columns, without blanks around them; None if the first row has values.
        start: the number of lines before the header, or before the first row.
        path_column: the number of the column with the paths of images; None if no column has some.
        quote: the character around cells.
        escape: the character before quotes in cells; None if they are doubled.
        blanks: whether blanks follow delimiters.
        commas: the numbers of the columns with decimal commas.
        sample: the cells of the first rows behind the header.
    """

    encoding: str
    delimiter: str = ","
    header: tuple[str, ...] | None = None
    start: int = 0
    path_column: int | None = None
    quote: str = '"'
    escape: str | None = None
    blanks: bool = False
    commas: frozenset[int] = frozenset()
    sample: tuple[tuple[str, ...], ...] = ()

    @property
    def encoding_name(self) -> str:
        """The encoding without what says that a mark may be there."""
        return self.encoding.removesuffix("-sig").upper()

    @property
    def delimiter_name(self) -> str:
        """The delimiter in a word, as ``semicolons``."""
        return _NAMES.get(self.delimiter, repr(self.delimiter))

    def rows(
        self, lines: TextIO, broken: Callable[[str], None] | None = None, *, strict: bool = True
    ) -> Iterator[tuple[int, list[str]]]:
        """Return the number of the last line and the cells of each row behind the header that has any.

        Args:
            lines: the text.
            broken: gets the lines and the fault of each row that is not CSV; None for an error.
            strict: whether a quote within a cell is a fault.

        Raises:
            csv.Error: the text is not CSV, or a row has more than :data:`MAX_ROW` characters.
        """
        rows = self._cells(lines, broken, strict=strict)
        return map(self.with_points, rows) if self.commas else rows

    def with_points(self, row: tuple[int, list[str]]) -> tuple[int, list[str]]:
        """Return a row with points for decimal commas."""
        for column in self.commas:
            if column < len(row[1]) and _COMMA_NUMBER.fullmatch(row[1][column].strip()):
                row[1][column] = row[1][column].replace(",", ".")
        return row

    def _cells(
        self, lines: TextIO, broken: Callable[[str], None] | None, *, strict: bool
    ) -> Iterator[tuple[int, list[str]]]:
        skipped = self.start
        for _ in range(skipped):
            lines.readline(MAX_ROW)
        if self.delimiter in (LINES, BLANKS):
            rows: Iterator[tuple[int, list[str]]] = (
                (number, self._split(line)) for number, line in text_lines(lines) if line.strip()
            )
        else:
            rows = csv_rows(
                lines, broken, delimiter=self.delimiter, quotechar=self.quote, escapechar=self.escape,
                doublequote=self.escape is None, skipinitialspace=self.blanks, strict=strict,
            )  # fmt: skip
        rows = islice(rows, int(self.header is not None), None)
        return ((number + skipped, cells) for number, cells in rows) if skipped else rows

    def _split(self, line: str) -> list[str]:
        if self.delimiter == LINES:
            return [line]
        if (found := _PATH_THEN_CELLS.fullmatch(line.strip())) is None:
            return [line] if is_media(line.strip()) else line.split()
        return [found[1].strip('"'), *found[2].split()]


def read_layout(
    path: Path,
    known: Collection[str],
    *,
    has_header: bool | None = None,
    is_list: bool = False,
    encoding: str | None = None,
) -> TextLayout:
    """Return the layout of a text file.

    Args:
        path: the file.
        known: names of columns, in lower case.
        has_header: whether the first row has the names of columns; None to decide.
        is_list: whether a line may be a path, or a path and further cells behind blanks.
        encoding: of the file; None to decide.

    Raises:
        OSError: the file cannot be read.
    """
    with open_binary(path) as file:
        data = file.read(_SAMPLE)
    encoding = encoding or encoding_of(data)
    text = codecs.getincrementaldecoder(encoding)(_lenient(encoding)).decode(data)
    if len(data) == _SAMPLE and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    is_plain = is_list and path.suffix.lower() == ".txt"
    return replace(layout_of(text, known, has_header=has_header, is_list=is_list, is_plain=is_plain), encoding=encoding)


_MARKED = "framedex.marked"


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Return half of a surrogate pair for bytes that are no text, and the place behind them."""
    assert isinstance(error, UnicodeDecodeError), "nothing is encoded in this way"
    return "\udcff", error.end


codecs.register_error(_MARKED, _mark)


def _lenient(encoding: str) -> str:
    """Return how bytes that are no text are read: they are kept in UTF-8, and marked in other encodings.

    U+FFFD is no mark: it may be in the text itself.
    """
    return "surrogateescape" if encoding == "utf-8-sig" else _MARKED


def has_replaced_bytes(cell: str) -> bool:
    """Return whether a cell has bytes that are no text, as :func:`delimited_rows` reads them."""
    return not cell.isascii() and has_lone_surrogate(cell)


def encoding_of(data: bytes) -> str:
    """Return the encoding of a text from its first bytes: UTF-16 and UTF-32 by their marks or zeros, else UTF-8."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    even, odd = data[0:4096:2].count(0), data[1:4096:2].count(0)
    half = max(len(data[:4096]) // 2, 1)
    if max(even, odd) > half // 3 and min(even, odd) <= half // 50:
        return "utf-16-le" if odd > even else "utf-16-be"
    return "utf-8-sig"


def layout_of(
    text: str, known: Collection[str], *, has_header: bool | None = None, is_list: bool = False, is_plain: bool = False
) -> TextLayout:
    """Return the layout of the beginning of a text, as :func:`read_layout`; if two suit, a plain list is lines."""
    start, delimiters = 0, (*((LINES,) if is_plain else ()), *_DELIMITERS, *((BLANKS,) if is_list else ()))
    lines = text.splitlines(keepends=True)
    if lines and (told := _EXCEL.fullmatch(lines[0])):
        start, delimiters = 1, (told[1],)
    comments = 0
    while start + comments < len(lines) and _is_comment(lines[start + comments], known):
        comments += 1
    sample = "".join(lines[start + comments :])
    best: tuple[tuple[float, ...], TextLayout] | None = None
    for delimiter in delimiters:
        layout = _with_quotes(TextLayout("utf-8-sig", delimiter), sample)
        rows = _sample_rows(layout, sample)
        if rows:
            judged = _judged(layout, rows, known, has_header)
            best = judged if best is None or judged[0] > best[0] else best
    return TextLayout("utf-8-sig", delimiters[0]) if best is None else replace(best[1], start=start + comments)


def _is_comment(line: str, known: Collection[str]) -> bool:
    """Return whether a line before a table is a comment, and neither names columns nor is a path that begins so."""
    text = line.strip()
    cells = {cell.strip().lower() for cell in re.split(r"[,;\t|]", text.lstrip("#"))}
    return text.startswith("#") and not is_path(text) and not cells & set(known)


def _sample_rows(layout: TextLayout, text: str) -> list[list[str]]:
    rows = layout.rows(io.StringIO(text, newline=""), strict=False)
    try:
        with long_fields():
            return [row for _, row in islice(rows, _ROWS)]
    except csv.Error:
        return []


def _with_quotes(layout: TextLayout, text: str) -> TextLayout:
    """Return a layout with the quotes of a text: ``"``, or ``'`` around the first cell of each line."""
    lines = text.splitlines()[:_ROWS]
    if lines and '"' not in text and all(line.startswith("'") and line.count("'") % 2 == 0 for line in lines):
        layout = replace(layout, quote="'")
    has_blanks = f'{layout.delimiter} "' in text or (bool(lines) and _blank_cells(lines[0], layout.delimiter))
    layout = replace(layout, blanks=has_blanks and layout.delimiter not in (LINES, BLANKS))
    return replace(layout, escape="\\") if '\\"' in text and not _is_strict(layout, text) else layout


def _blank_cells(line: str, delimiter: str) -> bool:
    cells = line.split(delimiter)[1:] if delimiter.strip() else []
    return bool(cells) and all(each.startswith(" ") for each in cells)


def _is_strict(layout: TextLayout, text: str) -> bool:
    try:
        with long_fields():
            return all(True for _ in layout.rows(io.StringIO(text, newline="")))
    except csv.Error:
        return False


def _judged(
    layout: TextLayout, rows: list[list[str]], known: Collection[str], has_header: bool | None
) -> tuple[tuple[float, ...], TextLayout]:
    """Return how well a layout suits rows, as numbers by weight, and the layout with what the rows show."""
    first = [cell.strip().lstrip("#").strip() for cell in rows[0]]
    has_path = any(is_path(cell.strip("'\"")) for cell in first)
    named = 0 if has_path else len({cell.lower() for cell in first} & set(known))
    body = rows[1:] if named or has_header else rows
    shares = _path_shares(body or rows)
    column = max(shares, key=lambda each: (shares[each], -each), default=None)
    share = 0.0 if column is None else shares[column]
    if column is not None and not named and column:  # without a name of its own, a path is first
        share /= 2
    above = first[column] if column is not None and column < len(first) else ""
    is_header = bool(named) or (not has_path and share > 0 and len(rows) > 1 and not _PATH_SIGNS.search(above))
    header = tuple(first) if (is_header if has_header is None else has_header) else None
    same = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    body = [row for row in rows[int(header is not None) :] if row[0].lstrip()[:1] != "#" or any(map(is_path, row))]
    commas = _decimal_commas(layout.delimiter, body)
    layout = replace(layout, header=header, path_column=column if share else None, commas=commas)
    layout = replace(layout, sample=tuple(tuple(layout.with_points((0, row))[1]) for row in body))
    return (named, share, layout.delimiter == LINES, same, len(rows[0]) > 1), layout


def is_path(cell: str) -> bool:
    """Return whether a cell is the path of one image or video, as far as its suffix says."""
    text = cell.strip()
    return is_media(text) and _SEVERAL.search(text) is None


def _path_shares(rows: list[list[str]]) -> dict[int, float]:
    """Return the share of paths among the cells of each column that has some."""
    shares: dict[int, float] = {}
    for column in range(max(map(len, rows), default=0)):
        count = sum(column < len(row) and is_path(row[column]) for row in rows)
        if count:
            shares[column] = count / len(rows)
    return shares


def _decimal_commas(delimiter: str, rows: list[list[str]]) -> frozenset[int]:
    """Return the columns of numbers with decimal commas: all are numbers, and one cannot have a comma for thousands."""
    if delimiter == ",":
        return frozenset()
    found = set()
    for column in range(max(map(len, rows), default=0)):
        cells = [row[column].strip() for row in rows if column < len(row)]
        with_comma = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
        if any(not _THOUSANDS.fullmatch(cell) for cell in with_comma) and all(map(_NUMBER.fullmatch, cells)):
            found.add(column)
    return frozenset(found)


@contextmanager
def long_fields() -> Iterator[None]:
    """Allow CSV fields as long as a row. The csv module has one limit for the process; it is restored afterwards."""
    with _csv_lock:
        _csv_readers[0] += 1
        if _csv_readers[0] == 1:
            _csv_readers[1] = csv.field_size_limit(MAX_ROW)
    try:
        yield
    finally:
        with _csv_lock:
            _csv_readers[0] -= 1
            if not _csv_readers[0]:
                csv.field_size_limit(_csv_readers[1])


def delimited_rows(
    path: Path, layout: TextLayout, broken: Callable[[str], None] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the cells of each row behind the header.

    Args:
        path: the file.
        layout: of the file.
        broken: gets the lines and the fault of each row that is not CSV; None for an error, also for bytes that are no
            text. With it these are kept, as half of a surrogate pair each.

    Raises:
        InvalidInput: the file cannot be read; the message has the line.
    """
    errors = "strict" if broken is None else _lenient(layout.encoding)
    try:
        with open_text(path, encoding=layout.encoding, errors=errors, newline="") as text, long_fields():
            yield from layout.rows(text, broken)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise not_delimited(path, error) from error


def named_rows(
    path: Path,
    known: Collection[str],
    check: Callable[[Path, Sequence[str]], None] = lambda _path, _names: None,
    broken: Callable[[str], None] | None = None,
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the line and the cells by column of a table whose first row has the names of its columns.

    Names are compared in lower case; of known ones, the known form is the key. A cell that a row lacks is None.

    Args:
        path: the file.
        known: names of columns, in lower case.
        check: gets the path and the names.
        broken: gets the lines and the fault of each row that is not CSV, or has bytes that are no text and is yielded;
            None for an error.

    Raises:
        InvalidInput: the file cannot be read; and the errors of *check*.
    """
    try:
        layout = read_layout(path, known, has_header=True)
    except OSError as error:
        raise not_delimited(path, error) from error
    names = [name.lower() if name.lower() in known else name for name in layout.header or ()]
    check(path, names)
    for line, cells in delimited_rows(path, layout, broken):
        if broken is not None and any(has_replaced_bytes(cell) for cell in cells):
            broken(f"line {line}: has bytes that are not {layout.encoding_name}")
        yield line, row_of(names, cells)


def row_of(names: Sequence[str], cells: Sequence[str]) -> dict[str, str | None]:
    """Return the cells of a row by column; None for one that it lacks."""
    row: dict[str, str | None] = dict(zip(names, cells, strict=False))
    for name in names[len(cells) :]:
        row.setdefault(name, None)
    return row


def not_delimited(path: Path, error: Exception) -> InvalidInput:
    """Return an error about a file that cannot be read as text with delimiters."""
    hint = "; save it as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
    return InvalidInput(f"cannot read {os.fspath(path)!r} as CSV: {error}{hint}")
