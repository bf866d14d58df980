"""Input that cannot become a dataset, or only just."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import (
    CannotDecode,
    Conflict,
    InvalidEmbedding,
    InvalidInput,
    MissingDependency,
    NotFound,
    TaskFailed,
    Workspace,
)
from framedex.enrichers.captioner_files import find_captioner
from framedex.records import DUPLICATE_LEVELS, TaskStatus
from tests.gallery import Averages, Faulty, embedded, fill
from tests.image_files import encode, flat, photo, png_claiming, write
from tests.prepared import prepared


def assert_nothing_left(workspace: Workspace) -> None:
    assert workspace.datasets() == []
    assert list((workspace.path / "datasets").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "not empty"),
        ("  ", "not empty"),
        ("a/b", "'a/b'"),
        ("a\\b", "slashes"),
        ("/", "slashes"),
        ("tab\there", r"'tab\\there'"),
        ("nul\0", "control characters"),
        ("new\nline", "control characters"),
        ("lone \udcff surrogate", "control characters"),
        ("x" * 10_000, "10,000"),
        (None, "None"),
        (7, "7"),
    ],
)
def test_create_dataset__unusable_name(workspace: Workspace, folder: Path, name: Any, said: str) -> None:
    """A name that cannot be used is an error that shows it."""
    with pytest.raises(InvalidInput, match=said):
        workspace.create_dataset(name, folder)
    assert_nothing_left(workspace)


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("name", ["x" * 255, 'it\'s "quoted" & <b>', "猫と犬", "a;b?c=d#e%20", "..", "' OR 1=1 --"])
def test_create_dataset__odd_name(workspace: Workspace, folder: Path, name: str) -> None:
    """A name may hold what is no slash and no control character."""
    dataset = workspace.create_dataset(name, folder)
    assert workspace.dataset(name).id == dataset.id
    assert dataset.name == name
    workspace.delete_dataset(name)
    assert_nothing_left(workspace)


def nothing_there(folder: Path) -> Path:
    return folder / "gone"


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def text_files(folder: Path) -> Path:
    (folder / "texts").mkdir()
    for name in ("a.txt", "b.md", "c"):
        (folder / "texts" / name).write_text("no image")
    return folder / "texts"


def an_archive(folder: Path) -> Path:
    (folder / "all.zip").write_bytes(b"PK")
    return folder / "all.zip"


def an_empty_list(folder: Path) -> Path:
    (folder / "empty.txt").write_text("\n\n")
    return folder / "empty.txt"


def a_broken_parquet(folder: Path) -> Path:
    (folder / "broken.parquet").write_bytes(b"PAR1 this is none")
    return folder / "broken.parquet"


def a_parquet_of_numbers(folder: Path) -> Path:
    pq.write_table(pa.table({"x": [1, 2]}), folder / "numbers.parquet")
    return folder / "numbers.parquet"


def a_long_path(folder: Path) -> Path:
    return folder / ("x" * 10_000)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (nothing_there, "nothing at .*gone"),
        (empty_folder, "no images in .*empty'; it is empty"),
        (text_files, r"no images in .*texts'; it holds 1 .* \(.txt\), 1 .* \(.md\), 1 .* \(no suffix\)"),
        (an_archive, "all.zip': it is no ZIP, or its end is missing"),
        (an_empty_list, "no images in .*empty.txt"),
        (a_broken_parquet, "broken.parquet as Parquet"),
        (a_parquet_of_numbers, "numbers.parquet: column 'x' holds 1"),
        (a_long_path, "cannot read .*too long"),
    ],
)
def test_create_dataset__unusable_source(
    workspace: Workspace, tmp_path: Path, make: Callable[[Path], Path], said: str
) -> None:
    """A source without images is an error that names it and says what it is instead."""
    with pytest.raises(InvalidInput, match=said):
        workspace.create_dataset("d", make(tmp_path))
    assert_nothing_left(workspace)


@pytest.mark.parametrize("source", [None, 5, 1.5, [], ["a.png"], object()])
def test_create_dataset__no_source(workspace: Workspace, source: Any) -> None:
    """A source that is neither a path nor a table is refused with its type."""
    with pytest.raises(InvalidInput, match=rf"not {type(source).__name__}|columns|rows"):
        workspace.create_dataset("d", source)
    assert_nothing_left(workspace)


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        (embedded([[1, 0], [float("nan"), 1]]), InvalidEmbedding, "row 1 .*nan.* place 0"),
        (embedded([[1, 0], [0, float("-inf")]]), InvalidEmbedding, "row 1 .*-inf.* place 1"),
        (embedded([[1, 0], [0, 1], [1, 0, 0]]), InvalidEmbedding, "row 2 .*dimension 3; .* has 2"),
        (embedded([None, []]), InvalidEmbedding, "no row"),
        (embedded([]), InvalidInput, "no rows"),
        (pa.table({"uri": ["a"], "embedding": ["text"]}), InvalidEmbedding, "string"),
        (pa.table({"uri": ["a", "a"], "embedding": [[1.0], [1.0]]}), InvalidInput, "row 1: the uri a occurs twice"),
        (pa.table({"uri": ["a", None], "embedding": [[1.0], [1.0]]}), InvalidInput, "row 1: the uri None"),
        (pa.table({"path": ["a"], "embedding": [[1.0]]}), InvalidInput, "lacks uri"),
        (pa.table({"uri": ["a"]}), InvalidInput, "has the column embedding"),
        (embedded([[1, 0]], width=[0], height=[1]), InvalidInput, "row 0: the width 0"),
    ],
)
def test_create_dataset__unusable_embeddings(
    workspace: Workspace, table: pa.Table, error: type[Exception], said: str
) -> None:
    """A table that cannot be used is an error that names the row and the value; nothing is left of it."""
    with pytest.raises(error, match=said):
        workspace.create_dataset("d", table)
    assert_nothing_left(workspace)


@pytest.mark.slow
def test_create_dataset__zero_vectors(workspace: Workspace) -> None:
    """An embedding of zeros has no direction: the row is kept, with the reason, and has no part in any cluster."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0, 0], None, [1, 0]]))
    assert dataset.issues("corrupted")["reason"].to_pylist() == [
        "the embedding is all zeros",
        "the embedding is missing",
    ]
    assert [cluster.n_images for cluster in dataset.explore().clusters] == [2, 2]
    assert len(dataset.embeddings()[0]) == 2


