"""The layouts of folders are read in archives, too: what the folder says, its archive says."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from framedex import Workspace
from framedex.annotations.sources import find_box_sources, read_annotations, read_box_index
from framedex.core.skipped import Skipped
from framedex.jobs.ingest.content import FilesInput, content_from_config, open_content, open_stored_upload
from framedex.jobs.ingest.uploads import UploadSource, upload_archive
from framedex.media.archives import BROKEN
from framedex.media.frame_sampling import EVERY_SECOND
from framedex.operations.creation import new_embedding_config, opened_source
from framedex.operations.previews import preview_source
from tests.annotations.written import no_progress
from tests.gallery import SETTINGS, Averages
from tests.image_files import encode, photo
from tests.inside import context_of

COCO = {
    "images": [{"id": 7, "file_name": "1.jpg", "width": 50, "height": 40}, {"id": 8, "file_name": "2.jpg"}],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 2, 10, 10], "area": 100, "iscrowd": 0}],
}
VOC = (
    "<annotation><filename>1.jpg</filename><size><width>50</width><height>40</height></size><object><name>cat</name>"
    "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
)
YAML = "names: [cat]\ntrain: images/train\n"
BOXES = "filename;col_x;row_y;width;height;label\n1.jpg;1;2;3,5;4;cat\n"
MASK = encode(np.pad(np.ones((5, 5), np.uint8), ((0, 35), (0, 45))), "PNG")
LAYOUTS: dict[str, tuple[str, dict[str, str | bytes]]] = {
    "coco": ("train2017/", {"annotations/instances_train2017.json": json.dumps(COCO)}),
    "roboflow": ("train/", {"train/_annotations.coco.json": json.dumps(COCO)}),
    "yolo": ("images/train/", {"labels/train/1.txt": "0 0.5 0.5 0.2 0.2\n", "data.yaml": YAML}),
    "yolo beside images": ("", {"1.txt": "0 0.5 0.5 0.2 0.2\n", "data.yaml": "names: [cat]\n", "notes.txt": "a note"}),
    "voc": ("JPEGImages/", {"Annotations/1.xml": VOC, "ImageSets/Main/train.txt": "1\n"}),
    "tables": ("", {"image_annotations.csv": "filename\tlabel\n1.jpg\tdog\n", "object_annotations.csv": BOXES}),
    "huggingface": ("train/", {"train/metadata.jsonl": '{"file_name": "1.jpg", "label": "cat", "score": 2}\n'}),
    "masks": ("JPEGImages/", {"SegmentationClass/1.png": MASK, "labelmap.txt": "cat:1,1,1::\n"}),
    "classes": ("train/cat/", {}),
}  # fmt: skip


def members(layout: str) -> dict[str, bytes]:
    """Return the files of a layout with two images."""
    home, texts = LAYOUTS[layout]
    image = encode(photo(1)[:40, :50], "JPEG")
    images = {f"{home}{number}.jpg": image for number in (1, 2)}
    more = {"val/dog/3.jpg": image} if layout == "classes" else {}
    return {
        **images,
        **more,
        **{name: each.encode() if isinstance(each, str) else each for name, each in texts.items()},
    }


def packed(path: Path, files: dict[str, bytes]) -> Path:
    """Write an archive."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def unpacked(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def stored(path: Path, home: Path) -> UploadSource:
    """Return the upload of an archive."""
    return upload_archive(path, home, SETTINGS, no_progress)


