"""Media come from anywhere: single files, contents, archives, buckets; and are read again from where they are."""

import io
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import (
    Conflict,
    Dataset,
    Forbidden,
    InvalidInput,
    NotFound,
    ReadOnly,
    Workspace,
    WorkspaceError,
    vql,
)
from framedex.core.assumed_roles import AssumedRole
from framedex.core.suffixes import ARCHIVE_SUFFIXES
from framedex.encoders import register
from framedex.jobs.ingest.content import ONE_SOURCE, AdditionRequest, content_from_config, open_addition
from framedex.media.archives import BROKEN
from framedex.records import DatasetStatus
from framedex.settings import Settings
from tests.buckets import Service
from tests.environment import Environment
from tests.gallery import SETTINGS, Averages, Faulty, Gate, embedded, fill
from tests.growth import columns_of, ids_of
from tests.image_files import encode, photo, write
from tests.inside import layout_of
from tests.prepared import prepared
from tests.problems import unusable
from tests.processes import run
from tests.tuning import Tuning

ROLE = "arn:aws:iam::123456789012:role/reader"


@pytest.fixture
def pets(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset of six images whose encoder is registered."""
    register("averages", lambda _name: Averages())
    return prepared(workspace, "pets", folder, "averages")


@pytest.fixture
def strict(pets: Dataset, folder: Path, tmp_path: Path) -> Iterator[Dataset]:
    """A dataset of six files in a workspace that reads up to 1,000 bytes of each."""
    assert pets.count() == 6  # for its encoder
    settings = SETTINGS.model_copy(update={"max_file_bytes": 1000})
    with Workspace(tmp_path / "strict", settings=settings) as workspace:
        yield workspace.create_dataset("strict", folder, "averages")


def png(seed: int) -> bytes:
    """Return the content of an image file."""
    return encode(photo(seed))


def added(dataset: Dataset) -> dict[str, Any]:
    """Return the paths, labels, captions and errors of the media behind the first six."""
    rows = columns_of(dataset, ["path", "labels", "caption", "error"])
    return {name: values[6:] for name, values in rows.items()}


def home(dataset: Dataset) -> Path:
    """Return a dataset's folder."""
    return layout_of(dataset).dataset(dataset.id)


def blobs(dataset: Dataset) -> list[Path]:
    """Return the files in the blob store."""
    return sorted((home(dataset) / "blobs").glob("*/*"))


def check_unchanged(dataset: Dataset) -> None:
    """Check that a dataset is as it was made, with nothing in its folder but its tables."""
    assert (dataset.count(), dataset.info.status_new) == (6, DatasetStatus.READY)
    assert blobs(dataset) == []
    assert list((home(dataset) / "uploads").glob("*")) == []


class TestRequest:
    """The arguments of additions."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "sources",
        [
            {},
            {"path": "x", "files": ["y"]},
            {"archive": "x.zip", "s3_uri": "s3://bucket/x"},
            {"path": "x", "files": [], "archive": "x.zip", "s3_uri": "s3://bucket/x"},
        ],
    )
    def test_add_media__not_one_source(self, pets: Dataset, sources: dict[str, Any]) -> None:
        """None or several sources are refused in the interface's words."""
        with pytest.raises(InvalidInput) as raised:
            pets.add_media(**sources)
        assert ONE_SOURCE == "Exactly one media source must be provided (files, s3_uri or archive)"
        given = ", ".join(name for name in ("path", "files", "s3_uri", "archive") if name in sources) or "none"
        assert str(raised.value) == f"{ONE_SOURCE}, or path as the first argument; given: {given}"

    @pytest.mark.slow
    def test_add_media__where_it_is_not_enabled(self, tmp_path: Path, folder: Path) -> None:
        """A setting forbids additions altogether."""
        settings = SETTINGS.model_copy(update={"add_media_enabled": False})
        with Workspace(tmp_path / "w", settings=settings) as workspace:
            dataset = workspace.create_dataset("d", folder)
            with pytest.raises(Forbidden) as raised:
                dataset.add_media(folder)
        assert str(raised.value) == "Add media feature is not enabled"

    def test_add_media__roles_are_for_buckets(self, pets: Dataset, folder: Path) -> None:
        """A role that is none, or with what lies here, is refused."""
        for role in ("reader", 5, ""):
            with pytest.raises(InvalidInput, match="assume_role must be the ARN of a role"):
                pets.add_media(s3_uri="s3://bucket/x", assume_role=role)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="assume_role is for s3_uri"):
            pets.add_media(folder, assume_role=ROLE)
        for external_id in ("x", "a b", "a" * 1225, "ü?", "ab\n", 55):
            with pytest.raises(InvalidInput, match="external_id must be a text of 2 to 1,224 letters"):
                pets.add_media(s3_uri="s3://bucket/x", assume_role=ROLE, external_id=external_id)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="external_id is for assume_role"):
            pets.add_media(s3_uri="s3://bucket/x", external_id="ours")

    @pytest.mark.slow
    def test_add_media__not_while_another_task_runs(self, pets: Dataset, tmp_path: Path) -> None:
        """If a task cannot start, nothing is uploaded."""
        gate = Gate()
        register("averages", lambda _name: gate)
        task = pets.add_media(fill(tmp_path / "more", 1), wait=False)
        assert gate.reached.wait(60)
        with pytest.raises(Conflict, match="Operation 'add_media' is blocked while MEDIA_ADDITION task is running"):
            pets.add_media(files=[("a.png", png(1))])
        assert not (home(pets) / "uploads").exists()
        gate.opened.set()
        task.wait(60)

    def test_add_media__another_task_starts_during_the_upload(self, pets: Dataset, tmp_path: Path) -> None:
        """If another task starts first, the upload is deleted, and its files never appear."""
        gate, more = Gate(), fill(tmp_path / "more", 1)
        register("averages", lambda _name: gate)

        class Slow(io.BytesIO):
            name = "a.png"

            def read(self, size: int | None = -1) -> bytes:
                if pets.task is None or pets.task.status.final:
                    pets.add_media(more, wait=False)
                return super().read(size)

        with pytest.raises(Conflict, match="is blocked while MEDIA_ADDITION task is running"):
            pets.add_media(files=[Slow(png(1))])
        assert list((home(pets) / "uploads").iterdir()) == []
        gate.opened.set()
        assert pets.task is not None
        pets.task.wait(60)
        assert pets.count() == 7

    def test_add_media__read_only(self, pets: Dataset, tmp_path: Path) -> None:
        """A workspace that was opened for reading takes no uploads."""
        with Workspace(tmp_path / "workspace", read_only=True, settings=SETTINGS) as reader, pytest.raises(ReadOnly):
            reader.dataset("pets").add_media(files=[("a.png", png(1))])
        check_unchanged(pets)

    def test_add_media__to_embeddings(self, workspace: Workspace, folder: Path) -> None:
        """A dataset that brought its embeddings takes no images from anywhere, and nothing is uploaded."""
        dataset = workspace.create_dataset("vectors", embedded([[1, 0], [0, 1]]))
        sources: list[dict[str, Any]] = [
            {"files": [("a.png", png(1))]}, {"archive": "x.zip"}, {"s3_uri": "s3://bucket/x"},
        ]  # fmt: skip
        for source in sources:
            with pytest.raises(InvalidInput, match="this dataset brought its embeddings"):
                dataset.add_media(**source)
        assert not (home(dataset) / "uploads").exists()


