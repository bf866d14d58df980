"""Rows of exports: their states, and interrupted exports."""

from datetime import timedelta
from pathlib import Path

import pytest

from framedex.errors import Conflict, NotFound
from framedex.records import ExportRecord, ExportStatus
from framedex.storage import export_rows, schema
from framedex.storage.catalog import Catalog
from framedex.storage.datasets import now
from framedex.storage.owners import LEASE, this_process

DATASET = "12345678-1234-4234-8234-123456789abc"


def record(export_id: str = "one", status: ExportStatus = ExportStatus.PENDING) -> ExportRecord:
    return ExportRecord(
        id=export_id,
        dataset_id=DATASET,
        created_at=now(),
        status=status,
        progress=0,
        entities_count=None,
        result_message="",
        download_uri=None,
    )


def insert(catalog: Catalog, added: ExportRecord) -> None:
    with catalog.write() as connection:
        export_rows.insert_export(connection, added, path=Path("/a b/out.zip"), created_by="tester")


def change(catalog: Catalog, **values: object) -> None:
    with catalog.write() as connection:
        connection.execute(schema.exports.update().values(**values))


def test_update__what_is_under_way(catalog: Catalog) -> None:
    """Stored states are read back; the URI of the file is set when the export is complete."""
    insert(catalog, record())
    running = record(status=ExportStatus.RUNNING).model_copy(update={"progress": 7, "entities_count": 5})
    with catalog.write() as connection:
        assert export_rows.update_export(connection, running)
        export_rows.check_own(connection, "one")
        shown = export_rows.find_export(connection, "one", dataset_id=DATASET)
    assert shown == running.model_copy(update={"created_at": shown.created_at})
    with catalog.write() as connection:
        assert export_rows.update_export(connection, running.model_copy(update={"status": ExportStatus.COMPLETED}))
        assert export_rows.find_export(connection, "one", dataset_id=DATASET).download_uri == "file:///a%20b/out.zip"
        assert not export_rows.update_export(connection, running)


@pytest.mark.parametrize(
    "values", [{"status": ExportStatus.FAILED}, {"status": ExportStatus.COMPLETED}, {"owner": "another:1:2:3"}]
)
def test_update__what_was_given_up(catalog: Catalog, values: dict[str, object]) -> None:
    """An export that ended, or belongs to another process, cannot be changed and writes no file."""
    insert(catalog, record())
    change(catalog, **values)
    with catalog.write() as connection:
        assert not export_rows.update_export(connection, record())
        with pytest.raises(Conflict, match="export one was given up"):
            export_rows.check_own(connection, "one")
        with pytest.raises(Conflict, match="export two was given up"):
            export_rows.check_own(connection, "two")


def test_get__unknown(catalog: Catalog) -> None:
    """An export of another dataset is reported like a missing one."""
    insert(catalog, record())
    with catalog.read() as connection:
        for export_id, dataset_id in (("two", DATASET), ("one", "another")):
            with pytest.raises(NotFound, match=export_id):
                export_rows.find_export(connection, export_id, dataset_id=dataset_id)


def test_interrupted__by_age(catalog: Catalog) -> None:
    """An export without a heartbeat for longer than the lease is FAILED, both when read and when stored."""
    insert(catalog, record())
    with catalog.write() as connection:
        assert export_rows.has_running_export(connection, DATASET)
        assert not export_rows.has_interrupted_exports(connection)
        assert export_rows.fail_interrupted_exports(connection) == 0
    change(catalog, heartbeat_at=now() - LEASE - timedelta(seconds=1), owner="other-host:1:2:3")
    with catalog.write() as connection:
        assert not export_rows.has_running_export(connection, DATASET)
        assert export_rows.has_interrupted_exports(connection)
        shown = export_rows.find_export(connection, "one", dataset_id=DATASET)
        assert (shown.status, shown.result_message) == (ExportStatus.FAILED, "interrupted")
        assert export_rows.fail_interrupted_exports(connection) == 1
        assert export_rows.list_exports(connection, dataset_id=DATASET) == [shown]
        assert not export_rows.has_interrupted_exports(connection)


def test_interrupted__by_the_death_of_its_process(catalog: Catalog) -> None:
    """The end of a process of this machine is detected at once."""
    insert(catalog, record())
    host, _, rest = this_process().partition(":")
    _, _, rest = rest.partition(":")
    change(catalog, owner=f"{host}:999999999:{rest}")
    with catalog.write() as connection:
        assert export_rows.fail_interrupted_exports(connection) == 1


def test_list__newest_first(catalog: Catalog) -> None:
    """The exports of a dataset are listed newest first; ended ones stay unchanged."""
    for number, status in enumerate([ExportStatus.REJECTED, ExportStatus.FAILED, ExportStatus.COMPLETED]):
        insert(catalog, record(str(number), status))
    change(catalog, heartbeat_at=now() - timedelta(days=1))
    with catalog.read() as connection:
        listed = export_rows.list_exports(connection, dataset_id=DATASET)
        assert not export_rows.has_interrupted_exports(connection)
        assert export_rows.list_exports(connection, dataset_id="another") == []
    assert [each.id for each in listed] == ["2", "1", "0"]
    assert [each.status for each in listed] == [ExportStatus.COMPLETED, ExportStatus.FAILED, ExportStatus.REJECTED]
