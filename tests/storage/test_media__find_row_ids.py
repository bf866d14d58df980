"""Lookups of media by id: the same from memory and from files, also after deletions and restores."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.core.ids import new_id
from framedex.storage.id_index import IdPrefixes, RowsOfIds
from framedex.storage.media import Media
from framedex.storage.table_versions import ROW_ID
from tests.gallery import SETTINGS
from tests.growth import part
from tests.inside import stored_media


def media_of(dataset: Dataset) -> Media:
    return stored_media(dataset)


def all_of(media: Media) -> dict[str, int]:
    rows = media.table.scan(["media_id"], row_ids=True).read_all()
    return dict(zip(rows["media_id"].to_pylist(), rows[ROW_ID].to_pylist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("cache_bytes", [0, 1600, 2**24], ids=["from files", "by first digits", "from memory"])
def test_find_row_ids__of_each_state(tmp_path: Path, cache_bytes: int) -> None:
    """Ids that are there are found, and no others, whatever was deleted, added, edited and restored."""
    settings = SETTINGS.model_copy(update={"column_cache_bytes": cache_bytes})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        vectors = [[float(place), 1.0, float(place % 3)] for place in range(40)]
        dataset = workspace.create_dataset("rows", part(vectors))
        ever = set(dataset.view.ids)
        kept = dataset.snapshot("kept")
        steps = (
            lambda: dataset.tag(sorted(ever)[:5], "seen"),
            lambda: dataset.delete_media(sorted(ever)[3:9]),
            lambda: dataset.delete_media(sorted(ever)[20:21]),
            lambda: dataset.restore(kept),
            lambda: None,
        )
        for step in steps:
            media = media_of(dataset)
            expected = all_of(media)
            strange = [new_id(), "", "x", "0" * 36, "é" * 36, sorted(ever)[0].upper(), sorted(ever)[0][:-1]]
            assert media.find_row_ids([*sorted(ever), *strange]) == expected
            step()


def test_rows_of_ids__of_ids_that_begin_alike() -> None:
    """Two ids with the same first half are told apart."""
    ids = [f"01234567-89ab-4def-8123-{number:012x}" for number in (7, 3, 5)] + [new_id()]
    assert len({each[:23] for each in ids[:3]}) == 1
    halves = [f"01234567-89ab-4def-{number:04x}-{number:012x}" for number in (9, 1, 4)]
    rows = RowsOfIds(pa.chunked_array([ids[:2], ids[2:], halves]), np.arange(10, 17, dtype=np.uint64))
    assert rows.find([*ids, *halves]) == dict(zip([*ids, *halves], range(10, 17), strict=True))
    assert rows.find([new_id(), ids[0][:-1] + "f"]) == {}
    assert rows.nbytes == 24 * 7


def test_id_prefixes__of_ids_that_begin_alike() -> None:
    """All places of ids that begin like those that are wanted are candidates, and no others."""
    alike = [f"01234567-89ab-4def-8123-{number:012x}" for number in (7, 3, 5)]
    others = [f"{number:08x}-89ab-4def-8123-000000000001" for number in (0, 2**32 - 1, 0x01234566)]
    prefixes = IdPrefixes([pa.array([*alike[:2], others[0]]), pa.array(["x" * 36, *others[1:], alike[2]]).slice(1)])
    assert prefixes.places([alike[0]]).tolist() == [0, 1, 5]
    assert prefixes.places([*others, others[0]]).tolist() == [2, 3, 4]
    assert prefixes.places(["01234568" + alike[0][8:]]).tolist() == []
    assert prefixes.places([]).tolist() == []
    assert prefixes.nbytes == 8 * 6
    assert IdPrefixes([]).places(alike).tolist() == []
