"""The catalog is created completely, opened only in a supported version, and changed in whole transactions."""

import multiprocessing
import pickle
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from framedex.errors import Conflict, FormatTooNew, InvalidInput, ReadOnly, WorkspaceError
from framedex.storage import datasets
from framedex.storage.catalog import CATALOG, Catalog, open_catalog
from framedex.storage.database_schema import migrate
from framedex.storage.schema import metadata, source_roots
from tests.storage.test_turns import wait_until_asked


def names(catalog: Catalog) -> list[str]:
    """Return the names of all datasets, sorted."""
    with catalog.read() as connection:
        return sorted(each.display_name for each in datasets.list_datasets(connection))


def insert_and_raise(catalog: Catalog, name: str, error: BaseException) -> None:
    """Add a dataset in a transaction that fails."""
    with catalog.write() as connection:
        datasets.insert_dataset(connection, name, owned_by="me")
        raise error


def insert_both(catalog: Catalog, *both: str) -> None:
    """Add datasets in one transaction."""
    with catalog.write() as connection:
        for name in both:
            datasets.insert_dataset(connection, name, owned_by="me")


def run_sql(path: Path, statement: str) -> list[Any]:
    """Run a statement on a catalog's file directly."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


def test_open__makes_a_catalog_of_the_head_revision(catalog: Catalog, catalog_path: Path) -> None:
    """A new catalog has the newest schema, is in WAL mode, and nothing else is left beside it."""
    assert run_sql(catalog_path, "SELECT version_num FROM alembic_version") == [(CATALOG.newest,)]
    assert run_sql(catalog_path, "PRAGMA journal_mode") == [("wal",)]
    assert not list(catalog_path.parent.glob("*.partial")) + list(catalog_path.parent.glob(".*"))
    assert names(catalog) == []


def described(connection: sa.Connection) -> dict[str, Any]:
    """Return a description of a database's tables."""
    inspector = sa.inspect(connection)
    return {
        name: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"]) for column in inspector.get_columns(name)
            },
            "primary": inspector.get_pk_constraint(name)["constrained_columns"],
            "indexes": sorted((index["column_names"], index["unique"]) for index in inspector.get_indexes(name)),
            "unique": sorted(unique["column_names"] for unique in inspector.get_unique_constraints(name)),
            "keys": [
                (key["constrained_columns"], key["referred_table"], key["referred_columns"], key["options"])
                for key in inspector.get_foreign_keys(name)
            ],
        }
        for name in inspector.get_table_names()
    }


@pytest.mark.slow
def test_migrations__lead_to_the_schema_that_the_code_uses(catalog: Catalog, tmp_path: Path) -> None:
    """A fully migrated database has the tables of the code, as a new catalog has."""
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(tmp_path / "migrated.db")))
    migrate(engine, CATALOG)
    with engine.connect() as migrated, catalog.read() as made:
        context = MigrationContext.configure(migrated, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == CATALOG.newest
        assert described(migrated) == described(made)
        assert set(described(made)) == {*metadata.tables, "alembic_version"}
    engine.dispose()


def test_migrations__are_repeatable(catalog: Catalog, catalog_path: Path) -> None:
    """Migrating a catalog of the newest schema changes nothing."""
    with catalog.write() as connection:
        datasets.insert_dataset(connection, "pets", owned_by="me")
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(catalog_path)))
    migrate(engine, CATALOG)
    engine.dispose()
    assert names(catalog) == ["pets"]