class TestFiles:
    """Single images, paths and contents."""

    @pytest.mark.slow
    def test_path__of_one_image(self, workspace: Workspace, pets: Dataset, folder: Path, tmp_path: Path) -> None:
        """An image alone is added, below the root that its folder is in; a dataset can be made of one, too."""
        write(folder / "below" / "one.png", photo(7))
        pets.add_media(folder / "below" / "one.png")
        assert added(pets)["path"] == ["below/one.png"]
        assert columns_of(pets, ["root"])["root"] == [0] * 7
        single = workspace.create_dataset("single", str(folder / "000.png"), "averages")
        assert columns_of(single, ["path"])["path"] == ["000.png"]

    def test_files__that_stay(self, pets: Dataset, tmp_path: Path) -> None:
        """Files that are given by path stay where they are, each once."""
        fill(tmp_path / "a", 2, first_seed=200)
        fill(tmp_path / "b", 1, first_seed=300)
        files = [tmp_path / "b" / "000.png", str(tmp_path / "a" / "001.png")]
        pets.add_media(files=[*files, tmp_path / "a" / ".." / "b" / "000.png"])
        assert added(pets)["path"] == ["a/001.png", "b/000.png"]
        assert pets.to_arrow(["file_path"])["file_path"].to_pylist()[6:] == [
            str(tmp_path / "a" / "001.png"), str(tmp_path / "b" / "000.png"),
        ]  # fmt: skip
        assert pets.skipped == {"repeated names, of which the last one counts": 1}
        assert blobs(pets) == []

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_files__contents(self, pets: Dataset, tmp_path: Path) -> None:
        """Contents are kept in the dataset's folder under their hash, and shown under the names that they came with."""
        (tmp_path / "open.png").write_bytes(png(203))
        named = io.BytesIO(png(204))
        named.name = "C:\\images\\win.png"
        with (tmp_path / "open.png").open("rb") as file:
            pets.add_media(
                files=[
                    ("holiday/./a.png", png(201)),
                    ["b.JPG", bytearray(png(202))],
                    file,
                    named,
                    ("c.png", io.BytesIO(png(205))),
                ]
            )
        assert added(pets)["path"] == ["holiday/a.png", "b.JPG", "open.png", "win.png", "c.png"]
        ids = ids_of(pets)
        for seed, name in enumerate(added(pets)["path"], start=201):
            np.testing.assert_array_equal(pets.read(ids[name]), photo(seed))
            assert pets.thumbnail(ids[name])
        assert pets.to_arrow(["file_path"])["file_path"].to_pylist()[6:] == added(pets)["path"]
        assert [path.suffix for path in blobs(pets)].count(".jpg") == 1
        assert len(blobs(pets)) == 5
        previews = {shown.file_name: shown for cluster in pets.explore().clusters for shown in cluster.previews}
        assert previews["a.png"].media_uri in {path.as_uri() for path in blobs(pets)}

    @pytest.mark.slow
    def test_files__both_at_once(self, pets: Dataset, tmp_path: Path) -> None:
        """Files that stay and contents may come together; each is found where it is, and both are known again."""
        fill(tmp_path / "a", 2, first_seed=200)
        files = [tmp_path / "a" / "000.png", ("000.png", png(300)), tmp_path / "a" / "001.png"]
        pets.add_media(files=files)
        rows = columns_of(pets, ["media_id", "path", "root"])
        assert rows["path"][6:] == ["000.png", "000.png", "001.png"]
        assert rows["root"][6:] == [2, 1, 2]
        for media_id, seed in zip(rows["media_id"][6:], (200, 300, 201), strict=True):
            np.testing.assert_array_equal(pets.read(media_id), photo(seed))
        pets.add_media(files=files)
        assert (pets.count(), pets.skipped) == (9, {"media that are there already": 3})

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_files__again_and_changed(self, pets: Dataset, folder: Path) -> None:
        """Known content is there already, whatever its name; other content of a name is another image."""
        pets.add_media(files=[("a.png", png(1)), ("b.png", png(2))])
        pets.add_media(files=[("b.png", png(2)), ("a.png", png(1))])
        assert (pets.count(), pets.skipped) == (8, {"media that are there already": 2})
        pets.add_media(files=[("other.png", png(1))])
        assert (pets.count(), pets.skipped) == (8, {"media that are there already": 1})
        before = ids_of(pets)["a.png"]
        pets.set_labels(before, "cat")
        pets.add_media(files=[("a.png", png(3))])
        assert (pets.count(), ids_of(pets)["a.png"]) == (9, before)
        assert pets.where(vql.labels("cat")).media_ids() == [before]
        np.testing.assert_array_equal(pets.read(before), photo(1))
        np.testing.assert_array_equal(pets.read(ids_of(pets)["a-2.png"]), photo(3))
        pets.add_media(files=[("copy.png", (folder / "000.png").read_bytes())])  # its file may go
        (folder / "000.png").unlink()
        assert pets.read(ids_of(pets)["copy.png"]).shape == photo(0).shape

    @pytest.mark.slow
    def test_files__of_one_name(self, pets: Dataset) -> None:
        """Several contents of one name are images of their own, and names of other files are left to them."""
        names = [("a.png", png(1)), ("b.png", png(2)), ("./a.png", png(3)), ("a-2.png", png(4)), ("a.png", png(1))]
        pets.add_media(files=names)
        assert added(pets)["path"] == ["b.png", "a.png", "a-2.png", "a-3.png"]
        seeds = {"a.png": 3, "a-3.png": 1, "b.png": 2, "a-2.png": 4}
        for name, seed in seeds.items():
            np.testing.assert_array_equal(pets.read(ids_of(pets)[name]), photo(seed))
        assert pets.skipped == {"repeated names, of which the last one counts": 1}

    @pytest.mark.slow
    def test_files__that_are_no_images(self, pets: Dataset) -> None:
        """A content that cannot be decoded becomes a corrupted row, whatever its name."""
        pets.add_media(files=[("a.png", b""), ("noext", b"text"), ("b", png(5))])
        assert [error is None for error in added(pets)["error"]] == [False, False, True]

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ([("../a.png", b"x")], r"files\[0\]: the name '\.\./a\.png' is no path within a folder"),
            ([("a.png", b"x"), ("/a.png", b"x")], r"files\[1\]: the name '/a\.png' is no path"),
            ([("", b"x")], r"files\[0\]: a file needs a name, not ''"),
            ([("a.png", "text")], r"files\[0\] must be a path, a pair \(name, bytes\) or a binary file .*, not tuple"),
            ([5], r"files\[0\] must be a path, .*, not int"),
            ([("a.png", b"x"), io.BytesIO(b"x")], r"files\[1\] must be .* a binary file with a name, not BytesIO"),
            ([("a.png", io.StringIO("x"))], r"files\[0\] \('a\.png'\) must be a file of bytes; it was opened as text"),
            (["/no/such/file.png"], r"files\[0\]: cannot read '/no/such/file\.png': No such file"),
            (["/"], r"files\[0\]: '/' is a folder; give it as path"),
            (["a\0b.png"], r"files\[0\]: cannot read"),
            ([], "files holds no images"),
            ("a.png", "files must be a list of paths, .* not str"),
            (b"a.png", "files must be a list of paths, .* not bytes"),
            ({"a.png": b"x"}, "files must be a list of paths, .* not dict"),
        ],
    )
    @pytest.mark.slow
    def test_files__that_cannot_be_used(self, pets: Dataset, files: Any, message: str) -> None:
        """One file that cannot be used refuses all, by its place; nothing stays."""
        with pytest.raises(InvalidInput, match=message):
            pets.add_media(files=files)
        check_unchanged(pets)

    def test_files__that_fail_to_be_read(self, pets: Dataset, tmp_path: Path) -> None:
        """A file that was closed, and one above the limit, refuse all; nothing stays."""
        with (tmp_path / "x.png").open("w+b") as closed:
            pass
        with pytest.raises(InvalidInput, match=r"files\[1\] .*x\.png'\) cannot be read"):
            pets.add_media(files=[("a.png", b"x"), closed])
        check_unchanged(pets)

    @pytest.mark.slow
    def test_files__that_are_too_large(self, strict: Dataset) -> None:
        """A content above the limit refuses all; nothing stays."""
        with pytest.raises(InvalidInput, match=r"files\[1\] \('a\.png'\) has more than 1,000 bytes"):
            strict.add_media(files=[("b.png", bytes(1000)), ("a.png", bytes(1001))])
        check_unchanged(strict)

    def test_files__where_nothing_can_be_written(self, pets: Dataset) -> None:
        """A dataset's folder that cannot be written is an error of the workspace."""
        (home(pets) / "uploads").write_text("in the way")
        with pytest.raises(WorkspaceError, match="cannot write to"):
            pets.add_media(files=[("a.png", png(1))])
        (home(pets) / "uploads").unlink()
        check_unchanged(pets)


