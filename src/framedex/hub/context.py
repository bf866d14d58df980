"""The open parts of a hub, which its areas share."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from framedex.access import Action, Actor, Subject, allowed, require
from framedex.api.workspace import Workspace
from framedex.hub.master_key import MasterKey
from framedex.hub.passwords import Passwords
from framedex.storage.database import Database
from framedex.storage.service_db import audit


@dataclass(frozen=True)
class HubContext:
    """The open parts of a hub.

    Attributes:
        workspace: the workspace with the datasets.
        database: the database of the service.
        passwords: hashes of passwords.
        key: the master key.
        is_single: whether each tenant has one admin: a promotion demotes the others.
        clock: returns the present time in UTC.
    """

    workspace: Workspace
    database: Database
    passwords: Passwords
    key: MasterKey
    is_single: bool
    clock: Callable[[], datetime]

    def require(self, actor: Actor, action: Action, subject: Subject = None, *, target: str | None = None) -> None:
        """Check that an actor may do something; a refusal is noted in the audit.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: the actor must not learn that the subject exists.
            Forbidden: the actor may not do it.
        """
        if not allowed(actor, action, subject) and actor.user_id is not None and action in _AUDITED:
            with self.database.write() as connection:
                audit.insert_entry(connection, actor.user_id, action, target=target, outcome="refused")
        require(actor, action, subject)


_AUDITED: Collection[Action] = (
    Action.USERS_WRITE,
    Action.TENANT_EDIT_ROLES,
    Action.DATASET_SHARE,
    Action.DATASET_DELETE,
    Action.ADMIN_SETTINGS,
)
