"""How edits are stored: beside the columns' files at first, and in them once they are folded; it reads the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, Workspace
from framedex.records import VacuumResult
from framedex.storage.media_rows import DUPLICATES
from tests.analysis.arrays import unit
from tests.gallery import SETTINGS
from tests.growth import part
from tests.inside import stored_media
from tests.laws import examples
from tests.prepared import prepared
from tests.stored import JUDGED, assert_judged
from tests.tuning import Tuning, tuned

ROWS = 60


def crowds() -> Any:
    """Return rows of three crowds in turn, with some copies."""
    rng = np.random.default_rng(0)
    centres = unit(rng.normal(size=(3, 8)))
    vectors = unit(centres[np.arange(ROWS) % 3] + 0.08 * rng.normal(size=(ROWS, 8)))
    vectors[30:36] = vectors[:6]
    return vectors


def create(workspace: Workspace, name: str = "d") -> Dataset:
    return prepared(workspace, name, part(crowds(), label=[f"crowd {row % 3}" for row in range(ROWS)]))


def everything(dataset: Dataset) -> list[dict[str, Any]]:
    table = stored_media(dataset).table
    rows: list[dict[str, Any]] = (
        table.scan([each for each in STORED if each in table.schema.names]).read_all().to_pylist()
    )
    return rows


STORED = ["media_id", "labels", "caption", "tags", "tagged_at", *JUDGED, DUPLICATES[0], "duplicate_similarity"]


def edit(dataset: Dataset, ids: list[str]) -> None:
    """Edit some media in all ways."""
    dataset.tag(ids[:5], "seen")
    dataset.tag(ids[3], "twice")
    dataset.untag(ids[4], "seen")
    dataset.set_labels({ids[7]: ["crowd 0", "new"], ids[8]: []})
    dataset.set_captions({ids[9]: "a caption", ids[10]: None})
    dataset.not_duplicates([ids[0], ids[30]])
    dataset.add_field("score", "float", values={ids[2]: 0.5})
    dataset.set_field("score", {ids[2]: 1.5, ids[11]: 2.5})


def overlay_columns(dataset: Dataset) -> frozenset[str]:
    return stored_media(dataset).table.overlay.columns


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__folded_tables_are_plain(workspace: Workspace) -> None:
    """After vacuum, other programs read the rows that we read before: Lance's own database, DuckDB and pandas."""
    import duckdb
    import lance
    import lancedb
    import pandas as pd

    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    edit(dataset, ids)
    assert {"labels", "tags", "caption", DUPLICATES[0]} <= overlay_columns(dataset)
    before, shown = everything(dataset), dataset.to_arrow()
    result = workspace.vacuum(older_than_s=0)
    assert isinstance(result, VacuumResult)
    assert result.skipped == {}
    assert not overlay_columns(dataset)
    assert everything(dataset) == before
    assert dataset.to_arrow() == shown
    folder = workspace.path / "datasets" / dataset.id
    head = stored_media(dataset)
    names = [name for name in STORED if name in head.table.schema.names]
    plain = lancedb.connect(folder).open_table("media")
    plain.checkout(head.table.version)
    stored = plain.to_arrow().select(names)
    assert stored.to_pylist() == before
    media = lance.dataset(str(folder / "media.lance"), version=head.table.version).to_table(columns=names)
    with duckdb.connect() as connection:
        counted = connection.execute("SELECT count(*) FROM media WHERE list_contains(labels, 'new')").fetchall()
    assert counted == [(1,)]
    frame = media.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["caption"].tolist()[9] == "a caption"


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__folded_by_a_reindex(workspace: Workspace) -> None:
    """A reindex folds edits, and keeps them."""
    dataset = create(workspace)
    edit(dataset, dataset.where([]).media_ids())
    before = [{name: row[name] for name in STORED[:5]} for row in everything(dataset)]
    dataset.reindex(thresholds=(0.05, 0.1, 0.2, 0.3, 0.5))
    assert not overlay_columns(dataset)
    assert [{name: row[name] for name in STORED[:5]} for row in everything(dataset)] == before


@pytest.mark.slow
def test_edits__folded_once_they_are_many(workspace: Workspace, tuning: Tuning) -> None:
    """Edits lie beside the files only while they are few."""
    tuning.layer_values = 4
    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    for place in range(4):
        dataset.set_captions({ids[place]: f"caption {place}"})
    assert "caption" in overlay_columns(dataset)
    dataset.set_captions({ids[4]: "caption 4"})
    assert "caption" not in overlay_columns(dataset)
    assert [row["caption"] for row in everything(dataset)][:6] == [*(f"caption {place}" for place in range(5)), None]


