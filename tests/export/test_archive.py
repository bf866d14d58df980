"""The ZIP of an export: its metadata as JSON or Parquet, the images, and what happens when it cannot be written."""

import io
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, InvalidInput, Workspace
from framedex.export.archive import export_archive
from framedex.export.columns import export_batches
from framedex.export.formats import FORMATS, format_names
from framedex.export.images import _copy
from framedex.export.items import size_texts
from framedex.export.zip_writer import ZipWriter
from framedex.issue_types import valued_types
from framedex.records import ExportResult
from framedex.storage.condition import Condition
from tests.gallery import ANIMALS, BROKEN, COPIES, NAMES, NEAR, SETTINGS, TOWNS, Gallery, embedded, grouped
from tests.image_files import encode, photo
from tests.inside import stored_media
from tests.laws import rest_slow
from tests.prepared import prepared
from tests.processes import run
from tests.tuning import Tuning

PARQUET_COLUMNS = ["media_id", "image_filename", "file_path", "width", "height", "uniqueness_score", "cluster_id",
                   "caption", "labels", "tags", "issues"]  # fmt: skip
ITEM_FIELDS = ["media_id", "media_type", "file_name", "file_path", "file_size", "uniqueness_score", "height", "width",
               "url", "cluster_id", "metadata_items"]  # fmt: skip


def strict_json(data: bytes) -> Any:
    """Parse JSON in UTF-8 without the NaN and Infinity that Python would let pass."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(data.decode("utf-8", errors="strict"), parse_constant=refuse)


def read_json(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return strict_json(archive.read("metadata.json"))


def read_parquet(path: Path) -> pa.Table:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return pq.read_table(io.BytesIO(archive.read("metadata.parquet")))


@pytest.fixture(scope="module")
def exported(gallery: Gallery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The metadata of the gallery's JSON export."""
    path = tmp_path_factory.mktemp("export") / "out.zip"
    gallery.dataset.export(path)
    metadata: dict[str, Any] = read_json(path)
    return metadata


def item(exported: dict[str, Any], gallery: Gallery, name: str) -> dict[str, Any]:
    return next(each for each in exported["media_items"] if each["media_id"] == gallery.ids[name])


@pytest.mark.slow
def test_json__info(exported: dict[str, Any], gallery: Gallery) -> None:
    """The head says what was exported, when and by whom."""
    assert list(exported) == ["info", "media_items"]
    info = exported["info"]
    assert list(info) == ["schema_version", "dataset", "description", "dataset_url", "export_time",
                          "dataset_creation_time", "exported_by", "total_media_items"]  # fmt: skip
    assert (info["schema_version"], info["dataset"], info["exported_by"]) == ("1.1", "gallery", "tester@example.org")
    assert info["total_media_items"] == len(exported["media_items"]) == len(NAMES)
    assert datetime.fromisoformat(info["dataset_creation_time"]) == gallery.dataset.info.created_at
    assert gallery.dataset.info.created_at < datetime.fromisoformat(info["export_time"]) <= datetime.now(UTC)


@pytest.mark.slow
def test_json__item(exported: dict[str, Any], gallery: Gallery) -> None:
    """An item has these fields, with these values for an image."""
    path = gallery.folder / TOWNS[3]
    found = item(exported, gallery, TOWNS[3])
    assert list(found) == ITEM_FIELDS
    clusters = {preview.media_id: c.cluster_id for c in gallery.dataset.explore().clusters for preview in c.previews}
    assert found == {
        "media_id": gallery.ids[TOWNS[3]],
        "media_type": "image",
        "file_name": TOWNS[3],
        "file_path": str(path),
        "file_size": f"{path.stat().st_size / 1024:.2f}KB",
        "uniqueness_score": found["uniqueness_score"],
        "height": 150,
        "width": 200,
        "url": path.as_uri(),
        "cluster_id": clusters[gallery.ids[TOWNS[3]]],
        "metadata_items": [
            {"type": "image_label", "properties": {"original_id": None, "category_name": "town", "source": "import"}},
            {
                "type": "caption",
                "properties": {"text": "a street, number 03", "caption": "a street, number 03", "source": "import"},
            },
            {"type": "quality", "properties": found["metadata_items"][-1]["properties"]},
        ],
    }
    assert 0 <= found["uniqueness_score"] <= 1


