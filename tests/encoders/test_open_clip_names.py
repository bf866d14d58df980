"""Names of open_clip models identify the model and its weights in any working directory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.encoders.open_clip_names import ModelName
from framedex.errors import InvalidInput
from tests.environment import Environment


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("open_clip:ViT-B-32/openai", ModelName("ViT-B-32", tag="openai")),
        ("open_clip:ViT-B-32//data/clip.safetensors", ModelName("ViT-B-32", path=Path("/data/clip.safetensors"))),
        ("open_clip:ViT-B-32//data/weights", ModelName("ViT-B-32", path=Path("/data/weights"))),
        ("open_clip:ViT-B-32?random", ModelName("ViT-B-32", random=True)),
        ("open_clip:/models/mine", ModelName(path=Path("/models/mine"))),
    ],
)
def test_parse__forms(name: str, expected: ModelName) -> None:
    """Each form of a name is parsed, and is written in the same form."""
    assert ModelName.parse(name) == expected
    assert str(expected) == name


def test_parse__relative_paths_become_absolute(in_tmp_path: Path) -> None:
    """A relative folder or file becomes absolute."""
    (in_tmp_path / "mine").mkdir()
    (in_tmp_path / "mine" / "open_clip_config.json").touch()
    for given_name, path in (("mine", "mine"), ("./other", "other"), ("../other", "../other")):
        assert ModelName.parse(f"open_clip:{given_name}") == ModelName(path=(in_tmp_path / path).resolve())
    assert ModelName.parse("open_clip:RN50/a/b.pt") == ModelName("RN50", path=in_tmp_path / "a" / "b.pt")


def test_parse__home_folder(tmp_path: Path, environment: Environment) -> None:
    """A path may begin with the home folder."""
    environment["HOME"] = str(tmp_path)
    assert ModelName.parse("open_clip:~/mine") == ModelName(path=tmp_path / "mine")
    assert ModelName.parse("open_clip:RN50/~/x.pt") == ModelName("RN50", path=tmp_path / "x.pt")


@pytest.mark.parametrize("name", ["open_clip", "open_clip:", "open_clip:?random", "clip:ViT-B-32/openai"])
def test_parse__nothing(name: str) -> None:
    """A name without a model is rejected with the valid forms."""
    with pytest.raises(InvalidInput, match="names no model: give open_clip:<model>/<pretrained tag>"):
        ModelName.parse(name)


@pytest.mark.parametrize("name", ["open_clip:ViT-B-32", "open_clip:ViT-B-32/"])
def test_parse__no_weights(name: str) -> None:
    """A model without weights is rejected; random ones must be requested."""
    with pytest.raises(InvalidInput, match=r"'ViT-B-32' needs weights: .*ViT-B-32\?random' has random weights"):
        ModelName.parse(name)


def test_of__weights_for_a_folder(tmp_path: Path) -> None:
    """A folder has its own weights, so no others, and no random ones, are accepted."""
    with pytest.raises(InvalidInput, match="has its own weights"):
        ModelName.of(tmp_path, "openai")
    with pytest.raises(InvalidInput, match="has its own weights"):
        ModelName.of(tmp_path, random=True)


def test_of__random_and_weights() -> None:
    """Weights are either passed or random."""
    with pytest.raises(InvalidInput, match="needs weights"):
        ModelName.of("ViT-B-32", "openai", random=True)


WORDS = st.text(st.characters(codec="ascii", categories=("L", "N"), include_characters="-_. "), min_size=1)


@pytest.mark.slow
@given(
    model=WORDS.filter(lambda word: word[0] != "."),
    parts=st.lists(WORDS.filter(lambda word: word.strip(".")), min_size=1),
)
def test_parse__is_the_inverse_of_writing(model: str, parts: list[str]) -> None:
    """Parsing restores the name that was written."""
    path = Path("/", *parts)
    for named in (ModelName(model, random=True), ModelName(model, path=path), ModelName(path=path)):
        assert ModelName.parse(str(named)) == named
