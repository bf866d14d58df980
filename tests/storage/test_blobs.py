"""Uploaded files are stored by content, all or none, and are removed when unreferenced."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import Conflict, NotFound, WorkspaceError
from framedex.storage.blobs import Upload, blob_path, remove_unused, remove_upload, upload_folder, uploaded
from tests.processes import run


def digest(content: bytes) -> bytes:
    """Return the hash that names a content."""
    return hashlib.blake2b(content, digest_size=16).digest()


def files(folder: Path) -> set[str]:
    """Return the paths of all files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def uploaded_now(dataset: Path, *named: tuple[str, bytes]) -> str:
    """Upload contents and return the upload's id."""
    with Upload(dataset) as upload:
        for name, content in named:
            upload.add(name, [content])
        upload.settle()
    return upload.id


def test_upload__is_stored_by_content(tmp_path: Path) -> None:
    """Content is stored under its hash and the suffix of its name, and the list has all files in order."""
    with Upload(tmp_path) as upload:
        upload.add("b/x.JPG", [b"par", b"", b"ts"])
        upload.add("a.png", [])
        upload.add_path("/elsewhere/c.jpg")
        upload.add("b/y.jpg", [b"parts"])
        assert files(tmp_path / "blobs") == set()
        assert upload.settle() == 0
    one, empty = digest(b"parts"), digest(b"")
    assert list(uploaded(upload_folder(tmp_path, upload.id))) == [
        ("b/x.JPG", one), ("a.png", empty), ("/elsewhere/c.jpg", None), ("b/y.jpg", one),
    ]  # fmt: skip
    text = one.hex()
    assert files(tmp_path) == {
        f"blobs/{text[:2]}/{text[2:]}.jpg",
        f"blobs/{empty.hex()[:2]}/{empty.hex()[2:]}.png",
        f"uploads/{upload.id}/files.parquet",
    }
    assert blob_path(tmp_path, one, "any.jpg").read_bytes() == b"parts"


def test_upload__what_is_there_is_not_written_again(tmp_path: Path) -> None:
    """Content that is already stored is not written again."""
    uploaded_now(tmp_path, ("a.jpg", b"x"))
    before = blob_path(tmp_path, digest(b"x"), "a.jpg").stat()
    uploaded_now(tmp_path, ("b.jpg", b"x"), ("c.jpg", b"y"))
    after = blob_path(tmp_path, digest(b"x"), "a.jpg").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_upload__equal_contents_of_a_name(tmp_path: Path) -> None:
    """Of several files with one name and content the last one stays, at its position; other contents stay, too."""
    with Upload(tmp_path) as upload:
        for name, content in (("a.jpg", b"1"), ("b.jpg", b"2"), ("a.jpg", b"3"), ("c.jpg", b"1x"), ("a.jpg", b"1")):
            upload.add(name, [content])
        assert upload.settle() == 1
    listed = list(uploaded(upload_folder(tmp_path, upload.id)))
    contents = [("b.jpg", b"2"), ("a.jpg", b"3"), ("c.jpg", b"1x"), ("a.jpg", b"1")]
    assert listed == [(name, digest(content)) for name, content in contents]
    assert len(files(tmp_path / "blobs")) == 4


def failing() -> Iterator[bytes]:
    yield b"begun"
    raise Conflict("the giver gave up")


@pytest.mark.parametrize("settled_before", [False, True])
def test_upload__that_fails_leaves_nothing(tmp_path: Path, settled_before: bool) -> None:
    """A failed upload, in the middle of a file or after the last one, changes nothing."""
    if settled_before:
        uploaded_now(tmp_path, ("a.jpg", b"x"))
    before = files(tmp_path)
    with Upload(tmp_path) as upload:
        upload.add("a.jpg", [b"whole"])
        with pytest.raises(Conflict, match="gave up"):
            upload.add("b.jpg", failing())
    assert files(tmp_path) == before
    with Upload(tmp_path) as upload:
        upload.add("a.jpg", [b"whole"])
    assert files(tmp_path) == before
    with pytest.raises(NotFound, match="upload the files again"):
        upload_folder(tmp_path, upload.id)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "upload.settle()"])
