"""Checks of workspaces: each kind of damage is found, said in one line, and repaired where it can be."""

import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from framedex import Aborted, Dataset, NotFound, ReadOnly, Workspace
from framedex.cli import main
from framedex.core.ids import objects_dataset
from framedex.operations.integrity.check import check
from framedex.records import CheckResult
from framedex.storage import datasets
from framedex.storage.blobs import Upload
from framedex.storage.snapshot_rows import generation_of
from tests.failures import failing
from tests.gallery import SETTINGS, fill
from tests.image_files import encode, photo
from tests.inside import catalog_of, context_of
from tests.laws import rest_slow
from tests.manifests import contents_of, contents_of_all
from tests.processes import run as run_process

Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, closed, with uploaded images, a snapshot, a custom field, and something in each cache."""
    home = tmp_path_factory.mktemp("made")
    folder = fill(home / "images", 4)
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", fill(home / "first", 1, first_seed=200), "gist")
        dataset.add_media(archive=pack(folder, home / "pets.zip"), auto_reindex=True)
        ids = dataset.where([]).media_ids()
        dataset.set_captions({ids[0]: "a cat on a roof", ids[1]: "a dog in the rain"})
        dataset.snapshot("kept")
        dataset.add_field("rating", "float", values={ids[0]: 1.5})
        dataset.tag(ids[:2], "keep")
        for media_id in ids:
            dataset.thumbnail(media_id)
        dataset.search("cat").media_ids()
        dataset.similar(ids[0]).media_ids()
        dataset.upload(encode(photo(1)))
        workspace.create_dataset("others", fill(home / "others", 2, first_seed=300), "gist")
    return home / "ws"


def pack(folder: Path, archive: Path) -> Path:
    """Return a ZIP of a folder."""
    return Path(shutil.make_archive(str(archive.with_suffix("")), "zip", folder))


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of that workspace, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "ws"))


@pytest.fixture
def workspace(home: Path) -> Iterator[Workspace]:
    """The same, opened."""
    with Workspace(home, settings=SETTINGS) as opened:
        yield opened


def dataset_of(workspace: Workspace) -> Dataset:
    """Return the dataset with uploaded images."""
    return workspace.dataset("pets")


def first(home: Path, pattern: str) -> Path:
    """Return the first file of a pattern below a workspace."""
    found = sorted(path for path in home.glob(pattern) if path.is_file())
    assert found, pattern
    return found[0]


def lines(result: CheckResult) -> list[str]:
    """Return the findings as text."""
    return [f"{Path(finding.path).name}: {finding.fault}" for finding in result.findings]


def empty(path: Path) -> None:
    """Take all of a file's content away."""
    path.write_bytes(b"")


def cut(path: Path) -> None:
    """Take the second half of a file's content away."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    """Put zeros over the second half of a file's content."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.slow
def test_check__finds_nothing_where_nothing_is_wrong(workspace: Workspace) -> None:
    """A sound workspace has no findings, and what was looked at is counted."""
    result = workspace.check()
    assert lines(result) == []
    assert result.is_sound
    assert (result.counts["datasets"], result.counts["uploaded files"]) == (2, 4)
    assert result.counts["cached files"] > 4
    assert dataset_of(workspace).check().counts["datasets"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "damage"),
    rest_slow(
        [
            ("cache/thumbnails/*/*/*.jpg", empty),
            ("cache/thumbnails/*/*/*.jpg", flip),
            ("cache/thumbnails/*/*/*.jpg", cut),
            ("cache/thumbnails/*/*/*.jpg", zero),
            ("cache/text/**/*.text", flip),
            ("cache/text/**/*.text", empty),
            ("cache/anchors/*/*.npz", cut),
        ],
        3,
        several=True,
    ),
)
def test_check__damaged_caches_are_removed(workspace: Workspace, pattern: str, damage: Damage) -> None:
    """A damaged file of a cache is found; a repair removes it, and it is made again."""
    path = first(workspace.path, pattern)
    dataset, content = dataset_of(workspace), path.read_bytes()
    damage(path)
    assert [(finding.path, finding.repaired) for finding in dataset.check().findings] == [(str(path), False)]
    assert [(finding.path, finding.repaired) for finding in dataset.check(repair=True).findings] == [(str(path), True)]
    assert not path.exists()
    assert dataset.check().findings == []
    if path.suffix == ".jpg":
        dataset.thumbnail(path.name[:36])
        assert path.read_bytes() == content


