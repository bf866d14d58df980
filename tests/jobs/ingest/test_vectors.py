"""Rows that bring embeddings of their own are checked, scaled and kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.ids import media_id
from framedex.errors import Aborted, InvalidEmbedding, InvalidInput
from framedex.jobs.ingest.ingest import Ingested
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.jobs.ingest.vectors import ingest_vectors, is_vector_file, open_vectors
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.table_versions import Table
from tests.jobs.fakes import StopAt, ignore
from tests.laws import examples

DATASET = "7a1c3f6e-0000-4000-8000-000000000001"


def run(table: Any, path: Path, *, progress: Any = ignore) -> list[dict[str, Any]]:
    """Ingest a table and return the rows that were written."""
    source = open_vectors(table)
    ingested = ingest_vectors(source, table=path, dataset_id=DATASET, progress=progress)
    opened = Table(path, ingested.version)
    rows: list[dict[str, Any]] = opened.scan(opened.schema.names).read_all().to_pylist()
    assert len(rows) == ingested.rows
    assert ingested.unmatched == 0
    return rows


def two(embeddings: Any, **columns: Any) -> pa.Table:
    """Return a table of two rows."""
    return pa.table({"uri": ["a.jpg", "b.jpg"], "embedding": embeddings, **columns})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of the table."""
    return tmp_path / "media.lance"


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float64()),
        pa.list_(pa.float16()),
        pa.list_(pa.int8()),
        pa.list_(pa.uint64()),
        pa.large_list(pa.float64()),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.float64(), 2),
        pa.list_(pa.float16(), 2),
    ],
    ids=str,
)
def test_types__of_lists_and_numbers(path: Path, kind: pa.DataType) -> None:
    """Any list of numbers is an embedding, and becomes float32 of unit length; rows without one are kept."""
    values = [
        np.array([3, 4], kind.value_type.to_pandas_dtype()),
        None,
        np.array([0, 7], kind.value_type.to_pandas_dtype()),
    ]
    table = pa.table({"uri": ["a", "b", "c"], "embedding": pa.array(values, kind)})
    rows = run(table, path)
    assert rows[0]["embedding"] == pytest.approx([0.6, 0.8])
    assert rows[2]["embedding"] == [0, 1]
    assert (rows[1]["embedding"], rows[1]["error"]) == (None, "the embedding is missing")
    assert [rows[0]["error"], rows[2]["error"]] == [None, None]