@pytest.mark.slow
def test_edits__few_and_many_do_the_same(workspace: Workspace, tuning: Tuning) -> None:
    """Edits that rewrite whole columns lead to the same values as those that do not."""
    few, many = create(workspace, "few"), create(workspace, "many")
    edit(few, few.where([]).media_ids())
    tuning.layer_values = -1
    tuning.layer_share = 10**9
    edit(many, many.where([]).media_ids())
    assert overlay_columns(few)
    assert not overlay_columns(many)
    without = {"media_id", "tagged_at"}
    assert [{k: v for k, v in row.items() if k not in without} for row in everything(few)] == [
        {k: v for k, v in row.items() if k not in without} for row in everything(many)
    ]


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__in_snapshots_and_clones(workspace: Workspace) -> None:
    """A snapshot, a restore and a clone have the edits of their time."""
    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    dataset.set_captions({ids[0]: "first"})
    kept = dataset.snapshot("kept")
    dataset.set_captions({ids[0]: "second", ids[1]: "other"})
    workspace.vacuum(older_than_s=0)
    clone = dataset.clone(kept)
    assert clone.where([]).to_arrow(["caption"])["caption"].to_pylist()[:2] == ["first", None]
    dataset.restore(kept)
    workspace.vacuum(older_than_s=0)
    assert dataset.where([]).to_arrow(["caption"])["caption"].to_pylist()[:2] == ["first", None]
    clone.set_captions({ids[1]: "of the clone"})
    assert dataset.where([]).to_arrow(["caption"])["caption"].to_pylist()[:2] == ["first", None]
    with Workspace(workspace.path, settings=SETTINGS) as again:
        assert again.check().findings == []


@pytest.mark.slow
def test_edits__of_a_full_text_search(workspace: Workspace) -> None:
    """An edited caption is found at once, and the old one no more."""
    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    dataset.set_captions({ids[5]: "a green parrot"})
    assert dataset.search("parrot").media_ids() == [ids[5]]
    dataset.set_captions({ids[5]: "a red car", ids[6]: "a parrot"})
    assert dataset.search("parrot").media_ids() == [ids[6]]


STEPS = st.lists(
    st.dictionaries(
        st.integers(0, ROWS - 1),
        st.lists(st.sampled_from(("crowd 0", "crowd 1", "crowd 2", "new")), max_size=2),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@examples(20)
@given(STEPS)
def test_judge_edited__as_all_together(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[int, list[str]]]
) -> None:
    """Judging only what may change leads to what judging all media by the same statistics does."""
    with tuned() as tuning:
        tuning.judged_rows = 0
        with Workspace(tmp_path_factory.mktemp("judged") / "workspace", settings=SETTINGS) as workspace:
            dataset = create(workspace)
            ids = dataset.where([]).media_ids()
            statistics = stored_media(dataset).generation.tables["label_statistics"]
            for step in steps:
                dataset.set_labels({ids[place]: labels for place, labels in step.items()})
            media = stored_media(dataset)
            assert media.generation.tables["label_statistics"] == statistics  # not all were judged again
            assert_judged(dataset)


def test_write_judged__one_version_for_labels_and_their_issues(workspace: Workspace) -> None:
    """In a small dataset, few labels and the issues that they change are one version, as judging all media has it."""
    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    for labels in ({ids[7]: ["crowd 0", "new"], ids[8]: []}, {ids[7]: ["crowd 1"], ids[3]: ["crowd 2"]}):
        before = stored_media(dataset).generation.tables
        dataset.set_labels(labels)
        after = stored_media(dataset).generation.tables
        assert after["media"] == before["media"] + 1
        assert "label_statistics" not in after  # an index writes them
        assert_judged(dataset)
    dataset.delete_media([ids[20]])
    assert "label_statistics" in stored_media(dataset).generation.tables


def test_judge_edited__judges_all_once_many_changed(workspace: Workspace, tuning: Tuning) -> None:
    """Once many labels were edited, the statistics are those of the present labels."""
    tuning.judged_rows = 0
    tuning.layer_values = 10
    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    before = stored_media(dataset).generation.tables["label_statistics"]
    dataset.set_labels(ids[:20], "crowd 1")
    assert stored_media(dataset).generation.tables["label_statistics"] > before


def test_edits__damaged(workspace: Workspace, tmp_path: Path) -> None:
    """`check` names a file of edits that is damaged."""
    dataset = create(workspace)
    ids = dataset.where([]).media_ids()
    dataset.set_captions({ids[0]: "first"})
    (file,) = (workspace.path / "datasets" / dataset.id / "media.lance" / "_edits").iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    findings = dataset.check().findings
    assert len(findings) == 1
    assert "caption" in findings[0].fault
    assert file.name in findings[0].fault
