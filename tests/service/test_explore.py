"""Explore over HTTP: each parameter, its limits, and the forms that old clients read."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Dataset
from framedex.issue_types import FAULTS, built_in_types
from framedex.media.budget import shared_budget
from framedex.records import DUPLICATE_LEVELS
from framedex.service.settings import ServiceSettings
from tests.gallery import ANIMALS, BROKEN, COPIES, FURRY, TOWNS, embedded, make_gallery
from tests.image_files import encode, photo, png_claiming
from tests.inside import context_of
from tests.objects import scenes
from tests.pauses import wait_until
from tests.prepared import prepared
from tests.service.client import OWN
from tests.service.serving import Serving, serving
from tests.videos import numbered, write_video

NOWHERE = "00000000-0000-0000-0000-0000000000aa"
LIMIT = 2**17
ISSUES = (
    "mislabels outliers duplicates blur dark bright label_outlier odd_aspect_ratio odd_size low_information grayscale "
    "corrupted"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a gallery of labelled images, and a dataset with objects and a video."""
    folder = tmp_path_factory.mktemp("explore")
    make_gallery(folder / "gallery")
    scenes(folder / "things", 2)
    write_video(folder / "things/clip.mp4", numbered(20))
    with serving(folder, ServiceSettings(max_query_bytes=LIMIT)) as running:
        gallery = prepared(running.workspace, "pets", folder / "gallery")
        gallery.tag([gallery.media_id(TOWNS[0])], "keep")
        running.workspace.create_dataset("things", folder / "things")
        yield running


@pytest.fixture(scope="module")
def dataset(served: Serving) -> Dataset:
    """The gallery."""
    return served.workspace.dataset("pets")