def test_write__keeps_all_or_nothing(catalog: Catalog) -> None:
    """Changes of a block that raises are rolled back, and the catalog remains usable."""
    with catalog.write() as connection:
        datasets.insert_dataset(connection, "kept", owned_by="me")
    for error in (ValueError("stop"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            insert_and_raise(catalog, "lost", error)
    with pytest.raises(Conflict):
        insert_both(catalog, "lost", "kept")
    assert names(catalog) == ["kept"]
    with catalog.write() as connection:
        datasets.insert_dataset(connection, "later", owned_by="me")
    assert names(catalog) == ["kept", "later"]


def test_write__foreign_keys_are_enforced(catalog: Catalog) -> None:
    """Rows without a dataset are refused, and rows of a deleted dataset are deleted with it."""
    with pytest.raises(sa.exc.IntegrityError), catalog.write() as connection:
        datasets.put_roots(connection, "no such dataset", ["/x"])
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
        datasets.put_roots(connection, dataset_id, ["/x", "/y"])
    with catalog.write() as connection:
        datasets.remove_dataset(connection, dataset_id)
    with catalog.read() as connection:
        assert connection.execute(sa.select(source_roots)).all() == []


def test_read__sees_one_state(catalog: Catalog) -> None:
    """A reader does not block a writer and sees none of its changes; a new reader sees them all."""
    with catalog.read() as reader:
        assert datasets.list_datasets(reader) == []
        with catalog.write() as connection:
            datasets.insert_dataset(connection, "new", owned_by="me")
        assert datasets.list_datasets(reader) == []
    assert names(catalog) == ["new"]


def test_read__does_not_see_what_is_not_committed(catalog: Catalog, catalog_path: Path) -> None:
    """Another connection sees a change only after its transaction has ended."""
    other = open_catalog(catalog_path, read_only=True)
    with catalog.write() as connection:
        datasets.insert_dataset(connection, "new", owned_by="me")
        assert names(other) == []
    assert names(other) == ["new"]
    other.close()


def test_write__threads_queue_up(catalog: Catalog) -> None:
    """Writers on several threads wait for each other; no change is lost."""

    def work(number: int) -> None:
        for part in range(5):
            with catalog.write() as connection:
                known = len(datasets.list_datasets(connection))
                datasets.insert_dataset(connection, f"{number}-{part}-{known}", owned_by="me")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(name.rpartition("-")[2]) for name in names(catalog)) == list(range(20))


@pytest.mark.slow
def test_write__reads_while_many_wait(catalog: Catalog) -> None:
    """A writer can read by a second connection while many threads wait to write; all get their turn."""
    written = list[int]()

    def work(number: int) -> None:
        with catalog.write() as connection:
            written.append(number)
            datasets.insert_dataset(connection, str(number), owned_by="me")
            assert names(catalog) == sorted(map(str, written[:-1]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    with catalog.write():
        for place, thread in enumerate(threads):
            thread.start()
            wait_until_asked(catalog._turns, place + 2)
        assert names(catalog) == []
    for thread in threads:
        thread.join(60)
    assert written == list(range(40))


def test_read__by_many_threads_at_once(catalog: Catalog) -> None:
    """No reader waits for the connection of another one."""
    together = threading.Barrier(40)

    def work() -> None:
        with catalog.read():
            together.wait(60)

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not together.broken


def test_pickle__says_what_to_do(catalog: Catalog) -> None:
    """An open catalog cannot be handed to another process."""
    with pytest.raises(InvalidInput, match="open the workspace in the worker"):
        pickle.dumps(catalog)


def test_read_only__refuses_to_write(catalog: Catalog, catalog_path: Path) -> None:
    """A catalog opened for reading can be read and refuses every kind of write."""
    with catalog.write() as connection:
        datasets.insert_dataset(connection, "pets", owned_by="me")
    reader = open_catalog(catalog_path, read_only=True)
    assert reader.read_only
    assert names(reader) == ["pets"]
    with pytest.raises(ReadOnly, match="opened for reading"), reader.write():
        pytest.fail("the block must not run")
    with pytest.raises(WorkspaceError, match="readonly"), reader.read() as connection:
        datasets.insert_dataset(connection, "cats", owned_by="me")
    reader.close()
    assert names(catalog) == ["pets"]


def test_read_only__makes_nothing(catalog_path: Path) -> None:
    """Opening a missing catalog for reading does not create it."""
    with pytest.raises(WorkspaceError, match="is missing"):
        open_catalog(catalog_path, read_only=True)
    assert not list(catalog_path.parent.iterdir())


@pytest.mark.parametrize("content", [b"", b"not a database, but rather long" * 50, b"SQLite format 3\0" + bytes(200)])
@pytest.mark.parametrize("read_only", [False, True])
def test_open__refuses_what_is_no_catalog(catalog_path: Path, content: bytes, read_only: bool) -> None:
    """The error for a file of another kind names it, and the file stays unchanged."""
    catalog_path.write_bytes(content)
    with pytest.raises(WorkspaceError, match="is not a Framedex catalog"):
        open_catalog(catalog_path, read_only=read_only)


def test_open__refuses_another_database(catalog_path: Path) -> None:
    """A database of another program is not a catalog."""
    run_sql(catalog_path, "CREATE TABLE birds (name TEXT)")
    with pytest.raises(WorkspaceError, match="is not a Framedex catalog"):
        open_catalog(catalog_path, read_only=False)


@pytest.mark.parametrize("read_only", [False, True])
def test_open__refuses_a_newer_schema(catalog: Catalog, catalog_path: Path, read_only: bool) -> None:
    """A catalog migrated by a newer version is refused with the advice to update."""
    catalog.close()
    run_sql(catalog_path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(FormatTooNew, match=r"revision '9999'.*install a newer Framedex"):
        open_catalog(catalog_path, read_only=read_only)


def test_open__where_no_file_can_be_made(tmp_path: Path) -> None:
    """A missing folder raises WorkspaceError."""
    with pytest.raises(WorkspaceError, match="cannot create the catalog"):
        open_catalog(tmp_path / "missing" / "catalog.db", read_only=False)


def test_open__again_keeps_everything(catalog: Catalog, catalog_path: Path) -> None:
    """Committed changes are present when the catalog is opened again."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets 🐈", owned_by="me")
    catalog.close()
    again = open_catalog(catalog_path, read_only=False)
    with again.read() as connection:
        assert datasets.find_dataset(connection, dataset_id).display_name == "pets 🐈"
    again.close()


def test_open__by_many_threads_at_once(catalog_path: Path) -> None:
    """Threads that create the same catalog at once all open the first one."""
    barrier, opened = threading.Barrier(4), list[Catalog]()

    def work() -> None:
        barrier.wait()
        opened.append(open_catalog(catalog_path, read_only=False))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    with opened[0].write() as connection:
        datasets.insert_dataset(connection, "pets", owned_by="me")
    assert [names(each) for each in opened] == [["pets"]] * 4
    for each in opened:
        each.close()


def _open_and_insert(path: Path, barrier: Any, number: int) -> None:
    barrier.wait()
    catalog = open_catalog(path, read_only=False)
    for part in range(10):
        with catalog.write() as connection:
            datasets.insert_dataset(connection, f"{number}-{part}", owned_by="me")
    catalog.close()


@pytest.mark.slow
def test_open__by_two_processes_at_once(catalog_path: Path) -> None:
    """Two processes that create the same catalog at once both write to the first one."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [context.Process(target=_open_and_insert, args=(catalog_path, barrier, n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    catalog = open_catalog(catalog_path, read_only=True)
    assert names(catalog) == sorted(f"{number}-{part}" for number in range(2) for part in range(10))
    catalog.close()
