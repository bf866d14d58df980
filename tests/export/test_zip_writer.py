"""Other readers accept ZIP files of our writer."""

import io
import shutil
import subprocess
import zipfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.export.zip_writer import ZipWriter

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
MEMBERS = st.dictionaries(NAMES, st.tuples(st.sampled_from(["stored", "deflated", "whole"]), st.binary(max_size=200)))


def write(file: io.BytesIO, members: dict[str, tuple[str, bytes]]) -> None:
    with ZipWriter(file) as archive:
        for name, (how, data) in members.items():
            if how == "whole":
                archive.add(name, data)
                continue
            with archive.member(name, compressed=how == "deflated") as member:
                for start in range(0, len(data), 7):
                    assert member.write(data[start : start + 7]) == len(data[start : start + 7])
                assert member.size == len(data)


@given(MEMBERS)
def test_members__law(members: dict[str, tuple[str, bytes]]) -> None:
    """Members are read by name, in order, with their content."""
    file = io.BytesIO()
    write(file, members)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == list(members)
        assert {name: archive.read(name) for name in members} == {name: data for name, (_, data) in members.items()}


@pytest.mark.slow
@pytest.mark.only_soak
def test_members__many(tmp_path: Path) -> None:
    """More members than the plain form can count are written."""
    with (tmp_path / "many.zip").open("wb") as file, ZipWriter(file) as archive:
        for number in range(70_000):
            archive.add(f"{number}.txt", b"%d" % number)
    with zipfile.ZipFile(tmp_path / "many.zip") as read:
        assert len(read.namelist()) == 70_000
        assert read.read("69999.txt") == b"69999"


class Sparse(io.FileIO):
    """A file that stores large blocks of zeros without space."""

    def write(self, data: Any) -> int:
        if len(data) < len(ZEROS):
            return super().write(data)
        self.seek(len(data), io.SEEK_CUR)
        return len(data)


ZEROS = bytes(2**26)


@pytest.mark.slow
def test_members__beyond_the_plain_form(tmp_path: Path) -> None:
    """Sizes and positions from 4 GiB on use the ZIP64 form, which readers accept."""
    with Sparse(tmp_path / "large.zip", "w") as file, ZipWriter(file) as archive:
        with archive.member("large") as member:
            for _ in range(65):
                member.write(ZEROS)
        archive.add("behind", b"here")
        with archive.member("last", compressed=True) as member:
            member.write(b"text" * 1000)
    with zipfile.ZipFile(tmp_path / "large.zip") as read:
        large, behind, last = read.infolist()
        assert large.file_size == large.compress_size == 65 * 2**26 > 2**32
        assert behind.header_offset > 2**32
        assert read.read(behind) == b"here"
        assert read.read(last) == b"text" * 1000
        with read.open(large) as content:
            assert content.read(10) == bytes(10)


def test_member__taken_back() -> None:
    """A member whose writing fails is removed, and the others are complete."""
    file = io.BytesIO()
    with ZipWriter(file) as archive:
        archive.add("first", b"1")
        with suppress(KeyError), archive.member("second") as member:
            member.write(b"2" * 1000)
            raise KeyError
        archive.add("third", b"3")
    with zipfile.ZipFile(file) as read:
        assert read.testzip() is None
        assert read.namelist() == ["first", "third"]


def test_writer__that_fails_is_no_archive() -> None:
    """If the block raises, no directory is written, so no reader accepts the file."""
    file = io.BytesIO()
    with suppress(KeyError), ZipWriter(file) as archive:
        archive.add("first", b"1")
        raise KeyError
    assert not zipfile.is_zipfile(file)


@pytest.mark.parametrize(
    ("modified", "stored"),
    [
        (datetime(2024, 2, 29, 23, 59, 59), (2024, 2, 29, 23, 59, 58)),
        (datetime(1970, 1, 1), (1980, 1, 1, 0, 0, 0)),
        (datetime(2200, 1, 1), (1980, 1, 1, 0, 0, 0)),
    ],
)
def test_member__time(modified: datetime, stored: tuple[int, ...]) -> None:
    """Times are stored to two seconds, within the range of ZIP."""
    file = io.BytesIO()
    with ZipWriter(file) as archive:
        archive.add("a", b"", modified=modified)
        with archive.member("b", modified=modified):
            pass
    assert [info.date_time for info in zipfile.ZipFile(file).infolist()] == [stored, stored]


@pytest.mark.skipif(shutil.which("unzip") is None, reason="Info-ZIP is not installed")
def test_archive__other_readers(tmp_path: Path) -> None:
    """Info-ZIP reports no error, and unpacks readable files."""
    file = io.BytesIO()
    write(file, {"a/b.txt": ("deflated", b"x" * 5000), "ümlaut 猫.png": ("stored", b"y"), "c": ("whole", b"z")})
    (tmp_path / "out.zip").write_bytes(file.getvalue())
    subprocess.run(["unzip", "-q", "out.zip"], cwd=tmp_path, check=True)
    assert (tmp_path / "a/b.txt").read_bytes() == b"x" * 5000
    assert (tmp_path / "c").read_bytes() == b"z"
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o644
