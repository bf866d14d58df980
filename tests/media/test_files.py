"""Bytes are read through one door, wherever they are; what is no file is said to be none, at once."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import CannotDecode, Unavailable
from framedex.media.files import Reader, below, locate
from framedex.settings import Settings
from tests.buckets import Service, Wire

SETTINGS = Settings(max_file_bytes=1000)


@pytest.mark.slow
def test_reader__files_and_objects(tmp_path: Path, service: Service) -> None:
    """A file and an object are read alike: their content, and when they were changed."""
    (tmp_path / "a.jpg").write_bytes(b"file")
    os.utime(tmp_path / "a.jpg", ns=(0, 1_700_000_000_123_456_789))
    service.put("door/a.jpg", b"object")
    reader = Reader(service.settings())
    assert reader.read(str(tmp_path / "a.jpg")) == (1_700_000_000_123_456_789, b"file")
    modified_ns, content = reader.read("s3://door/a.jpg")
    assert (content, modified_ns is not None) == (b"object", True)
    with reader.open(str(tmp_path / "a.jpg")) as (modified_s, file):
        assert modified_s == pytest.approx(1_700_000_000.123)
        assert file.read() == b"file"
    with reader.open("s3://door/a.jpg") as (modified_s, file):
        assert (modified_s, file.read()) == ((modified_ns or 0) / 1e9, b"object")
    reader.check_any_read()


def test_open__in_parts(service: Service) -> None:
    """Of an object only what is read is fetched, from wherever; at its end there is nothing more."""
    content = bytes(range(256)) * 8192
    service.put("parts/film.mp4", content)
    wire = Wire(service)
    reader = Reader(service.settings(s3_endpoint=wire.address, max_file_bytes=1000))
    with reader.open("s3://parts/film.mp4", in_parts=True) as (modified_s, file):
        assert modified_s is not None
        assert [method for method, _ in wire.asked] == ["HEAD"]
        assert file.seek(0, io.SEEK_END) == len(content)
        assert file.read(10) == b""
        file.seek(1_000_000)
        assert file.read(300) == content[1_000_000:1_000_300]
        assert file.read() == content[1_000_300:]
        file.seek(0)
        assert file.read(2) == content[:2]
    assert [method for method, _ in wire.asked] == ["HEAD", "GET", "GET"]


@pytest.mark.slow
def test_open__in_parts_of_a_replaced_object(service: Service) -> None:
    """What is read of an object is all of one version: one that is replaced meanwhile is an error."""
    service.put("parts/replaced", b"a" * 2**20)
    with Reader(service.settings()).open("s3://parts/replaced", in_parts=True) as (_, file):
        assert file.read(1) == b"a"
        service.put("parts/replaced", b"b" * 2**20)
        file.seek(2**19)
        with pytest.raises(Unavailable, match="read on"):
            file.read(1)


def test_open__in_parts_after_a_broken_connection(service: Service) -> None:
    """An answer that breaks off is asked for again, from where it broke."""
    content = bytes(range(256)) * 8192
    service.put("parts/long", content)
    wire, seen = Wire(service), list[str]()

    def cut(method: str, _path: str) -> bool:
        seen.append(method)
        return seen.count("GET") == 1 and method == "GET"

    wire.cut = cut
    with Reader(service.settings(s3_endpoint=wire.address)).open("s3://parts/long", in_parts=True) as (_, file):
        assert file.read() == content
    assert seen == ["HEAD", "GET", "GET"]


def test_reader__limits(tmp_path: Path) -> None:
    """A file above the limit is not read into memory; it can be copied."""
    (tmp_path / "a").write_bytes(bytes(1001))
    with pytest.raises(CannotDecode, match="the file has 1,001 bytes, more than 1,000"):
        Reader(SETTINGS).read(str(tmp_path / "a"))
    with Reader(SETTINGS).open(str(tmp_path / "a")) as (_, file):
        assert file.read() == bytes(1001)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (Path.mkdir, "cannot be read: Is a directory|not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
    ],
)
def test_reader__what_is_no_file(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    """Missing files, folders, pipes and links to themselves are refused with the reason, without waiting."""
    path = tmp_path / "x"
    make(path)
    with pytest.raises(CannotDecode, match=reason):
        Reader(SETTINGS).read(str(path))
    with pytest.raises(CannotDecode, match=reason), Reader(SETTINGS).open(str(path)):
        pass
    with pytest.raises(CannotDecode, match="null"):
        Reader(SETTINGS).read(f"{path}\0")


@pytest.mark.parametrize(
    ("root", "path", "location"),
    [
        ("/a/b", "c/d.jpg", "/a/b/c/d.jpg"),
        ("/", "d.jpg", "/d.jpg"),
        ("s3://bucket", "d.jpg", "s3://bucket/d.jpg"),
        ("s3://bucket/f", "/d.jpg", "s3://bucket/f//d.jpg"),
        ("s3://", "bucket/d.jpg", "s3://bucket/d.jpg"),
    ],
)
def test_locate__below_a_root(root: str, path: str, location: str) -> None:
    """A path below a root leads to a file or an object; keys are taken as they are."""
    assert locate(root, path) == location


@pytest.mark.parametrize(
    ("root", "other", "way"),
    [
        ("/a/b", "/a/b", ""), ("/a/b", "/a/b/c/d", "c/d"), ("/a/b", "/a/bc", None), ("/a/b", "/a", None),
        ("s3://b/f", "s3://b/f", ""), ("s3://b/f", "s3://b/f/g", "g"), ("s3://b/f", "s3://b/fg", None),
        ("s3://b", "s3://b/f", "f"), ("s3://", "s3://b/f", "b/f"), ("s3://", "s3://", ""), ("s3://b", "s3://", None),
        ("/", "/a", "a"), ("/", "s3://b", None),
        ("blobs:", "blobs:", ""), ("blobs:", "/blobs:/a", None), ("/a", "blobs:", None),
    ],
)  # fmt: skip
def test_below__another_root(root: str, other: str, way: str | None) -> None:
    """A root is within another when its path goes on from there, and not when its name only begins like that."""
    assert below(root, other) == way


@given(
    st.sampled_from(["/", "/a", "/a/b", "s3://", "s3://bucket", "s3://bucket/f"]),
    st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=3),
)
def test_below__leads_back(root: str, parts: list[str]) -> None:
    """The path from one root to another leads to the other root."""
    way = "/".join(parts)
    other = locate(root, way)
    assert below(root, other) == way
    assert locate(other, "x.jpg") == locate(root, f"{way}/x.jpg")
