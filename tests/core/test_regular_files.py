"""Only regular files are opened, at once, and no more of them is read than allowed."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.counts import counted
from framedex.core.regular_files import (
    TooLarge,
    open_binary,
    open_text,
    opener,
    read_at_most,
    read_bytes,
    read_text,
    regular,
)

READERS: list[Callable[[Path], object]] = [
    regular,
    open_binary,
    open_text,
    lambda path: read_bytes(path, 100),
    read_text,
]


@pytest.fixture
def bound(in_tmp_path: Path) -> Iterator[Path]:
    """A socket in the file system."""
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")  # its path must be short
        yield in_tmp_path / "socket"


@pytest.mark.parametrize("read", READERS)
def test_open__what_is_no_regular_file(tmp_path: Path, bound: Path, read: Callable[[Path], object]) -> None:
    """Pipes, sockets and devices are refused at once, also by way of a link; so are folders and what is missing."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", bound, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read(path)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")


@given(st.binary(max_size=300), st.integers(0, 300))
def test_read__up_to_a_limit(content: bytes, most: int) -> None:
    """A file comes whole up to the limit, and is refused above it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        if len(content) <= most:
            assert read_bytes(path, most) == content
        else:
            with pytest.raises(TooLarge, match=f"more than {counted(most, 'bytes')}:") as raised:
                read_bytes(path, most)
            assert raised.value.max_bytes == most


def test_read__a_file_that_grows(tmp_path: Path) -> None:
    """Data written while a file is read counts; at most one byte beyond the limit is read."""
    path = tmp_path / "file"
    path.write_bytes(bytes(50))
    with open(path, "rb", buffering=0, opener=opener) as file:

        class Growing:
            """A file that gets a hundred bytes before each time that it is read."""

            name, fileno = str(path), file.fileno

            def read(self, size: int) -> bytes | None:
                with path.open("ab") as more:
                    more.write(bytes(100))
                return file.read(size)

        with pytest.raises(TooLarge):
            read_at_most(Growing(), 1000)  # type: ignore[arg-type]
        assert file.tell() == 1001


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc")
def test_read__a_file_that_says_it_is_empty() -> None:
    """The limit holds for files of /proc, whose size is 0."""
    assert Path("/proc/self/maps").stat().st_size == 0
    with pytest.raises(TooLarge):
        read_bytes("/proc/self/maps", 100)
    assert len(read_bytes("/proc/self/maps", 2**24)) > 100


def test_read_text__lines(tmp_path: Path) -> None:
    """Lines end in line feeds, whatever they end in there; a mark of the byte order may be left out."""
    (tmp_path / "file").write_bytes("\ufeffä\r\nb\rc\n".encode())
    assert read_text(tmp_path / "file", encoding="utf-8-sig") == "ä\nb\nc\n"
    with pytest.raises(TooLarge):
        read_text(tmp_path / "file", max_bytes=3)
    with pytest.raises(UnicodeDecodeError):
        read_text(tmp_path / "file", encoding="ascii")
