"""Decoding of files in groups: the results do not depend on the other files of a group."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex.encoders import Encoder, Preparation
from framedex.encoders.gist import Gist
from framedex.jobs.ingest.decoding import DecodedFile, FileDecoder, Places
from framedex.media.frame_sampling import EVERY_SECOND
from framedex.media.open_sources import open_source
from framedex.media.sources import Item
from framedex.settings import Settings
from framedex.storage.media_rows import COPY_DESCRIPTOR, PANEL_DESCRIPTORS
from tests.image_files import flat, photo, write
from tests.jobs.fakes import Colours

LARGE = 2100  # pixels a side: one such image ends a group


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of photos with and without panels, a broken file, and an image that ends a group."""
    path = tmp_path_factory.mktemp("images")
    for seed in range(3):
        write(path / f"{seed}.jpg", photo(seed))
    (path / "3.jpg").write_bytes(b"no image")
    write(path / "4.png", flat((9, 9, 9), width=LARGE, height=LARGE))
    write(path / "5.jpg", np.hstack([photo(5) // 3, 170 + photo(6) // 3]))
    (path / "6.jpg").write_bytes(b"")
    return path


def decoder_of(folder: Path, encoder: Encoder, columns: Iterable[str]) -> FileDecoder:
    """Return a decoder of the files of a folder."""
    return FileDecoder(
        Places((str(folder),)),
        Preparation.of(encoder),
        Settings(),
        EVERY_SECOND,
        lambda _item, _number: False,
        tuple(columns),
    )


def plain(files: Iterable[Any]) -> list[dict[str, Any]]:
    """Return results as values that can be compared."""
    assert all(isinstance(each, DecodedFile) for each in files)
    return [{name: of_arrays(value) for name, value in asdict(each).items()} for each in files]


def of_arrays(value: Any) -> Any:
    """Return a value with lists in the place of arrays."""
    if isinstance(value, dict):
        return {key: of_arrays(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(
    ("encoder", "columns"),
    [
        (Gist(), {PANEL_DESCRIPTORS}),
        (Gist(), {COPY_DESCRIPTOR, PANEL_DESCRIPTORS}),
        (Colours(), {COPY_DESCRIPTOR, PANEL_DESCRIPTORS}),
    ],
)
def test_decode_images__together(folder: Path, encoder: Encoder, columns: set[str]) -> None:
    """Files that are decoded together have the results that each has by itself, in their order."""
    decoder = decoder_of(folder, encoder, columns)
    items: list[Item] = list(open_source(folder).items())
    together = plain(decoder.decode_images(items))
    assert together == [plain(decoder.decode_images([item]))[0] for item in items]
    assert [each["error"] is None for each in together] == [True, True, True, False, True, True, False]
    described = [each["of_copies"] for each in together]
    assert [bool(each) for each in described] == [each["error"] is None for each in together]
    assert [each and each[PANEL_DESCRIPTORS] is not None for each in described].count(True) >= 1
    assert all((each[COPY_DESCRIPTOR] is not None) == (COPY_DESCRIPTOR in columns) for each in described if each)
    assert decoder.decode_images([]) == []
