"""With allowed folders and buckets, nothing else is read: not at the start, and not by any later call."""

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from framedex import CannotDecode, Dataset, Forbidden, InvalidInput, NotFound, Workspace
from framedex.core.allowed_folders import OUTSIDE
from framedex.media.remote import OUTSIDE_BUCKETS
from framedex.media.sources import FolderSource
from framedex.settings import Settings, load_settings
from framedex.storage import datasets
from framedex.storage.table_versions import Table
from tests.buckets import Service
from tests.environment import Environment
from tests.gallery import SETTINGS, fill
from tests.image_files import encode, photo, write
from tests.inside import context_of
from tests.problems import unusable
from tests.videos import numbered, write_video


def restricted(*roots: Path) -> Settings:
    """Return settings that allow some folders."""
    return SETTINGS.model_copy(update={"media_roots": roots})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An allowed folder with two images, beside a folder with images that may not be read."""
    for image in fill(tmp_path / "outside", 2, first_seed=500).iterdir():
        image.rename(image.with_name(f"secret-{image.name}"))
    return fill(tmp_path / "root", 2)


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Iterator[Workspace]:
    """A workspace outside of the allowed folder."""
    with Workspace(tmp_path / "ws", settings=restricted(root)) as opened:
        yield opened


def errors(dataset: Dataset) -> dict[str, str | None]:
    """Return the reason why an image could not be read, by file name; None for images that could."""
    context = context_of(dataset)
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset.id)
    assert head is not None
    table = Table(context.layout.media(dataset.id), head.tables["media"])
    rows = table.scan(["path", "error"]).read_all().to_pylist()
    return {Path(row["path"]).name: row["error"] for row in rows}


def first_of(folder: Path) -> Path:
    """Return the first image of a folder."""
    return min(folder.iterdir())


@pytest.mark.slow
def test_roots__a_source_outside(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """A path outside is refused with the same sentence whether it exists or not, as a source and as an addition."""
    dataset = workspace.create_dataset("pets", root)
    table = pa.table({"uri": ["a"], "embedding": [[1.0, 0.0]]})
    for name in ("vectors.parquet", "list.csv"):
        pq.write_table(table, tmp_path / "outside" / name)
    (root / "link").symlink_to(tmp_path / "outside")
    for path in (
        tmp_path / "outside", tmp_path / "missing", first_of(tmp_path / "outside"), tmp_path / "missing.jpg",
        tmp_path / "outside" / "vectors.parquet", tmp_path / "missing.parquet", tmp_path / "outside" / "list.csv",
        root / ".." / "outside", root / "link", "/proc/self", workspace.path / "datasets",
    ):  # fmt: skip
        for call in (lambda path: workspace.create_dataset("new", path), dataset.add_media):
            with pytest.raises(Forbidden, match="cannot be read: it lies outside of the folders that may be read"):
                call(path)
        with pytest.raises(Forbidden, match="outside of the folders"):
            dataset.add_media(files=[path])
    assert [each.display_name for each in workspace.datasets()] == ["pets"]


def test_roots__links_in_a_folder(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """Links within the folder are followed; those that lead out are refused, and nothing tells what is there."""
    (root / "inner.png").symlink_to(first_of(root))
    (root / "out.png").symlink_to(first_of(tmp_path / "outside"))
    (root / "nothing.png").symlink_to(tmp_path / "outside" / "nothing.png")
    (root / "folder.png").symlink_to(tmp_path / "outside")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "no-folder").symlink_to(tmp_path / "nothing")
    dataset = workspace.create_dataset("pets", root)
    reasons = errors(dataset)
    assert len(reasons) == 6
    refused = {name for name, reason in reasons.items() if reason == f"cannot be read: {OUTSIDE}"}
    assert refused == {"out.png", "nothing.png", "folder.png"}
    assert sum(reason is None for reason in reasons.values()) == 3
    assert dataset.skipped == {"links that lead out of the folders that may be read": 2}


@pytest.mark.slow
def test_roots__a_root_that_is_a_link(tmp_path: Path, root: Path) -> None:
    """The folder may be a link itself, and the path that is given may go by it or not."""
    (tmp_path / "link").symlink_to(root)
    with Workspace(tmp_path / "ws", settings=restricted(tmp_path / "link")) as workspace:
        for name, path in (("a", tmp_path / "link"), ("b", root)):
            dataset = workspace.create_dataset(name, path)
            assert set(errors(dataset).values()) == {None}
            assert dataset.thumbnail(dataset.where([]).media_ids()[0])


@pytest.mark.parametrize("kind", ["txt", "csv", "parquet"])
def test_roots__lists(workspace: Workspace, tmp_path: Path, root: Path, kind: str) -> None:
    """Rows with ``..``, absolute paths and ``file:`` URIs that lead out are refused one by one."""
    secret, good = first_of(tmp_path / "outside"), first_of(root)
    rows = [good.name, str(good), f"../outside/{secret.name}", str(secret), secret.as_uri(), "/etc/passwd", "../no.png"]
    path = root / f"list.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"uri": rows}), path)
    else:
        path.write_text("\n".join([*(["path"] if kind == "csv" else []), *rows]))
    reasons = errors(workspace.create_dataset("pets", path))
    assert reasons.pop(good.name) is None
    assert set(reasons) == {secret.name, "passwd", "no.png"}
    assert set(reasons.values()) == {f"cannot be read: {OUTSIDE}"}


def test_roots__a_link_exchanged_after_the_listing(
    workspace: Workspace, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image that becomes a link to the outside between listing and reading is refused."""
    victim, listed = first_of(root), FolderSource.items

    def items(source: FolderSource) -> Iterator[Any]:
        found = list(listed(source))
        if not victim.is_symlink():
            victim.unlink()
            victim.symlink_to(first_of(tmp_path / "outside"))
        yield from found

    monkeypatch.setattr(FolderSource, "items", items)
    dataset = workspace.create_dataset("pets", root)
    assert errors(dataset)[victim.name] == f"cannot be read: {OUTSIDE}"
    assert sum(reason is None for reason in errors(dataset).values()) == 1


