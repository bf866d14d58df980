"""Copies of datasets, by the rules of a hub: who may make them, and to whom they belong."""

from collections.abc import Callable, Mapping

from framedex.access import Action, Actor, TenantSubject
from framedex.api.dataset import Dataset
from framedex.hub.actors import own_id
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.operations.states import PRESENT


class Copies:
    """The copies of datasets that users of a hub make.

    A copy belongs to the tenant of its source, and to the actor; the operator and the local user own nothing.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
    """

    def __init__(self, context: HubContext, datasets: Datasets) -> None:
        self._context, self._datasets = context, datasets

    def clone(self, actor: Actor, dataset_id: str, snapshot: str = PRESENT) -> Dataset:
        """Start to create a dataset from the present state or a snapshot, and return it with its task.

        Args:
            actor: who does it.
            dataset_id: the source.
            snapshot: the id of a snapshot, ``current``, or ``head`` for the present state.

        Raises:
            NotFound: there is no such dataset, or no such snapshot, or the actor must not learn of it.
            Forbidden: the actor may not copy the dataset or create datasets in its tenant, or snapshots are disabled.
            Conflict: the dataset's status does not allow clones.
        """
        return self._copy(actor, dataset_id, Action.DATASET_CLONE, lambda source: source.clone(snapshot, wait=False))

    def enrich(self, actor: Actor, dataset_id: str, models: Mapping[str, str]) -> Dataset:
        """Start to create an enriched copy of a dataset, and return the copy with its task.

        Args:
            actor: who does it.
            dataset_id: the source.
            models: ids of models by type of enrichment.

        Raises:
            NotFound: there is no such dataset or model, or the actor must not learn of it.
            Forbidden: the actor may not enrich the dataset, or create datasets in its tenant.
            InvalidInput: a type does not exist, or a model cannot be applied.
            Conflict: the dataset is not READY, a task is running, or a model depends on others.
        """
        return self._copy(actor, dataset_id, Action.DATASET_ENRICH, lambda source: source.enrich(models, wait=False))

    def merge(self, actor: Actor, dataset_id: str, other_id: str, name: str) -> Dataset:
        """Start to create a dataset with the media of two others, and return it with its task.

        Args:
            actor: who does it.
            dataset_id: the dataset to whose tenant the new one belongs.
            other_id: the other one.
            name: of the new dataset.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not copy both, or create datasets in the tenant.
            InvalidInput: the name cannot be used, or the datasets cannot be merged.
            Conflict: the name is taken, or the status of a dataset does not allow it.
        """
        other = self._datasets.open(actor, other_id, Action.DATASET_CLONE)
        return self._copy(actor, dataset_id, Action.DATASET_CLONE, lambda source: source.merge(other, name, wait=False))

    def _copy(self, actor: Actor, dataset_id: str, action: Action, start: Callable[[Dataset], Dataset]) -> Dataset:
        source = self._datasets.open(actor, dataset_id, action)
        tenant_id = self._datasets.subject(actor, dataset_id).tenant_id
        self._context.require(actor, Action.TENANT_CREATE_DATASET, TenantSubject(tenant_id))
        copy = start(source)
        self._datasets.adopt(copy.id, tenant_id, own_id(actor), actor=actor)
        return copy
