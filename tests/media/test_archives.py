"""Archives give their images as streams; a bad member is left out, and what could do harm as a whole is refused."""

import errno
import gzip
import io
import os
import struct
import tarfile
import tracemalloc
import zipfile
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.skipped import Skipped
from framedex.errors import InvalidInput
from framedex.media.archives import (
    BROKEN,
    ENCRYPTED,
    END_MISSING,
    LEADS_OUT,
    TOO_LARGE,
    ArchiveLimits,
    BrokenMember,
    clean_name,
    open_archive,
)
from tests.failures import failing

LIMITS = ArchiveLimits(member_bytes=2**20, total_bytes=2**24, ratio=50)
KINDS = ("x.zip", "x.tar", "x.tar.gz", "x.tgz")
Members = list[tuple[str, bytes]]


def pack(path: Path, members: Members) -> Path:
    """Write an archive of the kind that its suffix says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                info = zipfile.ZipInfo(name)  # a name as it is, which `writestr` would mend
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, content)
        return path
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, content in members:
            put(archive, name, content)
    return path


def put(archive: tarfile.TarFile, name: str, content: bytes = b"", **fields: Any) -> None:
    """Add a member to a tar."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(content))


def read(path: Path, limits: ArchiveLimits = LIMITS) -> tuple[Members, Skipped]:
    """Return the sound members of an archive, and what was left out."""
    skipped, members = Skipped(), []
    for member in open_archive(path, limits, skipped):
        with suppress(BrokenMember):
            members.append((member.name, b"".join(member.parts)))
    return members, skipped


@contextmanager
def most_memory() -> Iterator[list[int]]:
    """Yield a list that has the most bytes that Python held during the block, afterwards."""
    held: list[int] = []
    tracemalloc.start()
    try:
        yield held
        held.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def refusal(path: Path, limits: ArchiveLimits = LIMITS) -> str:
    """Return why an archive is refused, which names it."""
    with pytest.raises(InvalidInput) as raised:
        read(path, limits)
    message = str(raised.value)
    assert repr(str(path)) in message
    return message


