"""Rows of a dataset: selection by conditions, values, and locations of files."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
import pytest

from framedex.core.assumed_roles import AssumedRole
from framedex.errors import NotFound
from framedex.storage import tables
from framedex.storage.column_cache import ColumnCache
from framedex.storage.condition import Condition
from framedex.storage.datasets import now
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import EVERYTHING, LOCATION, Media, file_uri
from framedex.storage.media_rows import text_of_path
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

SCHEMA = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("path", pa.string()),
        pa.field("path_raw", pa.binary()),
        pa.field("root", pa.int32()),
        pa.field("content_hash", pa.binary(16)),
        pa.field("n", pa.int32()),
    ]
)
DIGEST = bytes(range(16))
ROOTS = ("/root/0", "/root/1", "blobs:", "s3://bucket/some folder", "s3://")


def id_of(number: int) -> str:
    """Return the id of a row."""
    return f"{number:08}-0000-4000-8000-000000000000"


def build(folder: Path, paths: list[tuple[str, int | None]], *, part: int = 10_000) -> Media:
    """Return media at those paths, written in parts."""
    path = folder / "media.lance"
    content: list[dict[str, Any]] = []
    for number, (name, root) in enumerate(paths):
        text, raw = text_of_path(name)
        row = {"media_id": id_of(number), "path": text, "path_raw": raw, "root": root, "n": number}
        content.append(row | {"content_hash": DIGEST})
    version = 0
    for start in range(0, max(len(content), 1), part):
        batch = pa.RecordBatch.from_pylist(content[start : start + part], schema=SCHEMA)
        version = tables.append(path, [batch], SCHEMA)
    generation = Generation(
        id="g",
        dataset_id="d",
        tables={"media": version},
        n_images=len(paths),
        created_at=now(),
        summary=Summary(roles={"3": "arn:aws:iam::1:role/reader"}, external_ids={"3": "ours"}),
    )
    return Media("d", generation, Table(path, version), Sql(), ROOTS)


def numbered(folder: Path, count: int, *, part: int = 10_000) -> Media:
    """Return that many media."""
    return build(folder, [(f"{n}.jpg", 0) for n in range(count)], part=part)


def above(value: int) -> Condition:
    """Return the condition that n is greater."""
    return Condition("(n > $1) IS TRUE", (value,), frozenset({"n"}))


def test_count_and_row_ids__by_condition(tmp_path: Path) -> None:
    """Rows that meet a condition are counted and found in the order of ingestion."""
    media = numbered(tmp_path, 20, part=6)
    assert media.count(EVERYTHING) == 20
    assert media.count(above(14)) == 5
    ids = media.row_ids(above(14))
    assert ids.dtype == np.uint64
    assert media.table.take(ids.tolist(), ["n"])["n"].to_pylist() == [15, 16, 17, 18, 19]
    assert len(media.row_ids(EVERYTHING)) == 20
    assert len(media.row_ids(above(99))) == 0


def test_count__of_a_constant_condition(tmp_path: Path) -> None:
    """A condition without columns matches all rows or none."""
    media = numbered(tmp_path, 3)
    assert media.count(Condition("FALSE")) == 0
    assert media.count(Condition("TRUE AND TRUE")) == 3


def test_query__over_the_chosen_rows(tmp_path: Path) -> None:
    """A statement reads the matching rows with the requested columns."""
    media = numbered(tmp_path, 10)
    found = media.query("SELECT max(n) AS most, min(path) AS least FROM chosen", above(4), ["n", "path"])
    assert found.to_pylist() == [{"most": 9, "least": "5.jpg"}]


@pytest.mark.slow
@pytest.mark.parametrize("condition", [EVERYTHING, Condition("TRUE", (), frozenset({"n"})), above(-1)])
def test_blocks__cover_all_rows_in_order(tmp_path: Path, condition: Condition) -> None:
    """The blocks together are the rows, in row order, each of bounded size."""
    media = numbered(tmp_path, 9000, part=5000)
    blocks = list(media.blocks(condition, ["n"]))
    assert pa.concat_tables(blocks)["n"].to_numpy().tolist() == list(range(9000))
    assert len(blocks) > 1
    assert max(block.num_rows for block in blocks) <= 8192


class ShufflingSql(Sql):
    """An engine that returns rows in another order, as is its right where a statement says nothing about it."""

    def query(self, text: str, params: Sequence[Any], relations: Mapping[str, Any]) -> pa.Table:
        """Return the result of a statement in any order."""
        found = super().query(text, params, relations)
        if "ORDER BY" in text:
            return found
        return found.take(pa.array(np.random.default_rng(0).permutation(len(found))))


@pytest.mark.parametrize("cached", [2**24, 3200], ids=["columns in memory", "columns too large for the cache"])
def test_rows__do_not_depend_on_the_order_of_the_engine(tmp_path: Path, cached: int) -> None:
    """Conditions whose result is kept select the right rows in whatever order the engine evaluates them."""
    media = replace(numbered(tmp_path, 500, part=150), sql=ShufflingSql(), columns=ColumnCache(Sql(), cached))
    wanted = [3, 77, 149, 150, 301, 499]
    ids = [id_of(number) for number in wanted]
    condition = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (ids,), frozenset({"media_id"}))
    for _ in range(2):
        assert media.count(condition) == len(wanted)
        found = media.take(media.row_ids(condition).tolist(), ["media_id"])["media_id"].to_pylist()
        assert found == ids
        assert media.values(condition, "n")[1].to_pylist() == wanted
        assert (
            sorted(media.query("SELECT media_id FROM chosen", condition, ["media_id"])["media_id"].to_pylist()) == ids
        )
        assert set(media.find_row_ids(ids)) == set(ids)


@pytest.mark.slow
def test_rows__by_many_ids_among_many_rows(tmp_path: Path) -> None:
    """A join in the engine, which several threads evaluate, loses the order of some hundred thousand rows."""
    count = 400_000
    media = replace(numbered(tmp_path, count, part=count), columns=ColumnCache(Sql(), 2**28))
    ids = [id_of(number) for number in range(5, count, 997)]
    condition = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (ids,), frozenset({"media_id"}))
    found = media.take(media.row_ids(condition).tolist(), ["media_id"])["media_id"].to_pylist()
    assert found == ids


def test_blocks__of_given_rows(tmp_path: Path) -> None:
    """Given row ids are fetched in their order."""
    media = numbered(tmp_path, 10)
    ids = media.row_ids(EVERYTHING)[[7, 2]]
    assert pa.concat_tables(media.blocks(ids, ["n"]))["n"].to_pylist() == [7, 2]


def test_find__by_id(tmp_path: Path) -> None:
    """One item is found by its id, whatever characters it has; an unknown id raises an error."""
    media = numbered(tmp_path, 10)
    assert media.find(id_of(7), ["n", "path"]) == {"n": 7, "path": "7.jpg"}
    for unknown in (id_of(99), "", "' OR TRUE --"):
        with pytest.raises(NotFound, match="no media"):
            media.find(unknown, ["n"])


@pytest.mark.parametrize(
    ("path", "root", "file", "uri"),
    [
        ("a b.jpg", 0, "/root/0/a b.jpg", "file:///root/0/a%20b.jpg"),
        ("x/y.jpg", 1, "/root/1/x/y.jpg", "file:///root/1/x/y.jpg"),
        (
            os.fsdecode(b"caf\xe9#?%.jpg"),
            0,
            os.fsdecode(b"/root/0/caf\xe9#?%.jpg"),
            "file:///root/0/caf%E9%23%3F%25.jpg",
        ),
        ("/abs/a.jpg", None, "/abs/a.jpg", "file:///abs/a.jpg"),
        ("file:///abs/a%20b.jpg", None, "/abs/a b.jpg", "file:///abs/a%20b.jpg"),
        ("s3://bucket/a.jpg", None, None, "s3://bucket/a.jpg"),
        ("https://example.org/a.jpg?x=1", None, None, "https://example.org/a.jpg?x=1"),
        ("x/a b#?.jpg", 3, None, "s3://bucket/some folder/x/a b#?.jpg"),
        ("/odd.jpg", 3, None, "s3://bucket/some folder//odd.jpg"),
        ("other/a.jpg", 4, None, "s3://other/a.jpg"),
    ],
)
def test_file_and_uri__of_a_row(tmp_path: Path, path: str, root: int | None, file: str | None, uri: str) -> None:
    """Relative paths are below their root, absolute ones are taken as they are, and URIs are not local files."""
    media = build(tmp_path, [(path, root)])
    row = media.find(id_of(0), LOCATION)
    assert media.file_of(row) == file
    assert media.uri_of(row) == uri


@pytest.mark.parametrize("raw", [b"/a b", b"/new\nline", b"/caf\xe9", b"/100%/#?;:@&=+$,", "/naïve 🐈".encode()])
def test_file_uri__leads_back(raw: bytes) -> None:
    """Unquoting the path of a URI restores the original path."""
    parts = urlsplit(file_uri(os.fsdecode(raw)))
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("file", "", "", "")
    if raw.isascii():
        assert url2pathname(parts.path) == os.fsdecode(raw)


def test_file_of__a_uri_with_other_bytes(tmp_path: Path) -> None:
    """A file URI whose name is not UTF-8 resolves to the file."""
    media = build(tmp_path, [("file:///caf%E9.jpg", None)])
    file = media.file_of(media.find(id_of(0), LOCATION))
    assert file is not None
    assert os.fsencode(file) == b"/caf\xe9.jpg"


def test_file_and_uri__of_an_uploaded_row(tmp_path: Path) -> None:
    """Uploaded files are in the dataset's folder, by content hash and suffix of the name."""
    media = build(tmp_path, [("holiday/A.JPG", 2)])
    row = media.find(id_of(0), LOCATION)
    blob = tmp_path / "blobs" / "00" / f"{DIGEST.hex()[2:]}.jpg"
    assert media.file_of(row) == media.location_of(row) == str(blob)
    assert media.uri_of(row) == file_uri(blob)
    assert media.shown_path(row) == "holiday/A.JPG"
    assert media.file_of(row | {"content_hash": None}) is None
    assert media.location_of(row | {"content_hash": None}) is None
    assert media.uri_of(row | {"content_hash": None}) == "holiday/A.JPG"


def test_location__of_rows_of_all_kinds(tmp_path: Path) -> None:
    """Files are located by path and objects by URI, wherever they are stored; other URIs have no location."""
    kinds = [("a.jpg", 0), ("a.jpg", 3), ("s3://b/a.jpg", None), ("file:///a%20b.jpg", None), ("http://h/a.jpg", None)]
    media = build(tmp_path, kinds)
    rows = [media.find(id_of(number), LOCATION) for number in range(len(kinds))]
    located = ["/root/0/a.jpg", "s3://bucket/some folder/a.jpg", "s3://b/a.jpg", "/a b.jpg", None]
    assert [media.location_of(row) for row in rows] == located
    assert [media.shown_path(row) for row in rows] == [*located[:4], "http://h/a.jpg"]
    role = AssumedRole("arn:aws:iam::1:role/reader", "ours")
    assert [media.role_of(row) for row in rows] == [None, role, None, None, None]
