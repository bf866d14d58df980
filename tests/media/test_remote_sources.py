"""Folders and manifests in buckets name images as those on a disk do."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex.annotations.sources import read_box_index
from framedex.core.assumed_roles import AssumedRole
from framedex.errors import InvalidInput, Unavailable
from framedex.media.files import locate
from framedex.media.remote import INVALID_URI, ObjectStore
from framedex.media.remote_sources import RemoteSource, open_remote
from framedex.media.s3 import BucketAccess
from framedex.media.sources import Item
from tests.buckets import Service


def opened(service: Service, uri: str, **options: Any) -> RemoteSource:
    """Return a source in the service."""
    return open_remote(uri, ObjectStore(BucketAccess.of(service.settings())), **{"max_bytes": 10**7, **options})


def located(source: RemoteSource) -> list[str]:
    """Return where the images of a source are; twice the same."""
    found = [locate(source.root, item.path) for item in source.items()]
    assert found == [locate(source.root, item.path) for item in source.items()]
    return found


def detail(service: Service, uri: str) -> str:
    """Return the note of the interface's error that opening a URI raises."""
    with pytest.raises(InvalidInput) as raised:
        opened(service, uri)
    assert str(raised.value) == INVALID_URI
    (note,) = raised.value.__notes__
    return str(note)


def parquet(**columns: Any) -> bytes:
    """Return a Parquet file."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


@pytest.mark.slow
def test_folder__images_below(service: Service) -> None:
    """Images and videos below a folder come in the order of keys; what else is there is left out as on a disk."""
    for key in (
        "f/b.JPG", "f/a/x.webp", "f/.hidden.jpg", "f/.git/a.jpg", "f/notes.txt", "f/film.mp4", "f/noext", "f/.jpg",
        "fx/not-below.jpg", "f/odd//x.jpg", "f/a b#?.tif", "f/@eaDir/a.jpg",
        "f/SegmentationClass/a.png",
    ):  # fmt: skip
        service.put(f"folder/{key}", b"x")
    for uri in ("s3://folder/f", "s3://folder/f/"):
        role = AssumedRole("arn:aws:iam::1:role/x")
        source = opened(service, uri, role=role)
        assert (source.uri, source.root, source.role) == (uri, "s3://folder/f", role)
        assert located(source) == [f"s3://folder/f/{path}" for path in ("a b#?.tif", "a/x.webp", "b.JPG", "film.mp4")]
        assert source.skipped == {
            "other files (.txt)": 1, "other files (no suffix)": 1, "objects with keys that are no paths": 1,
            "hidden files": 3, "files in system folders such as @eaDir": 1,
            "segmentation masks, which are annotations": 1,
        }  # fmt: skip


def test_folder__a_whole_bucket(service: Service) -> None:
    """A bucket is a folder, too."""
    service.put("whole/x/a.jpg", b"x")
    source = opened(service, "s3://whole")
    assert (source.root, located(source)) == ("s3://whole", ["s3://whole/x/a.jpg"])


def test_folder__with_annotations(service: Service) -> None:
    """Annotation files in the folder itself give labels, captions and boxes."""
    service.put("annotated/f/a.jpg", b"x")
    service.put("annotated/f/image_annotations.csv", b"filename,label,caption\na.jpg,dog,a dog\n")
    service.put("annotated/f/deeper/annotations.json", b"not looked at")
    source = opened(service, "s3://annotated/f")
    assert source.annotations.find("a.jpg") == (("dog",), "a dog")
    assert located(source) == ["s3://annotated/f/a.jpg"]
    service.put("annotated/f/annotations.json", b"[")
    source = opened(service, "s3://annotated/f")
    assert source.annotations.find("a.jpg") == (("dog",), "a dog")
    (problem,) = source.annotations.problems.sample
    assert "annotations.json': is no JSON object" in str(problem)
    service.put("annotated/f/object_annotations.csv", b"filename,col_x,row_y,width,height,label\na.jpg,1,2,3,4,ear\n")
    source = opened(service, "s3://annotated/f")
    index = read_box_index(source.boxes)
    assert [each.label for each in index.find("a.jpg", (9, 9))] == ["ear"]


def test_image__alone(service: Service) -> None:
    """The URI of one image is that image; a folder with the name of one is a folder."""
    service.put("alone/f/a.jpg", b"x")
    service.put("alone/f/b.jpg", b"x")
    service.put("alone/dir.png/c.jpg", b"x")
    assert located(opened(service, "s3://alone/f/a.jpg")) == ["s3://alone/f/a.jpg"]
    assert opened(service, "s3://alone/f/a.jpg").root == "s3://alone/f"
    assert located(opened(service, "s3://alone/dir.png")) == ["s3://alone/dir.png/c.jpg"]


def test_nothing__at_the_uri(service: Service) -> None:
    """An empty folder, one without images, and missing objects have the interface's message and a note."""
    service.put("nothing/f/notes.txt", b"x")
    assert detail(service, "s3://nothing/none") == "no images in 's3://nothing/none'; it is empty"
    assert (
        detail(service, "s3://nothing/f")
        == "no images in 's3://nothing/f'; it holds 1 other files (.txt), such as notes.txt"
    )
    assert detail(service, "s3://nothing/a.jpg").startswith("no images in 's3://nothing/a.jpg'")
    assert detail(service, "s3://nothing/list.csv") == (
        "'s3://nothing/list.csv' cannot be read: there is no such object"
    )
    assert detail(service, "s3://no-such-bucket/f") == "there is no bucket 'no-such-bucket'"
    assert detail(service, "s3:/nothing").startswith("an object-storage URI must be s3://bucket/folder")
    service.put("nothing/empty.txt", b"\n\n")
    assert detail(service, "s3://nothing/empty.txt") == "no images in 's3://nothing/empty.txt'; it is empty"


