"""The file of registered models: its valid content, and its errors."""

from pathlib import Path

import pytest

from framedex.enrichers import read_models
from framedex.errors import InvalidInput
from framedex.records import EnrichmentType

ENCODES = 'type = "MULTIMODEL_IMAGE_ENCODING"\nencoder = "open_clip:here"\n'
TAGS = 'type = "IMAGE_TAGGING"\n'
SAYS = 'type = "CAPTION_IMAGES"\ncaptioner = "x"\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(text)
    return path


def test_read_models__no_file(tmp_path: Path) -> None:
    """Without the file there are no models."""
    assert read_models(tmp_path / "models.toml") == []


def test_read_models__relative_paths(tmp_path: Path) -> None:
    """Paths are relative to the file, in names of encoders, too; names of open_clip's models are not paths."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "open_clip_config.json").touch()
    found = read_models(
        written(
            tmp_path,
            f"[a]\n{ENCODES}[b]\n{ENCODES.replace('here', 'ViT-B-32/b.pt')}"
            f"[c]\n{ENCODES.replace('here', 'ViT-B-32/openai')}"
            f"[d]\n{ENCODES.replace('here', './x')}"
            f'[e]\n{TAGS}classifier = "onnx:m.onnx?size=8"\nlabels = "l.txt"\nvalues = "logits"\n'
            f"[f]\n{SAYS}",
        )
    )
    assert [entry.encoder for entry in found[:4]] == [
        f"open_clip:{tmp_path}/here",
        f"open_clip:ViT-B-32/{tmp_path}/b.pt",
        "open_clip:ViT-B-32/openai",
        f"open_clip:{tmp_path}/x",
    ]
    assert (found[4].classifier, found[4].labels) == (f"onnx:{tmp_path}/m.onnx?size=8", f"{tmp_path}/l.txt")
    assert found[4].type is EnrichmentType.IMAGE_TAGGING
    assert found[5].captioner == f"{tmp_path}/x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a", "cannot be read"),
        ("a = 3", "model 'a': a model is a table"),
        ("[a]\n", "model 'a': the key 'type' is missing"),
        ("[a]\ntype = 'CAPTIONS'", "model 'a': type is 'CAPTIONS'"),
        (f"[a]\n{ENCODES}colour = 1", "model 'a': no key 'colour'; there are: type, name"),
        (f"[a]\nid = 'b'\n{ENCODES}", "model 'a': no key 'id'"),
        (f"[a]\n{ENCODES}name = 3", "model 'a': name is 3"),
        (f"[a]\n{ENCODES}vocabulary = 'x'", "vocabulary does not go with encoder"),
        (f"[a]\n{ENCODES}dependencies = ['X']", "model 'a': dependencies is"),
        (f"[a]\n{ENCODES}dependencies = ['MULTIMODEL_IMAGE_ENCODING']", "cannot depend on itself"),
        ("[a]\ntype = 'MULTIMODEL_IMAGE_ENCODING'", "needs encoder"),
        (f"[a]\n{TAGS}", "needs encoder and vocabulary or classifier and labels"),
        (f"[a]\n{TAGS}encoder = 'gist'", "needs encoder and vocabulary or classifier and labels"),
        (f"[a]\n{TAGS}encoder = 'gist'\nvocabulary = 'v'\nlabels = 'l'", "needs encoder and vocabulary or"),
        (f"[a]\n{TAGS}encoder = 'gist'\nvocabulary = 'v'\nthreshold = 2", "threshold is 2"),
        (f"[a]\n{TAGS}encoder = 'gist'\nvocabulary = 'v'\ntop_k = 0", "top_k is 0"),
        (f"[a]\n{TAGS}encoder = 'gist'\nvocabulary = 'v'\nvalues = 'logits'", "values does not go with encoder"),
        (f"[a]\n{TAGS}classifier = 'onnx:x'\nlabels = 'l'\nvalues = 'odds'", "values is 'odds'"),
        ("[a]\ntype = 'CAPTION_IMAGES'", "CAPTION_IMAGES needs captioner"),
        ("[a]\ntype = 'CAPTION_OBJECTS'\nencoder = 'gist'", "CAPTION_OBJECTS needs captioner"),
        (f"[a]\n{TAGS}captioner = 'x'", "needs encoder and vocabulary or"),
        (f"[a]\n{SAYS}top_k = 2", "top_k does not go with captioner"),
        (f"[a]\n{SAYS}max_tokens = 0", "max_tokens is 0"),
        (f"[a]\n{SAYS}replace = 1", "replace is 1"),
        (f"[a]\n{SAYS}prompt = ''", "prompt is ''"),
    ],
)
def test_read_models__says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    """An invalid entry is named by file, model and key."""
    path = written(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read_models(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_read_models__nested_too_deep(tmp_path: Path) -> None:
    """A list nested ten thousand deep is rejected like any other malformed one."""
    with pytest.raises(InvalidInput, match=r"models\.toml' cannot be read: it is nested too deep"):
        read_models(written(tmp_path, "a = " + "[" * 10_000))
