"""Values of requests that are odd: what a client gets wrong is a 422, and no sentence that a person types is."""

import json
from collections.abc import Iterator

import pytest

from framedex import Dataset
from tests.gallery import make_gallery
from tests.prepared import prepared
from tests.service.client import OWN
from tests.service.serving import Serving, serving

SENTENCES = ('a 19" rack', "dog (small", "smile :(", "dog OR", "NOT", ")", '"', "caption:", "a AND", "*", "d*g", "🐕 (")
DEEP = b"[" * 10_000 + b"]" * 10_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a dataset."""
    folder = tmp_path_factory.mktemp("odd")
    with serving(folder) as running:
        make_gallery(folder / "gallery")
        prepared(running.workspace, "pets", folder / "gallery")
        yield running


@pytest.fixture
def dataset(served: Serving) -> Dataset:
    """The dataset."""
    return served.workspace.dataset("pets")


@pytest.mark.slow
@pytest.mark.parametrize("sentence", SENTENCES)
def test_sentences__are_searched_for(served: Serving, dataset: Dataset, sentence: str) -> None:
    """Any text is searched for, as a caption and in a filter; what is no expression stands for its words."""
    url = f"/api/v1/explore/{dataset.id}"
    vql = json.dumps([{"text": {"op": "fts", "value": sentence}}])
    for query in ({"caption": sentence}, {"image_caption": sentence}, {"vql": vql}):
        answer = served.vic.get(url, params=query)
        assert answer.status_code == 200, (query, answer.text)


@pytest.mark.parametrize(
    "body", [b"{", DEEP, b'{"username": "\xff"}', b"1" * 5000, b"\xff\xfe", b'{"a": ' * 5000, b"NaN1"]
)
def test_bodies__that_are_no_json(served: Serving, body: bytes) -> None:
    """A body that is no JSON, or cannot be read as such, is a 422, whatever is wrong with it."""
    answer = served.nobody.post("/api/v1/login", content=body, headers={**OWN, "Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text


@pytest.mark.parametrize(
    "vql", [DEEP.decode()[:20_000], "9" * 5000, '[{"blur": ' + "9" * 5000 + "}]", "[NaN]", "[1e999]"]
)
def test_filters__of_odd_json(served: Serving, dataset: Dataset, vql: str) -> None:
    """A filter that no program can read is a 422, too."""
    answer = served.vic.get(f"/api/v1/explore/{dataset.id}", params={"vql": vql})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "path",
    [
        "workspace/members?workspace_id=x",
        "workspace/settings/access?workspace_id=x",
        "workspaces?organization_id=x",
        "tasks?dataset_id=x",
        "notifications?dataset_id=x",
        "notifications/unread-count?dataset_id=x",
        "tasks?page_size=" + "9" * 5000,
        "notifications?limit=1e3",
    ],
)
def test_queries__with_no_ids_and_numbers(served: Serving, path: str) -> None:
    """A value of a query that is no id, or no number, is a 422."""
    answer = served.ann.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text


def test_exports__need_a_format(served: Serving, dataset: Dataset) -> None:
    """An export names its format."""
    url = f"/api/v1/dataset/{dataset.id}/export_context_async"
    answer = served.eve.get(url, params={"file_name": "a"}, headers=OWN)
    assert (answer.status_code, answer.json()["detail"]) == (422, "Field 'export_format' is required")