def test_nothing__without_rights(service: Service) -> None:
    """Without rights nobody learns whether there is something."""
    service.put("locked/f/a.jpg", b"x")
    with service.closed():
        with pytest.raises(Unavailable, match="InvalidAccessKeyId"):
            opened(service, "s3://locked/f")
        with pytest.raises(Unavailable, match="Forbidden"):
            opened(service, "s3://locked/f/a.jpg")
        with pytest.raises(Unavailable, match="InvalidAccessKeyId"):
            opened(service, "s3://locked/f/list.csv")


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "TXT"])
def test_manifest__paths_and_uris(service: Service, suffix: str) -> None:
    """Rows are URIs, or paths relative to the manifest, in its order, each once; the files need not be there."""
    names = ["x/b.jpg", "s3://listing/f/a b.png", "./x/../c.gif", "x/b.jpg", "film.mp4", "s3://listing/f/x/d.jpg"]
    names.insert(3, "https://example.org/a.jpg")
    match suffix.lower():
        case "txt":
            content = "\n".join(names).encode()
        case "csv":
            content = ("uri\n" + "\n".join(names)).encode()
        case _:
            content = parquet(path=names)
    service.put(f"listing/f/list.{suffix}", content)
    source = opened(service, f"s3://listing/f/list.{suffix}")
    expected = ("x/b.jpg", "a b.png", "c.gif", "film.mp4", "x/d.jpg")
    assert located(source) == [f"s3://listing/f/{path}" for path in expected]
    others = {"repeated entries": 1, "rows that are no s3:// URIs or relative paths of objects": 1}
    assert (source.root, source.skipped) == ("s3://listing/f", others)


def test_manifest__labels_and_captions(service: Service) -> None:
    """A table gives labels and captions with the paths."""
    content = b'path,label,caption\na.jpg,"[dog, ""big""]",a dog\nb.jpg,,\n,cat,\n'
    service.put("labelled/list.csv", content)
    source = opened(service, "s3://labelled/list.csv")
    assert list(source.items()) == [Item("a.jpg", ("dog", "big"), "a dog"), Item("b.jpg")]
    assert source.skipped == {"rows without a path": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "root"),
    [
        (["s3://one/f/a.jpg"], "s3://one/f"),
        (["s3://one/f/a.jpg", "s3://one/f/g/b.jpg"], "s3://one/f"),
        (["s3://one/f/a.jpg", "s3://one/ff/b.jpg"], "s3://one"),
        (["s3://one/f/a.jpg", "s3://two/f/b.jpg", "s3://one/c.jpg"], "s3://"),
        (["s3://one/ä/ö.jpg", "s3://one/ä/🐈/b.jpg"], "s3://one/ä"),
    ],
)
def test_manifest__root_is_the_deepest_common_folder(service: Service, names: list[str], root: str) -> None:
    """The root holds all objects, be they in several buckets, and no more than needed."""
    service.put("roots/list.txt", "\n".join(names).encode())
    source = opened(service, "s3://roots/list.txt")
    assert (source.root, located(source)) == (root, names)


@pytest.mark.slow
@pytest.mark.only_soak
def test_manifest__of_many_rows(service: Service) -> None:
    """The rows of several blocks stay in order."""
    names = [f"d{number % 7}/{number}.jpg" for number in range(20_000)]
    service.put("rows/list.txt", "\n".join(names).encode())
    assert [item.path for item in opened(service, "s3://rows/list.txt").items()] == names


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "list.txt",
            b"https://example.org/a.jpg",
            "1 rows that are no s3:// URIs or relative paths of objects, such as 'https://example.org/a.jpg'",
        ),
        ("list.txt", b"s3://bucket", "s3:// URIs or relative paths of objects, such as 's3://bucket'"),
        ("list.txt", b"file:///etc/passwd.jpg", "relative paths of objects, such as 'file:///etc/passwd.jpg'"),
        ("list.csv", b'path\n"a\n', r"no images in 's3://refused/list\.csv'; it holds 1 rows that are not CSV"),
        ("list.parquet", b"no parquet", "s3://refused/list.parquet"),
        ("list.parquet", b"PAR1" + bytes(50) + b"\x10\0\0\0PAR1", "cannot read s3://refused/list.parquet as Parquet"),
        ("list.parquet", parquet(path=[1, 2]), r"s3://refused/list\.parquet: column 'path' holds 1"),
        ("list.parquet", parquet(uri=["a"], embedding=[[1.0]]), "brings embeddings"),
    ],
)
def test_manifest__that_cannot_be_used(service: Service, name: str, content: bytes, message: str) -> None:
    """A manifest that names other things, or cannot be read, is refused with its URI and the reason."""
    service.put(f"refused/{name}", content)
    with pytest.raises(InvalidInput, match=message):
        opened(service, f"s3://refused/{name}")


def test_manifest__too_large(service: Service) -> None:
    """A manifest above the limit for files is not read."""
    service.put("large/list.txt", b"a.jpg\n" * 100)
    with pytest.raises(InvalidInput) as raised:
        opened(service, "s3://large/list.txt", max_bytes=599)
    assert raised.value.__notes__ == [
        "'s3://large/list.txt' the object has 600 bytes, more than 599 (FRAMEDEX_MAX_FILE_BYTES raises the limit)"
    ]


def test_manifest__leaves_no_files(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files of a manifest are deleted after reading."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    service.put("tidy/list.txt", b"a.jpg")
    source = opened(service, "s3://tidy/list.txt")
    assert list(tmp_path.iterdir()) == []
    assert located(source) == ["s3://tidy/a.jpg"]
