"""Rows of datasets, their generations and source roots."""

import os
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from framedex.errors import Conflict, NotFound
from framedex.records import DatasetStatus, EmbeddingConfig
from framedex.storage import datasets
from framedex.storage.catalog import Catalog
from framedex.storage.generation import Generation, Summary
from framedex.storage.schema import generations

CONFIG = EmbeddingConfig(encoder="gist", dimension=4, thresholds=(0.1, 0.2, 0.3, 0.4, 0.5), reason="chosen by name")


def commit(connection: sa.Connection, dataset_id: str, *, partial: bool = False, **tables: int) -> Generation:
    """Commit a generation of those tables."""
    return datasets.commit_generation(
        connection,
        dataset_id,
        tables=tables,
        n_images=7,
        config=CONFIG,
        summary=Summary(skipped={"videos": 1}, partial=partial),
    )


def test_insert__starts_without_content(catalog: Catalog) -> None:
    """A new dataset has status INDEXING, no head, and its creator as owner."""
    before = datetime.now(UTC)
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me@example.org")
    with catalog.read() as connection:
        record = datasets.find_dataset(connection, dataset_id)
        assert datasets.head(connection, dataset_id) is None
        assert datasets.embedding_config(connection, dataset_id) is None
        assert datasets.get_roots(connection, dataset_id) == []
    assert (record.id, record.display_name, record.owned_by) == (dataset_id, "pets", "me@example.org")
    assert (record.status, record.status_new, record.progress) == ("INDEXING", DatasetStatus.INDEXING, 0)
    assert (record.n_images, record.n_videos) == (0, 0)
    assert before - timedelta(seconds=1) <= record.created_at <= datetime.now(UTC)
    assert record.created_at.tzinfo is not None


def test_insert__names_are_taken_once(catalog: Catalog) -> None:
    """A second dataset of the same name is a conflict; names that differ in case are two."""
    with catalog.write() as connection:
        datasets.insert_dataset(connection, "pets", owned_by="me")
        datasets.insert_dataset(connection, "Pets", owned_by="me")
    with pytest.raises(Conflict, match="'pets' exists already"), catalog.write() as connection:
        datasets.insert_dataset(connection, "pets", owned_by="me")


def test_find__by_id_before_name(catalog: Catalog) -> None:
    """A dataset is found by its id even if another one has that id as its name."""
    with catalog.write() as connection:
        first = datasets.insert_dataset(connection, "first", owned_by="me")
        second = datasets.insert_dataset(connection, first, owned_by="me")
        assert datasets.find_dataset(connection, first).id == first
        assert datasets.find_dataset(connection, second).display_name == first
        assert datasets.find_dataset(connection, "first").id == first


def test_find__names_what_there_is(catalog: Catalog) -> None:
    """The error for an unknown name lists the newest datasets."""
    with catalog.write() as connection:
        with pytest.raises(NotFound, match="no dataset 'x'; there are: none yet"):
            datasets.find_dataset(connection, "x")
        for number in range(12):
            datasets.insert_dataset(connection, f"n{number:02}", owned_by="me")
        with pytest.raises(NotFound, match=r"there are: 'n11', 'n10'.*'n02'$"):
            datasets.find_dataset(connection, "x")


def test_list__newest_first(catalog: Catalog) -> None:
    """The list is in order of creation, the newest first."""
    with catalog.write() as connection:
        ids = [datasets.insert_dataset(connection, name, owned_by="me") for name in ("a", "c", "b")]
        assert [each.id for each in datasets.list_datasets(connection)] == ids[::-1]


def test_commit__moves_the_head(catalog: Catalog) -> None:
    """A commit makes its generation the head, with status, counts and config; former generations stay."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
        other_id = datasets.insert_dataset(connection, "other", owned_by="me")
        first = commit(connection, dataset_id, media=3)
    with catalog.write() as connection:
        second = commit(connection, dataset_id, media=5, tags=1)
    with catalog.read() as connection:
        assert datasets.head(connection, dataset_id) == second
        assert second.tables == {"media": 5, "tags": 1}
        assert second.summary == Summary(skipped={"videos": 1}, partial=False)
        assert datasets.head(connection, other_id) is None
        assert datasets.embedding_config(connection, dataset_id) == CONFIG
        record = datasets.find_dataset(connection, dataset_id)
        kept = connection.execute(sa.select(generations.c.id)).scalars()
        assert {first.id, second.id} == set(kept)
    assert (record.status_new, record.progress, record.n_images) == (DatasetStatus.READY, 100, 7)


def test_commit__is_invisible_until_its_transaction_ends(catalog: Catalog) -> None:
    """A commit in a failed transaction leaves the former head, status and counts."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
        first = commit(connection, dataset_id, media=3)

    def commit_and_crash() -> None:
        with catalog.write() as connection, catalog.read() as reader:
            commit(connection, dataset_id, media=9)
            assert datasets.head(reader, dataset_id) == first
            raise ValueError("crash")

    with pytest.raises(ValueError, match="crash"):
        commit_and_crash()
    with catalog.read() as connection:
        assert datasets.head(connection, dataset_id) == first


