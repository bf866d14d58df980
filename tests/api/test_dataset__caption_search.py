"""Searching the captions of a dataset by what they mean, with an encoder of texts alone."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.cli.program import app
from framedex.encoders import register
from framedex.search.captions import captions
from framedex.search.captions.segments import read_caption_segment
from framedex.settings import Settings
from tests import processes
from tests.api.test_dataset__search import COLOURS, Colours
from tests.environment import Environment
from tests.gallery import SETTINGS, embedded
from tests.image_files import flat, write
from tests.inside import layout_of
from tests.laws import rest_slow
from tests.meanings import Meanings
from tests.prepared import prepared
from tests.tuning import Tuning

CAPTIONS = [
    "a red car in the street", "two dogs on a beach", "the blue sea", "a cat on a sofa", "a green hill", None,
    "mountains with snow", "bread on a table", "a red rose", "   ", "an old piano", "rain on windows",
]  # fmt: skip
EYE = np.eye(len(CAPTIONS), 16, dtype=np.float32)


@pytest.fixture
def encoder() -> Meanings:
    """An encoder of texts that notes what it was asked for."""
    return Meanings()


@pytest.fixture
def searched(tmp_path: Path, encoder: Meanings) -> Iterator[Workspace]:
    """A workspace with that encoder."""
    captions._OPEN.clear()
    with Workspace(tmp_path / "workspace", settings=SETTINGS, text_encoder=encoder) as workspace:
        yield workspace


@pytest.fixture
def pets(searched: Workspace) -> Dataset:
    """Media that brought embeddings, most of them with a caption."""
    return prepared(searched, "pets", embedded(EYE.tolist(), caption=CAPTIONS))


def names(view: Any) -> list[str]:
    """Return the file names of a view, the best first."""
    found: list[str] = view.to_arrow(["image_filename"])["image_filename"].to_pylist()
    return found


def ids(dataset: Dataset) -> dict[str, str]:
    """Return media ids by file name."""
    rows = dataset.to_arrow(["image_filename", "media_id"]).to_pylist()
    return {row["image_filename"]: row["media_id"] for row in rows}


def forget() -> None:
    """Forget what this process holds of captions, as another process never had it."""
    captions._OPEN.clear()


def segments(dataset: Dataset) -> list[Path]:
    """Return the folders of a dataset's captions' vectors."""
    folder = layout_of(dataset).captions(dataset.id)
    return sorted(path for encoder in folder.iterdir() for path in encoder.iterdir()) if folder.exists() else []


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(
    ("query", "first"),
    [("crimson automobile", "0.jpg"), ("puppy", "1.jpg"), ("ocean", "2.jpg"), ("the feline", "3.jpg")],
)
def test_search__by_meaning(pets: Dataset, query: str, first: str) -> None:
    """The caption that means what is asked comes first, though it shares no word with it, and the score says so."""
    found = pets.search(query, by="meaning").to_arrow().to_pylist()
    assert found[0]["image_filename"] == first
    assert found[0]["relevance"] >= 0.5
    assert {row["relevance_score_type"] for row in found} == {"cosine_distance"}
    assert [row["relevance_score"] for row in found] == sorted(row["relevance_score"] for row in found)
    assert pets.search(query, by="words").count() == 0


def test_search__distances_are_those_of_the_captions(pets: Dataset, encoder: Meanings) -> None:
    """Scores are cosine distances to the vectors of captions; media without a caption do not match."""
    found = pets.search("red car", None, by="meaning").to_arrow(["image_filename", "relevance_score"]).to_pylist()
    texts = {f"{place}.jpg": text for place, text in enumerate(CAPTIONS) if text and text.strip()}
    query = encoder.encode_texts(["red car"])[0]
    true = {name: float(1 - encoder.encode_texts([text])[0] @ query) for name, text in texts.items()}
    assert {row["image_filename"]: row["relevance_score"] for row in found} == pytest.approx(true, abs=1e-4)


def test_search__by_default_and_both(pets: Dataset) -> None:
    """Without a say, words and meaning are searched together."""
    for by in ("auto", "both"):
        found = pets.search("crimson car", by=by).to_arrow().to_pylist()
        assert found[0]["image_filename"] == "0.jpg"
        assert found[0]["relevance_score_type"] == "reciprocal_rank_fusion"


def test_search__nothing_matches(pets: Dataset) -> None:
    """Of something that no caption speaks of, nothing is relevant."""
    assert pets.search("submarine", by="meaning", relevance=0.5).count() == 0
    assert pets.where([{"text": {"op": "semantic", "value": "submarine"}}]).count() == 0
    assert names(pets.search("hound", by="meaning", relevance=0.5)) == ["1.jpg"]


@pytest.mark.slow
def test_search__filter_comes_first(searched: Workspace) -> None:
    """As many come back as match the filter, up to the limit, in the order that they have without it."""
    random = np.random.default_rng(0)
    words = ["red", "blue", "car", "dog", "sea", "cat", "hill", "snow"]
    texts = [" ".join(random.choice(words, 3)) for _ in range(300)]
    vectors = random.standard_normal((300, 8)).tolist()
    labels = [["rare"] if place % 50 == 7 else ["common"] for place in range(300)]
    dataset = searched.create_dataset("d", embedded(vectors, caption=texts, labels=labels))
    everything = names(dataset.search("scarlet hound", None, by="meaning"))
    rare = [{"labels": {"op": "is", "value": "rare"}}]
    expected = [name for name in everything if int(name.removesuffix(".jpg")) % 50 == 7]
    assert len(expected) == 6
    assert names(dataset.search("scarlet hound", 4, by="meaning").where(rare)) == expected[:4]
    assert names(dataset.search("scarlet hound", 100, by="meaning").where(rare)) == expected
    assert names(dataset.search("scarlet hound", 40, by="meaning")) == everything[:40]


def test_search__each_distinct_caption_is_encoded_once(searched: Workspace, encoder: Meanings) -> None:
    """Media that share a caption share its vector, and come in the order of ingestion."""
    texts = ["a dog", "a cat", "a dog", "a dog", "a cat", "  a dog "]
    dataset = searched.create_dataset("d", embedded(np.eye(6).tolist(), caption=texts))
    assert names(dataset.search("hound", by="meaning")) == ["0.jpg", "2.jpg", "3.jpg", "5.jpg", "1.jpg", "4.jpg"]
    assert names(dataset.search("hound", 2, by="meaning")) == ["0.jpg", "2.jpg"]
    assert sorted(set(encoder.asked)) == ["a cat", "a dog", "hound"]
    assert encoder.asked.count("a dog") == 1


def test_search__diversity(searched: Workspace) -> None:
    """With variety, captions that say what came already come later."""
    texts = ["red car", "red car", "crimson automobile", "red bike", "a dog"]
    dataset = searched.create_dataset("d", embedded(np.eye(5).tolist(), caption=texts))
    assert names(dataset.search("red", 2, by="meaning")) == ["0.jpg", "1.jpg"]
    assert names(dataset.search("red", 2, by="meaning", diversity=0.3)) == ["0.jpg", "3.jpg"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_search__follows_a_dataset(searched: Workspace, pets: Dataset, encoder: Meanings) -> None:
    """Edits, additions, deletions and restores are followed, and only texts that are new are encoded."""

    def new(dataset: Dataset, query: str) -> tuple[str, list[str]]:
        encoder.asked.clear()
        return names(dataset.search(query, by="meaning"))[0], [text for text in encoder.asked if text != query]

    known = {text.strip() for text in CAPTIONS if text and text.strip()}
    first, asked = new(pets, "hound")
    assert (first, set(asked)) == ("1.jpg", known)
    snapshot = pets.snapshot("before")
    pets.set_captions({ids(pets)["4.jpg"]: "a lorry"})
    assert new(pets, "truck") == ("4.jpg", ["a lorry"])
    pets.tag(pets.where([]), "all")
    pets.add_media(embedded([[0] * 15 + [1]], caption=["a submarine"]).set_column(0, "uri", [["new.jpg"]]))
    assert new(pets, "submarine") == ("new.jpg", ["a submarine"])
    pets.delete_media([ids(pets)["1.jpg"]])
    assert new(pets, "hound")[1] == []
    assert "1.jpg" not in names(pets.search("hound", None, by="meaning"))
    pets.restore(snapshot.snapshot_id)
    assert new(pets, "hound") == ("1.jpg", [])
    assert new(pets, "hill") == ("4.jpg", [])
    forget()
    assert new(pets, "feline") == ("3.jpg", [])


def test_search__clones(pets: Dataset, encoder: Meanings) -> None:
    """A clone has the vectors of what it was cloned from; what is edited in one is not in the other."""
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"
    clone = pets.clone(pets.snapshot("all"))
    assert clone.task is not None
    clone.task.wait()
    encoder.asked.clear()
    clone.set_captions({ids(clone)["1.jpg"]: "a lorry"})
    assert names(clone.search("truck", by="meaning"))[0] == "1.jpg"
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"
    assert set(encoder.asked) == {"a lorry", "truck", "hound"}


@pytest.mark.slow
def test_search__both_kinds_of_encoders(searched: Workspace, tmp_path: Path) -> None:
    """If the dataset's own encoder encodes text, images are searched, not captions."""
    for name, colour in COLOURS.items():
        write(tmp_path / "p" / f"{name}.png", flat(colour))
    dataset = searched.create_dataset("colours", tmp_path / "p", Colours())
    dataset.set_captions({ids(dataset)["green.png"]: "a red hill"})
    assert names(dataset.search("red", 1, by="meaning")) == ["red.png"]
    assert segments(dataset) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["caption", "vql"])
