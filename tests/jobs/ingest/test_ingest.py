"""Files become rows: good ones with all that was measured, broken ones with the reason."""

import hashlib
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex.annotations.label_index import Annotations, ImageLabels
from framedex.core.ids import media_id
from framedex.encoders.gist import Gist
from framedex.errors import Aborted, NotFound
from framedex.issue_types import measure_columns
from framedex.jobs.ingest import ingest as ingest_module
from framedex.jobs.ingest.in_processes import CHUNK
from framedex.jobs.ingest.ingest import Ingested, ingest
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.media.open_sources import open_source
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import media_schema
from framedex.storage.table_versions import Table
from tests.image_files import BLUE, GREEN, RED, encode, flat, oriented, photo, png_claiming, quadrants, write
from tests.jobs.fakes import Colours, StopAt, ignore
from tests.tuning import Tuning

DATASET = "7a1c3f6e-0000-4000-8000-000000000001"

MEASURES = measure_columns()


def run(
    source: Path,
    table: Path,
    *,
    encoder: Any = None,
    annotations: Annotations | None = None,
    settings: Settings | None = None,
    progress: Any = ignore,
    **options: Any,
) -> Ingested:
    """Ingest a folder or a list into a table."""
    return ingest(
        open_source(source),
        annotations or Annotations(),
        encoder or Colours(),
        table=table,
        dataset_id=DATASET,
        settings=settings or Settings(threads=2),
        progress=progress,
        **options,
    )


def rows_of(table: Path, ingested: Ingested) -> list[dict[str, Any]]:
    """Return all rows in order."""
    opened = Table(table, ingested.version)
    rows: list[dict[str, Any]] = opened.scan(opened.schema.names).read_all().to_pylist()
    return rows


