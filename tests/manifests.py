"""All that a workspace says of its datasets, for comparing it before and after its catalog was lost."""

from typing import Any

from framedex import Dataset, Workspace, vql
from framedex.records import DatasetStatus

_OF_EVALUATIONS = {"stats", "total_results", "last_results", "evaluation_error"}
_BEING_MADE = (DatasetStatus.INDEXING, DatasetStatus.ERROR)


def contents_of(dataset: Dataset) -> dict[str, Any]:
    """Return what a dataset holds: rows with tags, labels, captions and fields, and what is kept beside them."""
    return {
        "info": dataset.info,
        "config": dataset.embedding_config,
        "rows": dataset.to_arrow().to_pylist(),
        "objects": dataset.objects.to_arrow().to_pylist(),
        "tags": dataset.tags(),
        "fields": dataset.fields(),
        "decisions": dataset.duplicate_decisions(),
        "label_decisions": dataset.label_decisions(),
        "basket": dataset.basket.media_ids(),
        "kept": dataset.kept_ids(),
        "sources": dataset.sources(),
        "missing": dataset.where(vql.missing()).media_ids(),
        "snapshots": dataset.snapshots(),
        "views": [view.record.model_dump(exclude=_OF_EVALUATIONS) for view in dataset.views()],
    }


def contents_of_all(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Return the same of all datasets to which something was committed, by their ids."""
    made = [record.id for record in workspace.datasets() if record.status_new not in _BEING_MADE]
    return {dataset_id: contents_of(workspace.dataset(dataset_id)) for dataset_id in made}
