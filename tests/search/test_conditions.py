"""Filters on one state of a dataset: resolution of names, searches as relations, and display."""

from dataclasses import replace

import pyarrow as pa

from framedex import vql
from framedex.search.conditions import condition_of, explained, scope_of
from framedex.storage.generation import Summary
from framedex.storage.media import Media
from framedex.vql import parse, searches
from tests.gallery import Gallery
from tests.inside import stored_media


def media_of(gallery: Gallery) -> Media:
    return stored_media(gallery.dataset)


def test_condition__of_searches_that_were_carried_out(gallery: Gallery) -> None:
    """The rows found by a search are selected in the table itself."""
    media = media_of(gallery)
    filters = parse(vql.text("fts", "street") & ~vql.batch(1))
    rows = media.row_ids(condition_of(media, ()))[3:7]
    scored = pa.table({"_rowid": pa.array(rows, pa.uint64()), "score": pa.array([0.5] * 4, pa.float32())})
    condition = condition_of(media, filters, {searches(filters)[0]: scored})
    assert media.row_ids(condition).tolist() == rows.tolist()
    assert media.count(condition) == 4
    assert sum(block.num_rows for block in media.blocks(condition, ["media_id"])) == 4
    assert media.count(condition_of(media, parse(~vql.text("fts", "street")), {searches(filters)[0]: scored})) == (
        gallery.dataset.count() - 4
    )
    shown = explained(condition)
    assert "found_0: 4 rows of TextTest(op='fts', value='street', threshold=None)" in shown
    assert "(_rowid IN (SELECT _rowid FROM found_0))" in shown


def test_condition__of_a_dataset_that_kept_no_times(gallery: Gallery) -> None:
    """Datasets of older versions lack the times of additions: no test on them matches, and each `not` does."""
    media = media_of(gallery)
    stored = media.generation.summary.model_dump(exclude={"added_at"})
    summary = Summary.model_validate(stored)
    older = replace(media, generation=media.generation.model_copy(update={"summary": summary}))
    always = vql.date_added("ge", "0001-01-01")
    assert scope_of(older).added == {}
    assert older.count(condition_of(older, parse(always))) == 0
    assert older.count(condition_of(older, parse(~always))) == gallery.dataset.count()
    assert media.count(condition_of(media, parse(always))) == gallery.dataset.count()
