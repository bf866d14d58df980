"""A dataset with images of every kind: files, a turned one, frames, an upload, a broken file; labels and boxes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Dataset, Workspace
from tests.gallery import SETTINGS, Averages
from tests.image_files import encode, photo, write
from tests.objects import write_table
from tests.videos import numbered, write_video

NAMES = ["cat/1.jpg", "cat/turned.jpg", "dog/ü 3.png", "none.png", "two.png"]
TURNED = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


def _labels(folder: Path) -> None:
    rows = ["filename,label,caption", "cat/1.jpg,cat,a cat", "cat/turned.jpg,cat,", "dog/ü 3.png,dog,"]
    rows.append('two.png,"[""cat"", ""dog""]",')
    (folder / "image_annotations.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    write_table(
        folder / "object_annotations.csv",
        [("cat/1.jpg", (1.5, 2.0, 30.0, 20.0), "ear"), ("cat/1.jpg", (50.0, 60.0, 40.5, 30.0), "tail")],
    )


@pytest.fixture(scope="session")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """The dataset, to be read only."""
    folder = tmp_path_factory.mktemp("training")
    for seed, name in enumerate(NAMES):
        write(folder / "source" / name, photo(seed))
    (folder / "source" / "cat/turned.jpg").write_bytes(encode(photo(9), "JPEG", exif=TURNED))
    (folder / "source" / "broken.jpg").write_bytes(b"no image")
    write_video(folder / "source" / "clip.mp4", numbered(25))
    _labels(folder / "source")
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        made = workspace.create_dataset("d", folder / "source", Averages())
        made.add_media(files=[("upload.png", encode(photo(20)))])
        yield made
