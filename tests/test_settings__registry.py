"""The registry of settings: it has all of them, and the documents list what it has."""

import re
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings, SettingsConfigDict

import framedex
from framedex.errors import InvalidInput
from framedex.settings import Settings, registry
from framedex.settings.model import Group, define
from framedex.settings.page import with_settings
from framedex.settings.registry import PresentSetting, definitions, present_settings
from tests.environment import Environment

DOCUMENT = Path(__file__).parent.parent / "docs" / "settings.md"


def present(folder: Path) -> dict[str, PresentSetting]:
    """Return the settings with their values, by the name in the documents."""
    return {each.definition.name: each for each in present_settings(folder)}


def test_document__is_current() -> None:
    """The tables of docs/settings.md are what the registry says; ``make schema`` writes them."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_settings(text) == text
    with pytest.raises(ValueError, match="no marks for the settings of 'General'"):
        with_settings("# Settings\n")


@pytest.mark.slow
def test_definitions__are_all_settings() -> None:
    """Each field has a definition with a meaning, and each variable that the package names is a setting."""
    listed = definitions()
    assert {each.field for each in listed if each.model is Settings} == set(Settings.model_fields)
    assert all(each.meaning and each.default for each in listed)
    names = [name for each in listed for name in each.names]
    assert len(names) == len(set(names))
    sources = Path(framedex.__file__).parent.rglob("*.py")
    named = {name for path in sources for name in re.findall(r"\bFRAMEDEX_[A-Z0-9_]+\b", path.read_text("utf-8"))}
    assert named - {"FRAMEDEX_"} <= set(names)


def test_present__says_where_values_come_from(tmp_path: Path, environment: Environment) -> None:
    """A value is the default, or that of a variable, under whichever name and in whichever case it is set."""
    for name in {name for each in definitions() for name in each.names}:
        environment.pop(name, None)
    settings = present(tmp_path)
    assert {each.source for each in settings.values()} == {"default"}
    assert settings["FRAMEDEX_S3_REGION"].value == "that of the environment"
    assert settings["FRAMEDEX_MAX_PIXELS"].value == "178956970"
    for name, value in (
        ("framedex_threads", "3"),
        ("FRAMEDEX_DELETE_DATASET_ENABLED", "no"),
        ("FRAMEDEX_S3_ALLOWED", "pets, s3://birds/owls/"),
        ("FRAMEDEX_MEDIA_ROOTS", "/a:/b"),
        ("FRAMEDEX_CLEAN_EVERY_S", "inf"),
        ("FRAMEDEX_NAMESPACE", "mine"),
    ):
        environment[name] = value
    settings = present(tmp_path)
    changed = {name: (each.value, each.source) for name, each in settings.items() if each.source != "default"}
    assert changed == {
        "FRAMEDEX_THREADS": ("3", "FRAMEDEX_THREADS"),
        "DELETE_DATASET_ENABLED": ("false", "FRAMEDEX_DELETE_DATASET_ENABLED"),
        "FRAMEDEX_S3_ALLOWED": ("pets,birds/owls", "FRAMEDEX_S3_ALLOWED"),
        "FRAMEDEX_MEDIA_ROOTS": ("/a:/b", "FRAMEDEX_MEDIA_ROOTS"),
        "FRAMEDEX_CLEAN_EVERY_S": ("inf", "FRAMEDEX_CLEAN_EVERY_S"),
        "FRAMEDEX_NAMESPACE": ("mine", "FRAMEDEX_NAMESPACE"),
    }
    environment["FRAMEDEX_THREADS"] = "many"
    with pytest.raises(InvalidInput, match=r"FRAMEDEX_THREADS is 'many': it must be a whole number$"):
        present_settings(tmp_path)


def test_present__shows_no_secret(tmp_path: Path, environment: Environment) -> None:
    """Of a secret only whether it is set, and where, is known."""
    environment.pop("FRAMEDEX_SECRET_KEY", None)
    name = "FRAMEDEX_SECRET_KEY"
    assert (present(tmp_path)[name].value, present(tmp_path)[name].source) == ("not set", "default")
    (tmp_path / "service.key").write_bytes(b"planted in a file")
    assert (present(tmp_path)[name].value, present(tmp_path)[name].source) == (
        "not shown", str(tmp_path / "service.key"),
    )  # fmt: skip
    environment[name] = "planted in a variable"
    assert (present(tmp_path)[name].value, present(tmp_path)[name].source) == ("not shown", name)
    assert "planted" not in repr(present_settings(tmp_path))


class FurtherSettings(BaseSettings):
    """Settings that another part of the program adds."""

    model_config = SettingsConfigDict(env_prefix="FRAMEDEX_")

    plant: str | None = define(Group.GENERAL, "name of the plant", default_text="no plant", default=None)
    password: str = define(Group.USERS, "password", default_text="none", default="", is_secret=True, max_length=7)


def test_models__can_be_added(tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A further model of settings is listed and shown with the others, its secrets excepted."""
    monkeypatch.setattr(registry, "MODELS", (*registry.MODELS, FurtherSettings))
    environment["FRAMEDEX_PLANT"] = "fern"
    environment["FRAMEDEX_PASSWORD"] = "planted"
    settings = present(tmp_path)
    assert settings["FRAMEDEX_PLANT"].value == "fern"
    assert settings["FRAMEDEX_PASSWORD"].value == "not shown"
    assert "| `FRAMEDEX_PLANT` | name of the plant | no plant |" in with_settings(DOCUMENT.read_text("utf-8"))
    environment["FRAMEDEX_PASSWORD"] = "planted, and too long"
    with pytest.raises(InvalidInput, match=r"^FRAMEDEX_PASSWORD cannot be used; its value is not shown$"):
        present(tmp_path)