@pytest.mark.slow
def test_roots__later_reads(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """A file that leads out later is not shown, exported or compared, and a reindex does not read it."""
    dataset = workspace.create_dataset("pets", root)
    media_id, name = dataset.where([]).media_ids()[0], first_of(root).name
    secret = first_of(tmp_path / "outside")
    (root / name).unlink()
    (root / name).symlink_to(secret)
    with pytest.raises(NotFound, match="outside of the folders"):
        dataset.read(media_id)
    dataset.export(tmp_path / "out.zip", include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        contents = [archive.read(each) for each in archive.namelist()]
    assert secret.read_bytes() not in contents
    dataset.add_media(root)
    dataset.reindex(thresholds=(0.01, 0.02, 0.05, 0.1, 0.2))
    assert errors(dataset)[name] is None  # the row is as it was
    with pytest.raises(CannotDecode, match="outside of the folders"):
        dataset.similar(str(secret)).media_ids()
    with pytest.raises(CannotDecode, match="outside of the folders"):
        dataset.similar(str(tmp_path / "outside" / "missing.png")).media_ids()


@pytest.mark.slow
def test_roots__videos(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """Videos are opened in allowed folders only, at ingestion and for their frames."""
    secret = write_video(tmp_path / "outside" / "secret.mp4", numbered(20))
    film = write_video(root / "film.mp4", numbered(20, seed=3))
    (root / "out.mp4").symlink_to(secret)
    dataset = workspace.create_dataset("films", root)
    assert errors(dataset)["out.mp4"] == f"cannot be read: {OUTSIDE}"
    frame = dataset.media_id("film.mp4")
    assert dataset.read(frame).shape[2] == 3
    film.unlink()
    film.symlink_to(secret)
    with pytest.raises(NotFound, match="outside of the folders"):
        dataset.read(frame)


@pytest.mark.slow
def test_roots__narrowed_later(tmp_path: Path, root: Path) -> None:
    """A dataset of a folder that is no longer allowed is listed and searched, and its files are not read."""
    (root / "copy.png").write_bytes(first_of(root).read_bytes())
    with Workspace(tmp_path / "ws", settings=restricted(root)) as workspace:
        media_id = workspace.create_dataset("pets", root).where([]).media_ids()[0]
    with Workspace(tmp_path / "ws", settings=restricted(tmp_path / "outside")) as workspace:
        dataset = workspace.dataset("pets")
        assert dataset.count() == 3
        with pytest.raises(NotFound, match="outside of the folders"):
            dataset.read(media_id)
        result = dataset.plan_cleanup(duplicates=1.0).apply(delete_files=True)
        assert (result.removed, result.files_deleted, result.files_left) == (1, 0, 1)
        assert result.files_failed[0][1] == OUTSIDE
    assert len(list(root.iterdir())) == 3


@pytest.mark.slow
def test_roots__uploads(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """Uploaded contents lie in the workspace and are always read; an archive must be in an allowed folder."""
    dataset = workspace.create_dataset("pets", root)
    image = first_of(tmp_path / "outside").read_bytes()
    dataset.add_media(files=[("new.png", image)])
    media_id = dataset.media_id("new.png")
    assert dataset.read(media_id).shape[2] == 3
    dataset.reindex()
    dataset.export(tmp_path / "out.zip", include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert image in [archive.read(each) for each in archive.namelist()]
    for folder in (root, tmp_path):
        with zipfile.ZipFile(folder / "more.zip", "w") as packed:
            packed.writestr("more.png", encode(photo(77), "PNG"))
    for path in (tmp_path / "more.zip", tmp_path / "missing.zip"):
        with pytest.raises(Forbidden, match="outside of the folders"):
            dataset.add_media(archive=path)
    dataset.add_media(archive=root / "more.zip")
    assert dataset.read(dataset.media_id("more.png")).shape[2] == 3


def coco(folder: Path) -> str:
    """Return a COCO file with a box in the first image of a folder."""
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}
    image = {"id": 1, "file_name": first_of(folder).name}
    return json.dumps({"images": [image], "annotations": [box], "categories": [{"id": 1, "name": "cat"}]})


@pytest.mark.slow
def test_roots__annotation_files(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """Annotation files that lead out are refused, those that are found and those that are given."""
    dataset = workspace.create_dataset("pets", root)
    text = coco(root)
    (tmp_path / "boxes.json").write_text(text)
    for path in (tmp_path / "boxes.json", tmp_path / "missing.json", root / ".." / "boxes.json"):
        with pytest.raises(Forbidden, match="outside of the folders"):
            dataset.add_objects(path)
        with pytest.raises(Forbidden, match="outside of the folders"):
            workspace.create_dataset("new", root, boxes=path)
    for name in ("annotations.json", "object_annotations.csv", "image_annotations.parquet", "classes.txt"):
        for target in ("boxes.json", "missing"):
            (root / name).symlink_to(tmp_path / target)
            with pytest.raises(Forbidden, match="outside of the folders"):
                workspace.create_dataset("new", root)
            (root / name).unlink()
    (root / "annotations.json").write_text(text)
    assert workspace.create_dataset("new", root).objects.count() == 1


@pytest.mark.slow
def test_roots__folders_of_annotations(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """Folders of VOC and YOLO files do not lead out either."""
    name = first_of(root).stem
    voc = (
        f"<annotation><filename>{name}.png</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
        "<xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
    )
    (tmp_path / "voc").mkdir()
    (tmp_path / "voc" / f"{name}.xml").write_text(voc)
    (root / "Annotations").symlink_to(tmp_path / "voc")
    assert workspace.create_dataset("linked", root).objects.count() == 0
    (root / "Annotations").unlink()
    (root / f"{name}.xml").symlink_to(tmp_path / "voc" / f"{name}.xml")
    dataset = workspace.create_dataset("file", root)
    assert dataset.objects.count() == 0
    assert OUTSIDE in "".join(unusable(dataset))
    (root / f"{name}.xml").unlink()
    (root / f"{name}.xml").write_text(voc)
    assert workspace.create_dataset("own", root).objects.count() == 1


def test_roots__vector_tables(workspace: Workspace, tmp_path: Path, root: Path) -> None:
    """A table of vectors is read in an allowed folder; the files that its rows name are read there only."""
    secret, good = first_of(tmp_path / "outside"), first_of(root)
    uris = [good.name, str(secret), secret.as_uri(), f"../outside/{secret.name}"]
    vectors = np.eye(4, dtype=np.float32).tolist()
    pq.write_table(pa.table({"uri": uris, "embedding": vectors}), root / "vectors.parquet")
    dataset = workspace.create_dataset("vectors", root / "vectors.parquet")
    first, *others = dataset.where([]).media_ids()
    assert dataset.read(first).shape[2] == 3
    for media_id in others:
        with pytest.raises(NotFound, match="outside of the folders"):
            dataset.read(media_id)


@pytest.mark.slow
def test_buckets__only_the_allowed(service: Service, tmp_path: Path) -> None:
    """Folders, manifests and objects are read in allowed buckets and folders only; refusals tell nothing else."""
    image = encode(photo(5), "PNG")
    for key in ("mine/a.png", "shared/ours/b.png", "shared/theirs/c.png", "shared/ours2/d.png", "other/e.png"):
        service.put(f"roots-{key}", image)
    keys = ("mine/a.png", "shared/ours/b.png", "shared/ours2/d.png", "other/e.png", "other/no.png")
    manifest = "\n".join(f"s3://roots-{key}" for key in keys)
    service.put("roots-mine/list.txt", manifest.encode())
    service.put("roots-mine/up.txt", b"../roots-other/e.png\na.png")
    settings = service.settings(s3_allowed="roots-mine, s3://roots-shared/ours/")
    assert settings.s3_allowed == ("roots-mine", "roots-shared/ours")
    with Workspace(tmp_path / "ws", settings=settings) as workspace:
        for uri in (
            "s3://roots-other", "s3://roots-other/e.png", "s3://roots-other/no.png", "s3://roots-missing/x",
            "s3://roots-shared", "s3://roots-shared/theirs", "s3://roots-shared/ours2", "s3://roots-other/list.txt",
        ):  # fmt: skip
            with pytest.raises(Forbidden) as caught:
                workspace.create_dataset("new", uri)
            assert str(caught.value) == f"{uri!r} cannot be read: {OUTSIDE_BUCKETS}"
        assert workspace.create_dataset("ours", "s3://roots-shared/ours").count() == 1
        dataset = workspace.create_dataset("list", "s3://roots-mine/list.txt")
        refused = f"cannot be read: {OUTSIDE_BUCKETS}"
        assert errors(dataset) == {"a.png": None, "b.png": None, "d.png": refused, "e.png": refused, "no.png": refused}
        assert errors(workspace.create_dataset("up", "s3://roots-mine/up.txt")) == {"e.png": refused, "a.png": None}
        with pytest.raises(NotFound, match="outside of the buckets"):
            dataset.read(dataset.media_id("s3://roots-other/e.png"))
        pq.write_table(pa.table({"uri": ["s3://roots-other/e.png"], "embedding": [[1.0]]}), tmp_path / "v.parquet")
        vectors = workspace.create_dataset("vectors", tmp_path / "v.parquet")
        with pytest.raises(NotFound, match="outside of the buckets"):
            vectors.read(vectors.where([]).media_ids()[0])


def test_settings__of_roots_and_buckets(environment: Environment, tmp_path: Path) -> None:
    """Variables hold lists; an empty one allows nothing, and wrong entries are refused by name."""
    assert (load_settings().media_roots, load_settings().s3_allowed) == (None, None)
    environment["FRAMEDEX_MEDIA_ROOTS"] = os.pathsep.join([str(tmp_path), "~/photos", "/b,c"])
    environment["FRAMEDEX_S3_ALLOWED"] = "a-bucket,b-bucket/folder/ ,"
    settings = load_settings()
    assert settings.media_roots == (tmp_path, Path("~/photos").expanduser(), Path("/b,c"))
    assert settings.s3_allowed == ("a-bucket", "b-bucket/folder")
    environment["FRAMEDEX_MEDIA_ROOTS"] = ""
    environment["FRAMEDEX_S3_ALLOWED"] = ""
    assert (load_settings().media_roots, load_settings().s3_allowed) == ((), ())
    for name, value in (
        ("FRAMEDEX_MEDIA_ROOTS", "photos"), ("FRAMEDEX_S3_ALLOWED", "a/../b"), ("FRAMEDEX_S3_ALLOWED", "https://a"),
        ("FRAMEDEX_S3_ALLOWED", "a bucket"),
    ):  # fmt: skip
        environment[name] = value
        with pytest.raises(InvalidInput, match=f"^{name} is '{value}'"):
            load_settings()
        del environment[name]


@pytest.mark.parametrize("name", ["media_roots", "s3_allowed"])
@pytest.mark.parametrize("value", [7, [7], {"a": 1}])
def test_settings__of_roots_and_buckets__other_types(name: str, value: Any) -> None:
    """Anything but a list of texts or paths is refused."""
    with pytest.raises(ValidationError, match="are a list of"):
        Settings.model_validate({name: value})


@pytest.mark.slow
def test_roots__without_any_setting(tmp_path: Path, root: Path) -> None:
    """Without the setting a library's own user reads anything, links included."""
    (root / "out.png").symlink_to(first_of(tmp_path / "outside"))
    write(root / "more.png", photo(9))
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert set(errors(workspace.create_dataset("pets", root)).values()) == {None}