@pytest.mark.parametrize("kind", ["zip", "tar", "tgz"])
@pytest.mark.parametrize("top", ["", "my data/"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_archive__says_what_its_folder_says(tmp_path: Path, layout: str, top: str, kind: str) -> None:
    """Labels, tags, values and boxes of each image are those of the folder, with a folder around all or without."""
    files = members(layout)
    folder = unpacked(tmp_path / "folder", files)
    expected, boxes = read_annotations(str(folder), class_folders=None), read_box_index(find_box_sources(folder))
    source = stored(
        packed(tmp_path / f"a.{kind}", {top + name: content for name, content in files.items()}), tmp_path / "d"
    )
    found, found_boxes = source.annotations(), read_box_index(source.boxes())
    paths = [name for name in files if name.endswith(".jpg")]
    assert [each.path for each in source.items()] == paths
    assert found.sources == expected.sources != []
    for each in paths:
        assert (found.find(each), found.facts_of(each)) == (expected.find(each), expected.facts_of(each))
        assert found_boxes.find(each, (50, 40)) == boxes.find(each, (50, 40))


def others(skipped: Skipped) -> dict[str, list[str]]:
    """Return the files of other kinds that were left out, by their suffix."""
    return {reason: sorted(skipped.examples[reason]) for reason in skipped if reason.startswith("other files")}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_archive__counts_the_files_that_its_folder_counts(tmp_path: Path, layout: str) -> None:
    """Annotations that are read are no other files; what looks like them is one, as in the folder, also in a retry."""
    files = {**members(layout), "more/a.json": b"{}", "more/b.txt": b"b", "c.html": b"c"}
    content = open_content(unpacked(tmp_path / "folder", files), "gist", SETTINGS)
    assert isinstance(content, FilesInput)
    assert len(list(content.source.items())) == len([name for name in files if name.endswith(".jpg")])
    source = stored(packed(tmp_path / "a.zip", files), tmp_path / "d")
    for _ in range(2):
        opened = open_stored_upload(source, "d", "gist", SETTINGS)
        assert opened.config is not None
        assert others(opened.source.skipped) == others(content.source.skipped) != {}
        source = UploadSource(
            tmp_path / "d", source.upload_id, Skipped(opened.config["skipped"], opened.config["examples"])
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_preview__of_an_archive_is_that_of_its_folder(tmp_path: Path, layout: str) -> None:
    """The preview of an archive says what that of its folder says, opens no image, and leaves nothing behind."""
    files = dict(sorted(members(layout).items()))
    folder = preview_source(unpacked(tmp_path / "folder", files), SETTINGS)
    files.update({name: b"no image" for name in files if name.endswith(".jpg")})
    archive = preview_source(packed(tmp_path / "a.tar", files), SETTINGS)
    told = {"source", "kind"}
    assert archive.model_dump(exclude=told) == folder.model_dump(exclude=told)
    assert (archive.kind, archive.source) == ("archive", str(tmp_path / "a.tar"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.tar", "folder"]


def test_archive__broken_annotations_leave_those_of_their_name(tmp_path: Path) -> None:
    """Of two files of annotations of one name the last counts, but for one that is broken: the sound one stays."""
    first, last, image = b'{"images": []}  ', b'{"images": [0]} ', encode(photo(1)[:40, :50], "JPEG")
    path = packed(tmp_path / "x.zip", {"1.jpg": image, "a.json": first, "b.json": last})
    path.write_bytes(path.read_bytes().replace(last, b"x" * 16).replace(b"b.json", b"a.json"))
    source = stored(tmp_path / "x.zip", tmp_path / "d")
    assert (source.folder / "layout" / "a.json").read_bytes() == first
    assert source.skipped == {BROKEN: 1}
    assert sorted(each.name for each in source.folder.iterdir()) == ["files.parquet", "layout"]


@pytest.mark.parametrize("name", ["con.json", "a:b.json", "labels/nul.txt", f"labels/{'x' * 300}.txt", "labels/a?.txt"])
def test_archive__odd_names_of_annotations_are_counted(tmp_path: Path, name: str) -> None:
    """A name that is none on some system becomes no file's name."""
    image = {"1.jpg": encode(photo(1)[:40, :50], "JPEG")}
    source = stored(packed(tmp_path / "a.zip", {**image, name: b"{}"}), tmp_path / "d")
    assert source.skipped["annotation files with odd names"] == 1
    assert [path for path in (source.folder / "layout").rglob("*") if path.is_file()] == []


def test_archive__a_name_that_is_a_folder_too(tmp_path: Path) -> None:
    """Of a file and a folder of one name the first is kept, and the other is counted."""
    files = {"a.json": b"{}", "a.json/b.json": b"{}", "1.jpg": encode(photo(1)[:40, :50], "JPEG")}
    source = stored(packed(tmp_path / "a.zip", files), tmp_path / "d")
    assert source.skipped["annotation files with odd names"] == 1
    assert source.annotations().sources == []


@pytest.mark.slow
def test_create__from_an_archive(workspace: Workspace, tmp_path: Path) -> None:
    """An archive is a source of a new dataset, as a folder is."""
    path = packed(tmp_path / "a.zip", members("coco"))
    dataset = workspace.create_dataset("d", path, Averages())
    assert (dataset.count(), dataset.objects.count()) == (2, 1)
    assert dataset.layout == ["read: annotations/instances_train2017.json"]
    assert [each.name for each in dataset.tags()] == ["train"]


@pytest.mark.parametrize("asked", [True, False])
def test_create__folders_of_an_archive_as_classes(workspace: Workspace, tmp_path: Path, asked: bool) -> None:
    """Folders that are named by numbers are classes if asked, others not if not; a retry asks for the same."""
    image, home = encode(photo(1)[:40, :50], "JPEG"), ("0", "1") if asked else ("cat", "dog")
    path = packed(tmp_path / "a.zip", {f"{each}/{number}.jpg": image for number, each in enumerate(home)})
    context = context_of(workspace)
    with opened_source(context, "d", path, "gist", asked) as (content, _):
        assert isinstance(content, FilesInput)
    config = new_embedding_config(content, None, EVERY_SECOND)
    stored_config = json.loads(json.dumps(content.config))
    again = content_from_config(stored_config, config, context.layout, context.settings)
    for each in (content, again):
        assert isinstance(each, FilesInput)
        assert each.annotations.find(f"{home[0]}/0.jpg")[0] == (("0",) if asked else ())
