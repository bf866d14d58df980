"""Folders and lists name the images to ingest, in a stable order, whatever the names are."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex.core.skipped import Skipped
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_image, is_video
from framedex.errors import InvalidInput
from framedex.media.list_sources import ListSource, read_list
from framedex.media.open_sources import check_not_empty, open_source
from framedex.media.sources import FolderSource, Item
from tests.image_files import encode, photo

linux_names = pytest.mark.skipif(sys.platform != "linux", reason="the file system does not take any bytes for a name")


def touch(root: Path, *names: str) -> None:
    """Make empty files."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def paths(source: Any) -> list[str]:
    """Return the paths that a source names."""
    return [item.path for item in source.items()]


def listed(source: Any) -> list[str]:
    """Return absolute paths of the files that a source names."""
    return [os.path.normpath(Path(source.root, path)) for path in paths(source)]


def test_formats__suffixes_in_any_case() -> None:
    """Images and videos are known by their suffixes, in upper and lower case."""
    assert is_image("a.JPG")
    assert is_image("a.b.heic")
    assert not is_image("jpg")
    assert not is_image(".jpg")
    assert is_video("clip.MP4")
    assert not is_image("clip.mp4")
    assert not IMAGE_SUFFIXES & VIDEO_SUFFIXES


def test_folder__finds_images_below_in_order_of_names(tmp_path: Path) -> None:
    """Files of a folder come before those of its folders, both in order of names."""
    touch(tmp_path, "b.png", "a.jpg", "z/1.webp", "c/deep/er/x.tif", "c/y.bmp", "10.gif", "9.gif")
    source = open_source(tmp_path)
    assert paths(source) == ["10.gif", "9.gif", "a.jpg", "b.png", "c/y.bmp", "c/deep/er/x.tif", "z/1.webp"]
    assert source.root == str(tmp_path)
    assert paths(source) == paths(source)


def test_folder__counts_what_is_left_out(tmp_path: Path) -> None:
    """Hidden files, folders of systems, and files of other kinds by suffix are counted, anew in each walk."""
    touch(tmp_path, "a.jpg", "._a.jpg", ".Trash-1000/b.jpg", "c/.d/e.jpg", "notes.txt", "b.TXT", "film.mp4", "noext")
    touch(tmp_path, "@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg", "c/#recycle/a.jpg", "$RECYCLE.BIN/x.jpg", "__MACOSX/a.jpg")
    source = open_source(tmp_path)
    for _ in range(2):
        assert paths(source) == ["a.jpg", "film.mp4"]
        assert source.skipped == {
            "other files (.txt)": 2, "other files (no suffix)": 1, "hidden files": 1, "hidden folders": 2,
            "system folders such as @eaDir": 4,
        }  # fmt: skip


def test_folder__names_up_to_twenty_suffixes_of_other_files(tmp_path: Path) -> None:
    """Numbers as suffixes do not make a list without an end."""
    touch(tmp_path, *(f"a.{number:03d}" for number in range(30)))
    source = open_source(tmp_path)
    assert paths(source) == []
    assert len(source.skipped) == 21
    assert (source.skipped["other files"], source.skipped.total()) == (10, 30)


@pytest.mark.parametrize(
    ("name", "data", "is_item"),
    [
        ("scan", encode(photo(1), "JPEG"), True),
        ("frame.0001", encode(photo(1), "PNG"), True),
        ("grey.tmp", encode(photo(1), "PPM"), True),
        ("README", b"Python needs BMP files\n" * 9, False),
        ("BMW", b"BMW and others\n" * 9, False),
        ("labels.txt", encode(photo(1), "JPEG"), False),
        ("raw.NEF", encode(photo(1), "TIFF"), False),
        ("short", b"BM", False),
        ("IM000001", bytes(128) + b"DICM", True),
        ("DICOMDIR", bytes(128) + b"DICM", False),
    ],
)
def test_folder__suffixes_that_say_nothing(tmp_path: Path, name: str, data: bytes, is_item: bool) -> None:
    """Files without a known suffix are images if they begin like one; others are counted by suffix."""
    (tmp_path / name).write_bytes(data)
    source = open_source(tmp_path)
    assert paths(source) == [name] * is_item
    assert source.skipped.total() == (not is_item)
    if is_item:
        assert paths(open_source(tmp_path / name)) == [name]


