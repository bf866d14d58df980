"""Datasets of users: to whom they belong, who may see them, and with whom they are shared."""

from framedex.access import Action, Actor, DatasetSubject, Role, allowed
from framedex.api.dataset import Dataset
from framedex.core.ids import is_dataset_id
from framedex.errors import InvalidInput, NotFound
from framedex.hub.context import HubContext
from framedex.records import DatasetMember, DatasetRecord
from framedex.storage.service_db import accounts, audit, homes, tenants
from framedex.storage.service_db.database import DEFAULT_ID

_NOT_FOUND = "Dataset not found"


class Datasets:
    """The datasets of a workspace as the users of a hub see them.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def open(self, actor: Actor, dataset_id: str, action: Action = Action.DATASET_VIEW) -> Dataset:
        """Return a dataset, in which the actor acts.

        Args:
            actor: who asks.
            dataset_id: the id; names find nothing.
            action: what is to be done with it.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not do it.
        """
        dataset, subject = self._find(actor, dataset_id)
        self._context.require(actor, action, subject, target=dataset_id)
        return dataset

    def subject(self, actor: Actor, dataset_id: str, *, is_own: bool = False) -> DatasetSubject:
        """Return a dataset as the subject of an action.

        Args:
            actor: who acts.
            dataset_id: the id of the dataset.
            is_own: whether the actor made the thing in the dataset that the action is about.

        Raises:
            NotFound: there is no such dataset.
        """
        _, subject = self._find(actor, dataset_id)
        return DatasetSubject(subject.tenant_id, subject.owner_id, subject.grant, is_own)

    def _find(self, actor: Actor, dataset_id: str) -> tuple[Dataset, DatasetSubject]:
        self._context.require(actor, Action.OWN_ACCOUNT)  # nobody learns anything without a log-in
        if not is_dataset_id(dataset_id):
            raise NotFound(_NOT_FOUND)
        try:
            dataset = self._context.workspace.acting_as(actor.name).dataset(dataset_id)
        except NotFound:
            raise NotFound(_NOT_FOUND) from None
        if dataset.id != dataset_id:  # a name in the form of an id
            raise NotFound(_NOT_FOUND)
        with self._context.database.read() as connection:
            tenant_id, owner_id = homes.home_of(connection, dataset_id)
            grant = None if actor.user_id is None else homes.grant_of(connection, dataset_id, actor.user_id)
        return dataset, DatasetSubject(tenant_id, owner_id, grant)

    def visible(self, actor: Actor) -> list[DatasetRecord]:
        """Return the datasets that the actor may view, of all tenants, the newest first.

        Raises:
            NotAuthenticated: nobody is logged in.
        """
        self._context.require(actor, Action.OWN_ACCOUNT)
        with self._context.database.read() as connection:
            all_homes = homes.homes(connection)
            grants = {} if actor.user_id is None else homes.grants_of(connection, actor.user_id)
        records = self._context.workspace.datasets(all_namespaces=True)
        return [
            record
            for record in records
            if allowed(
                actor,
                Action.DATASET_VIEW,
                DatasetSubject(*all_homes.get(record.id, (DEFAULT_ID, None)), grants.get(record.id)),
            )
        ]

    def adopt(self, dataset_id: str, tenant_id: str, owner_id: str | None) -> None:
        """Store to whom a new dataset belongs.

        Raises:
            NotFound: the tenant does not exist.
        """
        with self._context.database.write() as connection:
            tenants.find_tenant(connection, tenant_id)
            homes.put_home(connection, dataset_id, tenant_id, owner_id)

    def share(self, actor: Actor, dataset_id: str, address: str, role: Role = Role.VIEWER) -> None:
        """Share a dataset with a user; again, to change the role.

        Args:
            actor: who does it.
            dataset_id: the dataset.
            address: the e-mail address or the username, whatever the case.
            role: viewer or editor.

        Raises:
            NotFound: there is no such dataset or user.
            Forbidden: the actor may not share the dataset.
            InvalidInput: the role cannot be granted, or the user owns the dataset.
        """
        self._context.require(actor, Action.DATASET_SHARE, self.subject(actor, dataset_id), target=address)
        if role not in (Role.VIEWER, Role.EDITOR):
            raise InvalidInput(f"a dataset is shared with a viewer or an editor, not {role!r}")
        with self._context.database.write() as connection:
            user = accounts.user_addressed(connection, address)
            if user is None:
                raise NotFound("No registered account has this e-mail address")
            if user.id == homes.home_of(connection, dataset_id)[1]:
                raise InvalidInput("The owner of a dataset has all rights already")
            homes.put_grant(connection, dataset_id, user.id, Role(role), actor.user_id)
            audit.insert_entry(
                connection, actor.user_id, f"dataset.share {role}", target=user.id, dataset_id=dataset_id
            )

    def unshare(self, actor: Actor, dataset_id: str, address: str) -> None:
        """Take back what a user may do with a dataset.

        Raises:
            NotFound: there is no such dataset or user, or it is not shared with the user.
            Forbidden: the actor may not share the dataset.
            InvalidInput: the user owns the dataset.
        """
        self._context.require(actor, Action.DATASET_SHARE, self.subject(actor, dataset_id), target=address)
        with self._context.database.write() as connection:
            user = accounts.user_addressed(connection, address)
            if user is not None and user.id == homes.home_of(connection, dataset_id)[1]:
                raise InvalidInput("The owner of a dataset cannot be removed")
            if user is None or not homes.remove_grant(connection, dataset_id, user.id):
                raise NotFound("The dataset is not shared with this account")
            audit.insert_entry(connection, actor.user_id, "dataset.unshare", target=user.id, dataset_id=dataset_id)

    def members(self, actor: Actor, dataset_id: str) -> list[DatasetMember]:
        """Return the owner of a dataset, and then those with whom it is shared.

        Raises:
            NotFound: there is no such dataset.
        """
        self._context.require(actor, Action.DATASET_VIEW, self.subject(actor, dataset_id))
        with self._context.database.read() as connection:
            return homes.dataset_members(connection, dataset_id)

    def sweep(self) -> int:
        """Forget to whom datasets belonged that do not exist any more; return their number."""
        existing = [record.id for record in self._context.workspace.datasets(all_namespaces=True)]
        with self._context.database.write() as connection:
            return homes.forget_datasets(connection, existing)
