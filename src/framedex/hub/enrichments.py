"""Enrichment of datasets, by the rules of a hub: who may do it, and to whom the enriched copies belong."""

from collections.abc import Mapping

from framedex.access import Action, Actor, TenantSubject, Via
from framedex.api.dataset import Dataset
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets


class Enrichments:
    """The enriched copies of datasets that users of a hub make.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
    """

    def __init__(self, context: HubContext, datasets: Datasets) -> None:
        self._context, self._datasets = context, datasets

    def enrich(self, actor: Actor, dataset_id: str, models: Mapping[str, str]) -> Dataset:
        """Start to create an enriched copy of a dataset, and return the copy with its task.

        The copy belongs to the tenant of its source, and to the actor. Until its owner is stored, and if the process
        ends before, it belongs to the tenant alone.

        Args:
            actor: who does it; the operator and the local user own nothing.
            dataset_id: the source.
            models: ids of models by type of enrichment.

        Raises:
            NotFound: there is no such dataset or model, or the actor must not learn of it.
            Forbidden: the actor may not enrich the dataset, or create datasets in its tenant.
            InvalidInput: a type does not exist, or a model cannot be applied.
            Conflict: the dataset is not READY, a task is running, or a model depends on others.
        """
        source = self._datasets.open(actor, dataset_id, Action.DATASET_ENRICH)
        tenant_id = self._datasets.subject(actor, dataset_id).tenant_id
        self._context.require(actor, Action.TENANT_CREATE_DATASET, TenantSubject(tenant_id))
        copy = source.enrich(models, wait=False)
        self._datasets.adopt(copy.id, tenant_id, actor.user_id if actor.via in (Via.SESSION, Via.TOKEN) else None)
        return copy
