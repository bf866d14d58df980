"""The service's database: its schema, its modes, and its first opening by several processes."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from framedex.access import RealmRole, Role
from framedex.errors import FormatTooNew, ReadOnly, WorkspaceError
from framedex.storage.database import Database
from framedex.storage.database_schema import migrate
from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db import accounts, audit, homes, tenants
from framedex.storage.service_db.database import DEFAULT_ID, SERVICE_DB, open_service_db
from framedex.storage.service_db.schema import metadata
from tests.pauses import wait_until
from tests.processes import finish, start
from tests.storage.test_catalog import described


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A new database of the service."""
    opened = open_service_db(tmp_path)
    yield opened
    opened.close()


@pytest.mark.slow
def test_migrations__lead_to_the_schema_that_the_code_uses(database: Database, tmp_path: Path) -> None:
    """A fully migrated database has the tables of the code, as a new one has."""
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(tmp_path / "migrated.db")))
    migrate(engine, SERVICE_DB)
    with engine.connect() as migrated, database.read() as made:
        context = MigrationContext.configure(migrated, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == SERVICE_DB.newest
        assert in_order(described(migrated)) == in_order(described(made))
        assert set(described(made)) == {*metadata.tables, "alembic_version"}
        assert checks(migrated) == checks(made)
    engine.dispose()


def in_order(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the descriptions of tables with their foreign keys in order."""
    return {name: {**each, "keys": sorted(each["keys"], key=repr)} for name, each in tables.items()}


def checks(connection: sa.Connection) -> dict[str, list[str]]:
    """Return the check constraints of each table, and the conditions of partial indexes."""
    inspector = sa.inspect(connection)
    texts = {
        name: sorted(str(check["sqltext"]) for check in inspector.get_check_constraints(name))
        for name in inspector.get_table_names()
    }
    indexes = "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%WHERE%' ORDER BY name"
    texts["indexes"] = list(connection.exec_driver_sql(indexes).scalars())
    return texts


def test_migrations__keep_rows(database: Database, tmp_path: Path) -> None:
    """Migrating a database of the newest schema changes nothing."""
    with database.write() as connection:
        accounts.insert_user(connection, "ann", password_hash=None)
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(tmp_path / SERVICE_DB_NAME)))
    migrate(engine, SERVICE_DB)
    engine.dispose()
    with database.read() as connection:
        assert accounts.count_users(connection) == 1


def test_open__makes_the_default_tenant(database: Database) -> None:
    """A new database has a default organization with a default tenant, and no user but the local one."""
    with database.read() as connection:
        assert [row.id for row in tenants.list_tenants(connection)] == [DEFAULT_ID]
        assert [each.name for each in tenants.list_organizations(connection)] == ["Default Organization"]
        assert accounts.count_users(connection) == 0
        assert accounts.user_named(connection, "local") is None


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_modes__are_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """The database and its log belong to one user, also while they are in use."""
    former = os.umask(mask)
    try:
        database = open_service_db(tmp_path)
        with database.write() as connection:
            audit.insert_entry(connection, None, "test")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        database.close()
    finally:
        os.umask(former)
    assert modes == dict.fromkeys((SERVICE_DB_NAME, f"{SERVICE_DB_NAME}-wal", f"{SERVICE_DB_NAME}-shm"), 0o600)


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_modes__are_private_from_the_first_byte_on(tmp_path: Path) -> None:
    """At no time during its creation can others open the database."""
    seen: set[tuple[str, int]] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for entry in os.scandir(tmp_path):
                try:
                    seen.add((entry.name.split(".")[-1], entry.stat().st_mode & 0o077))
                except FileNotFoundError:
                    continue

    former = os.umask(0)
    watcher = threading.Thread(target=watch)
    try:
        watcher.start()
        open_service_db(tmp_path).close()
        wait_until(lambda: seen or not watcher.is_alive())  # on a busy machine it may not have looked yet
    finally:
        done.set()
        watcher.join()
        os.umask(former)
    assert seen
    assert {mode for _, mode in seen} == {0}


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("name", [SERVICE_DB_NAME, f"{SERVICE_DB_NAME}-wal"])
def test_open__refuses_files_that_others_can_read(tmp_path: Path, name: str) -> None:
    """A database that others can read is not opened, and the message says how to mend it."""
    database = open_service_db(tmp_path)
    with database.write() as connection:
        audit.insert_entry(connection, None, "test")
    (tmp_path / name).chmod(0o640)
    with pytest.raises(WorkspaceError, match=rf"mode 640.*chmod 600 .*{name}$"):
        open_service_db(tmp_path)
    (tmp_path / name).chmod(0o600)
    open_service_db(tmp_path).close()
    database.close()


def test_open__what_is_no_such_database(tmp_path: Path) -> None:
    """An empty file, another database and one of a newer version are refused and left as they are."""
    path = tmp_path / SERVICE_DB_NAME
    path.touch(0o600)
    with pytest.raises(WorkspaceError, match="it is empty"):
        open_service_db(tmp_path)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(WorkspaceError, match="is not a Framedex service database"):
        open_service_db(tmp_path)
    assert path.read_bytes() == b"no database at all" * 100
    path.unlink()
    database = open_service_db(tmp_path)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    with pytest.raises(FormatTooNew, match="'9999'"):
        open_service_db(tmp_path)


def test_open__for_reading(tmp_path: Path) -> None:
    """A missing database is not made by a reader, and an existing one is not changed by it."""
    with pytest.raises(WorkspaceError, match="framedex users create"):
        open_service_db(tmp_path, read_only=True)
    assert list(tmp_path.iterdir()) == []
    open_service_db(tmp_path).close()
    database = open_service_db(tmp_path, read_only=True)
    with pytest.raises(ReadOnly), database.write():
        pass
    database.close()


_OPENER = """
import sys
from pathlib import Path
from framedex.storage.service_db import accounts
from framedex.storage.service_db.database import open_service_db
sys.stdin.readline()
database = open_service_db(Path(sys.argv[1]))
with database.write() as connection:
    accounts.insert_user(connection, sys.argv[2], password_hash=None)
database.close()
"""


@pytest.mark.slow
def test_open__by_two_processes_at_once(tmp_path: Path) -> None:
    """Processes that create the database at the same time share one, and no file of the creation stays."""
    names = ["ann", "bob", "cleo", "dan"]
    processes = [start(_OPENER, tmp_path, name) for name in names]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        finish(process)
    database = open_service_db(tmp_path)
    with database.read() as connection:
        assert accounts.count_users(connection) == len(names)
    database.close()
    assert {path.name for path in tmp_path.iterdir()} == {SERVICE_DB_NAME}


def test_rows__go_with_their_user(database: Database) -> None:
    """A grant needs a user who exists, and goes with the user; a home stays, without an owner."""
    with pytest.raises(sa.exc.IntegrityError), database.write() as connection:
        homes.put_grant(connection, "dataset", "nobody", Role.VIEWER, None)
    with database.write() as connection:
        user_id = accounts.insert_user(connection, "ann", password_hash=None)
        homes.put_grant(connection, "dataset", user_id, Role.VIEWER, None)
        homes.put_home(connection, "dataset", DEFAULT_ID, user_id)
        accounts.set_realm_roles(connection, user_id, RealmRole)
        accounts.put_identity(connection, "issuer", "subject", user_id)
        accounts.delete_user(connection, user_id)
        assert homes.find_home(connection, "dataset") == homes.Home(DEFAULT_ID)
        for table in ("grants", "user_roles", "identities"):
            assert connection.execute(sa.select(sa.func.count()).select_from(metadata.tables[table])).scalar() == 0
