"""The command that shows the settings."""

import json
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.access import operator_actor
from framedex.cli import main
from framedex.hub import Hub
from framedex.storage.service_db.setting_rows import put_setting
from tests.environment import Environment
from tests.gallery import SETTINGS


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, tuple[str, str]], str]:
    """Return the values and sources that the command shows, by setting, and what it wrote to the standard error."""
    with pytest.raises(SystemExit) as exit_:
        main(["settings", "-w", str(folder), "--json"])
    assert exit_.value.code in (0, None)
    out, errors = capsys.readouterr()
    return {each["variable"]: (each["value"], each["source"]) for each in json.loads(out)}, errors


def test_settings__are_shown_with_their_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], environment: Environment
) -> None:
    """Each setting has a line with its value and source; a workspace need not exist, and none is created."""
    environment["FRAMEDEX_THREADS"] = "3"
    environment["FRAMEDEX_SECRET_KEY"] = "planted secret of the service, long"
    shown = []
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as exit_:
            main(["settings", "-w", str(tmp_path / "ws"), *more])
        assert exit_.value.code in (0, None)
        shown.append(capsys.readouterr().out)
    (line,) = (line.split() for line in shown[0].splitlines() if line.startswith("FRAMEDEX_THREADS "))
    assert line == ["FRAMEDEX_THREADS", "3", "FRAMEDEX_THREADS"]
    by_name = {each["variable"]: each for each in json.loads(shown[1])}
    assert (by_name["FRAMEDEX_THREADS"]["value"], by_name["FRAMEDEX_USER"]["source"]) == ("3", "default")
    assert by_name["FRAMEDEX_SECRET_KEY"]["secret"]
    assert "planted" not in "".join(shown)
    assert list(tmp_path.iterdir()) == []


def test_settings__that_administrators_have_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], environment: Environment
) -> None:
    """What is stored takes precedence over the environment, as in the service; what it ignores there is not shown."""
    environment["DATASET_SHARE_ENABLED"] = "true"
    environment["DELETE_DATASET_ENABLED"] = "false"
    folder = tmp_path / "ws"
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        hub.admin_settings.change(operator_actor("me"), "DATASET_SHARE_ENABLED", False)
        hub.admin_settings.change(operator_actor("me"), "LOG_LEVEL", "debug")
        with hub._database.write() as connection:
            put_setting(connection, "DELETE_DATASET_ENABLED", "perhaps", None)
            put_setting(connection, "USER", "planted", None)
    settings, errors = shown(folder, capsys)
    file = str(folder / "service.db")
    assert (settings["DATASET_SHARE_ENABLED"], settings["LOG_LEVEL"]) == (("false", file), ("DEBUG", file))
    assert settings["DELETE_DATASET_ENABLED"] == ("false", "DELETE_DATASET_ENABLED")
    assert settings["ADD_MEDIA_ENABLED"] == ("true", "default")
    assert (settings["FRAMEDEX_USER"], errors) == (("local", "default"), "")
    (folder / "service.db").chmod(0o644)
    settings, errors = shown(folder, capsys)
    assert settings["DATASET_SHARE_ENABLED"] == ("true", "DATASET_SHARE_ENABLED")
    assert "what administrators have changed is not shown" in errors


def test_settings__are_changed_as_administrators_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What administrators of the service change is changed here, too, for all given keys; other keys are refused."""
    folder = tmp_path / "ws"

    def run(*changes: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main(["settings", "-w", str(folder), *(part for each in changes for part in ("--change", each))])
        return exit_.value.code, *capsys.readouterr()

    with Workspace(folder, settings=SETTINGS):
        pass
    status, _, errors = run("LOG_LEVEL=DEBUG")
    assert (status, "has no users" in errors) == (1, True)
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        assert run("log-level=debug", "DATASET_SHARE_ENABLED=no")[0] in (0, None)
        hub.sweep()  # as a service does once a minute
        assert (workspace.settings.log_level, workspace.settings.dataset_share_enabled) == ("DEBUG", False)
        assert [each.target for each in hub.audit(operator_actor("me"))] == [
            "DATASET_SHARE_ENABLED=false", "LOG_LEVEL=DEBUG",
        ]  # fmt: skip
    assert shown(folder, capsys)[0]["LOG_LEVEL"] == ("DEBUG", str(folder / "service.db"))
    for change, reason in (
        ("LOG_LEVEL", "as in LOG_LEVEL=DEBUG, not 'LOG_LEVEL'"),
        ("LOG_LEVEL=loud", "no log level 'loud'"),
        ("RUN_MODE=CLOUD", "RUN_MODE can be changed by environment only"),
        ("OIDC_CLIENT_SECRET=x", "Unknown setting 'OIDC_CLIENT_SECRET'"),
        ("DATASET_SHARE_ENABLED=", "dataset_share_enabled cannot be ''"),
    ):
        status, out, errors = run(change)
        assert (status, out, reason in errors) == (1, "", True), change
