"""Encoders are chosen by name, with the reason for the choice."""

from typing import Any

import pytest

from framedex.encoders import Encoder, choose_encoder, register
from framedex.encoders.gist import Gist
from framedex.errors import InvalidInput


class Named(Gist):
    """An encoder with the name that its factory got."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_choose__by_name() -> None:
    """A registered name returns its encoder."""
    encoder, reason = choose_encoder("gist")
    assert encoder.name == "gist"
    assert reason == "chosen by name"


def test_choose__auto_says_why() -> None:
    """Without learned encoders `auto` is the built-in one, with the reason."""
    encoder, reason = choose_encoder("auto")
    assert encoder.name == "gist"
    assert reason.startswith("auto: ")
    assert "built-in" in reason


def test_choose__given_in_code() -> None:
    """An encoder object is returned unchanged."""
    mine = Named("mine")
    assert choose_encoder(mine) == (mine, "given in code")


@pytest.mark.parametrize("name", ["", "Gist", "clip", "fasttext:/nowhere.bin", ":gist"])
def test_choose__unknown_name(name: str) -> None:
    """An unknown name is rejected with the list of names."""
    with pytest.raises(InvalidInput, match=r"no encoder '.*'; there are: auto, gist"):
        choose_encoder(name)


@pytest.mark.parametrize("value", [None, 7, object(), ["gist"]])
def test_choose__something_else(value: Any) -> None:
    """A value that is neither a name nor an encoder is rejected."""
    with pytest.raises(InvalidInput, match="is no encoder"):
        choose_encoder(value)


def test_register__whole_name_reaches_the_factory() -> None:
    """The factory gets the full name, including the part after the colon."""
    register("mine", Named)
    for name in ("mine", "mine:", "mine:model/part?x=y"):
        encoder, _ = choose_encoder(name)
        assert isinstance(encoder, Encoder)
        assert encoder.name == name
    with pytest.raises(InvalidInput, match="there are: auto, gist, mine"):
        choose_encoder("other")


@pytest.mark.parametrize("scheme", ["", "auto", "a:b", ":"])
def test_register__names_that_cannot_be(scheme: str) -> None:
    """Empty names, names with a colon and `auto` are rejected."""
    with pytest.raises(InvalidInput, match="cannot name an encoder"):
        register(scheme, Named)
