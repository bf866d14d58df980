"""Datasets of users: to whom they belong, who may see them, and with whom they are shared."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from framedex.access import Action, Actor, DatasetSubject, Role, TenantSubject, allowed, dataset_permissions, require
from framedex.api.dataset import Dataset
from framedex.api.workspace import Workspace
from framedex.core.ids import is_id
from framedex.errors import Error, Forbidden, InvalidInput, NotFound, TooManyAttempts
from framedex.hub.actors import own_id, present_actor
from framedex.hub.context import HubContext
from framedex.hub.deletions import delete_in_two_steps, finish_deletions
from framedex.hub.recent import Recent
from framedex.records import DatasetMember, DatasetRecord
from framedex.storage.datasets import Creation
from framedex.storage.manifest import has_manifest
from framedex.storage.service_db import accounts, audit, homes, tenants
from framedex.storage.service_db.database import DEFAULT_ID
from framedex.storage.service_db.homes import Home

_LIBRARY = Home(DEFAULT_ID)
"""The home of datasets that the library or the command line made."""
_NOT_FOUND = "Dataset not found"
_INVITATIONS, _PERIOD = 30, timedelta(hours=1)


class OpenedDataset(NamedTuple):
    """A dataset that an actor may use.

    Attributes:
        dataset: the dataset, in which the actor acts.
        record: its record at that moment; ``owned_by`` is the address of its owner, also where that changed.
        subject: the dataset as the subject of actions.
    """

    dataset: Dataset
    record: DatasetRecord
    subject: DatasetSubject

    def permissions(self, actor: Actor) -> list[Action]:
        """Return what an actor may do with the dataset."""
        return dataset_permissions(actor, self.subject)


class _Found(NamedTuple):
    """A dataset, with what the rules need of it."""

    dataset: Dataset
    record: DatasetRecord
    creation: Creation
    home: Home
    subject: DatasetSubject


class Datasets:
    """The datasets of a workspace as the users of a hub see them.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context
        self._recent = Recent[_Found](context.workspace._context.catalog, context.database)

    def close(self) -> None:
        """Close what looks for changes."""
        self._recent.close()

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
        return self.open_with_record(actor, dataset_id, action).dataset

    def open_with_record(self, actor: Actor, dataset_id: str, action: Action = Action.DATASET_VIEW) -> OpenedDataset:
        """Return a dataset with its record; arguments and errors are those of :meth:`open`."""
        found = self._find(actor, dataset_id)
        self._context.require(actor, action, found.subject, target=dataset_id)
        return OpenedDataset(found.dataset, _owned(found.record, found.home), found.subject)

    def subject(self, actor: Actor, dataset_id: str, *, is_own: bool = False) -> DatasetSubject:
        """Return a dataset as the subject of an action.

        Args:
            actor: who acts.
            dataset_id: the id of the dataset.
            is_own: whether the actor made the thing in the dataset that the action is about.

        Raises:
            NotFound: there is no such dataset.
        """
        return replace(self._find(actor, dataset_id).subject, is_own=is_own)

    def record(self, actor: Actor, dataset_id: str) -> DatasetRecord:
        """Return the record of a dataset; ``owned_by`` is the address of its owner, also where that changed.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: there is no such dataset, or the actor must not learn of it.
        """
        return self.open_with_record(actor, dataset_id).record

    def _find(self, actor: Actor, dataset_id: str) -> _Found:
        self._context.require(actor, Action.OWN_ACCOUNT)  # nobody learns anything without a log-in
        if not is_id(dataset_id):
            raise NotFound(_NOT_FOUND)
        key = actor.name, actor.user_id, own_id(actor), dataset_id
        found = self._recent.get(key, lambda: self._read(actor, dataset_id))
        return found._replace(dataset=copy(found.dataset))  # each caller starts tasks of its own

    def _read(self, actor: Actor, dataset_id: str) -> _Found:
        try:
            dataset, record, creation = self._acting_as(actor).find_dataset(dataset_id)
        except NotFound:
            raise NotFound(_NOT_FOUND) from None
        with self._context.database.read() as connection:
            home = homes.find_home(connection, dataset_id) or _unstored_home(connection, creation)
            subject = _subject(connection, actor, dataset_id, home)
        return _Found(dataset, record, creation, home, subject)

    def _acting_as(self, actor: Actor) -> Workspace:
        """Return the workspace as a handle that acts for an actor, and keeps the actor's account with new datasets."""
        return self._context.workspace.acting_as(actor.name, user_id=own_id(actor))

    def home(self, connection: Any, dataset_id: str) -> Home:
        """Return to whom a dataset belongs.

        Args:
            connection: of the service's database.
            dataset_id: the dataset.

        Raises:
            NotFound: it does not exist.
        """
        found = self._context.workspace.find_dataset(dataset_id)
        return homes.find_home(connection, dataset_id) or _unstored_home(connection, found.creation)

    def visible(self, actor: Actor) -> list[DatasetRecord]:
        """Return the datasets that the actor may view, of all tenants, the newest first.

        ``owned_by`` is the address of the owner, as in :meth:`record`.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
        """
        return [record for record, _ in self._visible(actor)]

    def permissions(self, actor: Actor) -> dict[str, list[Action]]:
        """Return what the actor may do with each dataset that the actor may view, by the id of the dataset.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
        """
        return {record.id: dataset_permissions(actor, subject) for record, subject in self._visible(actor)}

    def _visible(self, actor: Actor) -> list[tuple[DatasetRecord, DatasetSubject]]:
        """Return the datasets that the actor may view, each as a record and as the subject of actions."""
        self._context.require_log_in(actor)
        with self._context.database.read() as connection:
            all_homes = homes.homes(connection)
            grants = {} if actor.user_id is None else homes.grants_of(connection, actor.user_id)
        records = self._context.workspace.datasets(all_namespaces=True)
        if any(record.id not in all_homes for record in records):
            creations = self._context.workspace.creations()
            with self._context.database.read() as connection:
                all_homes = {**_unstored_homes(connection, creations), **all_homes}
        visible = []
        for record in records:
            home = all_homes.get(record.id, _LIBRARY)
            subject = DatasetSubject(home.tenant_id, home.owner_id, grants.get(record.id))
            if allowed(actor, Action.DATASET_VIEW, subject):
                visible.append((_owned(record, home), subject))
        return visible

    def create(
        self,
        actor: Actor,
        name: str,
        source: Any = None,
        *,
        wait: bool = False,
        tenant_id: str | None = None,
        **options: Any,
    ) -> Dataset:
        """Create a dataset that the actor owns and return it.

        Names are unique within a tenant. The dataset is in the namespace of its tenant and keeps the account of the
        actor. So if the process ends in the middle, it belongs to the tenant and the actor all the same.

        Args:
            actor: who does it; the operator and the local user own nothing.
            name: up to 255 characters, without slashes.
            source: of the media, as for :meth:`framedex.Workspace.create_dataset`; None for a draft.
            wait: return when the task is done; a dataset whose task fails stays, for a retry.
            tenant_id: the tenant; None for the one that the actor joined first.
            options: further arguments of :meth:`framedex.Workspace.create_dataset`.

        Raises:
            Forbidden: the actor may not create datasets in the tenant, or not from a folder of the server.
            InvalidInput: the name, the source or another argument cannot be used. No dataset is created.
            NotFound: the tenant does not exist.
            Conflict: a dataset of the tenant has that name.
            TaskFailed: *wait* is set, and the task failed.
        """
        with self._context.database.read() as connection:
            tenant_id = tenant_id or _primary(connection, actor)
            subject = TenantSubject(tenant_id, self._context.ingest_path_role)
            self._context.require(actor, Action.TENANT_CREATE_DATASET, subject, target=name)
            tenants.find_tenant(connection, tenant_id)
        if _is_on_server(source, options):
            self._context.require(actor, Action.TENANT_INGEST_PATH, subject, target=name)
        workspace = self._acting_as(actor).in_namespace("" if tenant_id == DEFAULT_ID else tenant_id)
        if source is None:
            dataset = workspace.create_draft(name)
        else:
            dataset = workspace.create_dataset(name, source, wait=False, **options)
        try:
            with self._context.change(actor, Action.TENANT_CREATE_DATASET, subject) as connection:
                _store_creation(connection, dataset.id, Home(tenant_id, own_id(actor)), actor.user_id)
        except BaseException:
            _discard(workspace, dataset)
            raise
        if wait and dataset.task is not None:
            dataset.task.wait()
        return dataset

    def delete(self, actor: Actor, dataset_id: str) -> None:
        """Delete a dataset, with its grants. The source files are not changed.

        If the process is killed in between, the next hub of the workspace finishes the deletion.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not delete it, or the settings do not allow deleting datasets.
            Conflict: a task of the dataset is running.
        """
        self.open(actor, dataset_id, Action.DATASET_DELETE)
        delete_in_two_steps(self._context, actor, dataset_id)

    def adopt(self, dataset_id: str, tenant_id: str, owner_id: str | None, *, actor: Actor | None = None) -> None:
        """Store to whom a new dataset belongs.

        Args:
            dataset_id: the dataset.
            tenant_id: the tenant.
            owner_id: the user who owns it; None for no owner.
            actor: who created it, for the audit; None for no entry.

        Raises:
            NotFound: the tenant or the user does not exist.
        """
        with self._context.database.write() as connection:
            tenants.find_tenant(connection, tenant_id)
            if owner_id is not None:
                accounts.find_user(connection, owner_id)
            if actor is None:
                homes.put_home(connection, dataset_id, tenant_id, owner_id)
            else:
                _store_creation(connection, dataset_id, Home(tenant_id, owner_id), actor.user_id)

    def share(self, actor: Actor, dataset_id: str, address: str, role: Role = Role.VIEWER) -> None:
        """Share a dataset with a user; again, to change the role.

        Args:
            actor: who does it.
            dataset_id: the dataset.
            address: the e-mail address or the username, whatever the case.
            role: viewer or editor.

        Raises:
            NotFound: there is no such dataset or user.
            Forbidden: the actor may not share the dataset, or the settings do not allow sharing.
            InvalidInput: the role cannot be granted, or the user owns the dataset.
            TooManyAttempts: the actor has invited 30 times within an hour.
        """
        with self._sharing(actor, dataset_id, address) as connection:
            if not self._context.workspace.settings.dataset_share_enabled:
                raise Forbidden("Dataset sharing is not enabled")
            if role not in (Role.VIEWER, Role.EDITOR):
                raise InvalidInput(f"a dataset is shared with a viewer or an editor, not {role!r}")
            _check_invitations(connection, own_id(actor))
            user = accounts.user_addressed(connection, address)
            if user is not None and _owns(connection, dataset_id, user.id):
                raise InvalidInput("The owner of a dataset has all rights already")
            if user is not None:
                homes.put_grant(connection, dataset_id, user.id, Role(role), own_id(actor))
            audit.insert_entry(
                connection,
                actor.user_id,
                f"dataset.share {role}",
                target=address if user is None else user.id,
                dataset_id=dataset_id,
                outcome="refused" if user is None else "done",
            )
        if user is None:
            raise NotFound("No registered account has this e-mail address")

    def unshare(self, actor: Actor, dataset_id: str, address: str) -> None:
        """Take back what a user may do with a dataset; this is allowed even where the settings forbid sharing.

        Raises:
            NotFound: there is no such dataset or user, or it is not shared with the user.
            Forbidden: the actor may not share the dataset.
            InvalidInput: the user owns the dataset.
        """
        with self._sharing(actor, dataset_id, address) as connection:
            user = accounts.user_addressed(connection, address)
            if user is not None and _owns(connection, dataset_id, user.id):
                raise InvalidInput("The owner of a dataset cannot be removed")
            if user is None or not homes.remove_grant(connection, dataset_id, user.id):
                raise NotFound("The dataset is not shared with this account")
            audit.insert_entry(connection, actor.user_id, "dataset.unshare", target=user.id, dataset_id=dataset_id)

    @contextmanager
    def _sharing(self, actor: Actor, dataset_id: str, address: str) -> Iterator[Any]:
        """Yield a connection in a transaction, in which the actor still may share a dataset."""
        found = self._find(actor, dataset_id)
        self._context.require(actor, Action.DATASET_SHARE, found.subject, target=address)
        with self._context.database.write() as connection:
            present = present_actor(connection, actor)
            home = homes.find_home(connection, dataset_id) or _unstored_home(connection, found.creation)
            require(present, Action.DATASET_SHARE, _subject(connection, present, dataset_id, home))
            yield connection

    def members(self, actor: Actor, dataset_id: str) -> list[DatasetMember]:
        """Return the owner of a dataset, and then those with whom it is shared.

        Raises:
            NotFound: there is no such dataset.
        """
        self._context.require(actor, Action.DATASET_VIEW, self.subject(actor, dataset_id))
        with self._context.database.read() as connection:
            return homes.dataset_members(connection, dataset_id)

    def sweep(self) -> int:
        """Forget to whom datasets belonged that do not exist any more; return their number.

        Deletions and creations whose processes were killed are finished.
        """
        finish_deletions(self._context)
        self.finish_creations()
        workspace = self._context.workspace
        with self._context.database.read() as connection:
            stored = homes.stored_datasets(connection)  # before the list of datasets, which new ones may join
        existing = {record.id for record in workspace.datasets(all_namespaces=True)}
        # The folder of a dataset that only the catalog has lost is still there.
        gone = [each for each in stored - existing if not has_manifest(workspace.path / "datasets" / each)]
        with self._context.database.write() as connection:
            for dataset_id in gone:
                homes.forget_dataset(connection, dataset_id)
        return len(gone)

    def finish_creations(self) -> None:
        """Store to whom datasets belong whose creation, or copy, was interrupted before that was stored."""
        creations = self._context.workspace.creations()
        with self._context.database.read() as connection:
            missing = creations.keys() - homes.homes(connection).keys()
            unstored = _unstored_homes(connection, {each: creations[each] for each in missing})
        if not unstored:
            return
        with self._context.database.write() as connection:
            for dataset_id, home in unstored.items():
                if home.owner_id is not None:
                    _store_creation(connection, dataset_id, home, home.owner_id)
                elif homes.find_home(connection, dataset_id) is None:
                    homes.put_home(connection, dataset_id, home.tenant_id, None)


