"""Leases: one writer per dataset, whoever it is; nobody waits for another dataset, and nothing waits for the dead."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from framedex.errors import Conflict, ReadOnly
from framedex.storage import datasets, owners
from framedex.storage.catalog import Catalog, open_catalog
from framedex.storage.leases import Lease, is_leased, leased, unleased
from framedex.storage.schema import lease_requests as requests
from framedex.storage.schema import leases as rows
from tests.pauses import wait_until
from tests.processes import start
from tests.tuning import Tuning


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog in a folder of its own."""
    catalog = open_catalog(tmp_path / "catalog.db", read_only=False)
    yield catalog
    catalog.close()


@pytest.fixture
def dataset_id(catalog: Catalog) -> str:
    """The id of a dataset."""
    return insert(catalog, "one")


def insert(catalog: Catalog, name: str) -> str:
    with catalog.write() as connection:
        return datasets.insert_dataset(connection, name, owned_by="tester")


def nothing(_connection: sa.Connection) -> None:
    """Let everything pass."""


def held(catalog: Catalog, dataset_id: str) -> bool:
    with catalog.read() as connection:
        return is_leased(connection, dataset_id)


def test_leased__ends_with_the_block(catalog: Catalog, dataset_id: str) -> None:
    """A lease is held within its block, whether the block commits, does nothing or raises."""
    with leased(catalog, dataset_id, "edit", nothing):
        assert held(catalog, dataset_id)
    assert not held(catalog, dataset_id)
    with leased(catalog, dataset_id, "edit", nothing) as lease, lease.commit() as connection:
        datasets.update_dataset(connection, dataset_id, n_images=7)
    assert not held(catalog, dataset_id)
    with catalog.read() as connection:
        assert datasets.find_dataset(connection, dataset_id).n_images == 7
    with pytest.raises(KeyError), leased(catalog, dataset_id, "edit", nothing):
        raise KeyError
    assert not held(catalog, dataset_id)


def test_leased__ends_although_its_row_stays(catalog: Catalog, dataset_id: str) -> None:
    """A lease whose row cannot be deleted, as on a full disk, does not keep later edits of its process waiting."""
    failing = "CREATE TRIGGER failing BEFORE DELETE ON leases BEGIN SELECT no_such_function(); END"
    with leased(catalog, dataset_id, "edit", nothing), catalog.write() as connection:
        connection.execute(sa.text(failing))
    assert not held(catalog, dataset_id)
    with catalog.write() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(rows)) == 1
        connection.execute(sa.text("DROP TRIGGER failing"))
    with leased(catalog, dataset_id, "edit", nothing) as lease, lease.commit():
        assert held(catalog, dataset_id)


def test_leased__check_that_fails(catalog: Catalog, dataset_id: str) -> None:
    """What may not start takes no lease."""

    def refuse(_connection: sa.Connection) -> None:
        raise Conflict("a task is in progress")

    with pytest.raises(Conflict, match="in progress"), leased(catalog, dataset_id, "edit", refuse):
        pass
    assert not held(catalog, dataset_id)


def test_leased__by_threads_in_turn(catalog: Catalog, dataset_id: str) -> None:
    """Threads never hold the lease of a dataset at the same time, and all get it."""
    inside, most, done = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, done
        with leased(catalog, dataset_id, "edit", nothing) as lease:
            inside += 1
            most = max(most, inside)
            with lease.commit():
                done += 1
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (most, done) == (1, 12)


def test_leased__of_another_dataset_waits_for_nobody(catalog: Catalog, dataset_id: str) -> None:
    """While tables of one dataset are written, another one and the catalog can be changed."""
    other = insert(catalog, "other")
    with leased(catalog, dataset_id, "edit", nothing):
        with leased(catalog, other, "edit", nothing) as lease, lease.commit() as connection:
            datasets.update_dataset(connection, other, n_images=1)
        with unleased(catalog, other, "start") as connection:
            datasets.update_dataset(connection, other, n_images=2)
        insert(catalog, "third")


def test_unleased__waits_for_the_end(catalog: Catalog, dataset_id: str) -> None:
    """A task starts once the edit in progress has been committed."""
    seen: list[int] = []

    def begin() -> None:
        with unleased(catalog, dataset_id, "start") as connection:
            seen.append(datasets.find_dataset(connection, dataset_id).n_images)

    with leased(catalog, dataset_id, "edit", nothing) as lease:
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join(0.1)
        assert not seen
        with lease.commit() as connection:
            datasets.update_dataset(connection, dataset_id, n_images=5)
    thread.join(60)
    assert seen == [5]


