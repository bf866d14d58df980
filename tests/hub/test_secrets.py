"""Secrets: none of those that users and clients know is stored or noted."""

import logging
from pathlib import Path

import pytest

from framedex import Error, Workspace
from framedex.hub import Hub
from framedex.hub.alert_targets import UrlTarget
from tests.api.test_dataset__saved_views import labelled
from tests.growth import THRESHOLDS
from tests.hub.people import OPERATOR, add_user, log_in

PLANTED = "planted-password-1", "planted-password-2", "planted-password-3", "typed-as-a-name"


def contents(folder: Path) -> bytes:
    """Return the bytes of all files in a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_files__have_no_secret(workspace: Workspace, hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """No file of the workspace has a password, the token of a session or the secret of a key, and no log line."""
    caplog.set_level(logging.DEBUG)
    user = hub.users.create(OPERATOR, "ann", PLANTED[0])
    session = hub.sessions.log_in("ann", PLANTED[0])
    changed = hub.sessions.change_password(hub.sessions.actor(session.token), PLANTED[0], PLANTED[1])
    credentials = hub.credentials.get(hub.sessions.actor(changed.token))
    rotated = hub.credentials.rotate(hub.sessions.actor(changed.token))
    hub.users.reset_password(OPERATOR, user.id, PLANTED[2])
    for name, password in ((PLANTED[3], "x"), ("ann", PLANTED[3])):
        with pytest.raises(Error) as error:
            hub.sessions.log_in(name, password)
        assert PLANTED[3] not in str(error.value)
    secrets = [*PLANTED, session.token, changed.token, credentials.api_secret, rotated.api_secret]
    assert all(secrets)
    for when in ("open", "closed"):
        stored = contents(workspace.path)
        assert user.id.encode() in stored, when
        assert [secret for secret in secrets if secret.encode() in stored] == [], when
        hub.close()
    assert [secret for secret in secrets if secret in caplog.text] == []


@pytest.mark.slow
def test_receiver__is_in_no_file_and_no_log(
    workspace: Workspace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The URL that gets alerts, which is a secret as those of chats are, is not stored or noted where it fails."""
    caplog.set_level(logging.DEBUG)
    target = UrlTarget("http://127.0.0.1:9/planted-path?planted-key=planted", allow_private=True)
    with Hub(workspace, on_alert=[target]) as hub:
        dataset = workspace.create_dataset("pets", labelled(0, "abab"), thresholds=THRESHOLDS)
        hub.views.create(OPERATOR, dataset.id, "all")
        dataset.add_media(labelled(10, "a"))
        assert hub.notifications.deliver() == 1
        assert hub.calls.run_due() == 1
        assert b"planted" not in contents(workspace.path)
    assert b"planted" not in contents(workspace.path)
    assert "was not taken by the" in caplog.text
    assert "planted" not in caplog.text


def test_records__have_no_secret(hub: Hub) -> None:
    """What is shown of a user, a session or the audit has neither the hash of a password nor that of a token."""
    user = add_user(hub, "ann")
    log_in(hub, "ann")
    with hub._database.read() as connection:
        password_hash = connection.exec_driver_sql("SELECT password_hash FROM users WHERE username = 'ann'").scalar()
        token_hash = connection.exec_driver_sql("SELECT hex(token_hash) FROM sessions").scalar()
    shown = repr([hub.users.page(OPERATOR), hub.users.sessions(OPERATOR, user.id), hub.audit(OPERATOR)])
    assert "argon2" in str(password_hash)
    assert str(password_hash) not in shown
    assert str(token_hash).lower() not in shown.lower()