@pytest.mark.slow
def test_check__caches_of_datasets_that_are_gone(workspace: Workspace) -> None:
    """A cache of a dataset that neither the catalog nor a folder has is found and removed; those of objects stay."""
    gone, objects = "00000000-0000-4000-8000-000000000000", objects_dataset(dataset_of(workspace).id)
    thumbnails = workspace.path / "cache" / "thumbnails"
    for name in (gone, objects):
        (thumbnails / name / "00").mkdir(parents=True)
    (finding,) = workspace.check().findings
    assert (Path(finding.path), finding.fault) == (thumbnails / gone, "is the cache of a dataset that is gone")
    assert dataset_of(workspace).check().findings == []
    assert [finding.repaired for finding in workspace.check(repair=True).findings] == [True]
    assert not (thumbnails / gone).exists()
    assert (thumbnails / objects).exists()


@pytest.mark.slow
def test_check__thumbnail_that_is_no_image(workspace: Workspace) -> None:
    """A thumbnail whose checksum is right, and which does not decode, is found."""
    path = first(workspace.path, "cache/thumbnails/*/*/*.jpg")
    path.write_bytes(b"no image" + hashlib.blake2b(b"no image", digest_size=16).digest())
    (finding,) = workspace.check(repair=True).findings
    assert finding.fault.startswith("cannot be decoded: ")
    assert not path.exists()


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000])
def test_check__damaged_index_file_is_removed_with_its_index(workspace: Workspace, content: bytes) -> None:
    """A description of a vector index that is no JSON goes, with the arrays that are useless without it."""
    index = workspace.path / "cache" / "vectors" / dataset_of(workspace).id / "index"
    (index / "part").mkdir(parents=True)
    (index / "index.json").write_bytes(content)
    (finding,) = workspace.check(repair=True).findings
    assert finding.fault.startswith("is damaged: ")
    assert finding.repaired
    assert not index.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_check__cached_file_that_cannot_be_read(workspace: Workspace) -> None:
    """A named pipe among the thumbnails is a finding, not an error; a repair removes it."""
    path = first(workspace.path, "cache/thumbnails/*/*/*.jpg")
    pipe(path)
    (finding,) = workspace.check(repair=True).findings
    assert finding.fault.startswith("cannot be read: ")
    assert finding.repaired
    assert not path.exists()


@pytest.mark.slow
def test_check__repair_that_fails_is_said(workspace: Workspace) -> None:
    """A repair that the system refuses leaves its finding open, with the reason; later findings are repaired."""
    dataset = dataset_of(workspace)
    thumbnail, text = (first(workspace.path, pattern) for pattern in ("cache/thumbnails/*/*/*.jpg", "cache/**/*.text"))
    empty(thumbnail)
    empty(text)
    with failing("framedex.storage.disk.remove_file", error=PermissionError(13, "Permission denied")):
        result = dataset.check(repair=True)
    assert not any(finding.repaired for finding in result.findings)
    assert all("the repair failed: " in finding.remedy for finding in result.findings)
    assert all(finding.repaired for finding in dataset.check(repair=True).findings)


@pytest.mark.slow
def test_check__table_of_no_state(workspace: Workspace) -> None:
    """A table of no state of the dataset is found once it is old; one that was just made may be a writer's."""
    folder = workspace.path / "datasets" / dataset_of(workspace).id / "unknown.lance"
    shutil.copytree(folder.parent / "media.lance", folder)
    assert workspace.check().findings == []
    os.utime(folder, (0, 0))
    (finding,) = workspace.check(repair=True).findings
    assert (Path(finding.path), finding.fault) == (folder, "is a table of no state of the dataset")
    assert not finding.repaired


