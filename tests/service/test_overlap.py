"""Copies in another dataset, rows that cover a view, and the card, over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Dataset
from tests.gallery import ANIMALS, COPIES, make_gallery
from tests.prepared import prepared
from tests.service.client import Client
from tests.service.serving import serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, Dataset, Client]]:
    """Two datasets with equal files, and a client."""
    folder: Path = tmp_path_factory.mktemp("overlap")
    make_gallery(folder / "gallery")
    with serving(folder) as running:
        pets = prepared(running.workspace, "pets", folder / "gallery")
        copies = running.workspace.create_dataset("copies", folder / "gallery" / "copies")
        yield pets, copies, running.local


@pytest.mark.only_soak
def test_overlap__in_pages(shared: tuple[Dataset, Dataset, Client]) -> None:
    """Pairs come in pages with the counts of all, and are those of Python."""
    pets, copies, client = shared
    expected = pets.overlap(copies)
    assert set(expected.to_arrow()["here_name"].to_pylist()) == {*COPIES}
    rows = []
    for offset in range(len(expected)):
        params = {"other": copies.id, "offset": str(offset), "limit": "1"}
        page = client.get(f"/api/v1/dataset/{pets.id}/overlap", params=params).json()
        assert (page["total"], page["count"], page["other_count"]) == (len(expected), 3, 2)
        rows += page["rows"]
    for row in rows:
        row["copy"] = row.pop("copy_is")
    assert rows == expected.to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("params", "status"),
    [({}, 422), ({"other": "0" * 32}, 404), ({"other": "pets"}, 422), ({"other": "copies", "similarity": "0.5"}, 422),
     ({"other": "copies", "limit": "501"}, 422), ({"other": "copies", "rid": "none"}, 410)],
)  # fmt: skip
def test_overlap__refuses(shared: tuple[Dataset, Dataset, Client], params: dict[str, str], status: int) -> None:
    """Another dataset that does not exist, the same one, and numbers out of range are refused."""
    pets, copies, client = shared
    ids = {"pets": pets.id, "copies": copies.id}
    given = {**params, "other": ids.get(params["other"], params["other"])} if "other" in params else params
    assert client.get(f"/api/v1/dataset/{pets.id}/overlap", params=given).status_code == status


def test_diverse_and_card(shared: tuple[Dataset, Dataset, Client]) -> None:
    """Rows that cover the dataset have their numbers; the card is Markdown."""
    pets, _, client = shared
    body = client.get(f"/api/v1/dataset/{pets.id}/diverse", params={"n": "4"}).json()
    chosen = pets.view.diverse(4)
    assert [row["media_id"] for row in body["rows"]] == list(chosen.ids)
    assert sum(row["n_covered"] for row in body["rows"]) == body["n_covered"] == chosen.n_covered > len(ANIMALS)
    assert client.get(f"/api/v1/dataset/{pets.id}/diverse", params={"n": "10001"}).status_code == 422
    answer = client.get(f"/api/v1/dataset/{pets.id}/card")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text == pets.card()
