"""Copies of datasets, by the rules of a hub: who may make them, and to whom they belong."""

from framedex.access import Action, Actor, TenantSubject, Via
from framedex.api.dataset import Dataset
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets


class Copies:
    """The copies of datasets that users of a hub make.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
    """

    def __init__(self, context: HubContext, datasets: Datasets) -> None:
        self._context, self._datasets = context, datasets

    def clone(self, actor: Actor, dataset_id: str, snapshot: str = "current") -> Dataset:
        """Start to create a dataset from a snapshot, and return it with its task.

        The copy belongs to the tenant of its source, and to the actor.

        Args:
            actor: who does it; the operator and the local user own nothing.
            dataset_id: the source.
            snapshot: the id of a snapshot, or ``current``.

        Raises:
            NotFound: there is no such dataset, or no such snapshot, or the actor must not learn of it.
            Forbidden: the actor may not copy the dataset or create datasets in its tenant, or snapshots are disabled.
            Conflict: the dataset's status does not allow clones.
        """
        source = self._datasets.open(actor, dataset_id, Action.DATASET_CLONE)
        tenant_id = self._datasets.subject(actor, dataset_id).tenant_id
        self._context.require(actor, Action.TENANT_CREATE_DATASET, TenantSubject(tenant_id))
        copy = source.clone(snapshot, wait=False)
        owner_id = None if actor.is_local or actor.via is Via.FILES else actor.user_id
        self._datasets.adopt(copy.id, tenant_id, owner_id)
        return copy
