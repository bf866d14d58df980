"""Quality of a dataset: labels, issues, histograms, duplicates, clean-up plans; the schema of filters."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fastapi import Query, Request, Response

from framedex import vql
from framedex.access import Action
from framedex.api.dataset import Dataset
from framedex.api.view import View
from framedex.cleanup.plan import CleanupPlan
from framedex.core.counts import counted
from framedex.errors import InvalidInput
from framedex.hub.proposals import groups_by_state, proposed_copies
from framedex.records import DuplicateGroup, EntityType, ValueHistogram
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.models_results import (
    CleanupPlanInfo,
    CleanupPlanRows,
    CleanupRequestBody,
    CleanupRules,
    CopiesRequest,
    DuplicatePage,
    Histograms,
    IssueRows,
    LabelCounts,
    PlanPart,
    ProposedCopiesInfo,
    StartedTask,
    TakenOut,
    VideoCopyPage,
)
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.state import ServiceState

router = routes("quality")

_DATASET = "/dataset/{dataset_id}"
_Rid = Annotated[str | None, Query(max_length=1000)]
_Offset = Annotated[int, Query(ge=0, le=2**31)]


@router.get("/vql/schema")
@needs(Action.OWN_ACCOUNT)
def vql_schema() -> dict[str, Any]:
    """Return the JSON Schema of filters."""
    return vql.json_schema()


@router.get(_DATASET + "/labels")
@needs(Action.DATASET_VIEW)
def label_counts_of_dataset(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    rid: _Rid = None,
    entity_type: EntityType = EntityType.IMAGES,
    q: Annotated[str, Query(max_length=1000)] = "",
    offset: _Offset = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> LabelCounts:
    """Return the labels of a dataset or of results, the most frequent first; ``q`` is a text that they contain."""
    part = q.casefold()
    found = [each for each in _view(service, actor, dataset, rid, entity_type).labels() if part in each.name.casefold()]
    return LabelCounts(labels=found[offset : offset + limit], total=len(found))


@router.get(_DATASET + "/issues", response_model=IssueRows, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def issue_rows(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    request: Request,
    issue: Annotated[str | None, Query(max_length=1000)] = None,
    rid: _Rid = None,
    entity_type: EntityType = EntityType.IMAGES,
    offset: Annotated[int, Query(ge=0, le=2_000_000)] = 0,
    limit: Annotated[int | None, Query(ge=1, le=2_000_000)] = None,
) -> Any:
    """Return the counts of all issue types, and the rows of one of them, the worst first, 100 unless limited.

    As an Arrow stream there are only the rows, those of all types if none is named; ``limit`` is for each type.
    """
    view = _view(service, actor, dataset, rid, entity_type)
    if wants_arrow(request):
        table = view.issues(issue, limit=limit).to_arrow()
        return arrow_response(table.schema, [table])
    if limit is not None and limit > 500:
        raise InvalidInput(f"limit is 1 to 500 for JSON, not {limit}")
    summaries, count = view.issue_summaries(), limit or 100
    if issue is None:
        return IssueRows(summaries=summaries, rows=[], has_more=False, notes=view.issues(limit=1).notes)
    listed = view.issues(issue, limit=offset + count + 1)
    rows = listed.to_arrow().slice(offset, count).to_pylist()
    return IssueRows(summaries=summaries, rows=rows, has_more=len(listed) > offset + count, notes=listed.notes)


@router.get(_DATASET + "/quality")
@needs(Action.DATASET_VIEW, heavy=True)
def quality_histograms(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    column: Annotated[str | None, Query(max_length=1000)] = None,
    bins: Annotated[int, Query(ge=1, le=1000)] = 20,
    rid: _Rid = None,
    entity_type: EntityType = EntityType.IMAGES,
) -> Histograms:
    """Return the histogram of the values of an issue type, or of each type with a limit."""
    view = _view(service, actor, dataset, rid, entity_type)
    names = dataset.limits if column is None else [column]
    found = [ValueHistogram(**dict(view.histogram(name, bins=bins))) for name in names]
    return Histograms(histograms=found)


@router.get(_DATASET + "/duplicates")
@needs(Action.DATASET_VIEW, heavy=True)
def groups_of_duplicates(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    similarity: Annotated[float, Query(ge=0, le=1)] = 0.96,
    exact: bool = False,
    near: bool = False,
    entity_type: EntityType = EntityType.IMAGES,
    within_videos: bool = False,
    rid: _Rid = None,
    is_open: bool | None = None,
    of: Annotated[str | None, Query(max_length=1000)] = None,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> DuplicatePage:
    """Return groups of duplicates, the largest first, each with the member to keep, the reason, and facts of all.

    With ``near`` the groups are those of images that are alike, and not all copies of each other. With ``is_open`` only
    those of which at least two members are outside the basket, or only the others; with ``of`` only that of a media
    item.
    """
    view = _view(service, actor, dataset, rid, EntityType.IMAGES if rid is None else entity_type)
    read = partial(
        view.duplicates,
        similarity,
        exact=exact,
        near=near,
        entity_type=entity_type,
        within_videos=within_videos,
        of=of,
    )
    groups = _groups(dataset, read, is_open, offset + limit + 1)
    return DuplicatePage(groups=list(groups[offset : offset + limit]), has_more=len(groups) > offset + limit)


@router.get(_DATASET + "/duplicates/videos")
@needs(Action.DATASET_VIEW, heavy=True)
def copies_of_parts_of_videos(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    min_seconds: Annotated[float, Query(ge=1, le=86_400)] = 3.0,
    rid: _Rid = None,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> VideoCopyPage:
    """Return parts of videos that are also parts of other ones, the longest first, with start and end in both.

    With ``rid`` only videos with a frame among the results are compared. The first answer takes the search; those that
    follow are read from its result, as long as the dataset stays the same.
    """
    view = _view(service, actor, dataset, rid, EntityType.IMAGES)
    found = view.video_copies(min_seconds, limit=offset + limit + 1)
    part, has_more = found[offset : offset + limit], len(found) > offset + limit
    return VideoCopyPage(parts=part, has_more=has_more, n_unread=found.n_unread, n_left=found.n_left)


@router.post(_DATASET + "/duplicates/copies")
@needs(Action.DATASET_VIEW, heavy=True)
def copies_of_open_groups(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: CopiesRequest
) -> ProposedCopiesInfo:
    """Return results of what the proposals of all groups that are still open would remove; nothing is changed."""
    found = proposed_copies(dataset, body.similarity, body.confidence, unsure=body.unsure)
    results = service.hub.results.of_media(actor, dataset, found.media_ids)
    size_bytes = sum(filter(None, results.rows(columns=["file_size_bytes"])["file_size_bytes"].to_pylist()))
    return ProposedCopiesInfo.of(results, groups=found.n_groups, unsure=found.n_unsure, size_bytes=size_bytes)


@router.post(_DATASET + "/cleanup/plan")
@needs(Action.DATASET_VIEW, heavy=True)
def make_cleanup_plan(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: CleanupRules
) -> CleanupPlanInfo:
    """Return a plan of media to remove; nothing is removed before it is applied. It is kept for ten minutes."""
    plan = dataset.plan_cleanup(
        duplicates=body.duplicates,
        issues=body.issues,
        keep=body.keep,
        basket=body.basket,
        unsure=body.unsure,
        within_videos=body.within_videos,
        where=body.where,
    )
    return _kept_plan(service, actor, dataset, plan)


@router.post(_DATASET + "/cleanup/plan/{plan_id}/without")
@needs(Action.DATASET_VIEW, heavy=True)
def take_out_of_cleanup_plan(
    dataset_id: str, plan_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: TakenOut
) -> CleanupPlanInfo:
    """Return the plan that leaves some of the media to remove in the dataset. The first plan stays as it is."""
    plan = service.hub.results.plan(actor, dataset, plan_id).without(body.media_ids)
    return _kept_plan(service, actor, dataset, plan)


def _kept_plan(service: ServiceState, actor: Any, dataset: Dataset, plan: CleanupPlan) -> CleanupPlanInfo:
    results = service.hub.results.of_media(actor, dataset, plan.removed_ids())
    return CleanupPlanInfo(
        plan_id=service.hub.results.keep_plan(actor, dataset, plan),
        rid=results.name,
        generation=results.generation,
        words=plan.words,
        summary=plan.summary,
    )


@router.get(_DATASET + "/cleanup/plan/{plan_id}/rows", response_model=CleanupPlanRows, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW)
def cleanup_plan_rows(
    dataset_id: str,
    plan_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    request: Request,
    part: PlanPart | None = None,
    offset: _Offset = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Any:
    """Return rows of a plan, what is removed or kept, and why; as an Arrow stream all of them.

    With ``part`` only what is ``removed``, by reason; what is ``kept``; or what is ``protected``: kept because a person
    chose it, or because none of its copies would stay.
    """
    table = _part(service.hub.results.plan(actor, dataset, plan_id).to_arrow(), part)
    if wants_arrow(request):
        return arrow_response(table.schema, [table])
    return CleanupPlanRows(offset=offset, count=len(table), rows=table.slice(offset, limit).to_pylist())


@router.post(_DATASET + "/cleanup/apply", status_code=202)
@needs(Action.DATASET_EDIT, heavy=True)
def apply_cleanup_plan(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    response: Response,
    body: CleanupRequestBody,
) -> StartedTask:
    """Start the removal of the media of a plan, with a snapshot of the state before; files stay unless told."""
    if body.delete_files:  # who may delete the dataset may delete its files
        service.hub.datasets.open(actor, dataset.id, Action.DATASET_DELETE)
    plan = service.hub.results.plan(actor, dataset, body.plan_id)
    if not len(plan):
        return StartedTask(task_id=None)
    task = plan.start(delete_files=body.delete_files)
    files = " and their files" if body.delete_files else ""
    service.hub.trail.note(actor, "media.delete", dataset_id=dataset.id, target=f"{counted(len(plan), 'media')}{files}")
    return StartedTask(task_id=task.id)


def _part(rows: pa.Table, part: PlanPart | None) -> pa.Table:
    match part:
        case None:
            return rows
        case PlanPart.PROTECTED:
            return rows.filter(pc.is_valid(rows["protected"]))
        case PlanPart.KEPT:
            return rows.filter(pc.equal(rows["action"], "keep"))
        case PlanPart.REMOVED:
            removed = rows.filter(pc.equal(rows["action"], "remove"))
            order = np.argsort(removed["issue_type"].to_numpy(zero_copy_only=False).astype(str), kind="stable")
            return removed.take(order)


def _groups(
    dataset: Dataset, read: Callable[..., list[DuplicateGroup]], is_open: bool | None, count: int
) -> list[DuplicateGroup]:
    if is_open is None:
        return read(limit=count)
    basket = set(dataset.basket.media_ids())
    return groups_by_state(lambda limit: read(limit=limit), basket, is_wanted_open=is_open, count=count)


def _view(service: ServiceState, actor: Any, dataset: Dataset, rid: str | None, entity_type: EntityType) -> View:
    """Return the view of results in their state, or of all media or objects in the present one."""
    if rid is not None:
        return service.hub.results.get(actor, dataset, rid).pinned()
    if entity_type is EntityType.VIDEOS:
        raise InvalidInput("entity_type is IMAGES or OBJECTS")
    return dataset.objects if entity_type is EntityType.OBJECTS else dataset.view
