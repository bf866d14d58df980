"""Settings of the environment that cannot be used are said in our own words."""

import pytest

from framedex.errors import InvalidInput
from framedex.settings import load_settings, user_path
from tests.environment import Environment


@pytest.mark.parametrize(("name", "value"), [("THREADS", "many"), ("MAX_PIXELS", "0"), ("THREADS", "1.5")])
def test_load_settings__names_the_variable(name: str, value: str, environment: Environment) -> None:
    """The message has the variable and its value."""
    environment[f"FRAMEDEX_{name}"] = value
    with pytest.raises(InvalidInput, match=f"FRAMEDEX_{name} is '{value}'"):
        load_settings()


@pytest.mark.parametrize(("value", "expected"), [("false", False), ("0", False), ("TRUE", True)])
@pytest.mark.parametrize("name", ["ADD_MEDIA_ENABLED", "FRAMEDEX_ADD_MEDIA_ENABLED"])
def test_load_settings__by_the_names_of_the_interface(
    name: str, value: str, expected: bool, environment: Environment
) -> None:
    """The interface's settings are read under its names, too, and errors use these names."""
    environment[name] = value
    assert load_settings().add_media_enabled is expected
    environment["ADD_MEDIA_ENABLED"] = "perhaps"
    with pytest.raises(InvalidInput, match=r"^ADD_MEDIA_ENABLED is 'perhaps'"):
        load_settings()


@pytest.mark.parametrize("value", ["localhost:9000", "ftp://host", "http://host/path", "http://"])
def test_load_settings__an_endpoint_that_is_none(value: str, environment: Environment) -> None:
    """The address of a service is that of a host, by HTTP."""
    environment["FRAMEDEX_S3_ENDPOINT"] = value
    with pytest.raises(InvalidInput, match=f"FRAMEDEX_S3_ENDPOINT is '{value}'"):
        load_settings()


def test_user_path__unknown_user() -> None:
    """The home folder of a user who does not exist is no path."""
    with pytest.raises(InvalidInput, match="does not exist"):
        user_path("~no-such-user-here/x")


def test_load_settings__a_language_that_is_none(environment: Environment) -> None:
    """The language of full text is checked at once, and those there are are named."""
    environment["FRAMEDEX_LANGUAGE"] = "klingon"
    with pytest.raises(InvalidInput, match=r"^FRAMEDEX_LANGUAGE is 'klingon': no language.*english.*none$"):
        load_settings()
    environment["FRAMEDEX_LANGUAGE"] = "german"
    assert load_settings().language == "german"


def test_load_settings__text_encoder(environment: Environment) -> None:
    """There is no text encoder but one that is named."""
    environment.pop("FRAMEDEX_TEXT_ENCODER", None)
    assert load_settings().text_encoder is None
    environment["FRAMEDEX_TEXT_ENCODER"] = "open_clip:ViT-B-32"
    assert load_settings().text_encoder == "open_clip:ViT-B-32"
    environment["FRAMEDEX_TEXT_ENCODER"] = ""
    with pytest.raises(InvalidInput, match="FRAMEDEX_TEXT_ENCODER is ''"):
        load_settings()


@pytest.mark.parametrize("value", ["0", "11", "often"])
def test_heartbeat__outside_of_its_range(environment: Environment, value: str) -> None:
    """Signs of life that come too seldom, or without pause, are refused with the name of the variable."""
    environment["FRAMEDEX_HEARTBEAT_S"] = value
    with pytest.raises(InvalidInput, match="FRAMEDEX_HEARTBEAT_S"):
        load_settings()