def test_folder__videos_without_a_suffix_are_counted(tmp_path: Path) -> None:
    """Frames are read of files with the suffix of a video alone, so that others are counted with a reason."""
    (tmp_path / "clip").write_bytes(b"\0\0\0\x18ftypisom" + bytes(16))
    (tmp_path / "record.rec").write_bytes((b"G" + bytes(187)) * 3)
    (tmp_path / "camcorder").write_bytes((bytes(4) + b"G" + bytes(187)) * 3)
    source = open_source(tmp_path)
    assert paths(source) == []
    assert source.skipped == {"videos without the suffix of a video": 3}


def test_folder__without_images(tmp_path: Path) -> None:
    """An empty folder and one of text files have no items."""
    assert paths(open_source(tmp_path)) == []
    touch(tmp_path, "a.txt")
    assert paths(open_source(tmp_path)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
class TestLinks:
    def test_folder__link_loops_end(self, tmp_path: Path) -> None:
        """A link to a folder above it is not followed for ever."""
        touch(tmp_path, "a/b/x.jpg")
        (tmp_path / "a/b/loop").symlink_to(tmp_path / "a")
        (tmp_path / "a/self").symlink_to(".")
        source = open_source(tmp_path)
        assert paths(source) == ["a/b/x.jpg"]
        assert source.skipped["folders that a link leads back to"] == 2

    def test_folder__links_to_outside_are_followed(self, tmp_path: Path) -> None:
        """Linked files and folders belong to the source, each folder once."""
        touch(tmp_path / "outside", "x.jpg")
        touch(tmp_path / "in", "a.jpg")
        (tmp_path / "in/l1").symlink_to(tmp_path / "outside")
        (tmp_path / "in/l2").symlink_to(tmp_path / "outside")
        (tmp_path / "in/z.jpg").symlink_to(tmp_path / "outside/x.jpg")
        assert paths(open_source(tmp_path / "in")) == ["a.jpg", "z.jpg", "l1/x.jpg"]

    def test_folder__real_path_owns_the_files(self, tmp_path: Path) -> None:
        """A link that sorts before its target within the source does not take the files of the target."""
        touch(tmp_path, "z/photos/x.jpg", "m/y.jpg")
        (tmp_path / "a").symlink_to(tmp_path / "z")
        (tmp_path / "m/b").symlink_to(tmp_path / "z/photos")
        source = open_source(tmp_path)
        assert paths(source) == ["m/y.jpg", "z/photos/x.jpg"]
        assert source.skipped == {"folders that a link leads back to": 2}

    def test_folder__dangling_links_are_items(self, tmp_path: Path) -> None:
        """A link that leads nowhere is named, so that it can be shown as broken."""
        (tmp_path / "gone.jpg").symlink_to(tmp_path / "nothing.jpg")
        (tmp_path / "circle.jpg").symlink_to(tmp_path / "circle.jpg")
        (tmp_path / "gone").symlink_to(tmp_path / "nothing")
        source = open_source(tmp_path)
        assert paths(source) == ["circle.jpg", "gone.jpg"]

    def test_source__may_be_a_link_itself(self, tmp_path: Path) -> None:
        """A linked folder keeps the name by which it was given."""
        touch(tmp_path / "real", "a.jpg")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        source = open_source(tmp_path / "link")
        assert source.root == str(tmp_path / "link")
        assert paths(source) == ["a.jpg"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is unreadable for root")
def test_folder__unreadable_folders_are_counted(tmp_path: Path) -> None:
    """A folder below that may not be read is left out; the source itself must be readable."""
    touch(tmp_path, "a.jpg", "locked/b.jpg")
    (tmp_path / "locked").chmod(0)
    try:
        source = open_source(tmp_path)
        assert paths(source) == ["a.jpg"]
        assert source.skipped["folders that cannot be read"] == 1
        with pytest.raises(InvalidInput, match="locked"):
            paths(FolderSource(str(tmp_path / "locked")))
    finally:
        (tmp_path / "locked").chmod(0o755)


@linux_names
def test_folder__names_of_any_bytes(tmp_path: Path) -> None:
    """Spaces, quotes, newlines and bytes that are no UTF-8 are kept, so that the files can be opened."""
    names = [b"a b.jpg", b'it\'s "x".jpg', b"new\nline.jpg", b"caf\xe9.jpg", b"\xff\xfe.png", "naïve 🐈.gif".encode()]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    (tmp_path / os.fsdecode(b"d\xe9/")).mkdir()
    (tmp_path / os.fsdecode(b"d\xe9/x.jpg")).write_bytes(b"inner")
    source = open_source(tmp_path)
    found = {os.fsencode(path): Path(source.root, path).read_bytes() for path in paths(source)}
    assert found == {**{name: name for name in names}, b"d\xe9/x.jpg": b"inner"}


def test_folder__that_went_away(tmp_path: Path) -> None:
    """A source that is gone when it is walked is an error that names it."""
    (tmp_path / "x").mkdir()
    source = open_source(tmp_path / "x")
    (tmp_path / "x").rmdir()
    with pytest.raises(InvalidInput, match="cannot read the folder"):
        paths(source)


@pytest.mark.parametrize("name", ["missing", "a\0b", "x" * 10_000])
def test_source__that_does_not_exist(tmp_path: Path, name: str) -> None:
    """A path with nothing at it is refused, whatever its form."""
    with pytest.raises(InvalidInput):
        open_source(tmp_path / name)


@pytest.mark.parametrize("name", ["film.mp3", "list.json", "noext"])
def test_source__of_the_wrong_kind(tmp_path: Path, name: str) -> None:
    """A file that is neither an image nor a list is refused with what would be right."""
    touch(tmp_path, name)
    with pytest.raises(
        InvalidInput, match=r"is not a folder, an image \(.*\) or a list \(\.txt, \.csv, \.tsv, \.parquet\)"
    ):
        open_source(tmp_path / name)


def test_source__of_one_image(tmp_path: Path) -> None:
    """An image alone is a source, relative to the folder that it is in, whatever else is there."""
    touch(tmp_path, "a/one.JPG", "a/two.jpg")
    source = open_source(tmp_path / "a" / "one.JPG")
    assert (source.root, paths(source), paths(source)) == (str(tmp_path / "a"), ["one.JPG"], ["one.JPG"])
    assert source.skipped == {}


def test_text_list__one_path_a_line(tmp_path: Path) -> None:
    """Relative paths are relative to the list; blank lines and line ends of all systems are understood."""
    other = tmp_path / "other"
    list_path = tmp_path / "lists" / "list.txt"
    list_path.parent.mkdir()
    text = f"\ufeffa.jpg\r\n\r\nsub/b c.png\n../d.gif\n{other}/e.tif\nsub/./b c.png\na.jpg"
    list_path.write_bytes(text.encode())
    source = open_source(list_path)
    base = tmp_path / "lists"
    assert listed(source) == [str(base / "a.jpg"), str(base / "sub/b c.png"), str(tmp_path / "d.gif"), f"{other}/e.tif"]
    assert source.root == str(tmp_path)
    assert source.skipped == {"repeated entries": 2}
    assert listed(source) == listed(source)


def test_text_list__names_that_are_not_there_stay(tmp_path: Path) -> None:
    """A list is taken at its word: missing files and files of any suffix are items."""
    (tmp_path / "list.txt").write_text("missing.jpg\nnotes.md\nfilm.mp4\n")
    source = open_source(tmp_path / "list.txt")
    assert paths(source) == ["missing.jpg", "notes.md", "film.mp4"]
    assert source.skipped == {}


@linux_names
def test_text_list__bytes_that_are_no_utf8(tmp_path: Path) -> None:
    """A list in another encoding finds files whose names have the same bytes."""
    (tmp_path / "list.txt").write_bytes(b"caf\xe9.jpg\n")
    assert [os.fsencode(path) for path in paths(open_source(tmp_path / "list.txt"))] == [b"caf\xe9.jpg"]


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_list__empty(tmp_path: Path, suffix: str) -> None:
    """A list without entries is a source without items."""
    list_path = tmp_path / f"list.{suffix}"
    list_path.write_text("")
    assert paths(open_source(list_path)) == []
    assert open_source(list_path).root == str(tmp_path)


def test_csv_list__columns_by_name(tmp_path: Path) -> None:
    """The path column is found by name in any place and case, with labels and captions beside it."""
    rows = 'caption,Label,FILENAME\r\n"a ""red"" car, fast","[dog, puppy]",a.jpg\r\n,,b.jpg\r\n\r\n'
    rows += "x,cat\r\nx,cat,c.jpg\r\n"
    (tmp_path / "list.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    source = open_source(tmp_path / "list.csv")
    assert list(source.items()) == [
        Item("a.jpg", ("dog", "puppy"), 'a "red" car, fast'),
        Item("b.jpg"),
        Item("c.jpg", ("cat",), "x"),
    ]
    assert source.skipped == {"rows without a path": 1}


def test_csv_list__without_a_header(tmp_path: Path) -> None:
    """If no column has a known name, the first column has the paths, from the first row on."""
    (tmp_path / "list.csv").write_text("a.jpg,ignored\nb.jpg\n")
    assert paths(open_source(tmp_path / "list.csv")) == ["a.jpg", "b.jpg"]


def test_csv_list__names_with_newlines(tmp_path: Path) -> None:
    """A quoted path may hold a newline and quotes."""
    (tmp_path / "list.csv").write_text('path\n"new\nline ""x"".jpg"\n')
    assert paths(open_source(tmp_path / "list.csv")) == ['new\nline "x".jpg']


@pytest.mark.parametrize("row", ['"x.jpg', '"x"b.jpg\nc.jpg'])
def test_csv_list__malformed(tmp_path: Path, row: str) -> None:
    """A row that is not CSV is counted; the others are read, in so far as they can be told apart."""
    (tmp_path / "list.csv").write_text(f"path\na.jpg\n{row}")
    source = open_source(tmp_path / "list.csv")
    assert paths(source) == ["a.jpg", *row.split("\n")[1:]]
    assert source.skipped == {"rows that are not CSV": 1}


@linux_names
def test_csv_list__text_that_is_no_utf8(tmp_path: Path) -> None:
    """Paths keep their bytes; labels and captions become text that can be stored."""
    (tmp_path / "list.csv").write_bytes(b"path,label,caption\ncaf\xe9.jpg,caf\xe9,\xe9t\xe9\n")
    (item,) = open_source(tmp_path / "list.csv").items()
    assert os.fsencode(item.path) == b"caf\xe9.jpg"
    assert item.labels == ("caf?",)
    assert item.caption == "?t?"


def write_parquet(file: Path, **columns: Any) -> Path:
    """Write a table and return its path."""
    pq.write_table(pa.table(columns), file)
    return file


def test_parquet_list__columns_by_name(tmp_path: Path) -> None:
    """Paths, labels (lists or text) and captions are read from a Parquet file."""
    list_path = write_parquet(
        tmp_path / "list.parquet",
        labels=[["dog", "puppy"], None, ["cat"]],
        File_Path=["a.jpg", "sub/b.jpg", "a.jpg"],
        caption=["x", None, "y"],
    )
    source = open_source(list_path)
    assert list(source.items()) == [Item("a.jpg", ("dog", "puppy"), "x"), Item("sub/b.jpg")]
    assert source.skipped == {"repeated entries": 1}


def test_parquet_list__first_column_and_other_types(tmp_path: Path) -> None:
    """Without a known name the first column is taken; numbers are labels and captions as text."""
    list_path = write_parquet(tmp_path / "list.parquet", which=["a.jpg", "b.jpg"], label=[3, None], caption=[1.5, None])
    assert list(open_source(list_path).items()) == [Item("a.jpg", ("3",), "1.5"), Item("b.jpg")]


@pytest.mark.parametrize("values", [[1, 2], [["a.jpg"]]])
def test_parquet_list__paths_that_are_no_text(tmp_path: Path, values: list[Any]) -> None:
    """A path that is a number or a list is an error that names the file and the column."""
    with pytest.raises(InvalidInput, match=r"list\.parquet: column 'path' holds"):
        open_source(write_parquet(tmp_path / "list.parquet", path=values))


@pytest.mark.parametrize("content", [b"", b"not a parquet file", b"PAR1" + bytes(50)])
def test_parquet_list__malformed(tmp_path: Path, content: bytes) -> None:
    """A file that is no Parquet is an error that names it."""
    (tmp_path / "list.parquet").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"list\.parquet"):
        open_source(tmp_path / "list.parquet")


def test_parquet_list__without_columns(tmp_path: Path) -> None:
    """A table of no columns names no files and is refused."""
    pq.write_table(pa.table({}), tmp_path / "list.parquet")
    with pytest.raises(InvalidInput, match="no columns"):
        open_source(tmp_path / "list.parquet")


def test_list__root_is_the_deepest_common_folder(tmp_path: Path) -> None:
    """Moving the files is one change: the root holds them all, and no more than needed."""
    (tmp_path / "list.txt").write_text("x/y/a.jpg\nx/y/z/b.jpg\nx/yy/c.jpg\n")
    source = ListSource(tmp_path / "list.txt")
    assert source.root == str(tmp_path / "x")
    assert paths(source) == ["y/a.jpg", "y/z/b.jpg", "yy/c.jpg"]


def test_list__in_upper_case(tmp_path: Path) -> None:
    """The suffix of a list may be in upper case."""
    (tmp_path / "LIST.TXT").write_text("a.jpg\n")
    assert paths(open_source(tmp_path / "LIST.TXT")) == ["a.jpg"]


def test_text_list__file_uris(tmp_path: Path) -> None:
    """A list may name local files by their URIs, odd bytes and all."""
    (tmp_path / "list.txt").write_text(f"file://{tmp_path}/a%20b%FF.jpg\n{tmp_path}/c.jpg\n")
    assert list(paths(open_source(tmp_path / "list.txt"))) == ["a b\udcff.jpg", "c.jpg"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("file://[x/a.jpg", "rows that are no URI of a file, as file:///folder/a.jpg"),
        ("file://]/a.jpg", "rows that are no URI of a file, as file:///folder/a.jpg"),
    ],
)
def test_list__lines_that_are_no_paths(tmp_path: Path, line: str, reason: str) -> None:
    """A line that cannot be understood is counted with an example, and the others are files."""
    (tmp_path / "list.txt").write_text(f"a.png\n{line}\nb.png\n")
    source = open_source(tmp_path / "list.txt")
    assert isinstance(source, ListSource)
    assert list(paths(source)) == ["a.png", "b.png"]
    assert source.skipped == {reason: 1}
    assert line[:60] in source.skipped.examples[reason][0]


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet"])
def test_list__path_that_is_too_long(tmp_path: Path, suffix: str) -> None:
    """A path of more than 64 KiB is none, in a list of any format."""
    path, name = tmp_path / f"list.{suffix}", "x" * 2**16
    if suffix == "parquet":
        write_parquet(path, path=["a.png", name])
    else:
        path.write_text(f"a.png\n{name}\n")
    source = open_source(path)
    assert isinstance(source, ListSource)
    assert list(paths(source)) == ["a.png"]
    (example,) = source.skipped.examples["paths of 65,536 characters or more"]
    assert example.startswith(f"list.{suffix}, row 2: ")
    assert len(example) < 1000


def test_csv_list__row_without_an_end(tmp_path: Path) -> None:
    """A list is read row by row, and a row of 16 Mi characters is refused."""
    path = tmp_path / "list.csv"
    path.write_bytes(b"path\n")
    os.truncate(path, 20 << 20)
    with pytest.raises(InvalidInput, match=r"list\.csv' as CSV: line 2: a row may have at most 16,777,216 characters"):
        open_source(path)


def test_parquet_list__dates_out_of_range(tmp_path: Path) -> None:
    """A date that Python has not is an error with the file and the column."""
    path = write_parquet(tmp_path / "list.parquet", path=["x.jpg"], label=pa.array([10**9], pa.date32()))
    with pytest.raises(InvalidInput, match=r"list\.parquet': column 'label' has a value of the type date32"):
        open_source(path)


def mutated(path: Path, content: bytes, seed: int) -> None:
    """Write a file with some bytes changed."""
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    for place in rng.integers(0, len(data), 4):
        data[place] = rng.integers(0, 256)
    path.write_bytes(bytes(data))


@pytest.mark.slow
def test_parquet_list__mutated(tmp_path: Path) -> None:
    """A Parquet file with changed bytes is read, or refused with an error that names it; of ours in any case."""
    names = [f"folder/{number}-é.jpg" for number in range(200)]
    table = pa.table({"path": names, "caption": names, "label": names})
    path = tmp_path / "list.parquet"
    pq.write_table(table, path, compression="snappy")
    content, refused = path.read_bytes(), 0
    for seed in range(300):
        mutated(path, content, seed)
        try:
            list(read_list(path, Skipped()))
        except InvalidInput as error:
            refused += str(path) in str(error)
    assert refused > 100


@pytest.mark.parametrize(
    ("suffix", "text", "items"),
    [
        ("csv", "path;label\na.jpg;dog\n", [Item("a.jpg", ("dog",))]),
        ("csv", "Foto;label\na.jpg;dog\n", [Item("a.jpg", ("dog",))]),
        ("tsv", "a.jpg\t0\nb c.jpg\t1\n", [Item("a.jpg", ("0",)), Item("b c.jpg", ("1",))]),
        ("txt", "a.jpg 0\nb c.jpg 1\n", [Item("a.jpg", ("0",)), Item("b c.jpg", ("1",))]),
        ("txt", "# mine\n'a.jpg'\n  \n # more\n b c.jpg \n", [Item("a.jpg"), Item("b c.jpg")]),
        ("txt", '"a.jpg"\nwin\\i0.jpg\n', [Item("a.jpg"), Item("win/i0.jpg")]),
        ("csv", "C:\\data\\win\\i0.jpg,x\nC:\\data\\a.jpg,y\n", [Item("win/i0.jpg", ("x",)), Item("a.jpg", ("y",))]),
        ("csv", ',path,label\n0, a.jpg ,"[""x"", ""y""]"\n', [Item("a.jpg", ("x", "y"))]),
        ("csv", "path,file\n1,a.jpg\n2,b c.jpg\n", [Item("a.jpg"), Item("b c.jpg")]),
        ("csv", "a.jpg,a dog and a small cat\nb c.jpg,nothing\n", [Item("a.jpg"), Item("b c.jpg")]),
        ("csv", "a.jpg,file,image\nb c.jpg,2,3\n", [Item("a.jpg"), Item("b c.jpg")]),
        ("txt", "notes.md\na.jpg\n", [Item("notes.md"), Item("a.jpg")]),
        ("txt", "Foto\na.jpg\n", [Item("a.jpg")]),
        ("txt", "# b c.jpg\n#b c.jpg\na.jpg\n", [Item("a.jpg")]),
        ("txt", "#1.jpg\na.jpg\n", [Item("#1.jpg"), Item("a.jpg")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_list__as_programs_write_it(tmp_path: Path, suffix: str, text: str, items: list[Item], encoding: str) -> None:
    """Delimiter, encoding, header, quotes, comments and separators of Windows are understood."""
    touch(tmp_path, "a.jpg", "b c.jpg", "win/i0.jpg", "#1.jpg")
    (tmp_path / f"list.{suffix}").write_bytes(text.encode(encoding))
    source = open_source(tmp_path / f"list.{suffix}")
    assert source.root == str(tmp_path)
    assert list(source.items()) == items


def test_list__counts_what_is_not_read(tmp_path: Path) -> None:
    """Comments, rows without a path and columns of unknown meaning are counted, with examples."""
    (tmp_path / "list.csv").write_text("a.jpg,1,2\n# later\n,3,4\nb.jpg,5,6\n")
    source = open_source(tmp_path / "list.csv")
    assert paths(source) == ["a.jpg", "b.jpg"]
    assert source.skipped == {"columns without a name": 2, "comments": 1, "rows without a path": 1}
    assert isinstance(source.skipped, Skipped)
    assert source.skipped.examples["comments"] == ["list.csv, line 2: # later"]


@pytest.mark.parametrize(
    ("content", "rows", "skipped"),
    [
        (b"path;label\na.jpg;x;1\nb.jpg;y;2\n", 2, {"columns without a name": 1}),
        (b"name;label\n1;x;a.jpg\n2;y;b.jpg\n", 2, {"columns without a name": 1}),
        (b"\xff\xfe\0\0a\0\t\0b\0ae\n\0", 1, {"rows with bytes that are no text": 1}),
        ("a.jpg\nb.jpg\n".encode("utf-16")[:-3] + b"\xd8\n\0", 2, {"rows with bytes that are no text": 1}),
    ],
)
def test_list__damaged(tmp_path: Path, content: bytes, rows: int, skipped: dict[str, int]) -> None:
    """Cells behind the header are counted as a column without a name, and so are rows with bytes that are no text."""
    (tmp_path / "list.csv").write_bytes(content)
    source = open_source(tmp_path / "list.csv")
    assert len(paths(source)) == rows
    assert source.skipped == skipped


@linux_names
@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_list__windows_1252(tmp_path: Path, suffix: str) -> None:
    """A list of Windows has its letters if a file has the name that they make."""
    touch(tmp_path, "café.jpg")
    text = "path;label;caption\ncafé.jpg;café;été\n" if suffix == "csv" else "café.jpg\n"
    (tmp_path / f"list.{suffix}").write_bytes(text.encode("cp1252"))
    (item,) = open_source(tmp_path / f"list.{suffix}").items()
    assert item == (Item("café.jpg", ("café",), "été") if suffix == "csv" else Item("café.jpg"))


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("list.csv", "foto;klasse\ngone.xyz;dog\n", r"between semicolons and no header.*foto' with the labels klasse"),
        (
            "list.csv",
            "path;label\ngone.jpg;dog\n",
            r"between semicolons and the header 'path, label'.*gone\.jpg' with the",
        ),
        ("list.txt", "gone.jpg\nx/gone.jpg\n", r"one path a line\..*gone\.jpg'; '.*/x/gone\.jpg'"),
    ],
)
def test_list__of_which_no_file_exists(tmp_path: Path, name: str, content: str, shown: str) -> None:
    """A list in which no file is found is refused, with its first rows as they were understood."""
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=rf"none of the files exists that '.*{name}' names.*{shown}"):
        check_not_empty(open_source(tmp_path / name), tmp_path / name)