class TestUploaded:
    """Uploaded media go where their workspace goes."""

    @pytest.mark.slow
    def test_uploads__in_a_moved_workspace(self, workspace: Workspace, pets: Dataset, tmp_path: Path) -> None:
        """A workspace that was moved has its uploads with it."""
        pets.add_media(files=[("a.png", png(1))])
        workspace.close()
        shutil.move(tmp_path / "workspace", tmp_path / "moved")
        with Workspace(tmp_path / "moved", settings=SETTINGS) as moved:
            dataset = moved.dataset("pets")
            np.testing.assert_array_equal(dataset.read(ids_of(dataset)["a.png"]), photo(1))

    @pytest.mark.slow
    def test_uploads__are_exported(self, pets: Dataset, tmp_path: Path) -> None:
        """An export has the uploaded images, byte for byte, under their names."""
        pets.add_media(files=[("holiday/a.png", png(1)), ("b.jpg", b"broken")])
        result = pets.export(tmp_path / "out.zip", include_images=True)
        assert (result.images, result.missing_images) == (8, [])
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            items = json.loads(archive.read("metadata.json"))["media_items"][6:]
            assert archive.read(f"images/{items[0]['file_name']}") == png(1)
            assert archive.read(f"images/{items[1]['file_name']}") == b"broken"
        assert [item["file_path"] for item in items] == ["holiday/a.png", "b.jpg"]
        assert all(Path(item["url"].removeprefix("file://")).is_file() for item in items)

    def test_uploads__whose_blob_is_gone(self, pets: Dataset, tmp_path: Path) -> None:
        """A blob that is gone is an image that is not found, and is missing in an export."""
        pets.add_media(files=[("a.png", png(1))])
        blobs(pets)[0].unlink()
        with pytest.raises(NotFound, match="No such file"):
            pets.read(ids_of(pets)["a.png"])
        assert pets.export(tmp_path / "out.zip", include_images=True).missing_images == ["a.png"]

    @pytest.mark.slow
    def test_uploads__of_a_failed_task_are_there_for_another_process(
        self, workspace: Workspace, pets: Dataset, tmp_path: Path
    ) -> None:
        """A task that fails leaves what was uploaded, so that a process that has not seen it can run it again."""
        register("averages", lambda _name: Faulty())
        (tmp_path / "stays.png").write_bytes(png(2))
        with pytest.raises(Exception, match="out of order"):
            pets.add_media(files=[("a.png", png(1)), tmp_path / "stays.png"])
        assert (pets.count(), len(blobs(pets))) == (6, 1)
        workspace.close()
        out = run(
            """
            import sys
            from framedex import Workspace
            from framedex.encoders import register
            from tests.gallery import SETTINGS, Averages
            register("averages", lambda _name: Averages())
            with Workspace(sys.argv[1], settings=SETTINGS) as workspace:
                task = workspace.task(workspace.tasks().tasks[0].task_id)
                task.retry()
                print(task.wait(60).status)
                dataset = workspace.dataset("pets")
                print(dataset.count(), dataset.skipped)
            """,
            tmp_path / "workspace",
        )
        assert out.splitlines() == ["COMPLETED", "8 {}"]