def test_types__slices_and_chunks(path: Path) -> None:
    """A part of a table whose columns are cut differently has its own rows and vectors."""
    first = pa.table({"uri": ["x", "a"], "embedding": pa.array([[9.0, 9.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))})
    second = pa.table({"uri": ["b", "c"], "embedding": pa.array([None, [0.0, 2.0]], pa.list_(pa.float32(), 2))})
    rows = run(pa.concat_tables([first, second]).slice(1), path)
    assert [row["path"] for row in rows] == ["a", "b", "c"]
    assert [row["embedding"] for row in rows] == [[1, 0], None, [0, 1]]


def test_sources__of_other_kinds(path: Path) -> None:
    """Data frames, readers and batches are tables too, and a reader may be read once only."""
    import pandas as pd

    content = two([[1.0, 0.0], [0.0, 1.0]])
    frame = pd.DataFrame({"uri": ["a.jpg", "b.jpg"], "embedding": [np.array([1.0, 0.0]), np.array([0.0, 1.0])]})
    for number, each in enumerate([frame, content.to_reader(), content.to_batches()[0]]):
        rows = run(each, path.with_name(f"{number}.lance"))
        assert [row["embedding"] for row in rows] == [[1, 0], [0, 1]]


def test_columns__all_of_them(path: Path) -> None:
    """Sizes, captions and labels are taken over, others are ignored; ids are computed from the uri."""
    content = two(
        [[1.0], [2.0]],
        width=[640, None],
        height=pa.array([480, 5], pa.int16()),
        caption=["a cat", None],
        label=[["cat", "pet"], None],
        other=[object.__name__, "x"],
    )
    first, second = run(content, path)
    assert first["media_id"] == media_id(DATASET, "a.jpg")
    assert (first["width"], first["height"], first["aspect_ratio"]) == (640, 480, 0.75)
    assert (first["caption"], first["labels"]) == ("a cat", ["cat", "pet"])
    assert (second["width"], second["height"], second["aspect_ratio"]) == (None, 5, None)
    assert (second["caption"], second["labels"]) == (None, None)
    assert (first["size_bytes"], first["content_hash"], first["acutance"]) == (None, None, None)


def test_columns__of_a_data_frame_with_gaps(path: Path) -> None:
    """Where a value is missing, data frames hold whole numbers as floats and NaN; they are understood."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "uri": ["a", "b"],
            "embedding": [[1.0], [2.0]],
            "width": [640, None],
            "height": [480, np.nan],
            "label": ["x", None],
        }
    )
    first, second = run(frame, path)
    assert (first["width"], first["height"], first["labels"]) == (640, 480, ["x"])
    assert (second["width"], second["height"], second["labels"]) == (None, None, None)


def test_uris__are_relative_or_not(path: Path) -> None:
    """Relative paths belong to the source's root; absolute ones and URIs stand alone."""
    uris = ["a.jpg", "x/b.jpg", "/abs/c.jpg", "s3://bucket/d.jpg", "file:///e.jpg"]
    rows = run(pa.table({"uri": uris, "embedding": [[1.0]] * 5}), path)
    assert [row["path"] for row in rows] == uris
    assert [row["root"] for row in rows] == [0, 0, None, None, None]


@pytest.mark.slow
@pytest.mark.only_soak
def test_parquet__relative_to_its_folder(tmp_path: Path, path: Path) -> None:
    """A Parquet file is read in parts, and its root is its folder."""
    file = tmp_path / "vectors.parquet"
    count = 20_000
    vectors = np.random.default_rng(0).normal(size=(count, 3))
    table = pa.table({"uri": [f"{n}.jpg" for n in range(count)], "embedding": list(vectors)})
    pq.write_table(table, file, row_group_size=7000)
    assert is_vector_file(file)
    source = open_vectors(file)
    assert (source.rows, source.dimension, source.root) == (count, 3, str(tmp_path))
    shares: list[float] = []
    rows = run(file, path, progress=shares.append)
    assert [row["path"] for row in rows] == table["uri"].to_pylist()
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(np.array([row["embedding"] for row in rows]), expected, atol=1e-6)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_is_vector_file__by_its_columns(tmp_path: Path) -> None:
    """A Parquet list of paths is no file of vectors, and a broken file is an error that names it."""
    pq.write_table(pa.table({"path": ["a.jpg"]}), tmp_path / "list.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 or not")
    (tmp_path / "list.csv").write_text("uri,embedding\n")
    assert not is_vector_file(tmp_path / "list.parquet")
    assert not is_vector_file(tmp_path / "list.csv")
    assert not is_vector_file(tmp_path / "missing.parquet")
    with pytest.raises(InvalidInput, match=r"broken\.parquet"):
        is_vector_file(tmp_path / "broken.parquet")


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ([[1.0, 0.0], [float("nan"), 0.0]], "row 1 has the value nan at place 0"),
        ([[1.0, 0.0], [0.0, float("inf")]], "row 1 has the value inf at place 1"),
        ([[float("-inf"), 0.0], [0.0, 1.0]], "row 0 has the value -inf at place 0"),
        ([[1.0, 0.0], [1.0]], "row 1 has an embedding of dimension 1; the first row has 2"),
        ([[1.0], [1.0, 0.0]], "row 1 has an embedding of dimension 2; the first row has 1"),
        ([[1.0, 0.0], []], "row 1 has an embedding of dimension 0"),
        ([[1.0, 0.0], [None, 1.0]], "missing values"),
        ([1.0, 2.0], "it must hold lists of numbers"),
        (["x", "y"], "it must hold lists of numbers"),
        ([["x"], ["y"]], "it must hold lists of numbers"),
        ([[[1.0]], [[2.0]]], "it must hold lists of numbers"),
        ([None, None], "it must hold lists of numbers"),
        (pa.array([None, None], pa.list_(pa.float32())), "no row of the table has an embedding"),
        (pa.array([[], []], pa.list_(pa.float32())), "no row of the table has an embedding"),
    ],
)
def test_embeddings__that_cannot_be_used(path: Path, embeddings: Any, message: str) -> None:
    """Values that are not finite, mixed dimensions and other types are refused with the row."""
    with pytest.raises(InvalidEmbedding, match=message):
        run(two(embeddings), path)


def test_embeddings__row_numbers_count_from_the_start(path: Path) -> None:
    """The row that is named is the table's, also beyond the first part."""
    values = np.ones((9000, 2))
    values[8500, 1] = np.nan
    with pytest.raises(InvalidEmbedding, match="row 8500 has the value nan at place 1"):
        run(pa.table({"uri": [str(n) for n in range(9000)], "embedding": list(values)}), path)


def test_embeddings__are_numbered_with_missing_ones_among_them(path: Path) -> None:
    """Rows without an embedding do not move those after them, in whatever part of the rows these are scaled."""
    values: list[list[float] | None] = [[3.0, 4.0] for _ in range(900)]
    values[0] = values[700] = None
    values[400] = [0.0, 0.0]
    uris = [str(number) for number in range(900)]
    rows = run(pa.table({"uri": uris, "embedding": values}), path)
    assert [row["embedding"] is None for row in rows] == [number in (0, 400, 700) for number in range(900)]
    assert [rows[number]["error"] for number in (0, 1, 400, 700)] == [
        "the embedding is missing",
        None,
        "the embedding is all zeros",
        "the embedding is missing",
    ]
    values[600] = [1.0, float("inf")]
    with pytest.raises(InvalidEmbedding, match="row 600 has the value inf at place 1"):
        run(pa.table({"uri": uris, "embedding": values}), path)


