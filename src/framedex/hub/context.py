"""The open parts of a hub, which its areas share."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from framedex.access import Action, Actor, Role, Subject, allowed, require
from framedex.api.workspace import Workspace
from framedex.errors import Forbidden
from framedex.hub.actors import present_actor
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
        ingest_path_role: the least role with which members create datasets from folders of the server.
        clock: returns the present time in UTC.
    """

    workspace: Workspace
    database: Database
    passwords: Passwords
    key: MasterKey
    is_single: bool
    ingest_path_role: Role
    clock: Callable[[], datetime]

    def require(self, actor: Actor, action: Action, subject: Subject = None, *, target: str | None = None) -> None:
        """Check that an actor may do something; a refusal is noted in the audit.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: the actor must not learn that the subject exists.
            Forbidden: the actor may not do it.
        """
        is_noted = actor.user_id is not None and action in _AUDITED and not self.database.read_only
        if is_noted and not allowed(actor, action, subject):
            with self.database.write() as connection:
                audit.insert_entry(connection, actor.user_id, action, target=target, outcome="refused")
        require(actor, action, subject)

    def require_log_in(self, actor: Actor) -> None:
        """Check that somebody is logged in, who has no password to change before anything else.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password is temporary.
        """
        require(actor, Action.OWN_ACCOUNT)
        if actor.password_is_temporary:
            raise Forbidden("Password change required")

    @contextmanager
    def change(
        self,
        actor: Actor,
        action: Action,
        subject: Subject | Callable[[Any], Subject] = None,
        *,
        target: str | None = None,
    ) -> Iterator[Any]:
        """Yield a connection in a transaction, in which the actor still may do something.

        Args:
            actor: who does it.
            action: what is done.
            subject: what it is about, or a function that returns it as it is in the transaction.
            target: what the audit notes of a refusal.

        Raises:
            NotAuthenticated: nobody is logged in, or the actor was deleted or disabled meanwhile.
            NotFound: the actor must not learn that the subject exists.
            Forbidden: the actor may not do it, or not any more.
        """
        if callable(subject):
            with self.database.read() as connection:
                before = subject(connection)
        else:
            before = subject
        self.require(actor, action, before, target=target)
        with self.database.write() as connection:
            present = present_actor(connection, actor)
            require(present, action, subject(connection) if callable(subject) else subject)
            yield connection


_AUDITED: Collection[Action] = (
    Action.USERS_WRITE,
    Action.TENANT_EDIT_ROLES,
    Action.DATASET_SHARE,
    Action.DATASET_DELETE,
    Action.ADMIN_SETTINGS,
)