def test_explore__by_caption(searched: Workspace, form: str) -> None:
    """Clusters come in the order of their best caption, over all pages, as a view of the search has it."""
    texts = [f"{'red ' if place % 3 else ''}{'car' if place % 2 else 'dog'} number{place}" for place in range(230)]
    vectors = np.random.default_rng(0).standard_normal((230, 64)).tolist()
    dataset = prepared(searched, "d", embedded(vectors, caption=texts))
    options: dict[str, Any] = {"caption": "scarlet automobile"}
    if form == "vql":
        options = {"vql": [{"text": {"op": "semantic", "value": "scarlet automobile", "threshold": 0.0}}]}
    pages = [dataset.explore(page_number=page, **options) for page in range(4)]
    scores = [cluster.relevance_score for page in pages for cluster in page.clusters]
    assert len(scores) > 200 or form == "vql"
    assert scores == sorted(scores)
    best = pages[0].clusters[0]
    found = dataset.search("scarlet automobile", 1, by="meaning").to_arrow().to_pylist()[0]
    assert best.relevance_score == pytest.approx(found["relevance_score"], abs=1e-6)
    assert best.relevance_score_type == "cosine_distance"
    assert best.previews[0].media_id == found["media_id"]


def test_explore__textual_similarity_threshold(pets: Dataset) -> None:
    """Only media are kept whose caption is nearer than the threshold."""
    rows = pets.search("red car", None, by="meaning").to_arrow(["media_id", "relevance_score"]).to_pylist()
    for threshold in (0.05, 0.6, 1.0):
        page = pets.explore(caption="red car", textual_similarity_threshold=threshold)
        shown = {preview.media_id for cluster in page.clusters for preview in cluster.previews}
        assert shown == {row["media_id"] for row in rows if row["relevance_score"] < threshold}
    assert pets.explore(caption="red car", textual_similarity_threshold=0.0).clusters == []


