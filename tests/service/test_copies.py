"""Copies of an image over HTTP: sent, or a part of a media item; and by the client of the service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framedex import Client, Dataset, InvalidInput, NotFound
from framedex.service.settings import ServiceSettings
from tests.gallery import embedded
from tests.image_files import encode, textured, write
from tests.service.client import BASE, OWN
from tests.service.serving import Serving, serving

NOWHERE = "00000000-0000-0000-0000-0000000000aa"
LIMIT = 2**20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images of which parts are found, and a copy of one."""
    folder = tmp_path_factory.mktemp("copies")
    for seed in range(6):
        write(folder / "source" / f"{seed}.png", textured(seed))
    (folder / "source/same.png").write_bytes((folder / "source/1.png").read_bytes())
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Serving]:
    """A service with that folder as the dataset ``copies``, and another one with equal images."""
    with serving(folder, ServiceSettings(max_query_bytes=LIMIT)) as running:
        running.workspace.create_dataset("copies", folder / "source")
        running.workspace.create_dataset("vectors", embedded([[1.0, 0.0], [0.0, 1.0]]))
        yield running


@pytest.fixture(scope="module")
def dataset(served: Serving) -> Dataset:
    """The dataset."""
    return served.workspace.dataset("copies")


def copies(served: Serving, dataset: Dataset, content: bytes | None = None, **params: Any) -> Any:
    """Return the answer to a search for copies."""
    files = None if content is None else {"file": ("query.png", content, "image/png")}
    return served.vic.post(f"/api/v1/dataset/{dataset.id}/copies", files=files, params=params, headers=OWN)


def test_copies__of_an_image_that_is_sent(served: Serving, dataset: Dataset, folder: Path) -> None:
    """The records are those of the library, for the whole image and for a part in pixels or shares."""
    part = encode(textured(2)[40:200, 40:280])
    for content, box, shares in (
        (part, None, None),
        (encode(textured(2)), (40, 30, 160, 120), {"x": 0.125, "y": 0.125, "width": 0.5, "height": 0.5}),
    ):
        expected = [copy.model_dump(mode="json") for copy in dataset.copies_of(content, bounding_box=box)]
        assert [each["path"] for each in expected] == ["2.png"]
        for text in (None,) if box is None else (",".join(map(str, box)), json.dumps(shares)):
            answer = copies(served, dataset, content, **({} if text is None else {"bounding_box": text}))
            assert (answer.status_code, answer.json()) == (200, expected), answer.text
            assert str(folder) not in answer.text
    assert copies(served, dataset, encode(textured(99))).json() == []


def test_copies__of_an_item_and_of_a_part_of_it(served: Serving, dataset: Dataset) -> None:
    """An item has the members of its group, and a part of it is found in the item itself."""
    own = dataset.media_id("1.png")
    answer = copies(served, dataset, media_id=own)
    assert [each["path"] for each in answer.json()] == ["same.png"]
    assert copies(served, dataset, media_id=own, similarity=1).json() == answer.json()
    for box in ("40,30,160,120", '{"x": 0.125, "y": 0.125, "width": 0.5, "height": 0.5}'):
        found = copies(served, dataset, media_id=own, bounding_box=box).json()
        assert {each["path"] for each in found} == {"1.png", "same.png"}
        assert {each["original"] for each in found} == {"dataset"}


def test_copies__refuses(served: Serving, dataset: Dataset, folder: Path) -> None:
    """Neither or both of image and item, no image, no box, no id, no descriptors, and too much."""
    own, content = dataset.media_id("1.png"), encode(textured(1))
    for answer in (
        copies(served, dataset),
        copies(served, dataset, content, media_id=own),
        copies(served, dataset, b"no image"),
        copies(served, dataset, b""),
        copies(served, dataset, content, bounding_box="1,2,3"),
        copies(served, dataset, content, bounding_box="900,900,5,5"),
        copies(served, dataset, content, similarity=0.5),
        copies(served, dataset, media_id=own, bounding_box="900,900,5,5"),
        copies(served, served.workspace.dataset("vectors"), content),
    ):
        assert answer.status_code == 422, answer.text
    assert copies(served, dataset, b"x" * (LIMIT + 1)).status_code == 413
    foreign = served.workspace.dataset("vectors").view.ids[0]
    for media_id in (NOWHERE, foreign, "1.png", str(folder / "source/1.png"), "/etc/passwd"):
        for box in ("", "0,0,9,9"):
            answer = copies(served, dataset, media_id=media_id, bounding_box=box)
            assert (answer.status_code, answer.json()["detail"]) == (404, "Media not found")


def test_results__by_an_uploaded_crop_say_which_rows_are_copies(served: Serving, dataset: Dataset) -> None:
    """Results and explore by an uploaded crop begin with its source, and say what was done to it."""
    path = f"/api/v1/dataset/{dataset.id}"
    files = {"file": ("query.png", encode(textured(2)[60:180, 60:220]), "image/png")}
    anchor = served.vic.post(f"{path}/search-image-similarity", files=files, headers=OWN).json()
    body = {"search": {"similar": anchor["anchor_media_id"], "limit": None}}
    info = served.vic.post(f"{path}/results", json=body, headers=OWN).json()
    assert info["count"] == 7
    rows = served.vic.get(f"{path}/results/{info['rid']}/rows", params={"columns": ["image_filename", "copy"]}).json()
    (first, *others) = rows["rows"]
    assert first["image_filename"] == "2.png"
    assert first["copy"].startswith("cropped to 2")
    assert {each["copy"] for each in others} == {None}
    page = served.vic.get(f"/api/v1/explore/{dataset.id}", params=anchor).json()
    (preview, *_) = page["clusters"][0]["previews"]
    assert (preview["file_name"], preview["copy"]) == ("2.png", first["copy"])


def test_client__finds_copies_of_any_image(served: Serving, dataset: Dataset, folder: Path) -> None:
    """The client takes what the library takes, and sends files of its own machine."""
    pixels = textured(2)[60:180, 60:220]
    write(folder / "crop.png", pixels)
    with Client(BASE, transport=served.local._transport) as client:
        far = client.dataset("copies")
        for query in (folder / "crop.png", str(folder / "crop.png"), encode(pixels), pixels, Image.fromarray(pixels)):
            assert [copy.path for copy in far.copies_of(query)] == ["2.png"]
            assert far.similar(query, limit=1)[0]["copy"].startswith("cropped to 2")
        own = dataset.media_id("1.png")
        assert far.copies_of(own) == dataset.copies_of(own)
        assert far.copies_of(own, bounding_box=(40, 30, 160, 120)) == dataset.copies_of(
            own, bounding_box=(40, 30, 160, 120)
        )
        with pytest.raises(NotFound):
            far.copies_of(NOWHERE)
        for wrong in ("absent.png", np.zeros((2, 2, 7)), 7):
            with pytest.raises(InvalidInput):
                far.copies_of(wrong)