def test_embeddings__of_zeros_are_kept_with_the_reason(path: Path) -> None:
    """A vector without a direction is no embedding, and no reason to refuse the table."""
    first, second = run(two([[0.0, 0.0], [0.0, -2.0]]), path)
    assert (first["embedding"], first["error"]) == (None, "the embedding is all zeros")
    assert (second["embedding"], second["error"]) == ([0, -1], None)


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e-20, 1.0, 1e20, 1e40, 1e300])
def test_embeddings__of_any_length_are_scaled(path: Path, scale: float) -> None:
    """Only the direction counts, however small or large the values are."""
    first, _ = run(two([[3 * scale, -4 * scale], [1.0, 0.0]]), path)
    assert first["error"] is None
    assert first["embedding"] == pytest.approx([0.6, -0.8])


@examples(40)
@given(
    st.lists(
        st.lists(st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-6), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    )
)
def test_embeddings__law(tmp_path_factory: pytest.TempPathFactory, values: list[list[float]]) -> None:
    """Each stored vector has unit length and the direction that was given; zeros have none."""
    path = tmp_path_factory.mktemp("law") / "t.lance"
    for row, given_values in zip(
        run(pa.table({"uri": list(map(str, range(len(values)))), "embedding": values}), path), values, strict=True
    ):
        length = np.linalg.norm(given_values)
        if length == 0:
            assert row["embedding"] is None
        else:
            np.testing.assert_allclose(row["embedding"], np.array(given_values) / length, atol=1e-6)
            assert row["error"] is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"uri": ["a"]}), "it lacks embedding"),
        (pa.table({"embedding": [[1.0]]}), "it lacks uri"),
        (pa.table({"x": [1]}), "it lacks embedding, uri"),
        (two([[1.0], [2.0]]).slice(0, 0), "has no rows"),
        (42, "not int"),
        (None, "not NoneType"),
        ("folder", "not str"),
    ],
)
def test_table__that_cannot_be_used(table: Any, message: str) -> None:
    """A table without rows or without its columns, and what is no table, are refused."""
    with pytest.raises(InvalidInput, match=message):
        open_vectors(table)


def test_parquet__that_is_none(tmp_path: Path) -> None:
    """A file that is no Parquet, or is not there, is refused by name."""
    (tmp_path / "x.parquet").write_bytes(b"nothing of the kind")
    for name in ("x.parquet", "missing.parquet"):
        with pytest.raises(InvalidInput, match=name):
            open_vectors(tmp_path / name)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"uri": ["a", None]}, "row 1: the uri None is no text"),
        ({"uri": ["a", ""]}, "row 1: the uri '' is no text"),
        ({"uri": [1, 2]}, "row 0: the uri 1 is no text"),
        ({"uri": ["a", "a"]}, "row 1: the uri a occurs twice"),
        ({"width": [640, 0]}, "row 1: the width 0 is no number of pixels"),
        ({"height": [-1, 1]}, "row 0: the height -1 is no number of pixels"),
        ({"width": ["wide", "x"]}, "row 0: the width 'wide' is no number of pixels"),
        ({"width": [1.5, 2.0]}, r"row 0: the width 1\.5 is no number of pixels"),
        ({"width": [True, True]}, "row 0: the width True is no number of pixels"),
        ({"width": [2**31, 1]}, "row 0: the width 2147483648 is no number of pixels"),
    ],
)
def test_rows__that_cannot_be_used(path: Path, columns: dict[str, Any], message: str) -> None:
    """Missing and repeated names and impossible sizes are refused with their row."""
    content = {"uri": ["a", "b"], "embedding": [[1.0], [2.0]], **columns}
    with pytest.raises(InvalidInput, match=message):
        run(pa.table(content), path)


@pytest.mark.parametrize("from_file", [False, True])
def test_rows__dates_out_of_range(tmp_path: Path, path: Path, from_file: bool) -> None:
    """A date that Python has not is an error with the table and the column."""
    table: Any = two([[1.0], [2.0]], label=pa.array([1, 10**9], pa.date32()))
    if from_file:
        pq.write_table(table, tmp_path / "v.parquet")
        table = tmp_path / "v.parquet"
    with pytest.raises(InvalidInput, match=f"{'v.parquet' if from_file else 'the table'}.*column 'label' has a value"):
        run(table, path)


