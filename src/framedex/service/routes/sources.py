"""The source folders of datasets: whether they can be found, what differs in them, and new places of them."""

from typing import Annotated

from pydantic import BaseModel, Field

from framedex.access import Action, allowed
from framedex.hub.admin_settings import SERVICE
from framedex.records import Problem, Relocation, SourceState, SyncResult
from framedex.service.actions import needs, routes
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("sources")

_ADDITION = ("add_media_enabled", "Add media feature is not enabled")
_Place = Annotated[str, Field(min_length=1, max_length=4096)]


class RelocationRequest(BaseModel):
    """The old and the new place of a source folder; ``check`` changes nothing, ``force`` goes on over differences."""

    old: _Place
    new: _Place
    is_check: Annotated[bool, Field(alias="check")] = False
    force: bool = False


class SyncRequest(BaseModel):
    """The changes that a comparison of a dataset with its folders may make: none without ``apply``."""

    apply: bool = False
    remove: bool = False
    mark_lost: bool = False


@router.get("/admin/sources")
@needs(Action.ADMIN_SETTINGS, heavy=True)
def get_sources(service: Service, actor: CurrentActor) -> list[SourceState]:
    """Return the source folders of all datasets, and why those that are not there cannot be found."""
    return list(service.workspace.sources())


@router.post("/admin/relocate")
@needs(Action.ADMIN_SETTINGS, heavy=True)
def relocate_source(service: Service, actor: CurrentActor, body: RelocationRequest) -> Relocation:
    """Change the place of a source folder for all datasets, after a comparison of its files."""
    result = service.workspace.relocate(body.old, body.new, check=body.is_check, force=body.force)
    if result.is_done:
        service.hub.trail.note(actor, "sources.relocate", target=f"{result.before} to {result.after}"[:200])
    return result


@router.get("/dataset/{dataset_id}/sources")
@needs(Action.DATASET_VIEW, heavy=True)
def dataset_sources(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor
) -> list[SourceState]:
    """Return the source folders of a dataset; who is no administrator sees only their names."""
    sources = list(dataset.sources())
    if allowed(actor, Action.ADMIN_SETTINGS, SERVICE):
        return sources
    return [each.model_copy(update={"source": _name(each.source)}) for each in sources]


@router.get("/dataset/{dataset_id}/problems")
@needs(Action.DATASET_VIEW)
def dataset_problems(dataset_id: str, dataset: OpenedDataset) -> list[Problem]:
    """Return what the last addition left out, or could not use as it is: counts by reason, with the first examples."""
    return list(dataset.problems)


@router.post("/dataset/{dataset_id}/sync")
@needs(Action.DATASET_EDIT, heavy=True, feature=_ADDITION)
def sync_dataset(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: SyncRequest
) -> SyncResult:
    """Compare a dataset with its folders; with ``apply`` change its rows, and start the first task that is needed.

    Call it again after that task for what is left. Paths are those within the sources.
    """
    result = dataset.sync(apply=body.apply, remove=body.remove, mark_lost=body.mark_lost, wait=False)
    if allowed(actor, Action.ADMIN_SETTINGS, SERVICE):
        return result
    roots = sorted((each.source for each in dataset.sources()), key=len, reverse=True)
    examples = {kind: [_within(line, roots) for line in lines] for kind, lines in result.examples.items()}
    lost = [each.model_copy(update={"source": _name(each.source)}) for each in result.lost]
    notes = [_within(each, roots) for each in result.notes]
    return result.model_copy(update={"examples": examples, "lost": lost, "notes": notes})


def _name(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2] or source


def _within(line: str, roots: list[str]) -> str:
    """Return a line about files with paths within their sources."""
    for root in roots:
        line = line.replace(f"{root.rstrip('/')}/", "").replace(root, _name(root))
    return line