def test_check__snapshot_that_cannot_be_read_names_its_remedy(workspace: Workspace) -> None:
    """A version that only a snapshot needs can be given up with it; one of the head can be restored."""
    dataset = dataset_of(workspace)
    snapshot = dataset.snapshot("with ratings")
    dataset.add_field("weight", "float", values={dataset.where([]).media_ids()[0]: 2.5})
    with catalog_of(workspace).read() as connection:
        head = datasets.head(connection, dataset.id)
        kept = generation_of(connection, snapshot.snapshot_id)
    assert head is not None
    assert kept.tables["fields"] != head.tables["fields"]
    folder = workspace.path / "datasets" / dataset.id / "fields.lance"
    for path in (folder / "_versions").glob("*.manifest"):
        if 2**64 - 1 - int(path.stem) == kept.tables["fields"]:  # names of newer versions sort first
            empty(path)
    (finding,) = dataset.check().findings
    assert finding.remedy.startswith("delete the snapshot")


@pytest.mark.slow
def test_check__damaged_vector_index_is_removed(workspace: Workspace) -> None:
    """A damaged part of an index of vectors goes as a whole."""
    dataset = dataset_of(workspace)
    index = workspace.path / "cache" / "vectors" / dataset.id / "index"
    (index / "part").mkdir(parents=True)
    (index / "index.json").write_text("{}")
    (index / "part" / "part.json").write_text("{}")
    (index / "part" / "residual.npy").write_bytes(b"no array")
    result = dataset.check(repair=True)
    assert [line.partition(" is")[0] for line in lines(result)] == ["residual.npy:"]
    assert not (index / "part").exists()
    assert index.exists()


@pytest.mark.parametrize("damage", [flip, cut, empty])
def test_check__uploaded_files_fit_their_hashes(workspace: Workspace, damage: Damage) -> None:
    """An uploaded file that is not what was uploaded is found, one that is missing, too; nothing can repair them."""
    path, missing = sorted(path for path in workspace.path.glob("datasets/*/blobs/*/*"))[:2]
    damage(path)
    missing.unlink()
    result = workspace.check(repair=True)
    assert [(Path(finding.path), finding.repaired) for finding in result.findings] == [(path, False), (missing, False)]
    assert "does not fit its name" in result.findings[0].fault
    assert "is missing" in result.findings[1].fault
    assert not result.is_sound


@pytest.mark.slow
@pytest.mark.parametrize("damage", [empty, cut, zero, Path.unlink])
def test_check__tables_that_cannot_be_read(workspace: Workspace, damage: Damage) -> None:
    """Files of tables that are damaged are found, of the head and of snapshots; other datasets are checked, too."""
    dataset = dataset_of(workspace)
    folder = workspace.path / "datasets" / dataset.id / "media.lance"
    largest = max(folder.glob("data/*"), key=lambda path: path.stat().st_size)
    damage(largest)
    result = workspace.check(repair=True)
    assert not result.is_sound
    assert {Path(finding.path) for finding in result.findings} == {folder}
    assert any(
        re.search(r"column '\w+' .*of version \d+ cannot be read|version \d+ of the table", line)
        for line in lines(result)
    )
    assert result.counts["datasets"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 0.9])
def test_check__engine_failures_are_findings(workspace: Workspace, share: float) -> None:
    """A version whose description is cut anywhere, which makes the engine panic at some places, is a finding."""
    dataset = dataset_of(workspace)
    with catalog_of(workspace).read() as connection:
        head = datasets.head(connection, dataset.id)
    assert head is not None
    folder = workspace.path / "datasets" / dataset.id / "fields.lance"
    for path in (folder / "_versions").glob("*.manifest"):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
    result = workspace.check()
    assert any(
        f"version {head.tables['fields']} of the table 'fields' cannot be opened" in line for line in lines(result)
    )