@pytest.mark.parametrize("name", KINDS)
class TestAllKinds:
    def test_archive__images_in_order(self, tmp_path: Path, name: str) -> None:
        """Images, videos and what may be annotations come in the archive's order; what else is there is counted."""
        members = [
            ("b/2.JPG", b"two"), ("a/./1.png", b""), ("b//x.webp", b"x" * 300_000), ("notes.html", b"text"),
            ("film.mp4", b"film"), (".hidden.jpg", b"h"), ("__MACOSX/._a.jpg", b"m"), ("noext", b"?"),
            ("image_annotations.csv", b"filename,label\n"), ("b/annotations.json", b"{}"),
        ]  # fmt: skip
        found, skipped = read(pack(tmp_path / name, members))
        assert found == [
            ("b/2.JPG", b"two"), ("a/1.png", b""), ("b/x.webp", b"x" * 300_000), ("film.mp4", b"film"),
            ("image_annotations.csv", b"filename,label\n"), ("b/annotations.json", b"{}"),
        ]  # fmt: skip
        assert skipped == {
            "other files (.html)": 1, "other files (no suffix)": 1, "hidden files": 1,
            "files in system folders such as @eaDir": 1,
        }  # fmt: skip

    @pytest.mark.parametrize(
        "bad",
        ["../x.jpg", "/etc/x.jpg", "a/../../x.jpg", "a/..", "..\\x.jpg", "C:\\x.jpg", "c:/x.jpg", "\\\\host\\x.jpg"],
    )
    def test_archive__names_that_lead_out(self, tmp_path: Path, name: str, bad: str) -> None:
        """A member whose name leads out of the archive is left out by this reason, be it an image or not."""
        for each in (bad, bad.replace(".jpg", ".txt")):
            found, skipped = read(pack(tmp_path / name, [("good.jpg", b"g"), (each, b"b"), ("last.jpg", b"l")]))
            assert found == [("good.jpg", b"g"), ("last.jpg", b"l")]
            assert (skipped, skipped.examples) == ({LEADS_OUT: 1}, {LEADS_OUT: [each]})

    def test_archive__broken_at_every_place(self, tmp_path: Path, name: str) -> None:
        """Of a tar that ends too early, wherever, the members before are taken, and never for all; a ZIP is refused."""
        members = [(f"{n}.jpg", os.urandom(700)) for n in range(4)]
        whole = pack(tmp_path / name, members).read_bytes()
        end = len(whole) - (10_240 - 4 * 1536 if name == "x.tar" else 1)  # a tar's end is filled up with zeros
        counts = set()
        for size in [0, 1, *range(60, end, 97), end - 1]:
            (tmp_path / name).write_bytes(whole[:size])
            try:
                found, skipped = read(tmp_path / name)
            except InvalidInput:
                assert name == "x.zip" or size < 512, "the first header is there"
                continue
            assert found == members[: len(found)]
            assert (skipped[END_MISSING], skipped.total() - skipped[BROKEN]) == (1, 1)
            assert skipped[BROKEN] <= 1
            counts.add(len(found))
        assert counts == (set() if name == "x.zip" else {0, 1, 2, 3, 4})

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_archive__of_changed_bytes(self, tmp_path: Path, name: str) -> None:
        """With any wrong byte, there is a Framedex error or a problem, or the contents are correct."""
        members = [(f"{n}.jpg", os.urandom(200)) for n in range(3)]
        whole = pack(tmp_path / name, members).read_bytes()
        for place in range(0, len(whole), 13):
            changed = bytearray(whole)
            changed[place] ^= 0xFF
            (tmp_path / name).write_bytes(changed)
            try:
                found, skipped = read(tmp_path / name)
            except InvalidInput:
                continue
            if name != "x.tar" and not skipped[END_MISSING]:  # nothing guards the contents of a plain one
                assert {content for _, content in found} <= {content for _, content in members}
            assert len(found) + skipped.total() - skipped[END_MISSING] <= 3
            assert skipped or len(found) == 3

    def test_archive__member_too_large(self, tmp_path: Path, name: str) -> None:
        """A member above the limit is left out, to the byte."""
        limits = ArchiveLimits(1000, 2**20, 50)
        assert read(pack(tmp_path / name, [("a.jpg", bytes(1000))]), limits)[0] == [("a.jpg", bytes(1000))]
        found, skipped = read(pack(tmp_path / name, [("a.jpg", bytes(1001)), ("b.jpg", b"b")]), limits)
        assert (found, skipped) == ([("b.jpg", b"b")], {TOO_LARGE: 1})
        assert skipped.examples == {TOO_LARGE: ["a.jpg: more than 1,000 bytes (FRAMEDEX_MAX_FILE_BYTES)"]}

    def test_archive__contents_too_large(self, tmp_path: Path, name: str) -> None:
        """Contents above the limit in all refuse the archive, though no member is."""
        path = pack(tmp_path / name, [(f"{n}.jpg", os.urandom(1000)) for n in range(10)])
        message = refusal(path, ArchiveLimits(1000, 9500, 50))
        assert "its contents have more than 9,500 bytes (FRAMEDEX_MAX_ARCHIVE_BYTES)" in message

    def test_archive__of_nothing(self, tmp_path: Path, name: str) -> None:
        """An archive without members has no images; an empty file is no archive."""
        if name != "x.zip":
            with tarfile.open(tmp_path / "zeros.tar", "w"):
                pass
            assert set((tmp_path / "zeros.tar").read_bytes()) == {0}
        assert read(pack(tmp_path / name, [])) == ([], Skipped())
        (tmp_path / name).write_bytes(b"")
        refusal(tmp_path / name)

    def test_archive__that_is_another_thing(self, tmp_path: Path, name: str) -> None:
        """A file of another kind, a folder, a pipe and nothing at all are refused."""
        (tmp_path / name).write_bytes(b"\x89PNG and so on" * 1000)
        refusal(tmp_path / name)
        (tmp_path / name).unlink()
        refusal(tmp_path / name)
        (tmp_path / name).mkdir()
        refusal(tmp_path / name)

    def test_archive__names_of_any_letters(self, tmp_path: Path, name: str) -> None:
        """Names in any script come back as they are."""
        names = ["naïve 🐈.jpg", "日本/写真.png", "new\nline.gif", "'q\" ,;=.jpg"]
        found, _ = read(pack(tmp_path / name, [(each, b"x") for each in names]))
        assert [each for each, _ in found] == names

    def test_archive__repeated_names_all_come(self, tmp_path: Path, name: str) -> None:
        """Of members of one name all are yielded, in order; whoever stores them decides."""
        with pytest.warns(UserWarning, match="Duplicate") if name == "x.zip" else pytest.MonkeyPatch.context():
            path = pack(tmp_path / name, [("a.jpg", b"1"), ("a.jpg", b"2")])
        assert read(path)[0] == [("a.jpg", b"1"), ("a.jpg", b"2")]

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_archive__a_bomb(self, tmp_path: Path, name: str) -> None:
        """Contents that are far larger than the archive are refused once they are large, and never held."""
        path = tmp_path / name
        if name == "x.tar":  # a sparse file: a gigabyte of holes in 1.5 KB
            path.write_bytes(sparse_tar(2**30))
        else:
            pack(path, [(f"{n}.bmp", bytes(40 * 2**20)) for n in range(3)])
        with most_memory() as held, pytest.raises(InvalidInput) as raised:
            deque(
                chain.from_iterable(m.parts for m in open_archive(path, ArchiveLimits(2**31, 2**40, 50), Skipped())),
                maxlen=0,
            )
        assert "more than 50 times larger than itself: possibly a decompression bomb" in str(raised.value)
        assert held[0] < 8 * 2**20