def _check_invitations(connection: Any, user_id: str | None) -> None:
    """Check that a user does not invite too often, because the answers say who has an account.

    Raises:
        TooManyAttempts: the user does.
    """
    if user_id is None:
        return
    count, age = audit.recent(connection, user_id, "dataset.share", _PERIOD)
    if count >= _INVITATIONS:
        seconds = math.ceil((_PERIOD - age).total_seconds())
        raise TooManyAttempts(f"Too many invitations; try again in {seconds} s", seconds)


def _primary(connection: Any, actor: Actor) -> str:
    """Return the tenant in which an actor creates datasets; empty for a user who is no member."""
    user_id = own_id(actor)
    return DEFAULT_ID if user_id is None else tenants.primary_tenant(connection, user_id) or ""


def _is_on_server(source: Any, options: Mapping[str, Any]) -> bool:
    """Return whether files of the server are read, or may be: those that a table names, or a file of boxes."""
    is_bucket = isinstance(source, str) and source.startswith("s3://")
    return options.get("boxes") is not None or not (source is None or is_bucket)


def _discard(workspace: Workspace, dataset: Dataset) -> None:
    """Delete a dataset whose creation has just begun."""
    with suppress(Error):
        if dataset.task is not None:
            dataset.task.abort()
            with suppress(Error):
                dataset.task.wait()
        workspace.delete_dataset(dataset.id)


