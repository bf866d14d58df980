"""Names in lists mean the files that have them, in the form in which they are written or another one."""

import os
import sys
import unicodedata
from pathlib import Path

import pytest

from framedex.core.name_forms import FilePlaces, composed, normal_name

COMPOSED = "é/ü.jpg"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other file systems have one form of names")


def touch(root: Path, *names: str) -> None:
    """Make empty files."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (COMPOSED, DECOMPOSED),
        (DECOMPOSED, COMPOSED),
        ("é/" + unicodedata.normalize("NFD", "ü.jpg"), unicodedata.normalize("NFD", "é/") + "ü.jpg"),
        ("win\\i0.jpg", "win/i0.jpg"),
        (".\\win\\é.jpg", "win/" + unicodedata.normalize("NFD", "é.jpg")),
        ("C:\\data\\set\\win\\i0.jpg", "win/i0.jpg"),
        ("\\\\server\\share\\set\\i0.jpg", "set/i0.jpg"),
        ("/home/me/set/win/i0.jpg", "win/i0.jpg"),
        ("/home/me/../set/i0.jpg", "i0.jpg"),
        ("  i0.jpg ", "i0.jpg"),
        ('"i 0.jpg"', "i 0.jpg"),
    ],
)
def test_place__another_form(tmp_path: Path, name: str, file: str) -> None:
    """A name that no file has is found in another form; if a file has the name itself, it is that file."""
    touch(tmp_path, file)
    assert FilePlaces(str(tmp_path)).place(name) == str(tmp_path / file)
    if not name.startswith("/"):
        touch(tmp_path, name)
        assert FilePlaces(str(tmp_path)).place(name) == os.path.normpath(tmp_path / name)


def test_place__longest_end(tmp_path: Path) -> None:
    """Of several ends of a foreign path the longest that a file has is taken."""
    touch(tmp_path, "i0.jpg", "win/i0.jpg")
    assert FilePlaces(str(tmp_path)).place("D:/x/win/i0.jpg") == str(tmp_path / "win/i0.jpg")


def test_place__two_files_of_a_form(tmp_path: Path) -> None:
    """A name that two files have in other forms is neither of them."""
    angstrom = "x\u0301\u0323.jpg", "x\u0323\u0301.jpg"  # equal when composed; neither is composed
    touch(tmp_path, *angstrom)
    places = FilePlaces(str(tmp_path))
    assert [places.place(name) for name in angstrom] == [str(tmp_path / name) for name in angstrom]
    composed = unicodedata.normalize("NFC", "x\u0301\u0323.jpg")
    touch(tmp_path / "two", "ạ\u0301.jpg", "a\u0301\u0323.jpg")
    assert composed in angstrom
    assert not os.path.lexists(places.place("two/á\u0323.jpg"))


def test_place__none(tmp_path: Path) -> None:
    """A name of no file keeps its folder, with slashes."""
    assert FilePlaces(str(tmp_path)).place("win\\gone.jpg") == str(tmp_path / "win/gone.jpg")
    assert FilePlaces(str(tmp_path)).place("/gone/x.jpg") == "/gone/x.jpg"


def test_place__plain_names_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list of plain names the first thousand files are looked for, and no others."""
    looks = list[str]()

    def look(path: str) -> bool:
        looks.append(path)
        return True

    monkeypatch.setattr("framedex.core.name_forms.os.path.lexists", look)
    places = FilePlaces(str(tmp_path))
    assert [places.place(f"{n}.jpg") for n in range(1500)] == [str(tmp_path / f"{n}.jpg") for n in range(1500)]
    assert len(looks) == 1000
    places.place("win\\1.jpg")
    assert len(looks) == 1001


@pytest.mark.parametrize("name", [DECOMPOSED, "é\\.\\ü.jpg", "x/../é/ü.jpg"])
def test_names__one_form_for_all(name: str) -> None:
    """Names that mean the same path have one form."""
    assert composed(normal_name(name)) == COMPOSED