def sparse_tar(size: int) -> bytes:
    """Return a tar of one image of that many bytes, all of them holes, in the old GNU format."""
    header = bytearray(tarfile.TarInfo("hole.bmp").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:398] = b"%011o\0" % size  # the first part begins at the end ...
    header[398:410] = b"%011o\0" % 0  # ... and is empty
    header[483:495] = b"%011o\0" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../x.jpg", "good.jpg"])
def test_tar__links_are_left_out(tmp_path: Path, kind: bytes, target: str) -> None:
    """Links of both kinds are counted, wherever they lead, and not followed."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        put(archive, "good.jpg", b"good")
        put(archive, "link.jpg", type=kind, linkname=target)
    assert read(tmp_path / "x.tar") == ([("good.jpg", b"good")], Counter(links=1))


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_tar__devices_are_left_out(tmp_path: Path, kind: bytes) -> None:
    """Devices and pipes are counted, whatever their names are."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        put(archive, "zero.jpg", type=kind)
    assert read(tmp_path / "x.tar") == ([], Counter({"devices and pipes": 1}))
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        put(archive, "/dev/zero.jpg", type=kind)
    assert read(tmp_path / "x.tar") == ([], Counter({"devices and pipes": 1}))


def test_zip__links_and_devices_are_left_out(tmp_path: Path) -> None:
    """A ZIP made on Unix may have links and pipes, too."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, mode in (
            ("link.jpg", 0o120777),
            ("pipe.jpg", 0o010644),
            ("file.jpg", 0o100644),
            ("dir.jpg", 0o040755),
        ):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, mode << 16
            archive.writestr(info, b"/etc/passwd")
    found, skipped = read(tmp_path / "x.zip")
    assert found == [("file.jpg", b"/etc/passwd")]
    assert skipped == {"links": 1, "devices and pipes": 1}


def test_zip__encrypted(tmp_path: Path) -> None:
    """An encrypted image is left out, and the others are read."""
    path = pack(tmp_path / "x.zip", [("a.jpg", b"a"), ("b.jpg", b"b")])
    data = bytearray(path.read_bytes())
    second = data.rindex(b"PK\1\2")
    data[second + 8] |= 1
    path.write_bytes(data)
    found, skipped = read(path)
    assert (found, skipped, skipped.examples) == ([("a.jpg", b"a")], {ENCRYPTED: 1}, {ENCRYPTED: ["b.jpg"]})


@pytest.mark.parametrize("place", [0, 1, 2])
def test_zip__a_broken_member(tmp_path: Path, place: int) -> None:
    """A member with a wrong checksum or a wrong header is left out, wherever it is, and all others are read."""
    # Bytes that deflating does not change.
    members = [(f"{number}.jpg", bytes(range(150 + number, 200 + number))) for number in range(3)]
    path = pack(tmp_path / "x.zip", members)
    whole = path.read_bytes()
    for at in (whole.index(members[place][1]), whole.index(f"{place}.jpg".encode()) - 30):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        path.write_bytes(changed)
        found, skipped = read(path)
        assert (found, skipped) == (members[:place] + members[place + 1 :], {BROKEN: 1})
        assert skipped.examples[BROKEN][0].startswith(f"{place}.jpg: Bad ")


def test_tar__of_a_wrong_checksum(tmp_path: Path) -> None:
    """The members of a compressed tar whose checksum is wrong are taken; the problem says that they may be changed."""
    path = pack(tmp_path / "x.tgz", [("a.jpg", b"a"), ("b.jpg", b"b")])
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    found, skipped = read(path)
    assert (found, skipped) == ([("a.jpg", b"a"), ("b.jpg", b"b")], {END_MISSING: 1})
    assert "CRC check failed" in skipped.examples[END_MISSING][0]
    assert skipped.examples[END_MISSING][0].endswith("files before it may be changed, because no checksum proves them")


def test_archive__on_a_disk_that_fails(tmp_path: Path) -> None:
    """An error of the disk is no damage of a member: it is an error, and no file is counted as broken."""
    path = pack(tmp_path / "x.zip", [("a.jpg", b"a")])
    with failing("zipfile.ZipExtFile.read", error=OSError(errno.EIO, "Input/output error")):
        assert "Input/output error" in refusal(path)


def test_zip__sizes_that_lie(tmp_path: Path) -> None:
    """A member that claims to be small fails its checksum."""
    path = pack(tmp_path / "x.zip", [("a.bmp", bytes(4 * 2**20))])
    data = bytearray(path.read_bytes())
    for at, record in ((22, b"PK\3\4"), (24, b"PK\1\2")):
        start = data.index(record)
        data[start + at : start + at + 4] = struct.pack("<I", 10)
    path.write_bytes(data)
    assert read(path) == ([], {BROKEN: 1})


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip__other_methods(tmp_path: Path, method: int) -> None:
    """Every compression method of zipfile is read."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
        archive.writestr("a.jpg", b"abc" * 1000)
    assert read(tmp_path / "x.zip")[0] == [("a.jpg", b"abc" * 1000)]