def explore(served: Serving, dataset: Dataset, **params: Any) -> dict[str, Any]:
    """Return a page of clusters."""
    answer = served.vic.get(f"/api/v1/explore/{dataset.id}", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def names(page: dict[str, Any]) -> set[str]:
    """Return the paths of the previews of a page."""
    return {preview["original_uri"] for cluster in page["clusters"] for preview in cluster["previews"]}


@pytest.mark.slow
def test_explore__without_parameters(
    served: Serving, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The bare call shows images at the finest level, in the form of the interface, without paths of the server."""
    answer = served.vic.get(f"/api/v1/explore/{dataset.id}")
    page = answer.json()
    assert list(page) == ["clusters", "metadata", "total_pages", "current_page", "notes"]
    assert (page["total_pages"], page["current_page"], page["metadata"]) == (1, 0, {"used_duckdb": True})
    assert page == explore(served, dataset, entity_type="IMAGES", threshold=0, page_number=0)
    assert "media" not in page["clusters"][0]
    assert str(served.workspace.path.parent) not in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.slow
def test_explore__levels_and_pages(served: Serving, dataset: Dataset) -> None:
    """Coarser levels have fewer clusters; a page behind the last is empty."""
    pages = [explore(served, dataset, threshold=level)["clusters"] for level in range(5)]
    counts = [len(clusters) for clusters in pages]
    assert counts == sorted(counts, reverse=True)
    for level, clusters in enumerate(pages):
        assert {cluster["similarity_threshold"] for cluster in clusters} == {str(level)}
    assert explore(served, dataset, page_number=7)["clusters"] == []


@pytest.mark.slow
def test_explore__objects_and_videos(served: Serving) -> None:
    """Objects and videos are explored by their type."""
    things = served.workspace.dataset("things")
    objects = explore(served, things, entity_type="OBJECTS")["clusters"]
    assert {preview["type"] for cluster in objects for preview in cluster["previews"]} == {"OBJECT"}
    (video,) = explore(served, things, entity_type="VIDEOS")["clusters"]
    assert video["type"] == "VIDEOS"
    assert video["previews"][0]["video_uri"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ['["fur", "nothing"]', "[fur,nothing]", "fur,nothing", '"fur"', "fur", "[ 'fur' ]"])
def test_explore__labels_in_each_form(served: Serving, dataset: Dataset, form: str) -> None:
    """Labels arrive as JSON, as a bare list, or as bare words."""
    assert names(explore(served, dataset, labels=form)) == set(FURRY)


@pytest.mark.slow
def test_explore__tags_in_each_form(served: Serving, dataset: Dataset) -> None:
    """Tags arrive likewise, by id or name; ``untagged`` selects the others."""
    (tag,) = dataset.tags()
    for form in ("keep", "[keep]", '["keep"]', tag.tag_id, f"[{tag.tag_id},gone]"):
        assert names(explore(served, dataset, tags=form)) == {TOWNS[0]}, form
    for form in ("untagged", "[untagged]", '["untagged"]'):
        assert TOWNS[0] not in names(explore(served, dataset, tags=form))
    both = explore(served, dataset, tags="untagged,keep")
    assert TOWNS[0] in names(both)


def test_explore__vql(served: Serving, dataset: Dataset) -> None:
    """A filter is a JSON array; what is wrong with it is a 422 with its path."""
    assert names(
        explore(served, dataset, vql=json.dumps([{"labels": {"op": "is", "value": ["animal", "fur"]}}]))
    ) == set(FURRY)
    assert names(
        explore(served, dataset, labels="town", vql='[{"not":{"labels":{"op":"is","value":"animal"}}}]')
    ) == set(TOWNS)
    wrong = served.vic.get(f"/api/v1/explore/{dataset.id}", params={"vql": '[{"labels":{"op":"like","value":"a"}}]'})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_filter")
    assert "$[0].labels.op" in wrong.json()["detail"]


def filtered(served: Serving, dataset: Dataset, element: dict[str, Any]) -> Any:
    """Return the answer to a filter of one element."""
    params: dict[str, str | int] = {"vql": json.dumps([element]), "threshold": 4}
    return served.vic.get(f"/api/v1/explore/{dataset.id}", params=params)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("element", "names"),
    [
        ({"text": {"op": "fts", "value": "streets"}}, set(TOWNS)),
        ({"text": {"op": "fts", "value": '"number 03"'}}, {TOWNS[3]}),
        ({"labels": {"op": "one_of", "value": ["fur", "nothing"]}}, set(FURRY)),
        ({"tags": {"op": "is", "value": ["TAG"]}}, {TOWNS[0]}),
        ({"issues": {"op": "issue", "value": "corrupted", "mode": "in"}}, set(BROKEN)),
        ({"duplicates": {"op": "duplicates", "value": 1}}, set(COPIES)),
        ({"id": "an own id", "labels": {"op": "is", "value": "fur"}}, set(FURRY)),
        ({"labels": {"op": "is_not", "value": "animal"}, "id": 7}, None),
        ({"labels": {"op": "not_one_of", "value": ["animal"]}}, None),
        ({"uniqueness": {"op": "uniqueness", "value": 1}}, None),
    ],
)
def test_explore__keys_of_the_interface(
    served: Serving, dataset: Dataset, element: dict[str, Any], names: set[str] | None
) -> None:
    """Each key of the interface filters; None stands for those that are not animals, or are the least like others."""
    (tag,) = dataset.tags()
    answer = filtered(served, dataset, json.loads(json.dumps(element).replace("TAG", tag.tag_id)))
    assert answer.status_code == 200, answer.text
    clusters = answer.json()["clusters"]
    found = {preview["original_uri"] for cluster in clusters for preview in cluster["previews"]}
    if names is not None:
        assert found == names
    elif "labels" in element:
        assert not found & set(ANIMALS)
        assert found
    else:
        most = {row["media_id"] for row in dataset.to_arrow(["media_id", "uniqueness_score"]).to_pylist()
                if row["uniqueness_score"] == 1}  # fmt: skip
        assert {preview["media_id"] for cluster in clusters for preview in cluster["previews"]} == most


@pytest.mark.parametrize(
    ("element", "sentence"),
    [
        ({"duplicates": {"op": "duplicates", "value": 0.95}}, "0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0"),
        ({"text": {"op": "fts", "value": "a", "threshold": 1.1}}, "$[0].text.threshold"),
        ({"text": {"op": "semantic", "value": "a"}}, "Enrich it"),
        ({"tags": {"op": "one_of", "value": ["a"]}}, "$[0].tags.op"),
        ({"issues": {"op": "issue", "value": "ugly", "mode": "in"}}, "$[0].issues.value"),
        ({"uniqueness": {"op": "uniqueness", "value": 1.1}}, "$[0].uniqueness.value"),
        ({"labels": {"op": "one_of", "value": "a"}, "tags": {"op": "is", "value": "a"}}, "$[0]"),
    ],
)
def test_explore__vql_that_is_refused(
    served: Serving, dataset: Dataset, element: dict[str, Any], sentence: str
) -> None:
    """A filter that cannot be used is a 422 which says where, or what would be right."""
    answer = filtered(served, dataset, element)
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True), answer.text


@pytest.mark.slow
def test_explore__issues_of_the_interface(served: Serving, dataset: Dataset) -> None:
    """Each issue type has its name on the wire, and is a value of the filter."""
    ours = {issue.name for issue in FAULTS.values()}
    assert {issue.name for issue in built_in_types()} == set(ISSUES.split()) | ours
    for name in {*ISSUES.split(), *ours}:
        element = {"issues": {"op": "issue", "value": name, "mode": "in"}}
        assert filtered(served, dataset, element).status_code == 200, name
    assert DUPLICATE_LEVELS == (0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0)


@pytest.mark.slow
def test_explore__caption_and_anchor(served: Serving, dataset: Dataset) -> None:
    """Texts and anchors order the clusters; both names of the caption do the same."""
    by_text = explore(served, dataset, caption="street number 03")
    assert by_text["clusters"][0]["previews"][0]["original_uri"] == TOWNS[3]
    near = explore(served, dataset, caption="street number 03", textual_similarity_threshold=0.01)
    assert names(near) == {TOWNS[3]}
    anchor = dataset.media_id(ANIMALS[5])
    for params in ({"anchor_media_id": anchor}, {"anchor_media_id": anchor, "anchor_type": "MEDIA"}):
        page = explore(served, dataset, **params)
        assert page["clusters"][0]["previews"][0]["media_id"] == anchor


def test_explore__image_caption_has_the_old_keys(served: Serving, dataset: Dataset) -> None:
    """Two old clients read further keys."""
    page = explore(served, dataset, image_caption="street number 03")
    cluster = page["clusters"][0]
    first = cluster["previews"][0]
    assert first["original_uri"] == TOWNS[3]
    assert (cluster["id"], cluster["entity_type"]) == (cluster["cluster_id"], "IMAGES")
    assert (cluster["size"], cluster["representative_id"]) == (int(cluster["size_display_value"]), first["media_id"])
    media = cluster["media"][0]
    assert (media["id"], media["filename"], media["preview"]) == (
        first["media_id"],
        first["file_name"],
        first["media_thumb_uri"],
    )
    assert (media["caption"], media["relevance_score"]) == (first["caption"], first["relevance_score"])
    assert page["total_pages"] == 1


@pytest.mark.parametrize(
    "params",
    [
        {"entity_type": "FRAMES"},
        {"threshold": "-1"},
        {"threshold": "5"},
        {"threshold": "0.5"},
        {"page_number": "-1"},
        {"page_number": str(2**31)},
        {"textual_similarity_threshold": "1.1", "caption": "a"},
        {"textual_similarity_threshold": "0.5"},
        {"caption": "x" * 10_001},
        {"labels": '{"a": 1}'},
        {"tags": "[1, 2]"},
        {"vql": "x"},
        {"vql": "{}"},
        {"anchor_type": "MEDIA"},
        {"anchor_type": "FILE", "anchor_media_id": NOWHERE},
        {"caption": "a", "anchor_media_id": NOWHERE},
    ],
)
def test_explore__bad_parameters(served: Serving, dataset: Dataset, params: dict[str, str]) -> None:
    """Each parameter out of range is a 422 with a sentence."""
    answer = served.vic.get(f"/api/v1/explore/{dataset.id}", params=params)
    assert answer.status_code == 422, answer.text
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.slow
def test_explore__at_the_limits(served: Serving, dataset: Dataset) -> None:
    """The limits themselves are allowed."""
    for params in ({"threshold": 4}, {"page_number": 2**31 - 1}, {"caption": "x " * 5000}):
        explore(served, dataset, **params)


def test_explore__of_what_is_not_there(served: Serving, dataset: Dataset) -> None:
    """Unknown datasets and anchors are not found; a draft has nothing to show yet."""
    unknown = served.vic.get(f"/api/v1/explore/{NOWHERE}", params={"threshold": "x"})
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "Dataset not found")
    assert served.vic.get("/api/v1/explore/pets").status_code == 404
    for anchor in (NOWHERE, "../../catalog.db", "x"):
        answer = served.vic.get(f"/api/v1/explore/{dataset.id}", params={"anchor_media_id": anchor})
        assert answer.status_code == 404, answer.text
    draft = served.workspace.create_draft("draft")
    assert served.vic.get(f"/api/v1/explore/{draft.id}").status_code == 409
    assert served.vic.get(f"/api/v1/explore/{draft.id}/exploration_metadata").status_code == 409


def test_exploration_metadata__counts(served: Serving, dataset: Dataset) -> None:
    """The counts are those of all pages."""
    path = f"/api/v1/explore/{dataset.id}/exploration_metadata"
    counts = served.vic.get(path, params={"page_number": 3}).json()
    assert counts["dataset_name"] == "pets"
    assert counts["clusters_count"] == len(explore(served, dataset)["clusters"])
    assert counts["media_count"] == dataset.count()
    assert {"name": "animal", "count": 12} in counts["labels"]
    towns = served.vic.get(path, params={"vql": '[{"labels":{"op":"is","value":"town"}}]', "threshold": 4}).json()
    assert (towns["media_count"], towns["labels"]) == (12, [{"name": "town", "count": 12}])
    things = served.workspace.dataset("things")
    path = f"/api/v1/explore/{things.id}/exploration_metadata"
    videos = served.vic.get(path, params={"entity_type": "VIDEOS"}).json()
    assert (videos["clusters_count"], videos["media_count"]) == (1, 2)
    objects = served.vic.get(path, params={"entity_type": "OBJECTS"}).json()
    assert objects["media_count"] == 6
    assert served.vic.get(path, params={"threshold": 5}).status_code == 422


def search(served: Serving, dataset: Dataset, content: bytes, **params: Any) -> Any:
    """Return the answer to an upload of an image."""
    files = {"file": ("query.jpg", content, "image/jpeg")}
    path = f"/api/v1/dataset/{dataset.id}/search-image-similarity"
    return served.vic.post(path, files=files, params=params, headers=OWN)


def test_search__by_an_uploaded_image(served: Serving, dataset: Dataset) -> None:
    """The anchor of an image that was uploaded leads to its copies, in explore and in VQL."""
    content = encode(photo(5))
    answer = search(served, dataset, content, allow_deleted="False")
    assert answer.status_code == 200, answer.text
    anchor = answer.json()
    assert anchor["anchor_type"] == "UPLOAD"
    page = explore(served, dataset, **anchor)
    assert page["clusters"][0]["previews"][0]["original_uri"] == ANIMALS[5]
    vql = [{"similarity": {"op": "upload", "value": anchor["anchor_media_id"], "threshold": 0.05}}]
    assert ANIMALS[5] in names(explore(served, dataset, vql=json.dumps(vql)))


@pytest.mark.parametrize("box", ["0,0,80,120", '{"x": 0, "y": 0, "width": 0.5, "height": 1}', ""])
def test_search__by_a_part(served: Serving, dataset: Dataset, box: str) -> None:
    """A part is given in pixels, or as shares of the image."""
    assert search(served, dataset, encode(photo(5)), bounding_box=box).status_code == 200


@pytest.mark.parametrize(
    "box",
    [
        "0,0,80",
        "a,b,c,d",
        "500,500,10,10",
        '{"x": 0}',
        '{"x": 0, "y": 0, "width": 1.1, "height": 1}',
        "{",
        "0,0,0,0",
        "nan,0,1,1",
    ],
)
def test_search__by_no_part(served: Serving, dataset: Dataset, box: str) -> None:
    """A box that is none, or that holds no pixel, is a 422."""
    answer = search(served, dataset, encode(photo(5)), bounding_box=box)
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("box", [None, "0,0,80,120"])
def test_search__counts_in_the_limit_of_pixels(served: Serving, dataset: Dataset, box: str | None) -> None:
    """An image waits while others take the pixels that may be decoded at a time."""
    limit = context_of(dataset).settings.pixels_in_flight
    budget, params = shared_budget(limit), {} if box is None else {"bounding_box": box}
    content = encode(np.zeros((1000, 1200, 3), np.uint8))
    with ThreadPoolExecutor(1) as pool:
        with budget.hold(limit):
            answer = pool.submit(search, served, dataset, content, **params)
            wait_until(lambda: budget.waiting == 1)
            assert not answer.done()
        assert answer.result().status_code == 200


def test_search__by_no_image(served: Serving, dataset: Dataset) -> None:
    """No file, no image, and a file over the limit are refused."""
    path = f"/api/v1/dataset/{dataset.id}/search-image-similarity"
    missing = served.vic.post(path, headers=OWN)
    assert (missing.status_code, missing.json()["detail"]) == (422, "Field 'file' is required")
    refused = search(served, dataset, b"no image")
    assert (refused.status_code, refused.json()["code"], refused.json()["fault"]) == (422, "cannot_decode", "damaged")
    assert search(served, dataset, b"").status_code == 422
    assert search(served, dataset, b"x" * (LIMIT + 1)).status_code == 413
    for box in (None, "0,0,9,9"):
        bomb = search(served, dataset, png_claiming(50_000, 50_000), **({} if box is None else {"bounding_box": box}))
        assert bomb.status_code == 422
        assert "50000×50000 is more than" in bomb.json()["detail"]
        assert bomb.json()["fault"] == "over_limit"
    assert search(served, dataset, encode(photo(5)), threshold=5).status_code == 422
    assert search(served, dataset, encode(photo(5)), entity_type="FRAMES").status_code == 422


def test_search__in_embeddings_of_others(served: Serving) -> None:
    """A dataset that brought its own embeddings has no encoder for other images."""
    vectors = served.workspace.create_dataset("vectors", embedded([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]))
    answer = search(served, vectors, encode(photo(5)))
    assert answer.status_code == 400
    assert "own embeddings" in answer.json()["detail"]


@pytest.mark.slow
def test_explore__of_a_hidden_dataset(served: Serving, tmp_path: Path) -> None:
    """A dataset of another tenant does not exist for a user."""
    hidden = served.workspace.create_dataset("hidden", embedded([[1.0, 0.0], [0.0, 1.0]]))
    served.hide(hidden)
    for path in (f"/api/v1/explore/{hidden.id}", f"/api/v1/explore/{hidden.id}/exploration_metadata"):
        answer = served.ann.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Dataset not found")
