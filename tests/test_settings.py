"""Settings come from the environment or from code, and are checked."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from framedex.settings import Settings, available_cpus
from tests.environment import Environment


def test_settings__defaults(environment: Environment) -> None:
    """Without an environment there are sensible limits."""
    for name in Settings.model_fields:
        environment.pop(f"FRAMEDEX_{name.upper()}", None)
    settings = Settings()
    assert settings.workspace == Path("~/framedex")
    assert settings.max_pixels == 178_956_970
    assert settings.threads >= 2
    assert available_cpus() >= 1


def test_settings__by_environment_and_code(environment: Environment) -> None:
    """The environment is read at each construction, what is given in code wins, other variables are ignored."""
    environment["FRAMEDEX_THREADS"] = "3"
    environment["framedex_user"] = "me@example.org"
    environment["FRAMEDEX_NONSENSE"] = "1"
    settings = Settings()
    assert (settings.threads, settings.user) == (3, "me@example.org")
    assert Settings(threads=5).threads == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threads", 0),
        ("threads", 257),
        ("max_pixels", 0),
        ("max_file_bytes", -1),
        ("pixels_in_flight", 0),
        ("threads", "x"),
    ],
)
def test_settings__out_of_range(name: str, value: object) -> None:
    """A limit that makes no sense is refused by name."""
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({name: value})


def test_settings__are_frozen() -> None:
    """Settings do not change after they were read."""
    with pytest.raises(ValidationError, match="frozen"):
        Settings().threads = 9  # type: ignore[misc] # that is the point
