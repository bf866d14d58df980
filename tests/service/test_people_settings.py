"""Settings that administrators change while the service runs: each rule of the interface."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import RunMode, ServiceSettings
from framedex.storage.service_db import setting_rows
from tests.environment import Environment
from tests.service.client import OWN, client_of
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR

URL = "/api/v1/admin/settings"
CHANGEABLE = {
    "ADD_MEDIA_ENABLED", "DATASET_SNAPSHOTS_ENABLED", "DATASET_SHARE_ENABLED", "DELETE_DATASET_ENABLED", "LOG_LEVEL",
}  # fmt: skip


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Serving]:
    """A service of a new workspace; the level of the log is that of before."""
    level = logging.getLogger("framedex").level
    with serving(tmp_path) as running:
        yield running
    logging.getLogger("framedex").setLevel(level)


def post(served: Serving, key: Any, value: Any) -> tuple[int, str]:
    """Change a setting as the admin; return the status, and the value or the sentence of an error."""
    answer = served.ann.post(URL, json={"key": key, "value": value}, headers=OWN)
    body = answer.json()
    return answer.status_code, body["value"] if answer.status_code == 200 else body["detail"]


def test_settings__are_read_as_text(fresh: Serving) -> None:
    """A setting is read by its name, with hyphens and in any case; without a name all are there, and no secret."""
    for key in ("DATASET_SHARE_ENABLED", "dataset-share-enabled", "Dataset_Share-Enabled"):
        assert fresh.ann.get(URL, params={"key": key}).json() == {"value": "true"}
    values = fresh.ann.get(URL).json()["settings"]
    assert values.keys() == CHANGEABLE | {"RUN_MODE", "DISABLE_AUTH"}
    assert (values["RUN_MODE"], values["DISABLE_AUTH"]) == ("ONPREM", "false")
    assert all(isinstance(value, str) for value in values.values())
    for key in ("NOTHING", "FRAMEDEX_SECRET_KEY", "ADMIN_PASSWORD", "OIDC_CLIENT_SECRET", ""):
        answer = fresh.ann.get(URL, params={"key": key})
        assert (answer.status_code, answer.json()["detail"]) == (400, f"Unknown setting {key!r}")


@pytest.mark.slow
def test_settings__are_stored_as_text(fresh: Serving) -> None:
    """A value is true, a text or a number; the answer is the text that is stored."""
    for value, text in ((False, "false"), ("TRUE", "true"), (0, "false"), ("yes", "true")):
        assert post(fresh, "add-media-enabled", value) == (200, text)
        assert fresh.ann.get(URL, params={"key": "ADD_MEDIA_ENABLED"}).json() == {"value": text}
    assert post(fresh, "LOG_LEVEL", "debug") == (200, "DEBUG")
    assert logging.getLogger("framedex").level == logging.DEBUG


@pytest.mark.slow
def test_settings__hold_at_once(fresh: Serving) -> None:
    """What is switched off is refused from the next request on, for all users, and allowed again after it."""
    draft = fresh.ann.get("/api/v1/ingestion/new_dataset", params={"dataset_name": "x"}, headers=OWN).json()
    url = f"/api/v1/dataset/{draft['dataset_id']}"
    assert fresh.vic.get(url + "/snapshot").status_code == 200
    assert post(fresh, "DATASET_SNAPSHOTS_ENABLED", False) == (200, "false")
    answer = fresh.vic.get(url + "/snapshot")
    assert (answer.status_code, answer.json()["detail"]) == (403, "Snapshot feature is not enabled")
    assert post(fresh, "DATASET_SNAPSHOTS_ENABLED", True) == (200, "true")
    assert fresh.vic.get(url + "/snapshot").status_code == 200
    assert post(fresh, "DELETE_DATASET_ENABLED", "false") == (200, "false")
    assert fresh.ann.delete(url, headers=OWN).json()["detail"] == "Deleting datasets is not enabled"


def test_settings__values_that_are_refused(fresh: Serving) -> None:
    """An unknown setting, one of the environment, and a value that does not parse are a 400; a wrong body is a 422."""
    assert post(fresh, "nothing", "true") == (400, "Unknown setting 'nothing'")
    for key in ("RUN_MODE", "disable-auth"):
        name = key.replace("-", "_").upper()
        assert post(fresh, key, "true") == (400, f"{name} can be changed by environment only")
    values: list[Any] = ["perhaps", [], {}, None, 7]
    for value in values:
        status, sentence = post(fresh, "ADD_MEDIA_ENABLED", value)
        assert (status, "add_media_enabled" in sentence.lower()) == (400, True), value
    assert post(fresh, "LOG_LEVEL", "LOUD")[0] == 400
    bodies: list[Any] = [{}, {"key": "LOG_LEVEL"}, {"key": 5, "value": "true"}, []]
    for body in bodies:
        assert fresh.ann.post(URL, json=body, headers=OWN).status_code == 422, body
    assert fresh.ann.get(URL, params={"key": "ADD_MEDIA_ENABLED"}).json() == {"value": "true"}


@pytest.mark.slow
def test_settings__are_for_admins(fresh: Serving) -> None:
    """Editors and viewers may neither see nor change settings; without log-ins the local user may."""
    for client in (fresh.eve, fresh.vic):
        for answer in (client.get(URL), client.post(URL, json={"key": "x"}, headers=OWN)):
            assert (answer.status_code, answer.json()["detail"]) == (
                403, "Only administrators may see and change the settings",
            )  # fmt: skip
    assert fresh.nobody.get(URL).status_code == 401
    assert fresh.local.get(URL, params={"key": "DISABLE_AUTH"}).json() == {"value": "true"}
    answer = fresh.local.post(URL, json={"key": "ADD_MEDIA_ENABLED", "value": False})
    assert (answer.status_code, answer.json()) == (200, {"value": "false"})


def test_settings__on_self_hosted_deployments_only(fresh: Serving) -> None:
    """A hosted platform shows no settings, also not to admins."""
    cloud = ServiceSettings(disable_auth=False, run_mode=RunMode.CLOUD)
    with client_of(fresh.workspace, fresh.hub, cloud) as client:
        client.log_in("ann")
        for answer in (client.get(URL), client.post(URL, json={"key": "LOG_LEVEL", "value": "INFO"}, headers=OWN)):
            assert (answer.status_code, answer.json()["detail"]) == (
                403, "Admin settings are available on self-hosted deployments only",
            )  # fmt: skip


@pytest.mark.slow
def test_settings__stay_after_a_restart(fresh: Serving, environment: Environment) -> None:
    """A changed value counts instead of the environment's at the next start, and is in the audit with its user."""
    assert post(fresh, "DATASET_SHARE_ENABLED", False) == (200, "false")
    path = fresh.workspace.path
    fresh.hub.close()
    fresh.workspace.close()
    environment["DATASET_SHARE_ENABLED"] = "true"
    with Workspace(path) as workspace, Hub(workspace) as hub:
        assert not workspace.settings.dataset_share_enabled
        entry = hub.audit(OPERATOR)[0]
        assert (entry.action, entry.target) == ("settings.change", "DATASET_SHARE_ENABLED=false")
        ann = next(user for user in hub.users.page(OPERATOR)[0] if user.username == "ann")
        assert entry.user_id == ann.id


def test_settings__of_another_process(workspace: Workspace, hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """A value that another process stores holds here from the next clean-up on; one that does not fit is left out."""
    with hub._database.write() as connection:
        for key, value in (("DATASET_SHARE_ENABLED", "false"), ("LOG_LEVEL", "LOUD"), ("NO_LONGER_THERE", "1")):
            setting_rows.put_setting(connection, key, value, None)
    before = workspace.settings.dataset_share_enabled
    hub.sweep()
    assert (before, workspace.settings.dataset_share_enabled) == (True, False)
    assert sum("a stored setting is ignored" in record.message for record in caplog.records) == 2
