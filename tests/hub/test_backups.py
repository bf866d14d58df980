"""Backups of a workspace with users."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from framedex import Workspace, WorkspaceError
from framedex.access import Role
from framedex.hub import Hub
from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db.database import DEFAULT_ID
from tests.gallery import SETTINGS
from tests.hub.people import OPERATOR, PASSWORD, add_user


def rows_of(folder: Path, table: str) -> int:
    """Return the number of rows of a table of the service's database."""
    with closing(sqlite3.connect(f"file:{folder / SERVICE_DB_NAME}?mode=ro", uri=True)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


@pytest.fixture
def home(workspace: Workspace, hub: Hub) -> Path:
    """A workspace with two users, a shared dataset and a session."""
    add_user(hub, "ann", "admin")
    ben = add_user(hub, "ben")
    dataset = workspace.create_draft("pets")
    hub.datasets.adopt(dataset.id, DEFAULT_ID, None)
    hub.datasets.share(OPERATOR, dataset.id, "ben", Role.EDITOR)
    hub.sessions.log_in("ben", PASSWORD, ip="10.0.0.1", user_agent="test")
    assert ben.username == "ben"
    return workspace.path


@pytest.mark.slow
def test_backup__with_users(home: Path, workspace: Workspace, tmp_path: Path) -> None:
    """Users, roles and grants are restored; sessions and the key of the service are not in the backup."""
    result = workspace.backup(tmp_path / "backup", with_users=True)
    copy = tmp_path / "backup" / "workspace" / SERVICE_DB_NAME
    assert copy.stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "backup").rglob("service.key"))
    assert result.with_users
    text = " ".join(result.not_included)
    assert "service.key" in text
    assert "sessions of users" in text
    assert rows_of(home, "sessions") == 1
    target = tmp_path / "restored"
    assert Workspace.restore_backup(tmp_path / "backup", target, settings=SETTINGS).findings == []
    assert (target / SERVICE_DB_NAME).stat().st_mode & 0o077 == 0
    for table in ("users", "memberships", "dataset_homes", "grants"):
        assert rows_of(target, table) == rows_of(home, table) > 0
    assert [rows_of(target, table) for table in ("sessions", "login_failures", "exports")] == [0, 0, 0]
    with Workspace(target, settings=SETTINGS) as opened, Hub(opened) as restored:
        session = restored.sessions.log_in("ben", PASSWORD, ip="10.0.0.1", user_agent="test")
        assert session is not None


def test_backup__without_users(home: Path, workspace: Workspace, tmp_path: Path) -> None:
    """By default users are not in a backup, which says so."""
    result = workspace.backup(tmp_path / "backup")
    assert not (tmp_path / "backup" / "workspace" / SERVICE_DB_NAME).exists()
    assert f"({SERVICE_DB_NAME}): a backup with users has them" in " ".join(result.not_included)
    assert Workspace.restore_backup(tmp_path / "backup", tmp_path / "restored", settings=SETTINGS).is_sound


def test_backup__session_tokens_leave_no_trace(home: Path, workspace: Workspace, tmp_path: Path) -> None:
    """No page of the copied database has the hash of a session's token."""
    with closing(sqlite3.connect(home / SERVICE_DB_NAME)) as connection:
        ((token_hash,),) = connection.execute("SELECT token_hash FROM sessions").fetchall()
    workspace.backup(tmp_path / "backup", with_users=True)
    assert token_hash not in (tmp_path / "backup" / "workspace" / SERVICE_DB_NAME).read_bytes()


@pytest.mark.slow
def test_backup__of_users_that_others_can_read(home: Path, workspace: Workspace, tmp_path: Path) -> None:
    """A database that others can read is refused, as by the service."""
    (home / SERVICE_DB_NAME).chmod(0o644)
    with pytest.raises(WorkspaceError, match="can be read by other users"):
        workspace.backup(tmp_path / "backup", with_users=True)
