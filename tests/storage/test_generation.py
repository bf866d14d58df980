"""Generations and their summaries: defaults, changes, and the JSON in which they are stored."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.records import DatasetStatus, Weights
from framedex.storage.datasets import now
from framedex.storage.generation import Generation, IndexSummary, ObjectSummary, Summary

OLD: dict[str, Any] = {
    "skipped": {"other files": 2},
    "batches": 2,
    "added_at": {"0": "2026-05-01T10:00:00.123456+00:00"},
    "objects": {"first_free": {"cluster_0": 4}, "settled": 3, "reach": None, "n_objects": 3},
    "issue_thresholds": {"outliers": None},
    "reach": 0.25,
    "captioned_by": {"path": "/models/c", "sha256": "00ff", "settings": {}},
}


def generation(summary: Summary) -> Generation:
    """Return a generation of ten rows."""
    return Generation(id="g", dataset_id="d", tables={"media": 1}, n_images=10, created_at=now(), summary=summary)


def test_json__is_that_of_earlier_versions() -> None:
    """A stored summary is read and written again without a key more or less, in all its parts."""
    assert Summary.model_validate(OLD).model_dump(mode="json") == OLD
    assert generation(Summary.model_validate(OLD)).model_dump()["summary"] == OLD
    assert Summary().model_dump() == {}


@given(st.dictionaries(st.text().filter(lambda key: key not in Summary.model_fields), st.integers() | st.text()))
def test_json__keeps_keys_of_newer_versions(further: dict[str, Any]) -> None:
    """Unknown keys of a summary and of its objects outlive a change by this version."""
    names = {key: value for key, value in further.items() if key not in ObjectSummary.model_fields}
    summary = Summary.model_validate({**OLD, **names, "objects": names}).with_(batches=7)
    assert summary.model_dump(mode="json") == {**OLD, **names, "objects": names, "batches": 7}


def test_with__changes_a_copy() -> None:
    """A change leaves the other values and the original as they are, and is stored."""
    before = Summary.model_validate(OLD)
    after = before.with_(roles={"1": "arn"}, captioned_by=Weights(path="p", sha256="ab"))
    assert (before.roles, after.roles, after.batches) == ({}, {"1": "arn"}, 2)
    captioned_by = {"path": "p", "sha256": "ab", "settings": {}}
    assert after.model_dump(mode="json") == {**OLD, "roles": {"1": "arn"}, "captioned_by": captioned_by}


def test_with__refuses_other_names() -> None:
    """A name that is no field is an error, not a new key."""
    with pytest.raises(TypeError, match="Summary has no field 'batch'"):
        Summary().with_(batch=1)


def test_with_index__replaces_what_the_index_has() -> None:
    """The values of a new index take the place of the old ones; all others stay."""
    summary = Summary.model_validate(OLD).with_index(IndexSummary(first_free={"cluster_0": 9}, reach=0.5))
    assert (summary.first_free, summary.reach, summary.batches) == ({"cluster_0": 9}, 0.5, 2)
    assert summary.issue_thresholds == {"outliers": None}


def test_of_objects__shows_their_index() -> None:
    """The index of the objects stands where that of the media was; without objects nothing changes."""
    shown = Summary.model_validate(OLD).of_objects()
    assert (shown.first_free, shown.settled, shown.reach, shown.batches) == ({"cluster_0": 4}, 3, None, 2)
    assert Summary(reach=0.5).of_objects() == Summary(reach=0.5)


def test_generation__status_and_counts() -> None:
    """The summary decides the status, and how many of the media are frames of videos."""
    whole, part = generation(Summary()), generation(Summary(partial=True, n_videos=2, n_of_videos=4))
    assert (whole.status, whole.n_videos, whole.n_still_images) == (DatasetStatus.READY, 0, 10)
    assert (part.status, part.n_videos, part.n_still_images) == (DatasetStatus.PARTIAL_INDEX, 2, 6)
