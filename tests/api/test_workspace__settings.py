"""Some settings change while a workspace is open, for all its handles at once."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Forbidden, InvalidInput, Workspace
from framedex.settings import CHANGEABLE
from tests.environment import Environment
from tests.gallery import SETTINGS, embedded


@pytest.fixture(autouse=True)
def _log_level_as_before() -> Iterator[None]:
    """The level of the logger is that of before."""
    level = logging.getLogger("framedex").level
    yield
    logging.getLogger("framedex").setLevel(level)


@pytest.mark.slow
def test_change_settings__deletion_obeys(workspace: Workspace) -> None:
    """A dataset is not deleted while that is switched off, through whichever handle."""
    workspace.create_dataset("pets", embedded([[1, 0]]))
    ann = workspace.acting_as("ann@example.org").in_namespace("n")
    dataset = ann.create_dataset("hers", embedded([[1, 0]]))
    assert workspace.change_settings(delete_dataset_enabled=False).delete_dataset_enabled is False
    for handle, name in ((workspace, "pets"), (ann, "hers"), (ann, dataset.id)):
        with pytest.raises(Forbidden, match="Delete dataset feature is not enabled"):
            handle.delete_dataset(name)
    ann.change_settings(delete_dataset_enabled="true")
    workspace.delete_dataset("pets")
    ann.delete_dataset("hers")
    assert workspace.datasets() == ann.datasets() == []


def test_change_settings__additions_and_snapshots_obey(workspace: Workspace, folder: Path) -> None:
    """Objects that exist already obey at once, and the acting user stays."""
    dataset = workspace.acting_as("ann@example.org").create_dataset("pets", folder)
    workspace.change_settings(add_media_enabled=False, dataset_snapshots_enabled="false")
    with pytest.raises(Forbidden, match="Add media feature is not enabled"):
        dataset.add_media(folder)
    for ask in (dataset.snapshot, dataset.snapshots, dataset.clone):
        with pytest.raises(Forbidden, match="Snapshot feature is not enabled"):
            ask()
    workspace.change_settings(add_media_enabled=None, dataset_snapshots_enabled=None)
    assert dataset.snapshot().created_by == "ann@example.org"


def test_change_settings__other_workspaces(workspace: Workspace, tmp_path: Path) -> None:
    """A second opening of the folder in this process obeys, too, until the last one is gone; other folders do not."""
    link = tmp_path / "link"
    link.symlink_to(workspace.path)
    with (
        Workspace(link, settings=SETTINGS) as second,
        Workspace(tmp_path / "other", settings=SETTINGS) as other,
    ):
        workspace.change_settings(dataset_share_enabled=False)
        assert not second.settings.dataset_share_enabled
        assert other.settings.dataset_share_enabled
        second.change_settings(dataset_share_enabled=None)
    assert workspace.settings == SETTINGS


def test_change_settings__log_level(workspace: Workspace) -> None:
    """The level of the logger follows; None leaves it to the program again."""
    workspace.change_settings(log_level="debug")
    assert logging.getLogger("framedex").level == logging.DEBUG
    assert workspace.settings.log_level == "DEBUG"
    workspace.change_settings(log_level="warn")
    assert logging.getLogger("framedex").level == logging.WARNING
    workspace.change_settings(log_level=None)
    assert logging.getLogger("framedex").level == logging.NOTSET


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"threads": 3}, "'threads' cannot change while a workspace is open; add_media_enabled, "),
        ({"user": "ann"}, "'user' cannot change"),
        ({"nonsense": 1}, "'nonsense' cannot change"),
        ({"add_media_enabled": "perhaps"}, "add_media_enabled cannot be 'perhaps'"),
        ({"log_level": "LOUD"}, "log_level cannot be 'LOUD': no log level 'LOUD'; there are DEBUG, "),
    ],
)
def test_change_settings__refuses(workspace: Workspace, values: dict[str, Any], message: str) -> None:
    """A setting that cannot change, or a value that does not fit, changes nothing of the whole call."""
    with pytest.raises(InvalidInput) as caught:
        workspace.change_settings(**({"delete_dataset_enabled": False} | values))
    assert message in str(caught.value)
    assert workspace.settings == SETTINGS


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "FRAMEDEX_"])
@pytest.mark.parametrize("name", CHANGEABLE)
def test_settings__names_of_the_interface(environment: Environment, tmp_path: Path, prefix: str, name: str) -> None:
    """The variables have the interface's names, with or without prefix; an error has the name that was set."""
    variable = f"{prefix}{name.upper()}"
    environment[variable] = "error" if name == "log_level" else "false"
    with Workspace(tmp_path / "ws") as workspace:
        assert getattr(workspace.settings, name) in (False, "ERROR")
    environment[variable] = "nonsense"
    with pytest.raises(InvalidInput, match=f"^{variable} is 'nonsense'"):
        Workspace(tmp_path / "ws")