def test_upload__of_a_process_that_died(tmp_path: Path, end: str) -> None:
    """The next upload removes unfinished files of a killed process; settled ones stay."""
    run(
        f"""
        import os, sys
        from pathlib import Path
        from framedex.storage.blobs import Upload
        upload = Upload(Path(sys.argv[1]))
        upload.add("a.jpg", [b"x"])
        {end}
        os._exit(0)
        """,
        tmp_path,
    )
    left = files(tmp_path)
    assert len(left) == (2 if end else 3)
    uploaded_now(tmp_path, ("b.jpg", b"y"))
    assert len(files(tmp_path)) == (4 if end else 2)
    assert not end or left < files(tmp_path)


def test_upload__of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    """A running upload of another process is not removed."""
    with Upload(tmp_path) as first:
        first.add("a.jpg", [b"x"])
        uploaded_now(tmp_path, ("b.jpg", b"y"))
        assert first.settle() == 0
    assert len(files(tmp_path / "blobs")) == 2


def test_upload__where_nothing_can_be_written(tmp_path: Path) -> None:
    """A store that cannot be written raises an error with its path."""
    (tmp_path / "uploads").write_text("a file")
    with pytest.raises(WorkspaceError, match=r"cannot write to .*uploads"):
        Upload(tmp_path)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.jpg", ".jpg"), ("A.JPEG", ".jpeg"), ("noext", ""), (".jpg", ""), ("a.", ""), ("a.b/c", ""), ("x.é", ""),
        ("x.j g", ""), ("x.123456789", ""), ("a.jpg\n", ""), (os.fsdecode(b"x.\xff"), ""),
    ],
)  # fmt: skip
def test_blob_path__suffix(name: str, suffix: str) -> None:
    """A plain suffix is stored in lower case, so that other programs recognise the file; other suffixes are dropped."""
    text = digest(b"").hex()
    assert blob_path(Path("d"), digest(b""), name) == Path("d", "blobs", text[:2], text[2:] + suffix)


@pytest.mark.slow
@given(st.lists(st.tuples(st.binary(max_size=3).map(os.fsdecode), st.binary(max_size=2)), max_size=30))
def test_upload__names_of_any_bytes(tmp_path_factory: pytest.TempPathFactory, named: list[tuple[str, bytes]]) -> None:
    """The list equals a dictionary of pairs in the order of the last insertions, for names of any bytes."""
    folder = tmp_path_factory.mktemp("dataset")
    expected: dict[tuple[str, bytes], None] = {}
    for name, content in named:
        expected.pop((name, digest(content)), None)
        expected[name, digest(content)] = None
    upload_id = uploaded_now(folder, *named)
    assert list(uploaded(upload_folder(folder, upload_id))) == list(expected)
    assert {path.name.partition(".")[0] for path in (folder / "blobs").glob("*/*")} == {
        value.hex()[2:] for _, value in expected
    }


def hashes(*contents: bytes) -> pa.Array:
    return pa.array([digest(content) for content in contents], pa.binary(16))


def test_remove_unused__keeps_what_is_needed(tmp_path: Path) -> None:
    """Blobs of media and of upload lists stay; others are removed."""
    first = uploaded_now(tmp_path, ("a.jpg", b"a"), ("b.jpg", b"bb"), ("b.png", b"bb"), ("c.jpg", b"c"))
    second = uploaded_now(tmp_path, ("d.jpg", b"d"), ("e.jpg", b"e"))
    assert remove_unused(tmp_path, []) == 0
    remove_upload(tmp_path, first)
    used = [hashes(b"never", b"c"), pa.array([None, digest(b"e")], pa.binary(16)), hashes()]
    assert remove_unused(tmp_path, used) == len(b"a" + b"bb" + b"bb")
    remaining = {path.name for path in (tmp_path / "blobs").glob("*/*")}
    assert remaining == {f"{digest(content).hex()[2:]}.jpg" for content in (b"c", b"d", b"e")}
    remove_upload(tmp_path, second)
    assert remove_unused(tmp_path, [hashes(b"x", b"e").slice(1)]) == 2
    assert remove_unused(tmp_path, []) == 1
    assert files(tmp_path) == set()


def test_remove_unused__without_uploads(tmp_path: Path) -> None:
    """A dataset without uploads has nothing to remove."""
    assert remove_unused(tmp_path / "missing", [hashes(b"x")]) == 0
