"""All labelled media, those with probably wrong labels first, and how many labels are wrong."""

from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import Query, Request
from pydantic import BaseModel

from framedex import Dataset, vql
from framedex.access import Action
from framedex.errors import InvalidInput
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW, ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.parameters import OpenedDataset

router = routes("quality")

_MOST_JSON_ROWS, _MOST_ARROW_ROWS, _BATCH_ROWS = 500, 2_000_000, 65_536


class LabelIssue(BaseModel):
    """A labelled media item, the label that it probably should have, and the probability that its own is wrong.

    ``expected_precision`` is the expected share of wrong labels among this item and all before it in the ranking.
    """

    media_id: str
    path: str
    label: str
    suggested_label: str
    probability: float
    expected_precision: float


class ClassNoise(BaseModel):
    """The number of media with a label, the expected number of wrong ones among them, and their share."""

    label: str
    n_media: int
    n_wrong: float
    rate: float


class LabelNoiseEstimate(BaseModel):
    """The estimated share of wrong labels, an interval around it, and sentences about the estimate."""

    n_wrong: int
    rate: float
    low: float
    high: float
    notes: list[str]


class RankedLabelIssues(BaseModel):
    """Some of the labelled media, those with probably wrong labels first; ``total`` is the number of all.

    Classes come with the highest rates first.
    """

    total: int
    offset: int
    estimate: LabelNoiseEstimate
    classes: list[ClassNoise]
    rows: list[LabelIssue]


@router.get("/dataset/{dataset_id}/labels/issues", response_model=RankedLabelIssues, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def get_label_issues(
    dataset_id: str,
    dataset: OpenedDataset,
    request: Request,
    method: Literal["combined", "neighbours", "head"] = "combined",
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ARROW_ROWS)] = 100,
    without_tag: Annotated[str | None, Query(max_length=1000)] = None,
) -> Any:
    """Return labelled media, those with probably wrong labels first, and the estimated share of wrong labels.

    Up to 500 come as JSON, or up to 2,000,000 as an Arrow stream, whose schema has the estimate as its metadata
    ``estimate``. Media with ``without_tag`` are left out of the rows.
    """
    as_arrow = wants_arrow(request)
    if not as_arrow and limit > _MOST_JSON_ROWS:
        raise InvalidInput(f"limit is 1 to {_MOST_JSON_ROWS} for JSON, not {limit}; {ARROW} takes more")
    issues = dataset.label_issues(method)
    table = _without(dataset, issues.to_arrow(), without_tag)
    part, (low, high) = table.slice(offset, limit), issues.interval
    estimate = LabelNoiseEstimate(n_wrong=issues.n_wrong, rate=issues.rate, low=low, high=high, notes=issues.notes)
    if as_arrow:
        return _as_arrow(part.replace_schema_metadata({"estimate": estimate.model_dump_json()}))
    classes = [ClassNoise(**row) for row in issues.classes().to_pylist()]
    rows = [LabelIssue(**row) for row in part.to_pylist()]
    return RankedLabelIssues(total=len(table), offset=offset, estimate=estimate, classes=classes, rows=rows)


def _without(dataset: Dataset, table: pa.Table, tag: str | None) -> pa.Table:
    """Return the rows of media without a tag; all if there is no such tag."""
    if tag is None or all(each.name != tag for each in dataset.tags()):
        return table
    tagged = dataset.where(vql.tags(tag)).to_arrow(["media_id"])["media_id"].combine_chunks()
    return table.filter(pc.invert(pc.is_in(table["media_id"], value_set=tagged)))


def _as_arrow(table: pa.Table) -> Any:
    batches = (table.slice(start, _BATCH_ROWS) for start in range(0, max(len(table), 1), _BATCH_ROWS))
    return arrow_response(table.schema, batches, {"Vary": "Accept"})