def open_files() -> int:
    """Return how many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return rows by the path that they show."""
    return {row["path"]: row for row in rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for images."""
    path = tmp_path / "images"
    path.mkdir()
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The place of the table."""
    return tmp_path / "media.lance"


def test_rows__of_good_files(folder: Path, table: Path) -> None:
    """An image's row has its identity, size, hash, time, measures and embedding."""
    data = oriented(photo(1, width=200, height=100), 6, "JPEG")
    (folder / "sub").mkdir()
    (folder / "sub" / "a b.jpg").write_bytes(data)
    os.utime(folder / "sub" / "a b.jpg", ns=(0, 1_600_000_000_123_456_000))
    (row,) = rows_of(table, run(folder, table, encoder=Gist()))
    assert row["media_id"] == media_id(DATASET, "sub/a b.jpg")
    assert (row["path"], row["path_raw"], row["root"], row["batch"]) == ("sub/a b.jpg", None, 0, 0)
    assert (row["width"], row["height"], row["format"], row["size_bytes"]) == (200, 100, "jpeg", len(data))
    assert row["content_hash"] == hashlib.blake2b(data, digest_size=16).digest()
    assert abs(row["modified_at"] - datetime(2020, 9, 13, 12, 26, 40, 123456, UTC)).total_seconds() < 1e-5
    assert (row["labels"], row["caption"], row["error"]) == (None, None, None)
    assert all(0 <= row[name] <= 1 for name in MEASURES)
    assert row["aspect_ratio"] == 0.5
    assert np.linalg.norm(row["embedding"]) == pytest.approx(1, abs=1e-5)
    assert list(row) == media_schema(610).names


@pytest.mark.skipif(sys.platform != "linux", reason="pipes and links are made")
def test_rows__of_broken_files(folder: Path, table: Path) -> None:
    """Whatever is wrong with a file, it is a row with the reason, and the others are complete."""
    write(folder / "good.png", quadrants())
    jpeg = encode(photo(1), "JPEG")
    contents = {
        "empty.jpg": (b"", "the file is empty"),
        "zeros.png": (bytes(500), "only zero bytes"),
        "text.jpg": (b"hello", "not an image"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "it ends early: "),
        "bomb.png": (png_claiming(60_000, 60_000), "possibly a decompression bomb"),
    }
    for name, (data, _) in contents.items():
        (folder / name).write_bytes(data)
    (folder / "gone.jpg").symlink_to(folder / "nowhere.jpg")
    os.mkfifo(folder / "pipe.jpg")
    found = by_name(rows_of(table, run(folder, table)))
    reasons = {name: reason for name, (_, reason) in contents.items()}
    reasons |= {"gone.jpg": "cannot be read: No such file", "pipe.jpg": "not a regular file"}
    assert set(found) == {*reasons, "good.png"}
    for name, reason in reasons.items():
        row = found[name]
        assert reason in row["error"], name
        assert [row[key] for key in ("width", "height", "format", "embedding", *MEASURES)] == [None] * (
            4 + len(MEASURES)
        )
        if name in contents:
            assert row["size_bytes"] == len(contents[name][0])
            assert row["content_hash"] == hashlib.blake2b(contents[name][0], digest_size=16).digest()
        else:
            assert (row["size_bytes"], row["content_hash"], row["modified_at"]) == (None, None, None)
    assert found["good.png"]["error"] is None
    assert len(found["good.png"]["embedding"]) == 3


def test_rows__only_broken_files(folder: Path, table: Path) -> None:
    """Without a single image the table still has its rows and its width."""
    for number in range(40):
        (folder / f"{number:02}.jpg").write_bytes(b"x" * number)
    ingested = run(folder, table)
    assert ingested.rows == 40
    assert Table(table, ingested.version).vectors()[1].shape == (0, 3)


def test_rows__of_nothing(folder: Path, table: Path) -> None:
    """An empty source makes an empty table."""
    ingested = run(folder, table)
    assert (ingested.rows, rows_of(table, ingested)) == (0, [])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are not listed here")
def test_files__are_closed_again(folder: Path, table: Path) -> None:
    """No file stays open, neither good nor broken ones nor folders that a list names."""
    write(folder / "a.png", quadrants())
    (folder / "b.png").write_bytes(b"")
    (folder / "folder.jpg").mkdir()
    (folder / "list.txt").write_text("a.png\nb.png\nfolder.jpg\nmissing.png\n")
    run(folder / "list.txt", table)
    before = open_files()
    for attempt in range(3):
        found = by_name(rows_of(table, run(folder / "list.txt", table.with_name(f"{attempt}.lance"))))
        assert "directory" in found["folder.jpg"]["error"]
    assert open_files() <= before + 2


def test_limits__of_bytes_and_pixels(folder: Path, table: Path) -> None:
    """Files and images beyond the settings' limits are refused with them."""
    write(folder / "a.png", photo(1))
    write(folder / "b.png", flat(RED))
    size = (folder / "b.png").stat().st_size
    found = by_name(rows_of(table, run(folder, table, settings=Settings(threads=1, max_file_bytes=size))))
    assert f"more than {size:,}" in found["a.png"]["error"]
    assert found["b.png"]["error"] is None
    other = table.with_name("other.lance")
    found = by_name(rows_of(other, run(folder, other, settings=Settings(threads=1, max_pixels=64 * 48))))
    assert "160×120 is more than 3,072 pixels" in found["a.png"]["error"]
    assert found["b.png"]["error"] is None


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes are made")
def test_names__of_any_bytes(folder: Path, table: Path) -> None:
    """Names that are no UTF-8 are shown as text, kept as bytes, and have ids of their own."""
    for raw in (b"caf\xe9.png", b"caf\xea.png", b"new\nline.png"):
        Path(folder, os.fsdecode(raw)).write_bytes(encode(quadrants(), "PNG"))
    rows = rows_of(table, run(folder, table))
    assert {(row["path"], row["path_raw"]) for row in rows} == {
        ("caf\\xe9.png", b"caf\xe9.png"),
        ("caf\\xea.png", b"caf\xea.png"),
        ("new\nline.png", None),
    }
    assert len({row["media_id"] for row in rows}) == 3
    assert [row["error"] for row in rows] == [None] * 3


def test_annotations__join_every_file_that_they_name(folder: Path, table: Path) -> None:
    """Labels and captions are found by path, or by the only image of a name; what no image has is counted."""
    for name in ("a.png", "x/a.png", "x/b.png", "c.png", "x/d.png"):
        write(folder / name, quadrants())
    (folder / "broken.png").write_bytes(b"")
    annotations = Annotations()
    annotations.add(ImageLabels("a.png", ("bare",), "a caption"))
    annotations.add(ImageLabels("x/b.png", ("dog", "cat", "dog"), None))
    annotations.add(ImageLabels("broken.png", ("kept",), "kept too"))
    annotations.add(ImageLabels("missing.png", ("lost",), None))
    annotations.add(ImageLabels("d.png", ("only",), None))
    ingested = run(folder, table, annotations=annotations)
    found = {name: (row["labels"], row["caption"]) for name, row in by_name(rows_of(table, ingested)).items()}
    assert found == {
        "a.png": (["bare"], "a caption"),
        "x/a.png": (None, None),
        "x/d.png": (["only"], None),
        "x/b.png": (["dog", "cat"], None),
        "c.png": (None, None),
        "broken.png": (["kept"], "kept too"),
    }
    assert ingested.unmatched == 1


def test_list__brings_labels_of_its_own(folder: Path, table: Path) -> None:
    """Labels of a list come before those of the annotations, each once; its caption wins."""
    write(folder / "a.png", quadrants())
    (folder / "list.csv").write_text('path,label,caption\na.png,"[dog, cat]",from the list\nmissing.png,bird,\n')
    annotations = Annotations()
    annotations.add(ImageLabels("a.png", ("cat", "pet"), "from the annotations"))
    found = by_name(rows_of(table, run(folder / "list.csv", table, annotations=annotations)))
    assert (found["a.png"]["labels"], found["a.png"]["caption"]) == (["dog", "cat", "pet"], "from the list")
    assert found["missing.png"]["labels"] == ["bird"]
    assert "No such file" in found["missing.png"]["error"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_order__is_that_of_the_source_on_any_number_of_threads(folder: Path, tmp_path: Path) -> None:
    """One thread and four write the very same rows."""
    for number in range(100):
        pixels = photo(number, width=20 + (number * 37) % 300, height=30)
        write(folder / f"{number % 7}" / f"{number:03}.{'jpg' if number % 2 else 'png'}", pixels)
    (folder / "3" / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    found: list[list[dict[str, Any]]] = []
    for threads in (1, 4, 4):
        table = tmp_path / f"{len(found)}.lance"
        found.append(rows_of(table, run(folder, table, encoder=Gist(), settings=Settings(threads=threads))))
    assert [row["path"] for row in found[0]] == [item.path for item in open_source(folder).items()]
    assert found[0] == found[1] == found[2]


def test_progress__ascends_to_one(folder: Path, table: Path) -> None:
    """The share of files that are done is reported from batch to batch."""
    for number in range(70):
        write(folder / f"{number:03}.png", flat(RED))
    shares: list[float] = []
    run(folder, table, progress=shares.append)
    assert shares == [32 / 70, 64 / 70, 1]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_abort__leaves_nothing_visible(folder: Path, table: Path, share: float, tuning: Tuning) -> None:
    """Stopping ends the threads at once; what was written can be rolled back, and a new run starts anew."""
    tuning.committed_rows = 40
    for number in range(300):
        write(folder / f"{number:03}.png", flat(RED))
    encoder = Colours()
    with pytest.raises(Aborted) as caught:
        run(folder, table, encoder=encoder, progress=StopAt(share))
    assert caught.value.args == ("aborted on request",)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("framedex-decode")]
    assert encoder.prepared < 300
    tables.roll_back(table, None)
    with pytest.raises(NotFound):
        Table(table, 1)
    ingested = run(folder, table)
    assert (ingested.rows, len(rows_of(table, ingested))) == (300, 300)


def test_versions__of_long_runs_are_one_table(folder: Path, table: Path, tuning: Tuning) -> None:
    """Rows that are written in several versions stand in order in the last one."""
    tuning.committed_rows = 33
    for number in range(100):
        write(folder / f"{number:03}.png", flat((RED, GREEN, BLUE)[number % 3]))
    ingested = run(folder, table)
    rows = rows_of(table, ingested)
    assert ingested.rows == 100
    assert [row["path"] for row in rows] == [f"{number:03}.png" for number in range(100)]
    assert [int(np.argmax(row["embedding"])) for row in rows] == [number % 3 for number in range(100)]


@pytest.mark.slow
@pytest.mark.only_soak
def test_look_ahead__is_bounded(folder: Path, table: Path) -> None:
    """While the encoder is slow, the threads work some chunks ahead and then wait; nothing more is held."""
    for number in range(600):
        write(folder / f"{number:03}.png", flat(RED, width=2, height=2))
    threads = 2
    bound = CHUNK * (2 * threads + 3) + ingest_module._ENCODED
    encoder, ahead, beyond, most = Colours(), threading.Event(), threading.Event(), 0

    def on_prepare(prepared: int) -> None:
        if prepared - encoder.encoded >= bound // 2:
            ahead.set()
        if prepared - encoder.encoded > bound:
            beyond.set()

    def on_encode(prepared: int) -> None:
        nonlocal most
        if not encoder.encoded:
            assert ahead.wait(20)
            beyond.wait(0.2)
        most = max(most, prepared - encoder.encoded)

    encoder.on_prepare, encoder.on_encode = on_prepare, on_encode
    run(folder, table, encoder=encoder, settings=Settings(threads=threads))
    assert encoder.prepared == encoder.encoded == 600
    assert bound // 2 <= most <= bound
    assert not beyond.is_set()


def test_encoder__that_fails_ends_the_run(folder: Path, table: Path) -> None:
    """A defect of an encoder is not taken for a broken image, and leaves no threads behind."""
    for number in range(60):
        write(folder / f"{number:03}.png", flat(RED))
    encoder = Colours()

    def fail(_prepared: int) -> None:
        raise ZeroDivisionError("a defect")

    encoder.on_prepare = fail
    with pytest.raises(ZeroDivisionError, match="a defect") as caught:
        run(folder, table, encoder=encoder)
    assert caught.value is not None
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("framedex-decode")]


def test_known__files_are_not_read(folder: Path, table: Path) -> None:
    """Files that the table has are left out unread, and the others come behind it in the order of the source."""
    for number in (1, 3, 5):
        write(folder / f"{number}.png", photo(number))
    first = run(folder, table)
    for number in (0, 2, 6):
        write(folder / f"{number}.png", photo(number))
    for number in (1, 3, 5):
        (folder / f"{number}.png").write_bytes(b"changed")
    encoder = Colours()
    heard: list[float] = []
    second = run(
        folder, table, encoder=encoder, existing=IdIndex(Table(table, first.version)),
        placement=SourcePlacement(batch=1), progress=heard.append,
    )  # fmt: skip
    rows = rows_of(table, second)
    assert [row["path"] for row in rows] == [f"{number}.png" for number in (1, 3, 5, 0, 2, 6)]
    assert [row["batch"] for row in rows] == [0] * 3 + [1] * 3
    assert (second.rows, second.present, encoder.prepared) == (3, 3, 3)
    assert heard == sorted(heard)
    assert heard[-1] == 1


def test_known__all_of_them(folder: Path, table: Path) -> None:
    """Where nothing is new nothing is written, whatever the annotations say, which all have their image."""
    write(folder / "0.png", photo(0))
    first = run(folder, table)
    annotations = Annotations()
    annotations.add(ImageLabels("0.png", ("cat",), None))
    second = run(folder, table, annotations=annotations, existing=IdIndex(Table(table, first.version)))
    assert second == Ingested(version=0, rows=0, unmatched=0, present=1)
    assert tables.roll_back(table, first.version) == first.version


def test_known__more_than_are_asked_for_at_a_time(folder: Path, table: Path, tuning: Tuning) -> None:
    """However many files are looked up at a time, those that are there are left out."""
    tuning.known_ids = 3
    for number in range(0, 20, 2):
        write(folder / f"{number:02}.png", flat(RED))
    first = run(folder, table)
    for number in range(1, 20, 2):
        write(folder / f"{number:02}.png", flat(BLUE))
    second = run(folder, table, existing=IdIndex(Table(table, first.version)))
    assert [row["path"] for row in rows_of(table, second)][10:] == [f"{number:02}.png" for number in range(1, 20, 2)]
    assert second.present == 10


def test_place__of_files(folder: Path, table: Path) -> None:
    """Paths are relative to the source root, and one path below two roots is two files."""
    for root in (folder, folder / "below"):
        write(root / "x.png", photo(1))
    run(folder / "below", table, placement=SourcePlacement(0, "below/", 1))
    below, other = rows_of(table, run(folder / "below", table, placement=SourcePlacement(1, "", 2)))
    first, whole = rows_of(folder.parent / "whole.lance", run(folder, folder.parent / "whole.lance"))
    assert (first["path"], whole["path"]) == ("x.png", "below/x.png")
    assert (below["path"], below["root"], below["batch"]) == ("below/x.png", 0, 1)
    assert (other["path"], other["root"], other["batch"]) == ("x.png", 1, 2)
    assert below["media_id"] == whole["media_id"] == media_id(DATASET, "below/x.png")
    assert other["media_id"] not in (first["media_id"], whole["media_id"])


@pytest.mark.parametrize("name", ["1:x.png", "1\\x.png", "1/x.png"])
def test_place__no_name_is_that_of_another_root(name: str) -> None:
    """Ids of files below the first root differ from those of files below others."""
    assert SourcePlacement(0).media_id(DATASET, name) == media_id(DATASET, name)
    others = {SourcePlacement(0).media_id(DATASET, name), SourcePlacement(2).media_id(DATASET, "x.png")}
    assert SourcePlacement(1).media_id(DATASET, "x.png") not in others