@pytest.mark.slow
def test_leased__of_a_killed_process(catalog: Catalog, dataset_id: str, tmp_path: Path) -> None:
    """The lease of a process that was killed is taken over at once."""
    process = start(
        """
        import sys, threading
        from pathlib import Path
        from framedex.storage.catalog import open_catalog
        from framedex.storage.leases import leased
        catalog = open_catalog(Path(sys.argv[1]), read_only=False)
        with leased(catalog, sys.argv[2], "edit", lambda connection: None):
            print("held", flush=True)
            threading.Event().wait()
        """,
        tmp_path / "catalog.db",
        dataset_id,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert held(catalog, dataset_id)
    process.kill()
    process.wait()
    assert not held(catalog, dataset_id)
    with leased(catalog, dataset_id, "edit", nothing) as lease, lease.commit():
        pass
    process.communicate()


def requested(catalog: Catalog) -> list[str]:
    """Return the owners of the requests for leases, in their order."""
    with catalog.read() as connection:
        return list(connection.execute(sa.select(requests.c.owner).order_by(requests.c.id)).scalars())


def test_leased__by_processes_in_turn(catalog: Catalog, dataset_id: str, tmp_path: Path) -> None:
    """Processes get a lease in the order of their requests: one that just had it does not get it before the others."""
    other, order = open_catalog(tmp_path / "catalog.db", read_only=False), list[str]()

    def edit_other() -> None:
        with leased(other, dataset_id, "edit", nothing):
            order.append("other")
            wait_until(lambda: requested(catalog))

    thread = threading.Thread(target=edit_other)
    with leased(catalog, dataset_id, "edit", nothing) as lease:
        thread.start()
        wait_until(lambda: requested(catalog))
        assert lease.is_requested()
        with lease.commit():
            pass
    with leased(catalog, dataset_id, "edit", nothing) as lease:
        order.append("first")
        assert not lease.is_requested()
    thread.join(60)
    assert (order, requested(catalog)) == (["other", "first"], [])
    other.close()


def test_leased__before_a_process_that_does_not_take_its_turn(
    catalog: Catalog, dataset_id: str, tuning: Tuning
) -> None:
    """The request of a process that has ended or is stopped is passed over."""
    tuning.lease_grace_s = 0.05
    ended = start("from framedex.storage.owners import this_process; print(this_process())")
    owner = ended.communicate()[0].strip()
    for each in (owner, "elsewhere:1:2:3"):
        with catalog.write() as connection:
            connection.execute(requests.insert().values(dataset_id=dataset_id, owner=each))
    with leased(catalog, dataset_id, "edit", nothing):
        assert requested(catalog) == []


def test_leased__of_a_request_that_is_refused(catalog: Catalog, dataset_id: str, tmp_path: Path) -> None:
    """A request leaves nothing if its operation may not start in its turn, or waited too long."""
    other = open_catalog(tmp_path / "catalog.db", read_only=False)

    def refuse(_connection: sa.Connection) -> None:
        raise Conflict("a task is in progress")

    def be_refused() -> None:
        with pytest.raises(Conflict, match="in progress"), leased(other, dataset_id, "edit", refuse):
            pass

    thread = threading.Thread(target=be_refused)
    with leased(catalog, dataset_id, "edit", nothing):
        thread.start()
        wait_until(lambda: requested(catalog))
    thread.join(60)
    assert requested(catalog) == []
    other.close()


def test_leased__of_another_process_that_lives(catalog: Catalog, dataset_id: str, tuning: Tuning) -> None:
    """The lease of a living process is waited for, and a message says what it does."""
    tuning.lease_wait_s = 0.2
    with catalog.write() as connection:
        now = datasets.now()
        connection.execute(
            rows.insert().values(
                dataset_id=dataset_id,
                token="other",
                owner="elsewhere:1:2:3",
                operation="set_labels",
                since=now,
                heartbeat_at=now,
            )
        )
    with pytest.raises(Conflict, match=r"'tag' is blocked.*'set_labels'"), leased(catalog, dataset_id, "tag", nothing):
        pass
    with catalog.write() as connection:
        connection.execute(rows.update().values(heartbeat_at=now - 2 * owners.LEASE))
    with leased(catalog, dataset_id, "tag", nothing):
        assert held(catalog, dataset_id)


def test_commit__after_it_was_taken_over(catalog: Catalog, dataset_id: str) -> None:
    """Who was silent for too long commits nothing, and does not end the lease of its successor."""

    def edit() -> None:
        with leased(catalog, dataset_id, "edit", nothing) as lease:
            with catalog.write() as connection:
                connection.execute(rows.update().values(token="successor"))
            with lease.commit() as connection:
                datasets.update_dataset(connection, dataset_id, n_images=9)

    with pytest.raises(Conflict, match="given up"):
        edit()
    with catalog.read() as connection:
        assert datasets.find_dataset(connection, dataset_id).n_images == 0
        assert connection.execute(sa.select(rows.c.token)).scalars().all() == ["successor"]


def test_beat__while_it_lasts(catalog: Catalog, dataset_id: str, tuning: Tuning) -> None:
    """A long edit says now and then that it is alive."""
    tuning.lease_beat_s = 0.02
    with leased(catalog, dataset_id, "edit", nothing):
        old = datasets.now() - timedelta(hours=1)
        with catalog.write() as connection:
            connection.execute(rows.update().values(heartbeat_at=old))
        for _ in range(500):
            with catalog.read() as connection:
                (beat,) = connection.execute(sa.select(rows.c.heartbeat_at)).scalars()
            if beat > old:
                return
            threading.Event().wait(0.02)
    pytest.fail("there was no heartbeat")


def test_leased__in_a_workspace_for_reading(catalog: Catalog, dataset_id: str, tmp_path: Path) -> None:
    """A workspace that was opened for reading takes no lease."""
    reader = open_catalog(tmp_path / "catalog.db", read_only=True)
    with pytest.raises(ReadOnly), leased(reader, dataset_id, "edit", nothing):
        pass
    reader.close()


def test_lease__ends_with_its_dataset(catalog: Catalog, dataset_id: str) -> None:
    """Nothing is left of the lease of a dataset that was deleted."""
    lease = Lease(catalog, "token", "edit")
    with catalog.write() as connection:
        now = datasets.now()
        connection.execute(
            rows.insert().values(
                dataset_id=dataset_id, token="token", owner="x", operation="edit", since=now, heartbeat_at=now
            )
        )
        datasets.remove_dataset(connection, dataset_id)
    lease.end()
    with catalog.read() as connection:
        assert connection.execute(sa.select(rows)).all() == []
