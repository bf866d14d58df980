"""Checks of the database and the key of a service, and their loss; without the extra of the service."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from framedex import Conflict, Workspace
from framedex.access import LOCAL_USER_ID
from framedex.storage.service_db.database import DEFAULT_ID, SERVICE_DB, open_service_db
from tests.environment import Environment
from tests.gallery import SETTINGS

TIME = "2030-01-01T00:00:00.000000+00:00"
ANN, BEN, DATASET = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2, 3))
Change = Callable[[Path], object]


def execute(home: Path, *statements: str, check: bool = False) -> list[tuple[Any, ...]]:
    """Execute statements on the database, without its checks unless wanted; return the rows of the last one."""
    with closing(sqlite3.connect(home / "service.db")) as connection, connection:
        if not check:
            connection.execute("PRAGMA ignore_check_constraints=ON")
        return [connection.execute(each).fetchall() for each in statements][-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a draft, two users, a grant, a session and a key of the service."""
    home = tmp_path_factory.mktemp("made") / "ws"
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset_id = workspace.create_draft("pets").id
    open_service_db(home).close()
    (home / "service.key").write_bytes(bytes(32))
    (home / "service.key").chmod(0o600)
    users = ", ".join(
        f"('{user_id}', '{name}', '{name}', 1, 0, '{TIME}', 0)" for user_id, name in ((ANN, "ann"), (BEN, "ben"))
    )
    execute(
        home,
        "INSERT INTO users (id, username, username_key, enabled, password_temporary, created_at, epoch) VALUES "
        + users,
        f"INSERT INTO memberships VALUES ('{DEFAULT_ID}', '{ANN}', 'admin', 1, '{TIME}')",
        f"INSERT INTO memberships VALUES ('{DEFAULT_ID}', '{BEN}', 'viewer', 1, '{TIME}')",
        f"INSERT INTO dataset_homes VALUES ('{dataset_id}', '{DEFAULT_ID}', '{ANN}', '{TIME}')",
        f"INSERT INTO grants VALUES ('{dataset_id}', '{BEN}', 'viewer', '{ANN}', '{TIME}')",
        "INSERT INTO api_keys (key, user_id, version, created_at) VALUES ('k', '" + BEN + f"', 1, '{TIME}')",
        f"INSERT INTO settings VALUES ('s', '1', '{ANN}', '{TIME}')",
        check=True,
    )
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "ws"))


def faults(home: Path, *, repair: bool = False, multi: bool = False) -> list[tuple[str, bool]]:
    """Return the faults that a check finds, each with whether it was repaired."""
    settings = SETTINGS.model_copy(update={"multi_workspace": multi})
    with Workspace(home, settings=settings) as opened:
        return [(each.fault, each.repaired) for each in opened.check(repair=repair).findings]


def rows(home: Path, table: str) -> int:
    """Return the number of rows of a table."""
    return int(execute(home, f"SELECT COUNT(*) FROM {table}")[0][0])


def statements(*texts: str) -> Change:
    """Return a change of the database."""
    return lambda home: execute(home, *texts)


def test_check__sound_users(home: Path) -> None:
    """A sound database has no findings and is counted; a check of one dataset leaves it out."""
    with Workspace(home, settings=SETTINGS) as workspace:
        result = workspace.check()
        assert (result.findings, result.counts["service databases"]) == ([], 1)
        assert "service databases" not in workspace.check("pets").counts