def zipped(path: Path, *members: tuple[str, bytes]) -> Path:
    """Write a ZIP."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


class TestArchives:
    """Archives of images."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.parametrize("suffix", ARCHIVE_SUFFIXES)
    def test_archive__of_images(self, pets: Dataset, tmp_path: Path, suffix: str) -> None:
        """The images of an archive are added under their names, with the annotations in its root."""
        members = [
            ("a/1.png", png(1)), ("image_annotations.csv", b"filename,label,caption\na/1.png,dog,a dog\n"),
            ("2.png", b"broken"), ("notes.txt", b"x"),
        ]  # fmt: skip
        path = tmp_path / f"images{suffix}"
        if suffix == ".zip":
            zipped(path, *members)
        else:
            with tarfile.open(path, "w:gz" if suffix.endswith("gz") else "w") as archive:
                for name, content in members:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
        pets.add_media(archive=path)
        found = added(pets)
        assert (found["path"], found["labels"], found["caption"]) == (
            ["a/1.png", "2.png"], [["dog"], None], ["a dog", None],
        )  # fmt: skip
        assert [error is None for error in found["error"]] == [True, False]
        assert pets.skipped == {"other files (.txt)": 1}
        np.testing.assert_array_equal(pets.read(ids_of(pets)["a/1.png"]), photo(1))
        path.unlink()
        np.testing.assert_array_equal(pets.read(ids_of(pets)["a/1.png"]), photo(1))

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_archive__same_names_as_uploads(self, pets: Dataset, tmp_path: Path) -> None:
        """Files uploaded one by one are recognised in a later archive."""
        pets.add_media(files=[("a.png", png(1))])
        pets.add_media(archive=str(zipped(tmp_path / "x.zip", ("b.png", png(2)), ("a.png", png(1)))))
        assert (pets.count(), pets.skipped) == (8, {"media that are there already": 1})

    @pytest.mark.parametrize(
        ("members", "message"),
        [
            ([("../b.png", b"x")], r"it holds 1 names that lead out of the archive \(\.\./b.png\)"),
            ([("a.txt", b"x")], r"no images in the archive .*; it holds 1 other files \(.txt\) \(a.txt\)"),
            ([], "no images in the archive"),
            ([("a.png", bytes(2000))], "more than 1,000 bytes"),
        ],
    )
    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_archive__that_is_refused(
        self, strict: Dataset, tmp_path: Path, members: list[tuple[str, bytes]], message: str
    ) -> None:
        """A refused archive changes nothing; the message names it."""
        with pytest.raises(InvalidInput, match=message) as raised:
            strict.add_media(archive=zipped(tmp_path / "x.zip", *members))
        assert str(tmp_path / "x.zip") in str(raised.value)
        assert "uploads" not in str(raised.value)
        check_unchanged(strict)

    @pytest.mark.slow
    def test_archive__with_broken_annotations(self, pets: Dataset, tmp_path: Path) -> None:
        """A broken file of annotations is named among the problems; the images are added without it."""
        pets.add_media(archive=zipped(tmp_path / "x.zip", ("a.png", png(1)), ("annotations.json", b"[")))
        assert added(pets)["path"] == ["a.png"]
        assert unusable(pets)
        assert all("annotations.json" in each and "uploads" not in each for each in unusable(pets))

    def test_archive__broken_in_its_last_member(self, pets: Dataset, tmp_path: Path) -> None:
        """A broken member is among the problems, and nothing of its content stays; the others are added."""
        path = zipped(tmp_path / "x.zip", ("a.png", png(1)), ("b.png", b"bytes to be changed"))
        path.write_bytes(path.read_bytes().replace(b"bytes to be", b"other to be"))
        pets.add_media(path)
        assert added(pets)["path"] == ["a.png"]
        assert (pets.skipped, len(blobs(pets))) == ({BROKEN: 1}, 1)
        assert pets.problems[0].examples == ["b.png: Bad CRC-32 for file 'b.png'"]

    def test_archive__that_is_none(self, pets: Dataset, workspace: Workspace, tmp_path: Path) -> None:
        """Files that are not archives are refused, also as the source of a dataset, of which nothing stays."""
        for wrong in (5, b"x.zip", [tmp_path / "x.zip"]):
            with pytest.raises(InvalidInput, match="archive must be the path of a file"):
                pets.add_media(archive=wrong)  # type: ignore[arg-type] # that is the point
        with pytest.raises(InvalidInput, match="No such file"):
            pets.add_media(archive=tmp_path / "none.zip")
        (tmp_path / "x.zip").write_bytes(b"no archive")
        with pytest.raises(InvalidInput, match="it is no ZIP"):
            workspace.create_dataset("d", tmp_path / "x.zip")
        assert [each.display_name for each in workspace.datasets()] == [pets.name]
        check_unchanged(pets)

    def test_archive__of_many_members(self, pets: Dataset, tmp_path: Path, tuning: Tuning) -> None:
        """Members of several blocks of the upload's list are all there, once each."""
        tuning.blob_rows = 16
        content = png(1)
        members = [(f"{number}.png", content) for number in range(70)]
        source = upload_of(pets, archive=zipped(tmp_path / "x.zip", *members)).source
        assert [item.path for item in source.items()] == [name for name, _ in members]
        assert len(blobs(pets)) == 1