@pytest.mark.slow
def test_json__values(exported: dict[str, Any], gallery: Gallery) -> None:
    """An item has the value of each issue type, as the columns of tables have them; a broken file has no such item."""
    names = list(valued_types())
    rows = gallery.dataset.to_arrow(["media_id", *names]).to_pylist()
    for row in rows:
        items = next(each for each in exported["media_items"] if each["media_id"] == row["media_id"])["metadata_items"]
        values = [each["properties"] for each in items if each["type"] == "quality"]
        expected = {name: None if row[name] is None else pytest.approx(row[name], abs=1e-6) for name in names}
        assert values == ([expected] if any(each is not None for each in expected.values()) else [])
    assert sum(row["blur"] is not None for row in rows) == len(NAMES) - len(BROKEN)


def test_json__issue_items(exported: dict[str, Any], gallery: Gallery) -> None:
    """An issue has a type and a confidence; that of a duplicate also its group and the similarity of that."""
    dark, values = item(exported, gallery, "bad/dark.png")["metadata_items"]
    assert (dark["type"], values["type"]) == ("issue", "quality")
    assert list(dark["properties"]) == ["issue_type", "confidence"]
    assert dark["properties"]["issue_type"] == "dark"
    assert 0.5 < dark["properties"]["confidence"] <= 1
    groups = {media_id: group.group_id for group in gallery.dataset.duplicates() for media_id in group.media_ids}
    for name in [*COPIES, *NEAR[0]]:
        (properties,) = [
            each["properties"] for each in item(exported, gallery, name)["metadata_items"] if each["type"] == "issue"
        ]
        assert list(properties) == ["issue_type", "confidence", "duplicate_group_id", "duplicate_threshold"]
        assert properties["duplicate_group_id"] == groups[gallery.ids[name]]
        assert (properties["issue_type"], properties["duplicate_threshold"]) == ("duplicates", 0.96)


def test_json__broken_file(exported: dict[str, Any], gallery: Gallery) -> None:
    """A file that cannot be decoded is exported with its issue and without sizes."""
    found = item(exported, gallery, "broken/empty.jpg")
    assert (found["width"], found["height"], found["uniqueness_score"]) == (None, None, None)
    assert found["file_size"] == "0B"
    assert found["metadata_items"] == [{"type": "issue", "properties": {"issue_type": "corrupted", "confidence": 1.0}}]


def test_json__agrees_with_parquet(exported: dict[str, Any], gallery: Gallery, tmp_path: Path) -> None:
    """Both formats say the same."""
    gallery.dataset.export(tmp_path / "out.zip", "parquet")
    rows = read_parquet(tmp_path / "out.zip").to_pylist()
    for found, row in zip(exported["media_items"], rows, strict=True):
        for name in ("media_id", "file_path", "width", "height", "cluster_id"):
            assert found[name] == row[name]
        assert found["file_name"] == row["image_filename"]
        assert found["uniqueness_score"] == pytest.approx(row["uniqueness_score"], abs=1e-6)
        assert [each["properties"]["issue_type"] for each in found["metadata_items"] if each["type"] == "issue"] == [
            issue["issue_type"] for issue in row["issues"]
        ]


def test_parquet__is_the_table(gallery: Gallery, tmp_path: Path) -> None:
    """The Parquet file has the documented columns and is what to_arrow gives."""
    gallery.dataset.export(tmp_path / "out.zip", format="parquet")
    table = read_parquet(tmp_path / "out.zip")
    assert set(PARQUET_COLUMNS) <= set(table.schema.names)
    assert table.equals(gallery.dataset.to_arrow(table.schema.names))


