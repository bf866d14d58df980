"""Histograms of values: the filter engine counts what NumPy counts."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Histogram, InvalidInput, Workspace, vql
from framedex.browse.histograms import value_histogram
from framedex.storage.media import EVERYTHING
from tests.browse.test_issues import rewritten
from tests.gallery import BROKEN, Gallery, embedded
from tests.inside import stored_media
from tests.laws import examples


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("name", ["blur", "outliers", "duplicates", "odd_size", "mislabels"])
@pytest.mark.parametrize("bins", [1, 7, 1000])
def test_histogram__is_that_of_numpy(gallery: Gallery, name: str, bins: int) -> None:
    """Counts and edges are those of NumPy for the values of the column."""
    values = gallery.dataset.to_arrow([name])[name].drop_null().to_numpy().astype(np.float64)
    histogram = gallery.dataset.histogram(name, bins=bins)
    counts, edges = np.histogram(values, bins)
    assert histogram.counts == counts.tolist()
    assert histogram.edges == pytest.approx(edges.tolist())
    assert histogram.missing == gallery.dataset.count() - len(values)
    assert histogram.outside == 0
    assert histogram.limit == gallery.dataset.limits[name].limit


@examples(30)
@given(st.lists(st.floats(-1, 2), min_size=2, max_size=9, unique=True).map(sorted))
def test_histogram__of_given_edges(gallery: Gallery, edges: list[float]) -> None:
    """Bins include their start, the last one its end, too; values beyond them are counted apart."""
    values = gallery.dataset.to_arrow(["blur"])["blur"].drop_null().to_numpy().astype(np.float64)
    histogram = gallery.dataset.histogram("blur", bins=np.array(edges))  # type: ignore[arg-type] # arrays do, too
    assert histogram.edges == edges
    assert histogram.counts == np.histogram(values, edges)[0].tolist()
    assert histogram.outside == len(values) - sum(histogram.counts)


def test_histogram__includes_both_ends(gallery: Gallery) -> None:
    """Edges at the least and the greatest value leave out none."""
    values = gallery.dataset.to_arrow(["blur"])["blur"].drop_null().to_pylist()
    histogram = gallery.dataset.histogram("blur", bins=[min(values), max(values)])
    assert (histogram.counts, histogram.outside) == ([len(values)], 0)
    assert gallery.dataset.histogram("blur", bins=[max(values), 9]).counts == [values.count(max(values))]


def test_histogram__of_views(gallery: Gallery) -> None:
    """A view counts its media only; of media without values all are missing."""
    view = gallery.dataset.where(vql.folder("is", "towns"))
    assert sum(view.histogram("blur").counts) == view.count() == 12
    broken = gallery.dataset.where(vql.issues("corrupted")).histogram("blur", bins=4)
    assert (broken.counts, broken.missing) == ([0] * 4, len(BROKEN))
    assert broken.edges == [0, 0.25, 0.5, 0.75, 1]
    nothing = gallery.dataset.where(vql.labels("nobody")).histogram("blur")
    assert (sum(nothing.counts), nothing.missing) == (0, 0)
    assert sum(gallery.dataset.objects.histogram("blur").counts) == 0


def test_histogram__of_one_value(gallery: Gallery) -> None:
    """A single value is in the middle of a width of 1."""
    view = gallery.dataset.where(vql.file_name("is", "dark.png"))
    value = view.to_arrow(["blur"])["blur"][0].as_py()
    histogram = view.histogram("blur", bins=2)
    assert histogram.edges == [value - 0.5, value, value + 0.5]
    assert sum(histogram.counts) == 1


def test_histogram__without_the_column(gallery: Gallery, tmp_path: Any) -> None:
    """In a dataset that was indexed before the type existed all values are missing; infinite values likewise."""
    older = rewritten(gallery, tmp_path / "older", lambda rows: rows.drop_columns(["acutance"]))
    assert value_histogram(older, EVERYTHING, "blur").missing == gallery.dataset.count()
    infinite = rewritten(
        gallery,
        tmp_path / "infinite",
        lambda rows: rows.set_column(
            rows.schema.get_field_index("acutance"), "acutance", pa.array([np.inf] * len(rows), pa.float32())
        ),
    )
    assert value_histogram(infinite, EVERYTHING, "blur").missing == gallery.dataset.count()


def test_histogram__of_embeddings(workspace: Workspace) -> None:
    """Media without images have values that follow from their embeddings only."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0.8, 0.6], [0, 1]]))
    assert dataset.histogram("blur").missing == 3
    assert dataset.histogram("duplicates").missing == 0


@pytest.mark.parametrize(
    ("name", "bins", "message"),
    [
        ("ugly", 5, "no issue 'ugly'"),
        ("corrupted", 5, "the issue 'corrupted' has no value"),
        ("blur", 0, "bins must be a whole number from 1 to 1000, not 0"),
        ("blur", 1001, "bins must be a whole number from 1 to 1000, not 1001"),
        ("blur", True, "bins must be a whole number from 1 to 1,000, or their edges in ascending order, not True"),
        ("blur", "ten", "or their edges in ascending order, not 'ten'"),
        ("blur", [0.5], "or their edges"),
        ("blur", [0, 0.5, 0.5], "or their edges"),
        ("blur", [0, float("nan")], "or their edges"),
        ("blur", [[0, 1]], "or their edges"),
        ("blur", [0, "x"], "or their edges"),
        ("blur", None, "or their edges"),
    ],
)
def test_histogram__errors(gallery: Gallery, name: str, bins: Any, message: str) -> None:
    """An issue type without a value, and bins that are none, are refused."""
    with pytest.raises(InvalidInput, match=message):
        gallery.dataset.histogram(name, bins=bins)


def test_histogram__in_a_notebook(gallery: Gallery) -> None:
    """The plot names the values, the limit and what is not in it."""
    histogram = gallery.dataset.histogram("blur", bins=8)
    assert isinstance(histogram, Histogram)
    shown = histogram._repr_html_()
    limit = gallery.dataset.limits["blur"].limit
    assert f"limit {limit:.4g}, issue below" in shown
    assert f"{len(BROKEN)} without a value" in shown
    assert shown.count("class='bar'") == 8
    assert repr(histogram).startswith(f"<framedex.Histogram of 'blur': {histogram.total} values in 8 bins, limit ")
    assert stored_media(gallery.dataset).generation.summary.limits == {}