def upload_of(dataset: Dataset, settings: Settings = SETTINGS, **given: Any) -> Any:
    """Return what would be added, without adding it."""
    layout, config = layout_of(dataset), dataset.embedding_config
    return open_addition(AdditionRequest(**given), config, dataset_id=dataset.id, layout=layout, settings=settings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "list", "file", "files", "archive", "s3", "manifest"])
def test_config__opens_the_same_again(
    kind: str, pets: Dataset, folder: Path, tmp_path: Path, service: Service, environment: Environment
) -> None:
    """A source can be opened again from its JSON config alone, as in another process."""
    environment["AWS_ENDPOINT_URL"] = service.address  # where roles are assumed
    (folder / "image_annotations.csv").write_text("filename,label\n000.png,dog\n")
    (tmp_path / "list.txt").write_text("images/000.png\n" + "x" * 10 + ".png\n")
    service.put("configs/f/000.png", png(1))
    service.put("configs/f/001.png", png(2))
    service.put("configs/list.txt", b"f/000.png\ngone.png\n")
    given: dict[str, dict[str, Any]] = {
        "folder": {"path": folder},
        "list": {"path": tmp_path / "list.txt"},
        "file": {"path": folder / "000.png"},
        "files": {"files": [("a.png", png(1)), folder / "000.png", (os.fsdecode(b"\xff.png"), b"x")]},
        "archive": {
            "archive": zipped(
                tmp_path / "x.zip", ("a.png", png(1)), ("image_annotations.csv", b"filename,label\na.png,cat\n")
            )
        },
        "s3": {"s3_uri": "s3://configs/f", "assume_role": ROLE, "external_id": "ours"},
        "manifest": {"path": "s3://configs/list.txt"},
    }
    first = upload_of(pets, service.settings(), **given[kind])
    config = json.loads(json.dumps(first.config))
    second: Any = content_from_config(config, pets.embedding_config, layout_of(pets), service.settings())
    assert list(second.source.items()) == list(first.source.items())
    assert (second.source.root, second.source.other_roots) == (first.source.root, first.source.other_roots)
    assert (second.source.role, second.source.skipped) == (first.source.role, first.source.skipped)
    assert first.source.role == (AssumedRole(ROLE, "ours") if kind == "s3" else None)
    assert second.annotations.labels == first.annotations.labels
    assert second.config == first.config
    assert second.encoder.name == first.encoder.name
