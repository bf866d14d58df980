"""Settings of the environment that cannot be used are said in our own words."""

import pytest

from framedex.errors import InvalidInput
from framedex.settings import load_settings, user_path


@pytest.mark.parametrize(("name", "value"), [("THREADS", "many"), ("MAX_PIXELS", "0"), ("THREADS", "1.5")])
def test_load_settings__names_the_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the variable and its value."""
    monkeypatch.setenv(f"FRAMEDEX_{name}", value)
    with pytest.raises(InvalidInput, match=f"FRAMEDEX_{name} is '{value}'"):
        load_settings()


def test_user_path__unknown_user() -> None:
    """The home folder of a user who does not exist is no path."""
    with pytest.raises(InvalidInput, match="does not exist"):
        user_path("~no-such-user-here/x")