def test_where__semantic(pets: Dataset) -> None:
    """In filters, captions are found that are near enough, or that match."""
    rows = pets.search("red car", None, by="meaning").to_arrow(["image_filename", "relevance_score"]).to_pylist()
    for threshold in (0.2, 0.9):
        found = names(pets.where([{"text": {"op": "semantic", "value": "red car", "threshold": threshold}}]))
        assert sorted(found) == sorted(row["image_filename"] for row in rows if row["relevance_score"] <= 1 - threshold)
    assert names(pets.where([{"text": {"op": "semantic", "value": "puppy"}}])) == ["1.jpg"]
    others = pets.where([{"not": {"text": {"op": "semantic", "value": "puppy"}}}])
    assert others.count() == len(CAPTIONS) - 1


@pytest.mark.slow
def test_search__nothing_may_be_written(searched: Workspace, pets: Dataset, encoder: Meanings) -> None:
    """A workspace that is open for reading is searched, and nothing is written to it."""
    folder = searched.path
    searched.close()
    for made in (False, True):
        before = sorted((folder / "cache").rglob("*"))
        with Workspace(folder, read_only=True, settings=SETTINGS, text_encoder=encoder) as workspace:
            encoder.asked.clear()
            assert names(workspace.dataset("pets").search("hound", by="meaning"))[0] == "1.jpg"
            assert ("two dogs on a beach" in encoder.asked) is not made
        assert sorted((folder / "cache").rglob("*")) == before
        forget()
        with Workspace(folder, settings=SETTINGS, text_encoder=encoder) as workspace:
            workspace.dataset("pets").search("hound", by="meaning")
        forget()


