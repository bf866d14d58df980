"""Making a dataset builds its tables first, and nothing is visible until the commit."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from framedex.annotations.label_index import Annotations, ImageLabels
from framedex.errors import Aborted
from framedex.jobs.context import JobContext
from framedex.jobs.create import create
from framedex.jobs.ingest.content import FilesInput
from framedex.jobs.ingest.vectors import open_vectors
from framedex.media.open_sources import open_source
from framedex.records import DatasetStatus, EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import datasets
from framedex.storage.catalog import Catalog, open_catalog
from framedex.storage.media_rows import index_schema
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, TaskProgress
from tests.image_files import photo, write
from tests.jobs.fakes import Colours

CONFIG = EmbeddingConfig(encoder="colours", dimension=3, thresholds=Colours.thresholds)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """An open catalog."""
    opened = open_catalog(tmp_path / "catalog.db", read_only=False)
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five images, a broken one, and other files."""
    path = tmp_path / "images"
    for number in range(5):
        write(path / f"{number}.png", photo(number))
    (path / "broken.jpg").write_bytes(b"")
    (path / "notes.txt").touch()
    (path / "sound.mp3").touch()
    return path


def start(folder: Path, table: Path, dataset_id: str, progress: TaskProgress) -> Commit:
    """Build the tables of a folder."""
    annotations = Annotations()
    annotations.add(ImageLabels("0.png", ("cat",), None))
    annotations.add(ImageLabels("gone.png", ("dog",), None))
    content = FilesInput(open_source(folder), annotations, Colours())
    job = JobContext.for_new_dataset(dataset_id, CONFIG, table, table.parent / "thumbnails", Settings(threads=2))
    return create(content, job, progress=progress)


@pytest.mark.slow
def test_create__is_visible_after_its_commit_only(tmp_path: Path, folder: Path, catalog: Catalog) -> None:
    """The head names the table's version when the commit has run, with counts, config and what was left out."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
    progress, seen = TaskProgress(), list[tuple[str, float]]()
    progress.callback = lambda stage, share: seen.append((stage, share))
    commit = start(folder, tmp_path / "media.lance", dataset_id, progress)
    with catalog.read() as connection:
        assert datasets.head(connection, dataset_id) is None
    with catalog.write() as connection:
        commit(connection)
    with catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
        record = datasets.find_dataset(connection, dataset_id)
        assert datasets.embedding_config(connection, dataset_id) == CONFIG
        assert datasets.get_roots(connection, dataset_id) == [str(folder)]
    assert head is not None
    assert (record.status_new, record.progress, record.n_images) == (DatasetStatus.READY, 100, 6)
    assert head.summary.skipped == {
        "other files (.txt)": 1, "other files (.mp3)": 1, "annotations without an image": 1,
    }  # fmt: skip
    table = Table(tmp_path / "media.lance", head.tables["media"])
    assert table.count() == 6
    assert set(index_schema().names) <= set(table.schema.names)
    assert [share for _, share in seen] == sorted(share for _, share in seen)
    assert seen[-1] == ("writing", 1.0)


@pytest.mark.slow
def test_create__starts_over_what_a_broken_run_left(tmp_path: Path, folder: Path, catalog: Catalog) -> None:
    """A second run over the remains of an aborted one has the same rows as an uninterrupted one."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
    stopped = TaskProgress()
    stopped.callback = lambda _stage, share: stopped.cancelled.set() if share >= 0.9 else None
    with pytest.raises(Aborted):
        start(folder, tmp_path / "media.lance", dataset_id, stopped)
    for name in ("media.lance", "fresh.lance"):
        with catalog.write() as connection:
            connection.exec_driver_sql("DELETE FROM source_roots")
            start(folder, tmp_path / name, dataset_id, TaskProgress())(connection)
        with catalog.read() as connection:
            head = datasets.head(connection, dataset_id)
        assert head is not None
        table = Table(tmp_path / name, head.tables["media"])
        assert table.scan(["path"]).read_all()["path"].to_pylist() == [*(f"{n}.png" for n in range(5)), "broken.jpg"]


def test_create__from_vectors(tmp_path: Path, catalog: Catalog) -> None:
    """A table with embeddings of its own becomes a dataset without opening an image."""
    content = pa.table({"uri": ["a.jpg", "b.jpg"], "embedding": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]})
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "vectors", owned_by="me")
        job = JobContext.for_new_dataset(
            dataset_id, CONFIG, tmp_path / "media.lance", tmp_path / "thumbnails", Settings()
        )
        create(open_vectors(content), job, progress=TaskProgress())(connection)
        assert datasets.find_dataset(connection, dataset_id).n_images == 2
        assert datasets.get_roots(connection, dataset_id) == [str(Path.cwd())]