def test_remove__takes_everything_of_it(catalog: Catalog) -> None:
    """Generations and roots are deleted with their dataset; other datasets stay; the name is free again."""
    with catalog.write() as connection:
        gone = datasets.insert_dataset(connection, "gone", owned_by="me")
        kept = datasets.insert_dataset(connection, "kept", owned_by="me")
        for each in (gone, kept):
            commit(connection, each, media=1)
            datasets.put_roots(connection, each, ["/x"])
        datasets.remove_dataset(connection, gone)
        assert datasets.head(connection, gone) is None
        assert connection.execute(sa.select(generations.c.dataset_id)).scalars().all() == [kept]
        assert datasets.get_roots(connection, gone) == []
        assert datasets.get_roots(connection, kept) == ["/x"]
        datasets.insert_dataset(connection, "gone", owned_by="me")


def test_roots__keep_any_bytes_and_their_order(catalog: Catalog) -> None:
    """Roots are returned by number, with the bytes of the file system."""
    roots = ["/z", "/a b", os.fsdecode(b"/caf\xe9\n")]
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
        datasets.put_roots(connection, dataset_id, roots)
        assert datasets.get_roots(connection, dataset_id) == roots


def test_mark_broken__gives_the_status_that_the_head_supports(catalog: Catalog) -> None:
    """An unfinished dataset without a head gets status ERROR; with a head it gets its former status."""
    with catalog.write() as connection:
        empty = datasets.insert_dataset(connection, "empty", owned_by="me")
        full = datasets.insert_dataset(connection, "full", owned_by="me")
        commit(connection, full, media=1)
        datasets.update_dataset(connection, full, status=DatasetStatus.INDEXING, progress=40)
        for each in (empty, full):
            datasets.mark_broken(connection, each)
        assert datasets.find_dataset(connection, empty).status_new is DatasetStatus.ERROR
        record = datasets.find_dataset(connection, full)
    assert (record.status_new, record.progress) == (DatasetStatus.READY, 100)


@pytest.mark.parametrize("under_way", [DatasetStatus.INDEXING, DatasetStatus.READ_ONLY])
@pytest.mark.parametrize("partial", [False, True])
def test_mark_broken__knows_a_partial_index(catalog: Catalog, under_way: DatasetStatus, partial: bool) -> None:
    """A dataset with an unfinished change gets the status of its head's commit."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
        commit(connection, dataset_id, partial=partial, media=1)
        committed = datasets.find_dataset(connection, dataset_id)
        for change in ({}, {"status": under_way, "progress": 40}):
            datasets.update_dataset(connection, dataset_id, **{"n_videos": 0} | change)
            datasets.mark_broken(connection, dataset_id)
            assert datasets.find_dataset(connection, dataset_id) == committed
    assert committed.status_new is (DatasetStatus.PARTIAL_INDEX if partial else DatasetStatus.READY)


def test_roots__are_replaced(catalog: Catalog) -> None:
    """Stored roots replace the former ones of the dataset; those of other datasets stay."""
    with catalog.write() as connection:
        first, second = (datasets.insert_dataset(connection, name, owned_by="me") for name in ("first", "second"))
        datasets.put_roots(connection, second, ["/s"])
        for roots in (["/a"], ["/a", "/b"], ["/c"]):
            datasets.put_roots(connection, first, roots)
            assert datasets.get_roots(connection, first) == roots
        assert datasets.get_roots(connection, second) == ["/s"]


def test_progress__only_while_indexing(catalog: Catalog) -> None:
    """A late progress update does not change a finished dataset."""
    with catalog.write() as connection:
        dataset_id = datasets.insert_dataset(connection, "pets", owned_by="me")
        datasets.update_dataset_progress(connection, dataset_id, 42)
        assert datasets.find_dataset(connection, dataset_id).progress == 42
        commit(connection, dataset_id, media=1)
        datasets.update_dataset_progress(connection, dataset_id, 43)
        assert datasets.find_dataset(connection, dataset_id).progress == 100