def test_search__where_nothing_can_be_written(searched: Workspace, pets: Dataset) -> None:
    """A cache that cannot be made only costs time."""
    (searched.path / "cache").mkdir(exist_ok=True)
    (searched.path / "cache/captions").write_text("a file")
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("name", ["int8.npy", "scale.npy", "low.npy", "key_text.npy", "segment.json", "centroids.npy"])
@pytest.mark.parametrize("damage", rest_slow(["cut", "changed", "gone"], 1))
def test_search__damaged_cache(pets: Dataset, name: str, damage: str) -> None:
    """Files that were cut, changed or removed are noticed, and made again."""
    expected = pets.search("red car", by="meaning").to_arrow().to_pylist()
    (segment,) = segments(pets)
    path = segment / name
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "changed":
            path.write_bytes(content[:-2] + bytes(255 - byte for byte in content[-2:]))
        case _:
            path.unlink()
    forget()
    assert pets.search("red car", by="meaning").to_arrow().to_pylist() == expected
    (segment,) = segments(pets)
    assert read_caption_segment(segment, 256) is not None


def test_search__another_encoder(searched: Workspace, pets: Dataset, encoder: Meanings) -> None:
    """Each encoder has vectors of its own; going back to one makes nothing anew."""
    pets.search("hound", by="meaning")
    other = Meanings("others", 32)
    with Workspace(searched.path, settings=SETTINGS, text_encoder=other) as workspace:
        assert names(workspace.dataset("pets").search("hound", by="meaning"))[0] == "1.jpg"
    assert "two dogs on a beach" in other.asked
    assert len(segments(pets)) == 2
    encoder.asked.clear()
    forget()
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"
    assert set(encoder.asked) == {"hound"}


_SEARCH = """
import sys
from framedex import Workspace
from framedex.settings import Settings
from tests.meanings import Meanings

encoder = Meanings()
with Workspace(sys.argv[1], settings=Settings(threads=2), text_encoder=encoder) as workspace:
    found = workspace.dataset("pets").search("hound", 1, by="meaning").to_arrow(["image_filename"])
    print(found["image_filename"][0].as_py(), len(set(encoder.asked)))
"""


@pytest.mark.slow
def test_search__other_processes(searched: Workspace, pets: Dataset) -> None:
    """Two processes may make the vectors at once; a later one, and this one, encode the query only."""
    running = [processes.start(_SEARCH, searched.path) for _ in range(2)]
    for process in running:
        assert processes.finish(process).split()[0] == "1.jpg"
    assert processes.run(_SEARCH, searched.path).split() == ["1.jpg", "1"]
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"


_KILLED = """
import os, signal, sys
from framedex import Workspace
from framedex.settings import Settings
from tests.meanings import Meanings
from tests.tuning import Tuning

class Deadly(Meanings):
    def encode_texts(self, texts):
        if len(self.asked) >= 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_texts(texts)

tuning = Tuning()
tuning.encoded_captions = tuning.caption_segment = 2
with Workspace(sys.argv[1], settings=Settings(threads=2), text_encoder=Deadly()) as workspace:
    workspace.dataset("pets").search("hound", by="meaning")
"""


@pytest.mark.slow
def test_search__killed_while_making(searched: Workspace, pets: Dataset, encoder: Meanings) -> None:
    """The next process uses the files of a killed one, and writes the missing ones."""
    process = processes.start(_KILLED, searched.path)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert len(segments(pets)) == 4
    (segments(pets)[0].parent / "half.part").mkdir()
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"
    assert len(set(encoder.asked)) == len({text for text in CAPTIONS if text and text.strip()}) - 8 + 1


def test_search__stopped_by_a_failure(pets: Dataset, encoder: Meanings, tuning: Tuning) -> None:
    """An encoder that fails leaves what was made before, and the next search goes on from there."""
    tuning.encoded_captions = 2
    tuning.caption_segment = 2
    encoder.left = 6
    with pytest.raises(RuntimeError, match="out of order"):
        pets.search("hound", by="meaning")
    assert len(segments(pets)) == 3
    encoder.left = None
    assert names(pets.search("hound", by="meaning"))[0] == "1.jpg"
    assert len(encoder.asked) == len(set(encoder.asked)) + 1  # the query, when it was asked and when it was shown


