"""Comparisons and trends over HTTP equal those of Python."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framedex import Dataset
from framedex.api.comparison import CHANGES
from framedex.service.arrow import ARROW
from tests.gallery import make_gallery
from tests.prepared import prepared
from tests.service.client import Client
from tests.service.serving import serving


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, Client]]:
    """A dataset that was changed since its snapshot ``before``."""
    folder: Path = tmp_path_factory.mktemp("comparison")
    make_gallery(folder / "gallery")
    with serving(folder) as running:
        dataset = prepared(running.workspace, "pets", folder / "gallery")
        dataset.snapshot("before")
        ids = dataset.view.media_ids()
        dataset.tag(ids[:5], "keep")
        dataset.set_labels(ids[3:5], ["new"])
        dataset.delete_media(ids[10:12])
        yield dataset, running.local


def get(shared: tuple[Dataset, Client], rest: str, **params: Any) -> Any:
    """Return the answer to a request below the dataset."""
    dataset, client = shared
    return client.get(f"/api/v1/dataset/{dataset.id}/{rest}", params=params)


def test_compare__equals_python(shared: tuple[Dataset, Client]) -> None:
    """Counts, and the rows of each change in pages, are those of ds.compare()."""
    dataset, _ = shared
    found = dataset.compare("before")
    earlier, later = found.generations
    assert get(shared, "compare", before="before").json() == {"counts": found.counts, "before": earlier, "after": later}
    assert get(shared, "compare", before=earlier, after=later).json()["counts"] == found.counts
    for change in CHANGES:
        expected = found.to_arrow(change).to_pylist()
        rows = []
        for offset in range(0, max(len(expected), 1), 2):
            page = get(shared, "compare/rows", before="before", change=change, offset=offset, limit=2).json()
            assert page["total"] == len(expected)
            rows += page["rows"]
        assert rows == expected


def test_compare__rows_as_arrow(shared: tuple[Dataset, Client]) -> None:
    """The rows of a change come as the table of ds.compare(), in pages of any size."""
    dataset, client = shared
    found = dataset.compare("before")
    for change in CHANGES:
        answer = client.get(
            f"/api/v1/dataset/{dataset.id}/compare/rows",
            params={"before": "before", "change": change, "offset": 1, "limit": 100_000},
            headers={"Accept": ARROW},
        )
        table = pa.ipc.open_stream(answer.content).read_all()
        assert table.equals(found.to_arrow(change, offset=1).combine_chunks())


def test_compare__results_of_a_change(shared: tuple[Dataset, Client]) -> None:
    """The media with a change are results, which have one id while nothing changes."""
    dataset, client = shared
    body = {"before": "before", "change": "retagged"}
    url = f"/api/v1/dataset/{dataset.id}"
    first, again = (client.post(f"{url}/compare/results", json=body).json() for _ in range(2))
    assert first == again
    assert first["count"] == 5
    rows = client.get(f"{url}/results/{first['rid']}/rows", params={"columns": ["media_id"]}).json()["rows"]
    assert [row["media_id"] for row in rows] == dataset.compare("before").view("retagged").media_ids()
    assert client.post(f"{url}/compare/results", json={**body, "change": "removed"}).status_code == 422


@pytest.mark.parametrize(
    ("rest", "params", "status"),
    [
        ("compare", {"before": "nothing"}, 404),
        ("compare", {"before": "before", "after": "00000000-0000-4000-8000-000000000000"}, 404),
        ("compare", {}, 422),
        ("compare", {"before": "x" * 1001}, 422),
        ("compare/rows", {"before": "before", "change": "changed"}, 422),
        ("compare/rows", {"before": "before", "change": "added", "limit": 501}, 422),
        ("compare/rows", {"before": "before", "change": "added", "offset": -1}, 422),
    ],
)
def test_compare__bad_input(shared: tuple[Dataset, Client], rest: str, params: dict[str, Any], status: int) -> None:
    """What is no state, no change or no page is refused."""
    assert get(shared, rest, **params).status_code == status


def test_trends__equal_python(shared: tuple[Dataset, Client]) -> None:
    """The points of the snapshots and of the present state are those of ds.trends()."""
    dataset, _ = shared
    assert get(shared, "trends").json() == [each.model_dump(mode="json") for each in dataset.trends()]
