"""Removal of unreferenced uploaded files while other processes upload and commit."""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from framedex.errors import Conflict
from framedex.storage.blobs import Upload, remove_unused, remove_upload, uploads


def upload(dataset: Path, *contents: bytes) -> str:
    """Upload contents and return the upload's id."""
    with Upload(dataset) as opened:
        for number, content in enumerate(contents):
            opened.add(f"{number}.jpg", [content])
        opened.settle()
    return opened.id


def hashes(*contents: bytes) -> pa.Array:
    """Return the hashes of contents."""
    return pa.array([hashlib.blake2b(each, digest_size=16).digest() for each in contents], pa.binary(16))


def contents(dataset: Path) -> list[bytes]:
    """Return the contents of the blob store."""
    return sorted(path.read_bytes() for path in (dataset / "blobs").glob("*/*"))


def test_remove_unused__while_the_same_is_uploaded(tmp_path: Path) -> None:
    """A file that is uploaded again during its removal exists at the end."""
    remove_upload(tmp_path, upload(tmp_path, b"again", b"never"))

    @contextmanager
    def meanwhile() -> Iterator[None]:
        upload(tmp_path, b"again")  # it finds the blob there, and makes its list
        yield

    assert remove_unused(tmp_path, [], still=meanwhile()) == len(b"never")
    assert contents(tmp_path) == [b"again"]
    assert not (tmp_path / "unused-blobs").exists()


def test_remove_unused__while_something_is_committed(tmp_path: Path) -> None:
    """If the referenced files may have changed since they were read, nothing is removed."""
    remove_upload(tmp_path, upload(tmp_path, b"a"))

    @contextmanager
    def changed() -> Iterator[None]:
        if contents(tmp_path):
            raise Conflict("it was changed meanwhile")
        yield

    with pytest.raises(Conflict):
        remove_unused(tmp_path, [], still=changed())
    assert contents(tmp_path) == [b"a"]


def test_remove_unused__after_a_crash(tmp_path: Path) -> None:
    """Files set aside by a killed run are restored first, and removed only if they are unreferenced now."""
    remove_upload(tmp_path, upload(tmp_path, b"needed", b"unused"))
    aside = tmp_path / "unused-blobs"
    aside.mkdir()
    for path in (tmp_path / "blobs").glob("*/*"):
        path.rename(aside / f"{path.parent.name}{path.name}")
    assert remove_unused(tmp_path, [hashes(b"needed")]) == len(b"unused")
    assert contents(tmp_path) == [b"needed"]


def test_remove_unused__twice_at_a_time(tmp_path: Path) -> None:
    """Files that one run removes do not reappear through a second run, whether it is refused or not."""
    remove_upload(tmp_path, upload(tmp_path, b"first", b"needed"))

    @contextmanager
    def refused() -> Iterator[None]:
        if contents(tmp_path):
            raise Conflict("a task is running")
        yield

    @contextmanager
    def beside(*others: AbstractContextManager[None]) -> Iterator[None]:
        yield
        remove_upload(tmp_path, upload(tmp_path, b"second", b"needed"))
        for other in others:
            with suppress(Conflict):
                remove_unused(tmp_path, [hashes(b"needed")], still=other)

    assert remove_unused(tmp_path, [hashes(b"needed")], still=beside(refused(), nullcontext())) == len(b"first")
    assert contents(tmp_path) == [b"needed"]
    assert {path.name for path in tmp_path.iterdir()} == {"blobs", "uploads"}


def test_uploads__are_known_until_forgotten(tmp_path: Path) -> None:
    """Complete uploads are distinguished from running ones."""
    whole = upload(tmp_path, b"a")
    with Upload(tmp_path) as opened:
        opened.add("b.jpg", [b"b"])
        assert {(each, is_whole) for each, _, is_whole in uploads(tmp_path)} == {(whole, True), (opened.id, False)}
    remove_upload(tmp_path, whole)
    assert list(uploads(tmp_path)) == []
