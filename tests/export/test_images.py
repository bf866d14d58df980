"""Images of an export are read up to the size that they have when they are opened."""

import zipfile
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.export.zip_writer import Member
from tests.gallery import SETTINGS
from tests.image_files import photo, write


def test_images__that_grow_while_they_are_copied(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another program extends without end is left out with the reason; the others are whole."""
    for number in range(3):
        write(tmp_path / "source" / f"{number}.png", photo(number))
    growing = tmp_path / "source" / "1.png"
    dataset = workspace.create_dataset("d", tmp_path / "source")
    write_part = Member.write

    def while_growing(member: Member, data: bytes | memoryview) -> int:
        if growing.stat().st_size < 8 << 20:
            with growing.open("ab") as file:
                file.write(bytes(1 << 20))
        return write_part(member, data)

    growing.write_bytes(growing.read_bytes() + bytes(2 << 20))
    monkeypatch.setattr(Member, "write", while_growing)
    result = dataset.export(tmp_path / "out.zip", include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.testzip() is None
        names = [name for name in archive.namelist() if name.startswith("images/")]
        assert names == ["images/0.png", "images/2.png"]
        assert archive.read("images/2.png") == (tmp_path / "source" / "2.png").read_bytes()
    assert (result.images, result.missing_images) == (2, [str(growing)])
    assert result.message.endswith("2 images; 1 left out: they grew while they were copied")


def test_images__that_are_too_large(tmp_path: Path) -> None:
    """A file that grew beyond the limit since it was ingested is left out with the reason."""
    for number in range(2):
        write(tmp_path / "source" / f"{number}.png", photo(number))
    with Workspace(tmp_path / "workspace", settings=SETTINGS.model_copy(update={"max_file_bytes": 2**20})) as workspace:
        dataset = workspace.create_dataset("d", tmp_path / "source")
        with (tmp_path / "source" / "1.png").open("ab") as file:
            file.truncate(2**20 + 1)
        result = dataset.export(tmp_path / "out.zip", include_images=True)
    assert result.images == 1
    assert result.message.endswith("1 left out: they are larger than FRAMEDEX_MAX_FILE_BYTES")