@pytest.mark.slow
def test_create_dataset__failure_on_the_way(workspace: Workspace, folder: Path) -> None:
    """A fault of the encoder is a TaskFailed that carries it; the name is free again and the task tells why."""
    with pytest.raises(TaskFailed, match="the encoder is out of order"):
        workspace.create_dataset("d", folder, Faulty())
    assert_nothing_left(workspace)
    assert [(task.status, task.error_message) for task in workspace.tasks().tasks] == [
        (TaskStatus.FAILED, "RuntimeError: the encoder is out of order")
    ]
    assert workspace.create_dataset("d", folder).count() == 6


def test_create_dataset__encoder_that_exits(workspace: Workspace, folder: Path) -> None:
    """Code that ends the interpreter from within a task fails the task."""

    class Exiting(Averages):
        def encode_images(self, batch: Any) -> Any:
            raise SystemExit("good bye")

    with pytest.raises(TaskFailed, match="good bye"):
        workspace.create_dataset("d", folder, Exiting())
    assert_nothing_left(workspace)


@pytest.mark.slow
def test_create_dataset__only_broken_files(workspace: Workspace, tmp_path: Path) -> None:
    """Files of which none can be decoded are a dataset that says so; everything that reads it works."""
    for number, content in enumerate([b"", b"text", png_claiming(60_000, 60_000), encode(photo(1), "JPEG")[:400]]):
        (tmp_path / f"{number}.png").write_bytes(content)
    dataset = workspace.create_dataset("broken", tmp_path)
    assert dataset.info.status_new == "READY"
    counts = {each.issue_type: each.count for each in dataset.view.issue_summaries() if each.count}
    assert (counts, dataset.count()) == ({"corrupted": 3, "over_limit": 1}, 4)
    assert [cluster.n_images for cluster in dataset.explore(level=4).clusters] == [4]
    assert dataset.embeddings()[1].shape == (0, dataset.embedding_config.dimension)
    assert dataset.duplicates() == []
    with pytest.raises(CannotDecode):
        dataset.thumbnail(dataset.where([]).media_ids()[0])
    assert dataset.export(tmp_path / "out.zip", include_images=True).images == 4
    assert "cannot be shown" in dataset.report(tmp_path / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.only_soak
def test_create_dataset__one_image(workspace: Workspace, tmp_path: Path) -> None:
    """A single image is a dataset: one cluster at every level, nothing like it, unlike nothing."""
    dataset = workspace.create_dataset("one", fill(tmp_path / "one", 1))
    assert [[c.n_images for c in dataset.explore(level=level).clusters] for level in range(5)] == [[1]] * 5
    assert dataset.duplicates() == []
    row = dataset.to_arrow().to_pylist()[0]
    assert row["uniqueness_score"] is None or 0 <= row["uniqueness_score"] <= 1
    assert dataset.issues().num_rows == 0
    assert dataset.export(tmp_path / "one.zip", include_images=True).images == 1
    dataset.report(tmp_path / "one.html")


@pytest.mark.slow
@pytest.mark.only_soak
def test_create_dataset__thousands_of_copies(workspace: Workspace, tmp_path: Path) -> None:
    """Five thousand copies of one image are one cluster and one group of duplicates at every level."""
    first = write(tmp_path / "copies" / "0.jpg", photo(1, width=64, height=48))
    for number in range(1, 5000):
        os.link(first, first.with_name(f"{number}.jpg"))
    dataset = workspace.create_dataset("copies", first.parent)
    for level in range(5):
        assert [cluster.n_images for cluster in dataset.explore(level=level).clusters] == [5000]
    for similarity in DUPLICATE_LEVELS:
        (group,) = dataset.duplicates(similarity)
        assert (len(group.media_ids), group.threshold, group.similarity) == (5000, similarity, 1.0)
    assert set(dataset.to_arrow(["uniqueness_score"])["uniqueness_score"].to_pylist()) == {0.0}
    dataset.report(tmp_path / "report.html")


@pytest.mark.slow
def test_create_dataset__extreme_sizes(workspace: Workspace, tmp_path: Path) -> None:
    """An image of one pixel and one of 30,000 × 20 are images like all others."""
    write(tmp_path / "p/pixel.png", flat((200, 30, 30), width=1, height=1))
    write(tmp_path / "p/line.png", np.tile(photo(1, width=300, height=20), (1, 100, 1)))
    write(tmp_path / "p/tall.jpg", np.tile(photo(2, width=3, height=300), (10, 1, 1)))
    fill(tmp_path / "p", 3)
    dataset = workspace.create_dataset("sizes", tmp_path / "p")
    rows = {row["image_filename"]: row for row in dataset.to_arrow().to_pylist()}
    assert (rows["pixel.png"]["width"], rows["pixel.png"]["height"]) == (1, 1)
    assert (rows["line.png"]["width"], rows["line.png"]["height"]) == (30_000, 20)
    assert dataset.read(rows["line.png"]["media_id"]).shape == (20, 30_000, 3)
    assert dataset.read(rows["pixel.png"]["media_id"]).tolist() == [[[200, 30, 30]]]
    assert all(dataset.thumbnail(row["media_id"])[:2] == b"\xff\xd8" for row in rows.values())
    assert not dataset.issues("corrupted").num_rows
    assert {"line.png", "tall.jpg"} <= set(dataset.issues("odd_aspect_ratio")["file_name"].to_pylist())
    dataset.report(tmp_path / "report.html")


@pytest.mark.slow
def test_create_dataset__name_of_a_failed_one(workspace: Workspace, folder: Path) -> None:
    """The name of a dataset whose creation failed is taken, which says how to get rid of it."""
    task = workspace.create_dataset("d", folder, Faulty(), wait=False).task
    assert task is not None
    with pytest.raises(TaskFailed):
        task.wait()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"'d' exists already: it is ERROR.*delete_dataset\('d'\) or `framedex rm`"):
            workspace.create_dataset("d", folder)
    workspace.delete_dataset("d")
    assert workspace.create_dataset("d", folder).count() == 6