MENDED: dict[str, tuple[Change, str]] = {
    "grant of no user": (
        statements(f"DELETE FROM users WHERE id = '{BEN}'", f"DELETE FROM memberships WHERE user_id = '{BEN}'",
                   "DELETE FROM api_keys"),
        "1 row of table grants is of users that are missing, in user_id",
    ),
    "key of no user": (
        statements("UPDATE api_keys SET user_id = 'x'"),
        "1 row of table api_keys is of users that are missing, in user_id",
    ),
    "member of no tenant": (
        statements(f"INSERT INTO memberships VALUES ('{DATASET}', '{BEN}', 'viewer', 0, '{TIME}')"),
        "1 row of table memberships is of tenants that are missing, in tenant_id",
    ),
    "owner that is gone": (
        statements("UPDATE dataset_homes SET owner_id = 'x'"),
        "1 row of table dataset_homes is of users that are missing, in owner_id",
    ),
    "home in no tenant": (
        statements("UPDATE dataset_homes SET tenant_id = 'x'"),
        "1 row of table dataset_homes is of tenants that are missing, in tenant_id",
    ),
    "tenant of no organization": (
        statements(f"INSERT INTO tenants VALUES ('{DATASET}', 'x', 'Default Workspace', '{TIME}', NULL)"),
        "1 row of table tenants is of organizations that are missing, in organization_id",
    ),
    "grants of no dataset": (
        statements(f"INSERT INTO grants VALUES ('{DATASET}', '{BEN}', 'viewer', NULL, '{TIME}')"),
        "1 row of table grants is of datasets that do not exist",
    ),
    "homes of no dataset": (
        statements(f"INSERT INTO dataset_homes VALUES ('{DATASET}', '{DEFAULT_ID}', NULL, '{TIME}')"),
        "1 row of table dataset_homes is of datasets that do not exist",
    ),
    "notifications of no dataset": (
        statements(*(
            "INSERT INTO notifications (id, user_id, entity_type, entity_id, batch_id, title, metadata, dataset_id,"
            f" created_at) VALUES ('{number}', '{BEN}', 'VIEW', 'v', '{number}', 't', '{{}}', '{DATASET}', '{TIME}')"
            for number in range(2)
        )),
        "2 rows of table notifications are of datasets that do not exist",
    ),
    "session with a wrong time": (
        statements("INSERT INTO sessions (id, token_hash, user_id, epoch, ip, user_agent, start, last_access,"
                   f" expires_at) VALUES ('s', x'00', '{BEN}', 0, '', '', 'soon', '{TIME}', '{TIME}')"),
        "row 's' of table sessions: start: 'soon' is no time in ISO 8601",
    ),
    "local user": (
        statements(f"DELETE FROM users WHERE id = '{LOCAL_USER_ID}'"),
        "the user 'local', who acts while authentication is off, is missing",
    ),
    "name that is not found": (
        statements(f"UPDATE users SET username_key = 'bem' WHERE id = '{BEN}'"),
        "the user 'ben' is not found by the name",
    ),
    "no primary workspace": (
        statements(f"UPDATE memberships SET is_primary = 0 WHERE user_id = '{BEN}'"),
        "the user 'ben' has no workspace in which new datasets are created",
    ),
    "mode of the database": (
        lambda home: (home / "service.db").chmod(0o644),
        "can be read by other users (mode 644), and it has secrets or hashes of passwords",
    ),
    "mode of the key": (
        lambda home: (home / "service.key").chmod(0o640),
        "can be read by other users (mode 640), and it has secrets or hashes of passwords",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_check__mends(home: Path, name: str) -> None:
    """Each fault is found and mended; the users, their roles and other rows stay."""
    change, fault = MENDED[name]
    kept = ("organizations", "tenants", "memberships", "dataset_homes", "grants", "settings")
    before = {table: rows(home, table) for table in kept}
    change(home)
    assert faults(home) == [(fault, False)]
    assert faults(home, repair=True) == [(fault, True)]
    assert faults(home) == []
    lost = {"grant of no user": {"memberships", "grants"}, "tenant of no organization": {"tenants"}}.get(name, set())
    assert {table for table in kept if rows(home, table) != before[table]} == lost
    assert rows(home, "users") == (2 if name == "grant of no user" else 3)


@pytest.mark.slow
def test_check__mends_without_a_loss_of_datasets(home: Path) -> None:
    """Homes of a lost tenant go to the default one; a tenant of a lost organization keeps its datasets."""
    execute(home, f"INSERT INTO tenants VALUES ('{DATASET}', 'x', 'Default Workspace', '{TIME}', NULL)")
    execute(home, f"UPDATE dataset_homes SET tenant_id = '{DATASET}'")
    faults(home, repair=True)
    assert execute(home, "SELECT tenant_id, owner_id FROM dataset_homes") == [(DATASET, ANN)]
    ((name, organization),) = execute(home, f"SELECT name, organization_id FROM tenants WHERE id = '{DATASET}'")
    assert (name, organization) == (f"Default Workspace ({DATASET})", DEFAULT_ID)
    execute(home, f"DELETE FROM tenants WHERE id = '{DATASET}'")
    faults(home, repair=True)
    assert execute(home, "SELECT tenant_id, owner_id FROM dataset_homes") == [(DEFAULT_ID, ANN)]


def test_check__the_catalog_may_come_back(home: Path) -> None:
    """Rows of a dataset that only the catalog has lost stay, because its folder is there."""
    with closing(sqlite3.connect(home / "catalog.db")) as connection, connection:
        connection.execute("DELETE FROM datasets")
    findings = faults(home)
    assert len(findings) == 1
    assert "the catalog has no entry of the dataset 'pets'" in findings[0][0]
    assert faults(home, repair=True) == [(findings[0][0], True)]
    assert (rows(home, "grants"), rows(home, "dataset_homes"), faults(home)) == (1, 1, [])


UNMENDED: dict[str, tuple[Change, str]] = {
    "wrong role": (
        statements(f"UPDATE memberships SET role = 'king' WHERE user_id = '{BEN}'"),
        "a row has a value that its table does not allow: CHECK constraint failed in memberships",
    ),
    "wrong time of a user": (
        statements(f"UPDATE users SET created_at = 'once' WHERE id = '{BEN}'"),
        f"row '{BEN}' of table users: created_at: 'once' is no time in ISO 8601",
    ),
    "wrong time of a deletion": (
        statements(f"INSERT INTO user_deletions VALUES ('{BEN}', NULL, 1, 'soon')"),
        f"row '{BEN}' of table user_deletions: begun_at: 'soon' is no time in ISO 8601",
    ),
    "no admin of one member": (
        statements(f"DELETE FROM memberships WHERE user_id = '{ANN}'"),
        "the workspace 'Default Workspace' has 1 member, but no admin who can log in",
    ),
    "no admin": (
        statements("UPDATE memberships SET role = 'editor'"),
        "the workspace 'Default Workspace' has 2 members, but no admin who can log in",
    ),
    "disabled admin": (
        statements(f"UPDATE users SET enabled = 0 WHERE id = '{ANN}'"),
        "the workspace 'Default Workspace' has 2 members, but no admin who can log in",
    ),
    "two admins": (
        statements("UPDATE memberships SET role = 'admin'"),
        "the workspace 'Default Workspace' has 2 admins, and a single workspace has one",
    ),
    "short key": (lambda home: (home / "service.key").write_bytes(b"key"), "has 3 bytes; a key has 32"),
    "newer revision": (
        statements("UPDATE alembic_version SET version_num = '9999'"),
        f"has schema revision '9999'; this Framedex knows up to {SERVICE_DB.newest!r}",
    ),
    "missing table": (statements("DROP TABLE grants"), "has no table grants"),
    "missing": (lambda home: (home / "service.db").unlink(), "is missing, while the key of the service is there"),
    "empty": (lambda home: (home / "service.db").write_bytes(b""), "is empty"),
    "text": (lambda home: (home / "service.db").write_bytes(b"text " * 9000), "is damaged: file is not a database"),
    "another database": (
        statements("DROP TABLE alembic_version"), "is no database of the service: it has no revision"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNMENDED)
def test_check__does_not_mend(home: Path, name: str) -> None:
    """What would need a decision or lost values is found, and a repair leaves it as it is."""
    change, fault = UNMENDED[name]
    change(home)
    assert faults(home, repair=True) == [(fault, False)]
    assert [text for text, _ in faults(home)] == [fault]


def test_check__many_admins_of_many_workspaces(home: Path) -> None:
    """With many workspaces of users, a workspace may have several admins."""
    execute(home, "UPDATE memberships SET role = 'admin'")
    assert faults(home, multi=True) == []


def test_check__damaged_index(home: Path) -> None:
    """Damaged indices are made again."""
    with closing(sqlite3.connect(home / "service.db")) as connection, connection:
        connection.execute("PRAGMA writable_schema=ON")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_grants_user_id'").fetchone()
        (other,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_dataset_homes_owner_id'"
        ).fetchone()
        assert page != other
        connection.execute(f"INSERT INTO grants VALUES ('{DATASET}', '{ANN}', 'viewer', NULL, '{TIME}')")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'ix_grants_user_id'")
    with closing(sqlite3.connect(home / "service.db")) as connection, connection:
        connection.execute(f"DELETE FROM grants WHERE user_id = '{ANN}'")
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "INSERT INTO sqlite_master VALUES ('index', 'ix_grants_user_id', 'grants', ?,"
            " 'CREATE INDEX ix_grants_user_id ON grants (user_id)')",
            (page,),
        )
    ((fault, _),) = faults(home)
    assert "wrong # of entries in index ix_grants_user_id" in fault
    assert faults(home, repair=True) == [(fault, True)]
    assert faults(home) == []


# --- recovery


def test_recover__sound_users(home: Path) -> None:
    """Where nothing is lost there is nothing to recover."""
    with pytest.raises(Conflict, match="nothing to recover"):
        Workspace.recover(home)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["missing", "empty", "text", "missing table", "another database"])
def test_recover__without_users(home: Path, name: str) -> None:
    """A lost database is set aside, and the lines say what is lost; the datasets stay."""
    UNMENDED[name][0](home)
    result = Workspace.recover(home)
    assert (result.datasets, result.snapshots) == ([], 0)
    assert result.kept_as == ([] if name == "missing" else [str(home / "service.db.damaged-1")])
    lost, homes = result.left_out
    assert lost.startswith("service.db ")
    assert "`framedex users create --admin NAME` makes an admin again" in lost
    assert homes.startswith("all datasets belong to the default workspace")
    with Workspace(home, settings=SETTINGS) as workspace:
        assert [each.display_name for each in workspace.datasets()] == ["pets"]
    open_service_db(home).close()
    assert faults(home) == []


def test_recover__without_the_key(home: Path, environment: Environment) -> None:
    """A lost key is named, unless the environment has it; nothing is changed."""
    (home / "service.key").unlink()
    before = sorted(path.name for path in home.iterdir())
    (line,) = Workspace.recover(home).left_out
    assert line.startswith("service.key is missing: ")
    assert "users need new secrets of their API keys" in line
    assert sorted(path.name for path in home.iterdir()) == before
    environment["FRAMEDEX_SECRET_KEY"] = "k" * 32
    with pytest.raises(Conflict):
        Workspace.recover(home)


def test_recover__catalog_and_users(home: Path) -> None:
    """A catalog that is lost comes back with users, whose homes and grants fit again by the ids of datasets."""
    (home / "catalog.db").write_bytes(b"no catalog")
    result = Workspace.recover(home)
    assert (result.datasets, result.left_out) == (["pets"], [])
    assert (rows(home, "dataset_homes"), rows(home, "grants"), faults(home)) == (1, 1, [])
    (home / "catalog.db").write_bytes(b"no catalog")
    (home / "service.db").write_bytes(b"no users" * 2000)
    result = Workspace.recover(home)
    assert result.datasets == ["pets"]
    assert [Path(path).name for path in result.kept_as] == ["catalog.db.damaged-2", "service.db.damaged-1"]
    assert len(result.left_out) == 2