@pytest.mark.parametrize("format_", ["json", "parquet"])
def test_archive__holds_metadata_only(gallery: Gallery, tmp_path: Path, format_: str) -> None:
    """Without images an archive has one member."""
    result = gallery.dataset.export(tmp_path / "out.zip", format_)
    assert zipfile.ZipFile(tmp_path / "out.zip").namelist() == [f"metadata.{format_}"]
    assert (result.path, result.total_media_items, result.images) == (str(tmp_path / "out.zip"), len(NAMES), 0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.zip"]


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["json", "parquet"])
def test_archive__with_images(gallery: Gallery, tmp_path: Path, format_: str) -> None:
    """Each image lies under images/ by the name that the metadata gives, byte for byte, broken ones too."""
    result = gallery.dataset.export(tmp_path / "out.zip", format_, include_images=True)
    assert (result.images, result.missing_images) == (len(NAMES), [])
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == sorted([f"metadata.{format_}", *(f"images/{name}" for name in NAMES)])
        for name in NAMES:
            assert archive.read(f"images/{name}") == (gallery.folder / name).read_bytes()
    if format_ == "json":
        assert {each["file_name"] for each in read_json(tmp_path / "out.zip")["media_items"]} == set(NAMES)


@pytest.mark.slow
def test_archive__same_names_in_different_folders(workspace: Workspace, tmp_path: Path) -> None:
    """Images of one base name stay apart, also where they come from different places of a list."""
    paths = [tmp_path / where / "a.png" for where in ("x", "y/z", "y/w")]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        path.write_bytes(encode(photo(number)))
    (tmp_path / "list.txt").write_text("\n".join(map(str, paths)))
    dataset = workspace.create_dataset("d", tmp_path / "list.txt")
    assert dataset.export(tmp_path / "out.zip", include_images=True).images == 3
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        for path in paths:
            assert archive.read(f"images/{path.relative_to(tmp_path)}") == path.read_bytes()


