"""Searching a dataset: by image, by words, by meaning, and all of it together with filters."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from framedex import CannotDecode, Dataset, InvalidInput, NotFound, Workspace
from framedex.api.view import RankedView
from framedex.media.decode import decode
from framedex.search.query_images import Box
from tests.gallery import ANIMALS, COPIES, NEAR, TOWNS, Gallery, embedded
from tests.image_files import flat, photo, png_claiming, write
from tests.prepared import prepared

COLOURS = {"red": (250, 20, 20), "green": (20, 250, 20), "blue": (20, 20, 250)}


class Colours:
    """A toy encoder of images and texts: mean colours, and the names of colours."""

    name = "colours"
    dimension = 3
    min_side_px = 4
    thresholds = (0.001, 0.002, 0.005, 0.01, 0.02)

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        return np.asarray(pixels.mean(axis=(0, 1)), np.float32)

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        raised = batch + np.float32(1)
        return np.asarray(raised / np.linalg.norm(raised, axis=1, keepdims=True), np.float32)

    def encode_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        known = [[COLOURS[word] for word in text.split() if word in COLOURS] or [(1, 1, 1)] for text in texts]
        return self.encode_images(np.array([np.mean(each, axis=0) for each in known], np.float32))


@pytest.fixture
def coloured(workspace: Workspace, tmp_path: Path) -> Dataset:
    """Images of one colour each, in a little different shades; the captions say other things."""
    for name, (red, green, blue) in COLOURS.items():
        for number in range(5):
            write(tmp_path / "p" / f"{name}-{number}.png", flat((red, green, min(blue + 4 * number, 255))))
    dataset = prepared(workspace, "colours", tmp_path / "p", Colours())
    ids = names_to_ids(dataset)
    dataset.set_captions({ids["red-0.png"]: "a green hill", ids["blue-3.png"]: "green grass", ids["red-2.png"]: "sky"})
    return dataset


def names_to_ids(dataset: Dataset) -> dict[str, str]:
    """Return media ids by file name."""
    rows = dataset.to_arrow(["image_filename", "media_id"]).to_pylist()
    return {row["image_filename"]: row["media_id"] for row in rows}


def names_of(view: RankedView) -> list[str]:
    """Return the file names of a ranked view, the best first."""
    found: list[str] = view.to_arrow(["image_filename"])["image_filename"].to_pylist()
    return found


@pytest.mark.parametrize("given", ["media id", "path", "text path", "bytes", "array", "image"])
def test_similar__whatever_is_given(gallery: Gallery, given: str) -> None:
    """Copies of an image are nearest to it, then what was made of it, whatever form the image is given in."""
    path = gallery.folder / NEAR[0][0]
    query: Any = {
        "media id": gallery.ids[NEAR[0][0]],
        "path": path,
        "text path": str(path),
        "bytes": path.read_bytes(),
        "array": decode(path.read_bytes(), max_pixels=10**8).pixels,
        "image": Image.fromarray(decode(path.read_bytes(), max_pixels=10**8).pixels),
    }[given]
    view = gallery.dataset.similar(query, limit=5)
    found = view.to_arrow()
    assert found["image_filename"].to_pylist()[:2] == NEAR[0]
    distance = found["relevance_score"].to_numpy()
    assert (np.diff(distance) >= 0).all()
    assert distance[0] == pytest.approx(0, abs=1e-4)
    assert set(found["relevance_score_type"].to_pylist()) == {"cosine_distance"}
    assert view.count() == len(found) == 5
    assert view.media_ids() == found["media_id"].to_pylist()


@pytest.mark.slow
@pytest.mark.only_soak
def test_similar__as_it_was_ingested(workspace: Workspace, tmp_path: Path) -> None:
    """A large image is encoded as when it was ingested, whatever its format: it is at no distance from itself."""
    for name, number in (("large.jpg", 5), ("large.png", 6)):
        large = cv2.resize(photo(number), (1037, 811), interpolation=cv2.INTER_CUBIC)
        write(tmp_path / "p" / name, large)
    dataset = workspace.create_dataset("d", tmp_path / "p", "gist")
    for name in ("large.jpg", "large.png"):
        found = dataset.similar(tmp_path / "p" / name, 1).to_arrow(["image_filename", "relevance_score"]).to_pylist()[0]
        assert found == {"image_filename": name, "relevance_score": pytest.approx(0, abs=1e-5)}
    pixels = dataset.read(dataset.where([{"file_name": {"op": "is", "value": "large.png"}}]).media_ids()[0])
    nearest = dataset.similar(pixels, 1).to_arrow(["relevance_score"])["relevance_score"][0].as_py()
    assert nearest == pytest.approx(0, abs=1e-5)


def test_similar__distances_are_those_of_vectors(gallery: Gallery) -> None:
    """The order and the distances are those of the stored vectors."""
    ids, vectors = gallery.dataset.embeddings()
    found = gallery.dataset.similar(vectors[7], limit=None).to_arrow(["media_id", "relevance_score"])
    true = dict(zip(ids, 1 - vectors @ vectors[7], strict=True))
    assert sorted(found["media_id"].to_pylist()) == sorted(ids)
    assert found["relevance_score"].to_numpy() == pytest.approx(
        [true[each] for each in found["media_id"].to_pylist()], abs=1e-4
    )


def test_similar__filter_comes_first(gallery: Gallery) -> None:
    """As many come back as there are that pass the filter, up to the limit, in the order that they have without it."""
    everything = names_of(gallery.dataset.similar(gallery.ids[TOWNS[0]], limit=None))
    animals = [{"labels": {"op": "is", "value": "animal"}}]
    found = names_of(gallery.dataset.similar(gallery.ids[TOWNS[0]], limit=8).where(animals))
    assert found == [name for name in everything if name in ANIMALS][:8]
    assert gallery.dataset.similar(gallery.ids[TOWNS[0]], limit=100).where(animals).count() == len(ANIMALS)


def test_similar__max_distance(gallery: Gallery) -> None:
    """The maximum distance and the minimum relevance limit the results."""
    anchor = gallery.ids[COPIES[0]]
    assert sorted(names_of(gallery.dataset.similar(anchor, max_distance=0.0001))) == sorted(COPIES)
    matches = gallery.dataset.similar(anchor, limit=None, relevance=0.5).to_arrow()
    assert set(COPIES) <= set(matches["image_filename"].to_pylist())
    assert matches["relevance"].to_numpy().min() >= 0.5
    assert len(matches) < gallery.dataset.count() / 2


def test_similar__nothing_matches(workspace: Workspace) -> None:
    """Of something unlike all, no media are relevant: nothing is an answer."""
    random = np.random.default_rng(0)
    centres = np.eye(6, 12)[np.repeat(np.arange(6), 20)]
    dataset = workspace.create_dataset("d", embedded((centres + 0.05 * random.standard_normal((120, 12))).tolist()))
    assert dataset.similar(np.eye(12)[3], relevance=0.5).count() == 20
    view = dataset.similar(np.eye(12)[11], relevance=0.5)
    assert view.count() == 0
    assert view.media_ids() == []
    assert view.explore().clusters == []
    assert "nothing here matches" in view._repr_html_()


def test_similar__bounding_box(gallery: Gallery) -> None:
    """Only the pixels in the box are compared; a box is a sequence or a mapping of x, y, width, height in pixels."""
    canvas = np.full((240, 320, 3), 255, np.uint8)
    canvas[60:180, 80:240] = photo(5)
    numbers = (80, 60, 160, 120)
    boxes: list[Box] = [numbers, np.array(numbers), dict(zip(("x", "y", "width", "height"), numbers, strict=True))]
    for box in boxes:
        assert names_of(gallery.dataset.similar(canvas, 1, bounding_box=box)) == [ANIMALS[5]]
    box = {"x": 0, "y": 0, "width": 10_000, "height": 10_000}
    whole = gallery.dataset.similar(gallery.ids[ANIMALS[5]], 3, bounding_box=box)
    assert names_of(whole)[0] == ANIMALS[5]


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        ("no-such-id", {}, NotFound, "no media 'no-such-id'"),
        ("missing/file.jpg", {}, CannotDecode, "No such file"),
        (b"no image", {}, CannotDecode, "not an image"),
        (b"", {}, CannotDecode, "empty"),
        (png_claiming(60_000, 60_000), {}, CannotDecode, "60000"),
        (np.zeros((4, 4, 3), np.float32), {}, InvalidInput, "uint8"),
        (np.zeros((0, 4, 3), np.uint8), {}, InvalidInput, "pixels"),
        (np.zeros(7, np.float32), {}, InvalidInput, "numbers here, not 7"),
        (12, {}, InvalidInput, "not int"),
        (photo(1), {"bounding_box": (1000, 1000, 5, 5)}, InvalidInput, "holds no pixel"),
        (photo(1), {"bounding_box": {"x": 2, "y": 0, "width": 1}}, InvalidInput, "four finite numbers"),
        (photo(1), {"bounding_box": "1,2,3,4"}, InvalidInput, "four finite numbers"),
        (photo(1), {"bounding_box": (1, 2, float("nan"), 4)}, InvalidInput, "finite"),
        (photo(1), {"max_distance": 3}, InvalidInput, "0 to 2"),
        (photo(1), {"n_candidates": 0}, InvalidInput, "from 1"),
        (photo(1), {"limit": -1}, InvalidInput, "limit"),
        (photo(1), {"limit": True}, InvalidInput, "limit"),
        (photo(1), {"diversity": 2}, InvalidInput, "diversity"),
        (photo(1), {"diversity": 0.5, "limit": None}, InvalidInput, "limit"),
        (photo(1), {"relevance": float("nan")}, InvalidInput, "relevance"),
    ],
)
def test_similar__bad_input(
    gallery: Gallery, query: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Invalid arguments are refused by name."""
    with pytest.raises(error, match=message):
        gallery.dataset.similar(query, **options)


