"""Requests and answers about results, and about actions on them."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from framedex.api.result_set import ResultSet
from framedex.hub.actions import MOST_IDS, ActionName
from framedex.records import (
    CleanupSummary,
    DuplicateDecision,
    DuplicateGroup,
    FieldType,
    IssueSummary,
    JournalStep,
    LabelCount,
    LabelDecision,
    ValueHistogram,
    VideoCopy,
)

Offset = Annotated[int, Field(ge=0, le=2**31)]
_Text = Annotated[str, Field(max_length=1000)]


class ResultsInfo(BaseModel):
    """Results: their id, the number of their rows, and the state in which they are.

    ``total`` is the number of all rows of their kind in this state, and ``n_images`` that of images of the dataset,
    frames of videos left out, as in its record at that time. ``notes`` say why there are no rows: which names in the
    filters do not exist, and the nearest that do.
    """

    rid: str
    count: int
    total: int
    n_images: int
    generation: str
    notes: list[str]

    @classmethod
    def of(cls, results: ResultSet, **more: Any) -> Self:
        """Return what is said of results, and the other fields of a model that says more."""
        return cls(
            rid=results.name,
            count=len(results),
            total=results.total,
            n_images=results.n_images,
            generation=results.generation,
            notes=results.notes,
            **more,
        )


class ResultRows(BaseModel):
    """Some rows of results; ``count`` is the number of all rows."""

    offset: int
    count: int
    generation: str
    rows: list[dict[str, Any]]


class ResultQuantiles(BaseModel):
    """Values of a column at evenly spaced rows."""

    column: str
    positions: list[int]
    values: list[Any]


class ResultPosition(BaseModel):
    """The position of a media item among results, from 0; null for one that is not among them."""

    position: int | None


class FacetCount(BaseModel):
    """A value with the number of rows that have it."""

    value: str | bool
    count: int


class FacetCounts(BaseModel):
    """The most frequent values of a field; ``total`` is the number of all values that match."""

    field: str
    values: list[FacetCount]
    total: int


class ActionTargets(BaseModel):
    """Results, or a few media: exactly one of them."""

    rid: _Text | None = None
    ids: Annotated[list[_Text], Field(min_length=1, max_length=MOST_IDS)] | None = None


class ActionRequest(BaseModel):
    """An action, its media and its arguments."""

    action: ActionName
    on: ActionTargets | None = None
    args: dict[str, Any] = {}
    expect_generation: _Text | None = None


class StepRequest(BaseModel):
    """The token of an action; None for the last one."""

    token: _Text | None = None


class JournalPage(BaseModel):
    """Steps of the journal, the last first."""

    steps: list[JournalStep]
    has_more: bool


class StepValues(BaseModel):
    """Values that a step of the journal keeps, a row for each media item, and the number of all of them."""

    rows: list[dict[str, Any]]
    total: int


class TagName(BaseModel):
    """The name of a tag."""

    name: str


class NewField(BaseModel):
    """The definition of a custom field."""

    field_name: str
    field_type: FieldType
    enum_options: list[str] | None = None
    is_multi: bool = False


class FieldName(BaseModel):
    """The name of a custom field."""

    field_name: str


class NewLimits(BaseModel):
    """Limits by issue type, None for the default; or the types that return to their defaults, all if none is named."""

    limits: dict[str, float | None] | None = None
    reset: list[_Text] | None = None


class LabelCounts(BaseModel):
    """The most frequent labels; ``total`` is the number of all that match."""

    labels: list[LabelCount]
    total: int


class IssueRows(BaseModel):
    """The issues: counts by type, and rows of one type, the worst first.

    ``notes`` are the reasons for types that are not listed.
    """

    summaries: list[IssueSummary]
    rows: list[dict[str, Any]]
    has_more: bool
    notes: list[str]


class Histograms(BaseModel):
    """The histograms of the values of issue types."""

    histograms: list[ValueHistogram]


class DuplicatePage(BaseModel):
    """Groups of duplicates, the largest first."""

    groups: list[DuplicateGroup]
    has_more: bool


class VideoCopyPage(BaseModel):
    """Parts of videos that are also parts of other ones, the longest first.

    ``n_unread`` and ``n_left`` are the numbers of pairs of videos that were not compared, because a file cannot be
    read, or because ``copy_budget_ms`` was spent.
    """

    parts: list[VideoCopy]
    has_more: bool
    n_unread: int
    n_left: int


class CopiesRequest(BaseModel):
    """Groups of duplicates: a similarity, the minimum confidence of a group, and whether unsure ones count, too."""

    similarity: Annotated[float, Field(ge=0, le=1)] = 0.96
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.0
    unsure: bool = False


class ProposedCopiesInfo(ResultsInfo):
    """The copies that are proposed for removal, as results, with the number of groups and the bytes of files.

    ``unsure`` is the number of groups that are left out, because it is not sure which member is the original.
    """

    groups: int
    unsure: int
    size_bytes: int


class DecisionList(BaseModel):
    """The decisions about duplicates, and those about labels, the oldest first; the ids of the media to keep."""

    duplicates: list[DuplicateDecision]
    labels: list[LabelDecision]
    kept: list[str]


class CleanupRules(BaseModel):
    """The arguments of a clean-up plan, as in Python."""

    duplicates: float | str | None = None
    issues: list[str] | dict[str, float] = []
    keep: str = "best"
    basket: bool = False
    unsure: bool = False
    within_videos: bool = False
    where: list[Any] | None = None


class CleanupPlanInfo(BaseModel):
    """A clean-up plan; ``rid`` are results of the media that it removes."""

    plan_id: str
    rid: str
    generation: str
    words: str
    summary: CleanupSummary


class TakenOut(BaseModel):
    """The media that are taken out of a clean-up plan."""

    media_ids: Annotated[list[_Text], Field(max_length=10_000)]


class PlanPart(StrEnum):
    """A part of the rows of a clean-up plan."""

    REMOVED = "removed"
    """What goes, by reason."""
    KEPT = "kept"
    """What stays."""
    PROTECTED = "protected"
    """What stays as chosen by a person, or as the last copy."""


class CleanupPlanRows(BaseModel):
    """Rows of a clean-up plan: what is removed or kept, and why."""

    offset: int
    count: int
    rows: list[dict[str, Any]]


class CleanupRequestBody(BaseModel):
    """The plan to apply, and whether the files of the removed media are deleted, too."""

    plan_id: _Text
    delete_files: bool = False


class StartedTask(BaseModel):
    """A task that was started; None if there was nothing to do."""

    task_id: str | None