@pytest.mark.slow
def test_archive__missing_image(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """An image that is gone is named in the result, and the rest is exported; a folder or pipe in its place is too."""
    dataset = workspace.create_dataset("d", folder)
    for name in ("001.png", "003.png", "004.png"):
        (folder / name).unlink()
    (folder / "003.png").mkdir()
    os.mkfifo(folder / "004.png")
    result = dataset.export(tmp_path / "out.zip", include_images=True)
    assert result.missing_images == [str(folder / name) for name in ("001.png", "003.png", "004.png")]
    assert (result.images, result.total_media_items) == (3, 6)
    assert len(read_json(tmp_path / "out.zip")["media_items"]) == 6
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        images = [name for name in archive.namelist() if name.startswith("images/")]
    assert images == ["images/000.png", "images/002.png", "images/005.png"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_archive__many_missing_images(workspace: Workspace, tmp_path: Path) -> None:
    """Of very many images that are elsewhere all are counted, but not all named."""
    dataset = workspace.create_dataset("d", grouped([5500, 5500]))
    result = dataset.export(tmp_path / "out.zip", "csv", include_images=True)
    assert len(result.missing_images) == 10_000
    assert result.message == "11,000 media, 0 images; 11,000 images could not be read"


@pytest.mark.slow
def test_archive__odd_times_of_files(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Images with times that ZIP cannot hold are exported all the same."""
    for name, when in (("000.png", 0), ("001.png", 5_000_000_000)):
        os.utime(folder / name, (when, when))
    dataset = workspace.create_dataset("d", folder)
    assert dataset.export(tmp_path / "out.zip", include_images=True).images == 6
    assert zipfile.ZipFile(tmp_path / "out.zip").testzip() is None


@pytest.mark.parametrize("when", [300_000_000_000, -90_000_000_000])
def test_local_time__of_no_calendar(when: float) -> None:
    """A time of a file that no calendar holds, which some file systems keep, becomes the first that ZIP has."""
    file = io.BytesIO()
    with ZipWriter(file) as archive:
        _copy(archive, "a.png", when, io.BytesIO(b"content"))
    with zipfile.ZipFile(file) as read:
        assert read.getinfo("a.png").date_time == (1980, 1, 1, 0, 0, 0)
        assert read.read("a.png") == b"content"


@pytest.mark.parametrize("format_", FORMATS)
def test_archive__same_bytes(gallery: Gallery, tmp_path: Path, format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same export of the same state is the same file, whenever it is made, but for the export time in JSON."""
    for name, year in (("first.zip", 2031), ("second.zip", 2032)):
        clock = type("clock", (datetime,), {"now": staticmethod(lambda _zone=None, year=year: datetime(year, 1, 1))})
        for module in ("json_file", "zip_writer"):
            monkeypatch.setattr(f"framedex.export.{module}.datetime", clock)
        gallery.dataset.export(tmp_path / name, format_, include_images=True)
    first, second = ((tmp_path / name).read_bytes() for name in ("first.zip", "second.zip"))
    if format_ == "json":
        first, second = (
            (zipfile.ZipFile(tmp_path / name).read("metadata.json")) for name in ("first.zip", "second.zip")
        )
        second = second.replace(b'"export_time": "2032', b'"export_time": "2031')
    assert first == second


@pytest.mark.slow
def test_json__odd_text(workspace: Workspace, tmp_path: Path) -> None:
    """Labels, captions and names with quotes, newlines and signs of all scripts come back as they were."""
    text = 'quote " backslash \\ newline \n tab \t nul-like \x01 猫 🐈 </script>'
    dataset = workspace.create_dataset('a "name" & 猫', embedded([[1, 0]], caption=[text], label=[text]))
    dataset.export(tmp_path / "out.zip")
    metadata = read_json(tmp_path / "out.zip")
    assert metadata["info"]["dataset"] == 'a "name" & 猫'
    label, caption, _ = (each["properties"] for each in metadata["media_items"][0]["metadata_items"])
    assert caption["text"] == text
    assert label["category_name"] == text.strip()


@pytest.mark.slow
def test_json__url_of_odd_names(workspace: Workspace, tmp_path: Path) -> None:
    """The url of an item leads to the file, whatever bytes are in its name."""
    (tmp_path / "p").mkdir()
    path = tmp_path / "p" / os.fsdecode(b"\xff odd %20.png")
    path.write_bytes(encode(photo(1)))
    workspace.create_dataset("d", tmp_path / "p").export(tmp_path / "out.zip")
    (found,) = read_json(tmp_path / "out.zip")["media_items"]
    assert unquote_to_bytes(found["url"].removeprefix("file://")) == os.fsencode(path)


@pytest.mark.slow
def test_json__url_elsewhere(workspace: Workspace, tmp_path: Path) -> None:
    """The url of a media item that is not here is its uri."""
    table = pa.table({"uri": ["https://example.org/a b.jpg"], "embedding": [[1.0]]})
    workspace.create_dataset("d", table).export(tmp_path / "out.zip")
    (found,) = read_json(tmp_path / "out.zip")["media_items"]
    assert (found["url"], found["file_size"]) == ("https://example.org/a b.jpg", None)


def test_json__nothing(gallery: Gallery, tmp_path: Path) -> None:
    """An export of nothing is valid and empty, in both formats."""
    view = gallery.dataset.where([{"any": []}])
    view.export(tmp_path / "out.zip", include_images=True)
    metadata = read_json(tmp_path / "out.zip")
    assert (metadata["info"]["total_media_items"], metadata["media_items"]) == (0, [])
    view.export(tmp_path / "out.zip", "parquet")
    assert read_parquet(tmp_path / "out.zip").num_rows == 0


def test_view__export(gallery: Gallery, tmp_path: Path) -> None:
    """A view exports its media and no others."""
    view = gallery.dataset.where([{"labels": {"op": "is", "value": "town"}}])
    result = view.export(tmp_path / "out.zip", "parquet", include_images=True)
    assert (result.total_media_items, result.images) == (12, 12)
    assert read_parquet(tmp_path / "out.zip")["image_filename"].to_pylist() == TOWNS


@pytest.mark.parametrize("format_", ["xml", "JSON", "", None, ["json"]])
def test_export__unknown_format(gallery: Gallery, tmp_path: Path, format_: Any) -> None:
    """There are six formats."""
    with pytest.raises(InvalidInput, match=f"format must be {format_names()}, not "):
        gallery.dataset.export(tmp_path / "out.zip", format_)
    assert list(tmp_path.iterdir()) == []


def test_export__replaces_an_older_one(gallery: Gallery, tmp_path: Path) -> None:
    """An archive that is there already is replaced by the new one."""
    (tmp_path / "out.zip").write_bytes(b"old")
    gallery.dataset.export(tmp_path / "out.zip")
    assert len(read_json(tmp_path / "out.zip")["media_items"]) == len(NAMES)


def into_a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def into_a_device(folder: Path) -> Path:
    (folder / "device").symlink_to(os.devnull)
    return folder / "device"


def into_a_folder(folder: Path) -> Path:
    return folder


def below_nothing(folder: Path) -> Path:
    return folder / "gone" / "out.zip"


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "out.zip"


def with_a_long_name(folder: Path) -> Path:
    return folder / ("x" * 300)


def with_a_null_character(folder: Path) -> Path:
    return folder / "a\0b.zip"


def the_empty_path(_folder: Path) -> Path:
    return Path()


@pytest.mark.parametrize(
    "make",
    [
        into_a_folder,
        into_a_pipe,
        into_a_device,
        below_nothing,
        below_a_file,
        with_a_long_name,
        with_a_null_character,
        the_empty_path,
    ],
)
def test_export__unwritable_place(gallery: Gallery, tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """A place that cannot be written is refused, and nothing is left there."""
    path = make(tmp_path)
    before = {entry: entry.lstat().st_ino for entry in tmp_path.iterdir()}
    with pytest.raises(InvalidInput, match="cannot write"):
        gallery.dataset.export(path)
    assert {entry: entry.lstat().st_ino for entry in tmp_path.iterdir()} == before


@pytest.mark.parametrize("below", ["catalog.db", "catalog.db-wal", "framedex.toml", "datasets/out.zip"])
def test_export__over_the_workspace(workspace: Workspace, tmp_path: Path, below: str) -> None:
    """A file by which the workspace lives is not replaced, also where a link leads there; others beside it may be."""
    dataset = prepared(workspace, "d", embedded([[1, 0]]))
    (tmp_path / "link").symlink_to(workspace.path)
    for folder in (workspace.path, tmp_path / "link"):
        with pytest.raises(InvalidInput, match="the workspace's own; choose another one"):
            dataset.export(folder / below)
    assert dataset.exports() == []
    assert dataset.export(workspace.path / "out.zip").total_media_items == 1


def export_with(
    dataset: Dataset, path: Path, progress: Callable[[float], None], *, format_: str = "json", images: bool = False
) -> ExportResult:
    return export_archive(
        stored_media(dataset),
        dataset.info,
        Condition(),
        path,
        format=format_,
        include_images=images,
        exported_by="tester",
        progress=progress,
    )


class Stop(Exception):
    """What a caller raises to stop an export."""


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("after", [1, 5])
def test_export__stopped(gallery: Gallery, tmp_path: Path, format_: str, after: int) -> None:
    """An export that is stopped on the way leaves nothing, and an older archive as it was."""
    (tmp_path / "old.zip").write_bytes(b"old")
    for name in ("new.zip", "old.zip"):
        calls = iter(range(1, 100))

        def stop(_share: float, calls: Iterator[int] = calls) -> None:
            if next(calls) == after:
                raise Stop

        with pytest.raises(Stop):
            export_with(gallery.dataset, tmp_path / name, stop, format_=format_, images=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.zip"]
    assert (tmp_path / "old.zip").read_bytes() == b"old"


def test_export__progress(gallery: Gallery, tmp_path: Path) -> None:
    """The share that is done rises to one; the file appears after that."""
    shares: list[float] = []

    def note(share: float) -> None:
        assert not (tmp_path / "out.zip").exists()
        shares.append(share)

    export_with(gallery.dataset, tmp_path / "out.zip", note, images=True)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert (tmp_path / "out.zip").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "limit"),
    rest_slow([("json", 50_000), ("parquet", 200), ("csv", 200), ("yolo", 50_000)], 1, several=True),
)
def test_export__disk_full(gallery: Gallery, tmp_path: Path, format_: str, limit: int) -> None:
    """When no more can be written, the error says so, nothing is left, and an older archive stays whole."""
    (tmp_path / "out.zip").write_bytes(b"old")
    out = run(
        """
        import resource, signal, sys, framedex
        with framedex.Workspace(sys.argv[1], read_only=True) as workspace:
            dataset = workspace.dataset("gallery")
            dataset.count()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]),) * 2)
            try:
                dataset.export(sys.argv[2] + "/out.zip", sys.argv[3], include_images=sys.argv[4] == "50000")
            except framedex.TaskFailed as error:
                print(error)
        """,
        gallery.workspace.path,
        tmp_path,
        format_,
        limit,
    )
    assert out.strip() == f"export to {tmp_path}/out.zip failed: OSError: [Errno 27] File too large"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.zip"]
    assert (tmp_path / "out.zip").read_bytes() == b"old"


def peaks_of_export(dataset: Dataset, path: Path, format_: str) -> tuple[int, int]:
    """Return the most bytes that Python's and Arrow's objects of an export took at a time."""
    pool, held = pa.default_memory_pool(), list[int]()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        export_with(dataset, path, lambda _share: held.append(pool.bytes_allocated()), format_=format_)
        return tracemalloc.get_traced_memory()[1], max(held) - before
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def lengthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset of 8,192 rows, of which the captions take 33 MB."""
    count = 8192
    captions, labels = pa.array(["caption " * 500] * count), pa.array(["dog"] * count)
    table = grouped([count]).append_column("caption", captions).append_column("label", labels)
    with Workspace(tmp_path_factory.mktemp("lengthy") / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("lengthy", table)


def in_arrows_memory(*of: Any) -> Iterator[pa.Table]:
    """Yield the blocks of an export as copies, which Arrow's pool counts for as long as anything holds a part of one.

    What they are made of was allocated by the reader of tables, whose memory no one counts.
    """
    for block in export_batches(*of):
        yield block.take(pa.array(range(len(block))))


@pytest.mark.slow
@pytest.mark.parametrize("format_", rest_slow(FORMATS, 2, long=5))
def test_export__is_streamed(
    lengthy: Dataset, tmp_path: Path, format_: str, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far one thread is ahead of the other, an export holds a few blocks of what it exports, not all 64."""
    tuning.exported_rows = 128
    monkeypatch.setattr("framedex.export.contents.export_batches", in_arrows_memory)
    objects, arrow = peaks_of_export(lengthy, tmp_path / "out.zip", format_)
    whole = lengthy.to_arrow(["caption"]).nbytes
    # At most four blocks are written together while four wait and two are made: a sixth; a buffer takes an eighth more.
    assert arrow < whole / 2
    assert objects < whole / 2


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, None), (0, "0B"), (1023, "1023B"), (1024, "1.00KB"), (49428, "48.27KB"), (5 * 2**20, "5.00MB"),
     (3 * 2**30, "3.00GB"), (5000 * 2**30, "5000.00GB")],
)  # fmt: skip
def test_size_text__as_people_read_it(size: int | None, text: str | None) -> None:
    """Sizes are given in the largest unit that leaves at least one."""
    assert size_texts(pa.array([size, 1], pa.int64())).to_pylist() == [text, "1B"]
    assert size_texts(pa.array([size], pa.int64())).to_pylist() == [text]


