"""Tags from probabilities; vocabularies, classifiers, and reasons why a model cannot run."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.encoders import OnnxClassifier
from framedex.enrichers import Tags, describe_model, make_tagger, read_models
from framedex.enrichers.vocabulary import read_vocabulary
from framedex.errors import InvalidInput, NotFound
from framedex.records import ModelStatus
from tests.gallery import SETTINGS

PROBABILITY = st.floats(0, 1, width=32)


@pytest.mark.slow
@given(
    rows=st.lists(st.lists(PROBABILITY, min_size=4, max_size=4), min_size=1),
    limits=st.lists(PROBABILITY, min_size=4, max_size=4),
    top_k=st.integers(1, 6),
)
def test_chosen__by_the_definition(rows: list[list[float]], limits: list[float], top_k: int) -> None:
    """The most probable tags that reach their own thresholds are selected, in order."""
    tags = Tags(("a", "b", "c", "d"), np.array(limits), top_k)
    for row, codes in zip(rows, tags.select(np.array(rows)).tolist(), strict=True):
        best = sorted(range(4), key=lambda tag: -row[tag])[:top_k]
        wanted = [tag for tag in best if row[tag] >= limits[tag]]
        assert codes == wanted + [-1] * (min(top_k, 4) - len(wanted))


def test_vocabulary__of_lines(tmp_path: Path) -> None:
    """Each line is a tag, with default sentences."""
    path = tmp_path / "tags.txt"
    path.write_text("cat\n\n  hot dog \n")
    first, second = read_vocabulary(path)
    assert (first.name, first.prompts, first.threshold) == (
        "cat",
        ("a photo of a cat", "a picture of a cat", "cat"),
        None,
    )
    assert second.name == "hot dog"


def test_vocabulary__of_tables(tmp_path: Path) -> None:
    """Tags may have their own sentences and threshold."""
    path = tmp_path / "tags.toml"
    path.write_text('[cat]\nprompts = ["a kitten"]\nthreshold = 0.7\n[dog]\n')
    first, second = read_vocabulary(path)
    assert (first.prompts, first.threshold) == (("a kitten",), 0.7)
    assert second.prompts[0] == "a photo of a dog"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.txt", "\n", "lists nothing"),
        ("v.txt", "a\nb\na", "has 'a' twice"),
        ("v.toml", "", "has no tags"),
        ("v.toml", "[a", "is no TOML"),
        ("v.toml", "a = 1", "tag 'a': a tag has a name and is a table"),
        ("v.toml", "[a]\nprompt = 'x'", "tag 'a': no key 'prompt'"),
        ("v.toml", "[a]\nprompts = 'x'", "tag 'a': prompts is 'x'"),
        ("v.toml", "[a]\nthreshold = true", "tag 'a': threshold is True"),
    ],
)
def test_vocabulary__says_what_is_wrong(tmp_path: Path, name: str, text: str, message: str) -> None:
    """A malformed vocabulary is an error with its path and the reason."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_vocabulary(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    with pytest.raises(NotFound):
        read_vocabulary(tmp_path / "gone")


def models(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("type = 'OBJECT_DETECTION'\ndetector = 'onnx:m.onnx'", "no model file"),
        ("type = 'OBJECT_DETECTION'\ndetector = 'm.onnx'", "a detector is onnx:<path of the model>, or faces"),
        ("type = 'CAPTION_OBJECTS'\ncaptioner = 'x'", "no folder"),
        ("type = 'CAPTION_IMAGES'\ncaptioner = 'x'", "no folder"),
        ("type = 'MULTIMODEL_IMAGE_ENCODING'\nencoder = 'gist'", "knows images only"),
        ("type = 'MULTIMODEL_IMAGE_ENCODING'\nencoder = 'onnx:m.onnx'", "knows images only"),
        ("type = 'MULTIMODEL_IMAGE_ENCODING'\nencoder = 'nothing'", "no encoder 'nothing'"),
        ("type = 'IMAGE_TAGGING'\nclassifier = 'onnx:m.onnx'\nlabels = 'l'", "no model file"),
        ("type = 'IMAGE_TAGGING'\nclassifier = 'gist'\nlabels = 'l'", "names no model"),
    ],
)
def test_describe__what_is_missing(tmp_path: Path, entry: str, missing: str) -> None:
    """A model that cannot run is Coming Soon, with the reason after its description."""
    (found,) = read_models(models(tmp_path, f"[a]\n{entry}\ndescription = 'sees all'"))
    shown = describe_model(found, SETTINGS)
    assert shown.status is ModelStatus.COMING_SOON
    assert shown.description.startswith("sees all - not available: ")
    assert missing in shown.description


def test_classifier__names_its_classes(tmp_path: Path) -> None:
    """An ONNX classifier returns the names of its classes; logits and probabilities give the same tags."""
    pytest.importorskip("onnxruntime")
    from tests.encoders.onnx_models import classifier

    path = classifier(tmp_path / "m.onnx")
    (tmp_path / "l.txt").write_text("a\nb\nc\nd")
    text = "[a]\ntype='IMAGE_TAGGING'\nclassifier='onnx:m.onnx'\nlabels='l.txt'\ntop_k=2\nthreshold=0"
    (entry,) = read_models(models(tmp_path, text))
    assert describe_model(entry, SETTINGS).status is ModelStatus.ACTIVE
    tagger = make_tagger(entry, SETTINGS)
    batch = np.stack([tagger.prepare(np.full((20, 30, 3), value, np.uint8)) for value in (0, 100, 255)])
    found = tagger.probabilities(batch)
    assert np.allclose(found.sum(axis=1), 1)
    assert tagger.tags.select(found).shape == (3, 2)
    raw = OnnxClassifier(f"onnx:{path}?output=scores", "logits")
    assert np.allclose(raw.probabilities(batch.astype(np.uint8)), found, atol=1e-6)
    with pytest.raises(InvalidInput, match='say values = "logits"'):
        OnnxClassifier(f"onnx:{path}?output=scores", "probabilities").probabilities(batch.astype(np.uint8))
    (tmp_path / "l.txt").write_text("a\nb")
    with pytest.raises(InvalidInput, match="has 4 classes; 2 labels are given"):
        make_tagger(entry, SETTINGS)
