"""Downloads are whole, those that listed hosts serve, and continue where they ended."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex.core.downloads import MAX_BYTES, RemoteFile, check_remote, download
from framedex.errors import Forbidden, InvalidInput, Unavailable
from tests.processes import run
from tests.publisher import Publisher, publish

CONTENT = os.urandom(300_000)


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    """A publisher on this machine."""
    with publish(CONTENT) as server:
        yield server


def remote(publisher: Publisher, path: str = "/file", **expected: Any) -> RemoteFile:
    """Return a file of the publisher."""
    return RemoteFile([publisher.url(path)], [publisher.host], **expected)


def names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def interrupted(publisher: Publisher, path: Path) -> None:
    """Leave a third of the content in a file."""
    publisher.cut = 100_000
    with pytest.raises(Unavailable, match=r"100,000 of 300,000 bytes; what is there is kept, and the next call"):
        download(remote(publisher), path)
    assert path.read_bytes() == CONTENT[:100_000]
    publisher.cut = None
    publisher.requests.clear()


def test_download__is_whole(publisher: Publisher, tmp_path: Path) -> None:
    """The content is there with its hash, and was counted; nothing else is left."""
    seen: list[tuple[int, int | None]] = []
    expected = remote(publisher, size_bytes=300_000, sha256=publisher.sha256)
    digest = download(expected, tmp_path / "part", on_bytes=lambda done, total: seen.append((done, total)))
    assert digest == publisher.sha256
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert seen[0] == (0, 300_000)
    assert seen[-1] == (300_000, 300_000)
    assert names(tmp_path) == ["part"]


def test_download__continues(publisher: Publisher, tmp_path: Path) -> None:
    """After the connection ended, only the rest is requested."""
    interrupted(publisher, tmp_path / "part")
    assert download(remote(publisher), tmp_path / "part") == publisher.sha256
    assert publisher.requests == [("/file", "bytes=100000-")]


def test_download__continues_by_the_hash_alone(publisher: Publisher, tmp_path: Path) -> None:
    """Without a validator of the server a known hash is enough to continue."""
    publisher.tag = ""
    interrupted(publisher, tmp_path / "part")
    assert download(remote(publisher, sha256=publisher.sha256), tmp_path / "part") == publisher.sha256
    assert publisher.requests == [("/file", "bytes=100000-")]


def test_download__begins_again_without_a_validator(publisher: Publisher, tmp_path: Path) -> None:
    """Where nothing shows that the rest belongs to the beginning, all is read again."""
    publisher.tag = ""
    interrupted(publisher, tmp_path / "part")
    assert download(remote(publisher), tmp_path / "part") == publisher.sha256
    assert publisher.requests == [("/file", "")]


def test_download__of_a_file_that_changed(publisher: Publisher, tmp_path: Path) -> None:
    """The rest of another file is not put behind the beginning."""
    interrupted(publisher, tmp_path / "part")
    publisher.content, publisher.tag = os.urandom(200_000), '"2"'
    assert download(remote(publisher), tmp_path / "part") == publisher.sha256
    assert (tmp_path / "part").read_bytes() == publisher.content


def test_download__from_a_server_without_ranges(publisher: Publisher, tmp_path: Path) -> None:
    """A server that always sends the whole file is read from the beginning."""
    publisher.ranges = False
    interrupted(publisher, tmp_path / "part")
    assert download(remote(publisher), tmp_path / "part") == publisher.sha256
    assert publisher.requests == [("/file", "bytes=100000-")]


def test_download__that_was_complete(publisher: Publisher, tmp_path: Path) -> None:
    """A file that was complete when its process was killed is not read again."""
    (tmp_path / "part").write_bytes(CONTENT)
    assert download(remote(publisher, sha256=publisher.sha256), tmp_path / "part") == publisher.sha256
    assert publisher.requests == [("/file", "bytes=300000-")]
    assert download(remote(publisher, size_bytes=300_000, sha256=publisher.sha256), tmp_path / "part")
    assert len(publisher.requests) == 1


def test_download__with_another_hash(publisher: Publisher, tmp_path: Path) -> None:
    """Both hashes are named, and the content is not kept."""
    with pytest.raises(InvalidInput, match=rf"SHA-256 is {publisher.sha256}, and should be {'0' * 64}"):
        download(remote(publisher, sha256="0" * 64), tmp_path / "part")
    assert names(tmp_path) == []


def test_download__with_another_size(publisher: Publisher, tmp_path: Path) -> None:
    """Both sizes are named, before anything is read."""
    with pytest.raises(InvalidInput, match=r"has 300,000 bytes, and should have 300,001"):
        download(remote(publisher, size_bytes=300_001), tmp_path / "part")
    assert not (tmp_path / "part").exists()


@pytest.mark.parametrize(
    ("status", "message"), [(404, "answers 404 Not Found"), (503, "answers 503"), (204, "answers 204, and should")]
)
def test_download__that_is_refused(publisher: Publisher, tmp_path: Path, status: int, message: str) -> None:
    """The address and the answer are named in one line."""
    publisher.status = status
    with pytest.raises(Unavailable, match=rf"^{publisher.url()} {message}"):
        download(remote(publisher), tmp_path / "part")


def test_download__from_a_silent_server(publisher: Publisher, tmp_path: Path) -> None:
    """A server that does not answer ends the call."""
    publisher.silent = threading.Event()
    with pytest.raises(Unavailable, match=r"no answer within 0.1 s"):
        download(remote(publisher), tmp_path / "part", timeout_s=0.1)


def test_download__that_hangs_in_the_middle(publisher: Publisher, tmp_path: Path) -> None:
    """What came before is kept."""
    publisher.pause = threading.Event()
    with pytest.raises(Unavailable, match=r"no answer within 0.1 s; what is there is kept"):
        download(remote(publisher), tmp_path / "part", timeout_s=0.1)
    assert (tmp_path / "part").read_bytes() == CONTENT[:150_000]


def test_download__of_nobody(tmp_path: Path) -> None:
    """The next address is tried; without one that answers, all reasons are named."""
    with publish(CONTENT) as gone:
        pass
    with publish(CONTENT) as publisher:
        both = RemoteFile([gone.url(), publisher.url()], [publisher.host])
        assert download(both, tmp_path / "part") == publisher.sha256
    with pytest.raises(Unavailable, match=r"(?i)refused.*; .*refused"):
        download(both, tmp_path / "other")


def test_download__is_redirected(publisher: Publisher, tmp_path: Path) -> None:
    """A redirect to a listed host is followed; what the server calls the file has no effect."""
    publisher.headers = {"Content-Disposition": 'attachment; filename="../../evil"'}
    assert download(remote(publisher, "/old"), tmp_path / "part") == publisher.sha256
    assert [path for path, _ in publisher.requests] == ["/old", "/file"]
    assert names(tmp_path) == ["part"]


@pytest.mark.parametrize(
    "target",
    ["http://localhost:1/file", "https://example.org/file?key=secret", "file:///etc/passwd", "ftp://127.0.0.1/file"],
)
def test_download__is_not_redirected_elsewhere(publisher: Publisher, tmp_path: Path, target: str) -> None:
    """Other hosts and other schemes are refused, and the query, which may be a secret, is not shown."""
    publisher.redirect = target
    with pytest.raises(Forbidden) as caught:
        download(remote(publisher, "/old"), tmp_path / "part")
    assert target.partition("?")[0] in str(caught.value)
    assert "secret" not in str(caught.value)


def test_download__of_redirects_without_end(publisher: Publisher, tmp_path: Path) -> None:
    """A circle of redirects ends."""
    publisher.redirect = "/old"
    with pytest.raises(Unavailable, match="redirected more than 5 times"):
        download(remote(publisher, "/old"), tmp_path / "part")


@pytest.mark.parametrize(
    "address",
    [
        "http://models.example/file", "https://models.example.org/file", "https://evil-models.example/file",
        "https://user@models.example/file", "file:///file", "models.example/file", "https://[", "",
    ],
)  # fmt: skip
def test_addresses__that_are_refused(address: str) -> None:
    """An address is https on a listed host, or http on this machine."""
    with pytest.raises(Forbidden):
        check_remote(address, ["models.example", "*.cdn.example"])


@pytest.mark.parametrize("address", ["https://models.example/file", "https://a.b.cdn.example/file?x=1"])
def test_addresses__that_are_read(address: str) -> None:
    """A star stands for any part in front of a host."""
    check_remote(address, ["models.example", "*.cdn.example"])


def test_download__on_a_full_disk(publisher: Publisher, tmp_path: Path) -> None:
    """A write that fails is one line, and what could be written is continued."""
    code = """
        import resource, signal, sys
        from pathlib import Path
        from framedex.core.downloads import RemoteFile, download
        from framedex.errors import Unavailable
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            download(RemoteFile([sys.argv[1]], ["127.0.0.1"]), Path(sys.argv[2]))
        except Unavailable as error:
            print(error)
        """
    said = run(code, publisher.url(), tmp_path / "part")
    assert "cannot be written: File too large; what is there is kept, and the next call continues" in said
    assert (tmp_path / "part").read_bytes() == CONTENT[:200_000]
    assert download(remote(publisher), tmp_path / "part") == publisher.sha256


def test_download__without_room(publisher: Publisher, tmp_path: Path) -> None:
    """A file that does not fit on the disk, or is larger than any model, is not begun."""
    free = shutil.disk_usage(tmp_path).free
    publisher.announced = MAX_BYTES + 1
    with pytest.raises(InvalidInput, match="the largest file has"):
        download(remote(publisher), tmp_path / "part")
    publisher.announced = free + 2**30
    if publisher.announced <= MAX_BYTES:
        with pytest.raises(Unavailable, match=rf"no room for {publisher.announced:,} bytes in '.*': [\d,]+ are free"):
            download(remote(publisher), tmp_path / "part")
    assert not (tmp_path / "part").exists()


def test_download__of_more_than_was_announced(publisher: Publisher, tmp_path: Path) -> None:
    """A file without a size in the answer is read up to the expected size, and what is longer is not kept."""
    publisher.closes = True
    assert download(remote(publisher, size_bytes=300_000), tmp_path / "part") == publisher.sha256
    with pytest.raises(Unavailable, match="does not say how large the file is"):
        download(remote(publisher), tmp_path / "other")
    with pytest.raises(InvalidInput, match="sends more than 200,000 bytes"):
        download(remote(publisher, size_bytes=200_000), tmp_path / "other")
    assert names(tmp_path) == ["part"]