def _subject(connection: Any, actor: Actor, dataset_id: str, home: Home) -> DatasetSubject:
    has_grants = own_id(actor) is not None
    grant = homes.grant_of(connection, dataset_id, str(actor.user_id)) if has_grants else None
    return DatasetSubject(home.tenant_id, home.owner_id, grant)


def _unstored_home(connection: Any, creation: Creation) -> Home:
    """Return the home of a dataset without a stored one, as :func:`_unstored_homes` does; by default the library's."""
    return _unstored_homes(connection, {"": creation}).get("", _LIBRARY)


def _unstored_homes(connection: Any, creations: Mapping[str, Creation]) -> dict[str, Home]:
    """Return the homes of datasets that have no stored one, by id, without those that the library made.

    Such a dataset belongs to the tenant of its namespace, or else to the default one, and to the user for whom it was
    created, as long as that user may create datasets there.
    """
    if not any(namespace or creator_id for namespace, creator_id in creations.values()):
        return {}
    found, tenant_ids = {}, {row.id for row in tenants.list_tenants(connection)}
    for dataset_id, (namespace, creator_id) in creations.items():
        is_of_tenant = namespace in tenant_ids
        if not is_of_tenant and creator_id is None:
            continue
        home = Home(namespace if is_of_tenant else DEFAULT_ID)
        roles = {} if creator_id is None else tenants.roles_of(connection, creator_id)
        if roles.get(home.tenant_id) in (Role.EDITOR, Role.ADMIN):
            user = accounts.find_user(connection, str(creator_id))
            home = Home(home.tenant_id, user.id, user.email or user.username)
        found[dataset_id] = home
    return found


def _store_creation(connection: Any, dataset_id: str, home: Home, actor_id: str | None) -> None:
    """Store to whom a new dataset belongs, and note its creation in the audit, unless that has been done."""
    is_new = homes.find_home(connection, dataset_id) is None
    homes.put_home(connection, dataset_id, home.tenant_id, home.owner_id)
    if is_new:
        audit.insert_entry(connection, actor_id, "dataset.create", dataset_id=dataset_id)


def _owns(connection: Any, dataset_id: str, user_id: str) -> bool:
    home = homes.find_home(connection, dataset_id)
    return home is not None and home.owner_id == user_id


def _owned(record: DatasetRecord, home: Home) -> DatasetRecord:
    """Return the record of a dataset with the address of its present owner."""
    if home.owner is None:
        return record
    return record.model_copy(update={"owned_by": home.owner})