def test_rows__text_in_memory_that_is_invalid(path: Path) -> None:
    """Text in memory that is no UTF-8 is an error of ours."""
    text = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    with pytest.raises(InvalidInput, match=r"the table is damaged: .*UTF8"):
        run(two([[1.0], [2.0]], caption=text), path)


def test_rows__repeated_far_apart(path: Path) -> None:
    """A uri that occurs again in a later part is found."""
    uris = [str(n) for n in range(9000)]
    uris[8999] = "5"
    with pytest.raises(InvalidInput, match="row 8999: the uri 5 occurs twice"):
        run(pa.table({"uri": uris, "embedding": [[1.0]] * 9000}), path)


def test_progress__can_stop_the_work(path: Path) -> None:
    """What progress raises ends the ingestion."""
    with pytest.raises(Aborted):
        run(two([[1.0], [2.0]]), path, progress=StopAt(0))


def test_known__rows_are_left_out(path: Path) -> None:
    """Rows whose uri the table has are left out, and the others come behind it, with their root and batch."""
    first = ingest_vectors(open_vectors(two([[1, 0], [0, 1]])), table=path, dataset_id=DATASET, progress=ignore)
    more = pa.table({"uri": ["c.jpg", "b.jpg", "http://x/d.jpg"], "embedding": [[1.0, 1.0], [9.0, 9.0], None]})
    second = ingest_vectors(
        open_vectors(more), table=path, dataset_id=DATASET, progress=ignore, placement=SourcePlacement(3, "", 2),
        existing=IdIndex(Table(path, first.version)),
    )  # fmt: skip
    assert (second.rows, second.present) == (2, 1)
    rows = Table(path, second.version).scan(["path", "root", "batch", "media_id"]).read_all().to_pylist()
    assert [tuple(row.values())[:3] for row in rows] == [
        ("a.jpg", 0, 0), ("b.jpg", 0, 0), ("c.jpg", 3, 2), ("http://x/d.jpg", None, 2),
    ]  # fmt: skip
    assert rows[2]["media_id"] == media_id(DATASET, "c.jpg")


def test_known__all_of_them(path: Path) -> None:
    """Where all rows are there already nothing is written."""
    source = open_vectors(two([[1, 0], [0, 1]]))
    first = ingest_vectors(source, table=path, dataset_id=DATASET, progress=ignore)
    existing = IdIndex(Table(path, first.version))
    assert ingest_vectors(source, table=path, dataset_id=DATASET, progress=ignore, existing=existing) == Ingested(
        0, 0, 0, 2
    )
    assert tables.roll_back(path, first.version) == first.version


def test_known__rows_that_cannot_be_used(path: Path) -> None:
    """A row that is there already is checked all the same, and a uri may not occur twice."""
    first = ingest_vectors(open_vectors(two([[1, 0], [0, 1]])), table=path, dataset_id=DATASET, progress=ignore)
    existing = IdIndex(Table(path, first.version))
    twice = pa.table({"uri": ["a.jpg", "a.jpg"], "embedding": [[1.0, 1.0], [2.0, 1.0]]})
    for table, message in ((two([[1, 0], [np.inf, 1]]), "row 1"), (twice, "occurs twice")):
        with pytest.raises(InvalidInput, match=message):
            ingest_vectors(open_vectors(table), table=path, dataset_id=DATASET, progress=ignore, existing=existing)


def test_parquet__mutated(tmp_path: Path, path: Path) -> None:
    """A Parquet file of embeddings with changed bytes is read, or refused with an error of ours that names it."""
    table = tmp_path / "table.parquet"
    uris = [f"folder/{number}-é.jpg" for number in range(200)]
    pq.write_table(pa.table({"uri": uris, "embedding": [[1.0, float(n)] for n in range(200)]}), table)
    content, refused = table.read_bytes(), 0
    for seed in range(80):
        rng, data = np.random.default_rng(seed), bytearray(content)
        for position in rng.integers(0, len(data), 4):
            data[position] = rng.integers(0, 256)
        table.write_bytes(bytes(data))
        try:
            if is_vector_file(table):
                run(table, path.with_name(f"{seed}.lance"))
        except InvalidInput:
            refused += 1
    assert refused > 20


@pytest.mark.slow
@pytest.mark.only_soak
def test_parquet__is_read_in_bounded_memory(tmp_path: Path) -> None:
    """What was read of a large group of rows does not stay in memory."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(60_000 * 256, np.float32)), 256)
    names = pa.array([f"{row}.jpg" for row in range(60_000)])
    pq.write_table(pa.table({"uri": names, "embedding": column}), tmp_path / "v.parquet", use_dictionary=False)
    del column
    source, before, largest = open_vectors(tmp_path / "v.parquet"), pa.total_allocated_bytes(), 0
    for _ in source.open():
        largest = max(largest, pa.total_allocated_bytes() - before)
    assert largest < 60_000 * 256 * 4 * 0.6
