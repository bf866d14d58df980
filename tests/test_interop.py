"""The tables of a dataset are read by other programs: the same rows, at the state that the dataset has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import lance
import polars as pl
import pytest

from framedex import Conflict, Dataset, Workspace
from framedex.records import StoredTable
from tests.gallery import SETTINGS, embedded

COLUMNS = ["media_id", "width", "height", "caption", "labels"]
VECTORS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.8, 0.0]]


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset whose edits are in its tables, and a version beyond its state, as an unfinished task leaves it."""
    with Workspace(tmp_path_factory.mktemp("interop") / "ws", settings=SETTINGS) as workspace:
        sizes = {"width": [640, 480, None, 320], "height": [480, 640, None, 200]}
        dataset = workspace.create_dataset("pets", embedded(VECTORS, label=["dog", None, "cat", "dog"], **sizes))
        ids = dataset.view.media_ids()
        dataset.set_labels({ids[1]: ["wolf", "grey"]})
        dataset.set_captions({ids[2]: "a 猫 on the “sofa”"})
        assert dataset.stored_tables["media"].has_edits
        workspace.vacuum(older_than_s=0)
        lance.dataset(media_of(dataset).path).delete("true")
        yield dataset


def media_of(dataset: Dataset) -> StoredTable:
    return dataset.stored_tables["media"]


def stored(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the rows as Framedex reads them, in the types of the table."""
    rows = dataset.to_arrow(COLUMNS).to_pylist()
    return [{**row, "labels": row["labels"] or None} for row in rows]


@pytest.mark.slow
def test_tables__name_the_present_state(pets: Dataset) -> None:
    """Each table is a folder with a version; edits that are not in it yet are told."""
    media = media_of(pets)
    assert Path(media.path).is_dir()
    assert not media.has_edits
    assert media.version < lance.dataset(media.path).version
    assert set(pets.stored_tables) >= {"media", "classes"}


def test_lance_and_pandas(pets: Dataset) -> None:
    """Lance and pandas read the rows."""
    table = lance.dataset(media_of(pets).path, version=media_of(pets).version)
    assert table.to_table(columns=COLUMNS).to_pylist() == stored(pets)
    frame = table.to_table(columns=COLUMNS).to_pandas()
    assert frame["media_id"].tolist() == pets.view.media_ids()
    assert frame["caption"].tolist()[2] == "a 猫 on the “sofa”"


@pytest.mark.slow  # to import it takes three seconds of a processor
def test_lancedb(pets: Dataset) -> None:
    """LanceDB reads the rows, and finds the nearest embedding."""
    import lancedb

    table = lancedb.connect(Path(media_of(pets).path).parent).open_table("media")
    table.checkout(media_of(pets).version)
    assert table.to_arrow().select(COLUMNS).to_pylist() == stored(pets)
    nearest = table.search([0.7, 0.7, 0.1], vector_column_name="embedding").limit(1).to_list()
    assert nearest[0]["media_id"] == pets.view.media_ids()[3]


def test_duckdb(pets: Dataset) -> None:
    """DuckDB reads the rows of the Arrow dataset."""
    media = lance.dataset(media_of(pets).path, version=media_of(pets).version)
    assert media.count_rows() == 4
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT {', '.join(COLUMNS)} FROM media").to_arrow_table().to_pylist()
        assert found == stored(pets)
        counted = connection.sql("SELECT count(*) FROM media WHERE list_contains(labels, 'wolf')").fetchall()
    assert counted == [(1,)]


def test_polars(pets: Dataset) -> None:
    """Polars reads the rows, as a whole and by a lazy query."""
    media = lance.dataset(media_of(pets).path, version=media_of(pets).version)
    frame = pl.from_arrow(media.to_table(columns=COLUMNS))
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_dicts() == stored(pets)
    large = pl.scan_pyarrow_dataset(media).filter(pl.col("width") > 400).select("media_id").collect()
    assert large["media_id"].to_list() == pets.view.media_ids()[:2]


def test_tables__of_a_draft(pets: Dataset, workspace: Workspace) -> None:
    """A dataset without a state has no tables to read."""
    draft = workspace.create_draft("draft")
    with pytest.raises(Conflict):
        draft.stored_tables  # noqa: B018 - the property reads