@given(st.integers(0, 2**45))
def test_size_text__rounds_as_print_does(size: int) -> None:
    """The two decimals are those of Python's own formatting."""
    (text,) = size_texts(pa.array([size], pa.int64())).to_pylist()
    units = {"KB": 2**10, "MB": 2**20, "GB": 2**30}
    assert text == (f"{size / units[text[-2:]]:.2f}{text[-2:]}" if size >= 1024 else f"{size}B")


def test_export__while_files_are_broken(gallery: Gallery, tmp_path: Path) -> None:
    """Broken files are part of an export like all others."""
    result = gallery.dataset.where([{"issues": {"op": "issue", "value": "corrupted"}}]).export(
        tmp_path / "out.zip", include_images=True
    )
    assert (result.images, result.total_media_items) == (len(BROKEN), len(BROKEN))
    assert ANIMALS[0] not in zipfile.ZipFile(tmp_path / "out.zip").namelist()


@pytest.mark.slow
def test_archive__uris_that_shorten_to_one_name(workspace: Workspace, tmp_path: Path) -> None:
    """Rows whose uris differ only in how they are written get members of their own."""
    (tmp_path / "a.jpg").write_bytes(encode(photo(0), "JPEG"))
    uris = [f"{tmp_path}/a.jpg", f"{tmp_path}/./a.jpg", f"file://{tmp_path}/a.jpg"]
    table = pa.table({"uri": uris, "embedding": [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]})
    result = workspace.create_dataset("uris", table).export(tmp_path / "out.zip", include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.testzip() is None
        assert len({name for name in archive.namelist() if name.startswith("images/")}) == result.images == 3