def test_zip__a_method_that_nobody_knows(tmp_path: Path) -> None:
    """A member that cannot be unpacked is left out with the reason."""
    path = pack(tmp_path / "x.zip", [("a.jpg", b"a")])
    data = bytearray(path.read_bytes())
    for at, record in ((8, b"PK\3\4"), (10, b"PK\1\2")):
        start = data.index(record)
        data[start + at : start + at + 2] = struct.pack("<H", 99)
    path.write_bytes(data)
    found, skipped = read(path)
    assert (found, skipped) == ([], {BROKEN: 1})
    assert "compression" in skipped.examples[BROKEN][0]


def renamed(path: Path, old: bytes, new: bytes, *, utf8: bool) -> Path:
    """Change a name of equal length in a ZIP, and whether it claims to be UTF-8."""
    data = path.read_bytes().replace(old, new)
    changed = bytearray(data)
    for at, record in ((7, b"PK\3\4"), (9, b"PK\1\2")):
        start = changed.index(record)
        changed[start + at] = 8 if utf8 else 0
    path.write_bytes(changed)
    return path


def test_zip__names_that_are_not_said_to_be_utf8(tmp_path: Path) -> None:
    """Names are UTF-8 where they can be, though unsaid, and else code page 437; what lies about it is refused."""
    for new, expected in (("é.jpg".encode(), "é.jpg"), (b"\x82\x8a.jpg", "éè.jpg")):
        path = renamed(pack(tmp_path / "x.zip", [("ab.jpg", b"a")]), b"ab.jpg", new, utf8=False)
        assert read(path)[0] == [(expected, b"a")]
    path = renamed(pack(tmp_path / "x.zip", [("ab.jpg", b"a")]), b"ab.jpg", b"\x82\x8a.jpg", utf8=True)
    refusal(path)


def test_zip__names_with_null_characters(tmp_path: Path) -> None:
    """A name is not cut at a null character, so that nothing hides behind one: the member is left out."""
    path = renamed(pack(tmp_path / "x.zip", [("a.jpg_x.txt", b"a")]), b"a.jpg_x.txt", b"a.jpg\0x.txt", utf8=False)
    assert read(path) == ([], {LEADS_OUT: 1})


def test_zip__directory_too_large_to_hold(tmp_path: Path) -> None:
    """A directory of hundreds of megabytes is refused by its size alone, in both forms of the end record."""
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2**30, 0, 0)
    (tmp_path / "x.zip").write_bytes(end)
    assert "its directory has 1,073,741,824 bytes" in refusal(tmp_path / "x.zip")
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 2**40, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0, 0)
    (tmp_path / "x.zip").write_bytes(record + locator + end)
    assert "its directory has 1,099,511,627,776 bytes" in refusal(tmp_path / "x.zip")