@pytest.mark.slow
def test_check__leftovers_are_removed(workspace: Workspace) -> None:
    """Files that no version has, uploads that no task needs and files that never became whole are found and removed."""
    dataset, day = dataset_of(workspace), 86_400
    folder = workspace.path / "datasets" / dataset.id
    with Upload(folder) as upload:
        upload.add("a.png", [encode(photo(7))])
        upload.settle()
    left = [
        folder / "media.lance" / "data" / "left.lance",
        workspace.path / ".framedex.toml.1.partial",
        workspace.path / "datasets" / "00000000-0000-4000-8000-000000000000" / "media.lance" / "left",
        folder / ".cells.lance-1234abcd.removed" / "left",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")
    for path in (*left, *(folder / "uploads").rglob("*")):
        os.utime(path, (path.stat().st_atime - 2 * day, path.stat().st_mtime - 2 * day))
    result = workspace.check(repair=True)
    assert len(result.findings) == 6  # with the upload of the archive
    assert all(finding.repaired for finding in result.findings)
    assert not any(path.exists() for path in left)
    assert list((folder / "uploads").iterdir()) == []
    assert dataset.count() == 5
    assert workspace.check().findings == []


@pytest.mark.slow
@pytest.mark.parametrize("damage", rest_slow([flip, empty, Path.unlink], 1))
def test_check__manifests_are_written_again(workspace: Workspace, damage: Damage) -> None:
    """A manifest, or the file of a snapshot, that is damaged or missing is written again from the catalog."""
    dataset = dataset_of(workspace)
    folder = workspace.path / "datasets" / dataset.id / "manifest"
    for path in (next(folder.glob("*.json")), next((folder / "snapshots").glob("*.json"))):
        damage(path)
        assert [finding.repaired for finding in dataset.check().findings] == [False]
        assert [finding.repaired for finding in dataset.check(repair=True).findings] == [True]
        assert dataset.check().findings == []


@pytest.mark.slow
def test_check__entries_of_an_older_catalog_are_rebuilt(home: Path) -> None:
    """Where the catalog is an older copy, entries are those of the datasets' folders again after a repair."""
    shutil.copy(home / "catalog.db", home.parent / "older.db")
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = dataset_of(workspace)
        dataset.tag(dataset.where([]).media_ids(), "new")
        dataset.snapshot("newer")
        workspace.create_dataset("third", fill(home.parent / "third", 1), "gist")
        before = contents_of_all(workspace)
    for path in home.glob("catalog.db*"):
        path.unlink()
    shutil.copy(home.parent / "older.db", home / "catalog.db")
    with Workspace(home, settings=SETTINGS) as workspace:
        assert [finding.repaired for finding in workspace.check().findings] == [False, False]
        assert [finding.repaired for finding in workspace.check(repair=True).findings] == [True, True]
        assert contents_of_all(workspace) == before
        assert workspace.check().findings == []


@pytest.mark.slow
def test_check__entry_that_is_missing_is_made_again(home: Path) -> None:
    """A dataset that the catalog does not know, though its folder says what it is, survives a vacuum and comes back."""
    with Workspace(home, settings=SETTINGS) as workspace:
        before = contents_of_all(workspace)
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("DELETE FROM datasets WHERE name = 'pets'")
        connection.commit()
    with Workspace(home, settings=SETTINGS) as workspace:
        assert workspace.vacuum(older_than_s=0).datasets == 0
        (finding,) = workspace.check(repair=True).findings
        assert finding.repaired
        assert "no entry of the dataset 'pets'" in finding.fault
        assert contents_of_all(workspace) == before


@pytest.mark.slow
def test_check__rows_that_are_missing_are_rebuilt(home: Path) -> None:
    """An entry whose head or snapshots lost their rows is rebuilt from what the dataset's folder says."""
    with Workspace(home, settings=SETTINGS) as workspace:
        before = contents_of(dataset_of(workspace))
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        connection.execute("DELETE FROM generations WHERE dataset_id = ?", (before["info"].id,))
        connection.commit()
    with Workspace(home, settings=SETTINGS) as workspace:
        result = workspace.check(repair=True)
        assert any("the head of dataset" in line for line in lines(result))
        assert result.findings[-1].repaired
        assert contents_of(dataset_of(workspace)) == before
        assert workspace.check().findings == []


@pytest.mark.slow
def test_check__damaged_catalog(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages of the catalog that were changed are found by the command, which exits with 1 and names the remedy."""
    assert run("check", "--workspace", str(home)) == 0
    capsys.readouterr()
    catalog = home / "catalog.db"
    data = catalog.read_bytes()
    catalog.write_bytes(data[:4096] + bytes(reversed(data[4096:])))
    assert run("check", "--workspace", str(home)) == 1
    out = capsys.readouterr().out
    assert "catalog.db: " in out
    assert "framedex recover" in out
    assert run("recover", str(home)) == 0
    assert run("check", "--workspace", str(home)) == 0


@pytest.mark.slow
def test_check__command(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a line for each finding and exits with 1; repaired ones do not count, JSON has them all."""
    thumbnail = first(home, "cache/thumbnails/*/*/*.jpg")
    empty(thumbnail)
    assert run("check", "pets", "--workspace", str(home)) == 1
    assert (
        f"{thumbnail}: is damaged: its content does not fit the checksum at its end (`--repair` removes it"
        in capsys.readouterr().out
    )
    assert run("check", "pets", "--repair", "--json", "--workspace", str(home)) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["repaired"] is True
    assert run("check", "nobody", "--workspace", str(home)) == 1


def run(*arguments: str) -> int:
    """Return the status of a command."""
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    return int(exit_.value.code or 0)


@pytest.mark.slow
def test_check__of_many_findings_the_first_have_lines(workspace: Workspace) -> None:
    """Thousands of damaged files make a few lines and a count; a repair concerns them all."""
    folder = workspace.path / "cache" / "thumbnails" / dataset_of(workspace).id / "many"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.jpg").write_bytes(b"")
    result = workspace.check(repair=True)
    assert len(result.findings) == 21
    assert result.findings[-1].fault == "is the last of 10 more cached files like those above"
    assert list(folder.iterdir()) == []


def pipe(path: Path) -> None:
    """Put a named pipe in the place of a file."""
    path.unlink()
    os.mkfifo(path)


PATTERNS = [
    "cache/thumbnails/*/*/*.jpg", "cache/text/**/*.text", "cache/anchors/*/*.npz", "datasets/*/blobs/*/*",
    "datasets/*/manifest/*.json", "datasets/*/media.lance/data/*", "datasets/*/media.lance/_versions/*",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_check__waits_for_no_pipe(home: Path, pattern: str) -> None:
    """A named pipe in the place of a file is a finding, and neither a check nor a recovery waits for its writer."""
    path = first(home, pattern)
    pipe(path)
    run_process(
        """
        import sys
        from framedex import Workspace
        with Workspace(sys.argv[1]) as workspace:
            assert not workspace.check().is_sound
            workspace.check(repair=True)
        (workspace.path / "catalog.db").unlink()
        Workspace.recover(sys.argv[1])
        """,
        home,
    )


@pytest.mark.slow
def test_check__can_be_stopped_and_refuses_repairs_of_what_is_read_only(home: Path) -> None:
    """What the progress raises ends a check; a workspace that was opened for reading is checked, not repaired."""

    def stop(_stage: str, _share: float) -> Any:
        raise Aborted("enough")

    with Workspace(home, settings=SETTINGS, read_only=True) as workspace:
        with pytest.raises(Aborted, match="enough"):
            check(context_of(workspace), progress=stop)
        with pytest.raises(ReadOnly):
            workspace.check(repair=True)
        with pytest.raises(NotFound):
            workspace.check("nobody")
        assert workspace.check().findings == []