def test_similar__broken_media(gallery: Gallery) -> None:
    """A media item that could not be decoded is like nothing."""
    with pytest.raises(NotFound, match="could not be decoded"):
        gallery.dataset.similar(gallery.ids["broken/text.png"])


def test_similar__brought_embeddings(workspace: Workspace) -> None:
    """A dataset that brought its embeddings is searched by media and by vectors, not by images or texts."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0.9, 0.1], [0, 1]]))
    ids = names_to_ids(dataset)
    assert names_of(dataset.similar(ids["0.jpg"])) == ["0.jpg", "1.jpg", "2.jpg"]
    assert names_of(dataset.similar(np.array([0, 5.0]), 1)) == ["2.jpg"]
    with pytest.raises(InvalidInput, match="brought its own embeddings"):
        dataset.similar(photo(1))
    with pytest.raises(InvalidInput, match="Enrich it"):
        dataset.search("red", by="meaning").count()


@pytest.mark.slow
def test_similar__diversity(workspace: Workspace) -> None:
    """With variety, copies of what came already come later."""
    dataset = workspace.create_dataset("d", embedded([[1, 0, 0], [1, 0.01, 0], [1, 0.02, 0], [0.7, 0, 0.7], [0, 0, 1]]))
    query = np.array([1.0, 0.0, 0.1])
    assert set(names_of(dataset.similar(query, 3))) == {"0.jpg", "1.jpg", "2.jpg"}
    assert "3.jpg" in names_of(dataset.similar(query, 2, diversity=0.46))


@pytest.mark.slow
def test_similar__follows_additions(workspace: Workspace, folder: Path) -> None:
    """A view is of the dataset as it is when it is asked."""
    dataset = workspace.create_dataset("d", folder)
    view = dataset.similar(photo(7), 1, max_distance=0.05)
    assert view.count() == 0
    write(folder / "new.png", photo(7))
    dataset.add_media(folder)
    assert names_of(view) == ["new.png"]
    dataset.tag(view, "found")
    assert dataset.where([{"tags": {"op": "is", "value": "found"}}]).media_ids() == view.media_ids()


def test_search__words(gallery: Gallery) -> None:
    """Words are found in captions, labels and file names, with operators, the best first."""
    assert names_of(gallery.dataset.search("number AND 07")) == [TOWNS[7]]
    assert set(names_of(gallery.dataset.search("fur"))) == set(ANIMALS[:4])
    assert set(names_of(gallery.dataset.search("animal -fur"))) == set(ANIMALS[4:])
    assert "near/recompressed.jpg" in names_of(gallery.dataset.search("recompr*"))
    assert gallery.dataset.search("nowhere").count() == 0
    found = gallery.dataset.search("street 03", limit=2).to_arrow()
    assert found["image_filename"].to_pylist()[0] == TOWNS[3]
    assert found["relevance"].to_pylist()[0] == 1
    assert set(found["relevance_score_type"].to_pylist()) == {"bm25"}


@pytest.mark.slow
def test_search__meaning(coloured: Dataset) -> None:
    """Texts find the images that show what they mean, whatever captions say."""
    assert set(names_of(coloured.search("red", 5, by="meaning"))) == {f"red-{number}.png" for number in range(5)}
    assert names_of(coloured.search("green", 3, by="words")) == names_of(coloured.search("green", 3, by="words"))
    assert set(names_of(coloured.search("green AND grass", by="words"))) == {"blue-3.png"}


@pytest.mark.slow
def test_search__both(coloured: Dataset) -> None:
    """Together, what words and meaning agree on comes first, and both have a say."""
    found = coloured.search("green", limit=None).to_arrow()
    assert set(found["relevance_score_type"].to_pylist()) == {"reciprocal_rank_fusion"}
    first = found["image_filename"].to_pylist()[:8]
    assert {f"green-{number}.png" for number in range(5)} <= set(first)
    assert {"red-0.png", "blue-3.png"} <= set(first)


@pytest.mark.parametrize("text", ["", "   ", None, 3])
def test_search__bad_text(gallery: Gallery, text: Any) -> None:
    """A text has a word."""
    with pytest.raises(InvalidInput, match="at least one word"):
        gallery.dataset.search(text)


def test_search__bad_way(gallery: Gallery) -> None:
    """There are four ways to search by a text; and one of them needs an encoder that knows texts."""
    with pytest.raises(InvalidInput, match="auto, words, meaning, both"):
        gallery.dataset.search("fur", by="magic")
    with pytest.raises(InvalidInput, match="MULTIMODEL_IMAGE_ENCODING or CAPTION_IMAGES"):
        gallery.dataset.search("fur", by="meaning").count()


@pytest.mark.slow
def test_where__text(gallery: Gallery, coloured: Dataset) -> None:
    """Full text and meaning are filters, too, and combine with others."""
    fts = [{"text": {"op": "fts", "value": "fur"}}]
    assert gallery.names(gallery.dataset.where(fts).media_ids()) == ANIMALS[:4]
    assert gallery.dataset.where([{"not": fts[0]}]).count() == gallery.dataset.count() - 4
    both = [{"any": [fts[0], {"labels": {"op": "is", "value": "town"}}]}]
    assert gallery.dataset.where(both).count() == 4 + len(TOWNS)
    meant = coloured.where([{"text": {"op": "semantic", "value": "blue", "threshold": 0.9}}])
    assert meant.count() == 5
    with pytest.raises(InvalidInput, match="Enrich it"):
        gallery.dataset.where([{"text": {"op": "semantic", "value": "fur"}}]).count()


def test_where__similarity(gallery: Gallery) -> None:
    """Likeness to a media item, or to an upload, is a filter."""
    anchor = gallery.ids[COPIES[0]]
    close = [{"similarity": {"op": "media", "value": anchor, "threshold": 0.0001}}]
    assert sorted(gallery.names(gallery.dataset.where(close).media_ids())) == sorted(COPIES)
    uploaded = gallery.dataset.upload(gallery.folder / COPIES[0])
    close = [{"similarity": {"op": "upload", "value": uploaded, "threshold": 0.001}}]
    assert sorted(gallery.names(gallery.dataset.where(close).media_ids())) == sorted(COPIES)
    assert set(COPIES) <= set(
        gallery.names(gallery.dataset.where([{"similarity": {"op": "media", "value": anchor}}]).media_ids())
    )
    for op in ("media", "upload"):
        with pytest.raises(NotFound):
            gallery.dataset.where([{"similarity": {"op": op, "value": "../../etc"}}]).count()


def test_explore__anchor(gallery: Gallery) -> None:
    """With an anchor the cluster with the nearest member comes first; all pages together are everything, once."""
    anchor = gallery.dataset.upload(gallery.folder / COPIES[0])
    for kind in (None, "UPLOAD"):
        page = gallery.dataset.explore(level=0, anchor_media_id=anchor, anchor_type=kind)
        assert {shown.media_id for shown in page.clusters[0].previews} == {gallery.ids[name] for name in COPIES}
        scores = [cluster.relevance_score for cluster in page.clusters]
        assert scores == sorted(scores)
        assert all(cluster.relevance_score_type == "cosine_distance" for cluster in page.clusters)
        assert [shown.relevance_score for shown in page.clusters[0].previews] == pytest.approx([0] * 3, abs=1e-3)
        assert page.metadata.used_duckdb
        assert sum(cluster.n_images for cluster in page.clusters) == gallery.dataset.count() - 3  # the broken ones


def test_explore__caption(gallery: Gallery, coloured: Dataset) -> None:
    """A caption orders clusters by the best member: by words, or by meaning where the encoder knows texts."""
    page = gallery.dataset.explore(caption="street 05")
    assert page.clusters[0].previews[0].media_id == gallery.ids[TOWNS[5]]
    assert page.clusters[0].relevance_score_type == "bm25"
    meant = coloured.explore(level=4, caption="green", textual_similarity_threshold=0.2)
    assert [cluster.n_images for cluster in meant.clusters] == [5]
    assert meant.clusters[0].relevance_score < 0.2
    assert meant.clusters[0].relevance_score_type == "cosine_distance"


@pytest.mark.slow
def test_explore__search_in_the_filter(gallery: Gallery) -> None:
    """A search that all media of a filter were found by orders the clusters; one of several alternatives does not."""
    found = [{"text": {"op": "fts", "value": "street 05"}}]
    assert gallery.dataset.explore(vql=found).clusters[0].previews[0].media_id == gallery.ids[TOWNS[5]]
    anchor = {"similarity": {"op": "media", "value": gallery.ids[TOWNS[3]], "threshold": 2}}
    page = gallery.dataset.explore(vql=[anchor])
    assert page.clusters[0].previews[0].media_id == gallery.ids[TOWNS[3]]
    assert page.clusters[0].relevance_score_type == "cosine_distance"
    both = gallery.dataset.explore(vql=[*found, anchor])
    assert both.clusters[0].relevance_score_type == "reciprocal_rank_fusion"
    assert sum(cluster.n_images for cluster in both.clusters) == len(TOWNS) + 1  # animals/05.jpg, too
    either = gallery.dataset.explore(vql=[{"any": [*found, {"labels": {"op": "is", "value": "town"}}]}])
    assert [cluster.relevance_score for cluster in either.clusters] == [0] * len(either.clusters)


@pytest.mark.parametrize("form", [["fur"], '["fur"]', "[fur]", "fur"])
def test_explore__labels(gallery: Gallery, form: Any) -> None:
    """Labels come as lists, as JSON or bare."""
    page = gallery.dataset.explore(labels=form)
    assert sum(cluster.n_images for cluster in page.clusters) == 4


@pytest.mark.slow
def test_explore__tags(workspace: Workspace, folder: Path) -> None:
    """Tags come by id or name, and as ``untagged``."""
    dataset = workspace.create_dataset("d", folder)
    tag = dataset.tag(dataset.where([]).media_ids()[:2], "good")
    for form in (tag.tag_id, f'["{tag.tag_id}"]', ["good"], "[good]"):
        assert sum(cluster.n_images for cluster in dataset.explore(tags=form).clusters) == 2
    assert sum(cluster.n_images for cluster in dataset.explore(tags="untagged").clusters) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"textual_similarity_threshold": 0.5}, "goes with caption"),
        ({"caption": "a", "textual_similarity_threshold": 1.5}, "0 to 1"),
        ({"anchor_type": "MEDIA"}, "anchor_media_id"),
        ({"anchor_media_id": "x", "caption": "a"}, "either"),
        ({"anchor_media_id": "x", "anchor_type": "FILE"}, "UPLOAD or MEDIA"),
        ({"labels": {"a": 1}}, "labels"),
        ({"labels": "[1, 2]"}, "labels"),
    ],
)
def test_explore__bad_input(gallery: Gallery, options: dict[str, Any], message: str) -> None:
    """Parameters that do not go together, or are outside of their range, are named."""
    with pytest.raises(InvalidInput, match=message):
        gallery.dataset.explore(**options)


def test_view__shown(gallery: Gallery) -> None:
    """A ranked view shows its images with their scores, and says what it is."""
    view = gallery.dataset.similar(gallery.ids[ANIMALS[0]], 3)
    assert "RankedView" in repr(view)
    assert view._repr_html_().count("<img") == 3
    assert re.search(r"<br>cosine distance 0\.\d{3}<br>relevance [01]\.\d\d<", view._repr_html_())
    with pytest.raises(InvalidInput, match="no columns"):
        view.to_arrow(["nothing"])