def test_search__upkeep(searched: Workspace, pets: Dataset) -> None:
    """Vectors of captions are counted, stay as long as their dataset does, and what was left by kills goes."""
    before = searched.disk_usage().by_part.get("vector index", 0)
    pets.search("hound", by="meaning")
    (segment,) = segments(pets)
    taken = sum(path.stat().st_size for path in segment.iterdir())
    assert searched.disk_usage().by_part["vector index"] == before + taken
    left = segment.with_name("left.part")
    shutil.copytree(segment, left)
    os.utime(left, (0, 0))
    orphan = segment.parents[2] / "00000000-0000-4000-8000-000000000000"
    shutil.copytree(segment.parents[1], orphan)
    searched.vacuum()
    assert segments(pets) == [segment]
    assert not orphan.exists()
    searched.delete_dataset("pets")
    assert not segment.parents[1].exists()


def test_search__errors(workspace: Workspace, tmp_path: Path) -> None:
    """The error names the missing requirement, and the way to install it."""
    dataset = workspace.create_dataset("d", embedded([[1.0, 0], [0, 1]], caption=["a dog", "a cat"]))
    for ask in (
        lambda: dataset.search("dog", by="meaning"),
        lambda: dataset.where([{"text": {"op": "semantic", "value": "dog"}}]).count(),
    ):
        with pytest.raises(InvalidInput, match=r"CAPTION_IMAGES.*FRAMEDEX_TEXT_ENCODER"):
            ask()
    bare = workspace.create_dataset("bare", embedded([[1.0, 0], [0, 1]]))
    with Workspace(workspace.path, settings=SETTINGS, text_encoder=Meanings()) as searched:
        with pytest.raises(InvalidInput, match=r"'meanings' searches captions.*no media of this dataset has one"):
            searched.dataset(bare.id).search("dog", by="meaning")
        assert searched.dataset(bare.id).search("jpg 0", by="auto").count() >= 0
    wrong = Settings(text_encoder="unknown:x")
    with Workspace(workspace.path, settings=wrong) as opened, pytest.raises(InvalidInput, match="no encoder 'unknown"):
        opened.dataset("d").search("dog")


@pytest.mark.slow
@pytest.mark.parametrize("by", rest_slow(["words", "meaning", "both", "auto"], 1))
@pytest.mark.parametrize(
    ("text", "message"),
    [("x" * 10_001, "10,000 characters; this one has 10,001"), ("   ", "at least one word"), ("\ud800", "Unicode")],
)
def test_search__texts_that_cannot_be_used(pets: Dataset, encoder: Meanings, by: str, text: str, message: str) -> None:
    """A text that is too long, empty or no text is refused before anything is encoded, however it is searched."""
    with pytest.raises(InvalidInput, match=message):
        pets.search(text, by=by)
    with pytest.raises(InvalidInput, match=message):
        pets.explore(caption=text)
    assert encoder.asked == []
    assert pets.search("x " * 5_000, by="meaning").count() > 0


class _Wrong(Meanings):
    """Returns something else than it should."""

    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def encode_texts(self, texts: Any) -> Any:
        return np.broadcast_to(np.asarray(self.found, np.float32), (len(texts), np.shape(self.found)[-1]))


@pytest.mark.parametrize(
    ("found", "message"),
    [([1.0] * 255, "shape"), ([0.0] * 256, "no direction for 'a red car"), ([float("nan")] * 256, "no direction")],
)
def test_search__encoder_out_of_order(pets: Dataset, found: Any, message: str) -> None:
    """An encoder that returns what is no vector is named."""
    folder, encoder = layout_of(pets).root, _Wrong(found)
    with (
        Workspace(folder, settings=SETTINGS, text_encoder=encoder) as workspace,
        pytest.raises(InvalidInput, match=message),
    ):
        workspace.dataset("pets").search("dog", by="meaning")
    assert segments(pets) == []


@pytest.mark.slow
def test_cli__search_by_meaning(
    searched: Workspace, pets: Dataset, environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line takes the text encoder from the environment."""
    from typer.testing import CliRunner

    register("toy", Meanings)
    environment["FRAMEDEX_TEXT_ENCODER"] = "toy:synonyms"
    command = ["search", "pets", "hound", "--by", "meaning", "--limit", "1", "--workspace", str(searched.path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "1.jpg" in result.output
