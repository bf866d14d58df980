"""Text encoders by name and as objects."""

from typing import Any

import pytest

from framedex.encoders import choose_text_encoder, register
from framedex.errors import InvalidInput
from tests.api.test_dataset__search import Colours
from tests.gallery import Averages
from tests.meanings import Meanings


def test_choose__given_in_code_and_then_by_name() -> None:
    """An encoder that was passed as an object is found by its name."""
    encoder = Meanings("given in code")
    assert choose_text_encoder(encoder) is encoder
    assert choose_text_encoder("given in code") is encoder


def test_choose__registered() -> None:
    """A factory is called once for a full name, and again after it is registered again."""
    made: list[str] = []

    def make(name: str) -> Meanings:
        made.append(name)
        return Meanings(name)

    register("words", make)
    assert choose_text_encoder("words:small") is choose_text_encoder("words:small")
    assert choose_text_encoder("words").name == "words"
    assert made == ["words:small", "words"]
    register("words", make)
    choose_text_encoder("words:small")
    assert made == ["words:small", "words", "words:small"]


def test_choose__multimodal() -> None:
    """An encoder of images and texts is accepted for texts, too, by its registered name."""
    register("colours-and-words", lambda _name: Colours())
    assert isinstance(choose_text_encoder("colours-and-words"), Colours)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such", "no encoder 'no-such'"),
        ("gist", "'gist' knows images only"),
        ("auto", "not as 'auto'"),
        (Averages(), "no text encoder"),
        (12, "12 is no text encoder"),
    ],
)
def test_choose__what_is_none(name: Any, message: str) -> None:
    """An encoder that does not encode texts is rejected by name."""
    with pytest.raises(InvalidInput, match=message):
        choose_text_encoder(name)


@pytest.mark.parametrize("scheme", ["", "a:b", "auto"])
def test_register__names_that_cannot_be(scheme: str) -> None:
    """A scheme must be a word."""
    with pytest.raises(InvalidInput, match="cannot name an encoder"):
        register(scheme, Meanings)