@pytest.mark.parametrize("identifier", ["\ud800", "x" * 1000, "\0", ""])
def test_ids__that_are_no_text(workspace: Workspace, folder: Path, identifier: str) -> None:
    """An id that is no text, or a very long one, names nothing; it breaks nothing either."""
    dataset = prepared(workspace, "d", folder)
    asks: list[Callable[[str], Any]] = [
        workspace.task, workspace.dataset, dataset.export_status, dataset.restore, dataset.clone,
        dataset.delete_snapshot, dataset.delete_tag, dataset.withdraw_decision, dataset.delete_media, dataset.read,
        dataset.similar, dataset.upload, dataset.delete_field, dataset.label_is_right, dataset.basket.add,
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises((NotFound, InvalidInput)):
            ask(identifier)
    with contextlib.suppress(InvalidInput):
        assert workspace.tasks(dataset_name=identifier).tasks == []


@pytest.mark.parametrize(
    "encoder",
    [
        f"onnx:{'L' * 5000}",
        f"open_clip:{'L' * 5000}",
        f"open_clip:./{'L' * 5000}",
        f"open_clip:{'L' * 5000}/{'L' * 5000}.pt",
        "open_clip:\ud800",
        "onnx:\ud800",
    ],
    ids=lambda name: name[:14].encode("ascii", "backslashreplace").decode(),
)
def test_create_dataset__encoder_that_no_path_can_name(workspace: Workspace, folder: Path, encoder: str) -> None:
    """A name that is too long for a path, or no valid text, is an error that can be printed."""
    with pytest.raises((InvalidInput, NotFound, MissingDependency)) as raised:
        workspace.create_dataset("pets", folder, encoder)
    assert str(raised.value).encode()
    assert_nothing_left(workspace)


@pytest.mark.slow
def test_enrich__captioner_that_no_path_can_name(workspace: Workspace, folder: Path) -> None:
    """A captioner whose path is too long does not exist."""
    dataset = prepared(workspace, "pets", folder)
    entry = f"[mine]\ntype = 'CAPTION_IMAGES'\ncaptioner = '{'L' * 5000}'\n"
    (workspace.path / "models.toml").write_text(entry)
    with pytest.raises(InvalidInput, match="not available"):
        dataset.enrich({"CAPTION_IMAGES": "mine"})
    with pytest.raises(NotFound, match="no folder"):
        find_captioner(Path("/" + "L" * 5000))


def test_report__text_that_is_no_unicode(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A path or an addition with a lone surrogate, or one that is no text, is refused before anything is written."""
    dataset = prepared(workspace, "pets", folder)
    with pytest.raises(InvalidInput, match="lone surrogates"):
        dataset.report(tmp_path / "\ud800")
    extras: list[Any] = ["\ud800", 3]
    for extra in extras:
        with pytest.raises(InvalidInput, match="extra must be"):
            dataset.report(tmp_path / "report.html", extra=extra)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("media_id", ["\ud800", "x", 3])
def test_field_values__of_no_id(workspace: Workspace, folder: Path, media_id: Any) -> None:
    """A value without the form of an id is that of no media item."""
    with pytest.raises(NotFound, match="no media"):
        workspace.create_dataset("pets", folder).field_values(media_id)