def test_zip__of_very_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end record of archives with more than 65,535 members is read, too."""
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    path = pack(tmp_path / "x.zip", [(f"{number}.jpg", b"x") for number in range(5)])
    assert b"PK\6\6" in path.read_bytes()
    assert len(read(path)[0]) == 5


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar__formats(tmp_path: Path, format_: int) -> None:
    """All formats of headers are read, with long names and names that are no UTF-8."""
    names = ["d/" * 60 + "x.jpg", os.fsdecode(b"caf\xe9.jpg")]
    with tarfile.open(tmp_path / "x.tar", "w", format=format_) as archive:
        for name in names:
            put(archive, name, b"x")
    assert [name for name, _ in read(tmp_path / "x.tar")[0]] == names


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_tar__a_header_without_end(tmp_path: Path, kind: bytes) -> None:
    """A header of a gigabyte is refused without being read."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 2**30
    with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(2**20))
    with most_memory() as held:
        message = refusal(tmp_path / "x.tar.gz")
    assert held[0] < 8 * 2**20
    assert "a header of more than" in message


def test_tar__global_headers_without_end(tmp_path: Path) -> None:
    """Headers that tarfile would keep for ever are counted."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(40):
            headers = {f"key{number}x{each}": "v" for each in range(50)}
            archive.fileobj.write(tarfile.TarInfo.create_pax_global_header(headers))
            archive.offset = archive.fileobj.tell()
            put(archive, f"{number}.jpg")
    assert "global headers" in refusal(tmp_path / "x.tar")


def test_tar__nested_headers(tmp_path: Path) -> None:
    """Thousands of headers before one member are an error of ours, not of the interpreter."""
    header = tarfile.TarInfo.create_pax_global_header({"a": "b"})
    (tmp_path / "x.tar").write_bytes(header * 3000 + tarfile.TarInfo("a.jpg").tobuf() + bytes(1024))
    refusal(tmp_path / "x.tar")


@pytest.mark.slow
@pytest.mark.only_soak
def test_tar__skipping_is_counted(tmp_path: Path) -> None:
    """Skipped members of a compressed tar are decompressed, and count, too."""
    path = pack(tmp_path / "x.tar.gz", [("zeros.bin", bytes(100 * 2**20)), ("a.jpg", b"a")])
    assert "decompression bomb" in refusal(path, ArchiveLimits(2**31, 2**40, 50))
    assert "FRAMEDEX_MAX_ARCHIVE_BYTES" in refusal(path, ArchiveLimits(2**31, 2**20, 10_000))


@pytest.mark.slow
@pytest.mark.only_soak
def test_tar__many_members_take_no_memory(tmp_path: Path) -> None:
    """Members that have been passed are not remembered."""
    path = pack(tmp_path / "x.tar", [(f"{n}.jpg", b"") for n in range(4000)])
    with most_memory() as held:
        assert sum(1 for _ in open_archive(path, LIMITS, Skipped())) == 4000
    assert held[0] < 2**20


@pytest.mark.parametrize("name", ["x.rar", "x.7z", "x.gz", "x", "x.jpg", "zip"])
def test_archive__of_an_unknown_kind(tmp_path: Path, name: str) -> None:
    """Files with other suffixes are refused with the valid suffixes."""
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InvalidInput, match=r"an archive is a \.zip, \.tar, \.tar\.gz, \.tgz file"):
        read(tmp_path / name)


def parts_of(name: str) -> Iterator[str]:
    """Yield the parts of a name, as any system would see them."""
    return iter(name.replace("\\", "/").split("/"))


@given(st.text(alphabet="ab./\\:C\0é ", max_size=12))
def test_clean_name__stays_within(name: str) -> None:
    """A clean name is relative, has neither steps up nor empty parts, and is clean already; else there is an error."""
    try:
        clean = clean_name(name)
    except InvalidInput:
        assert name.startswith(("/", "\\")) or ".." in parts_of(name) or "\0" in name or name[1:2] == ":"
        return
    assert not clean.startswith("/")
    assert all(part not in ("", ".", "..") for part in parts_of(clean)) or clean == ""
    assert clean_name(clean) == clean
    assert [part for part in parts_of(name) if part not in ("", ".")] == [part for part in clean.split("/") if part]
