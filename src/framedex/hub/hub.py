"""The hub: a workspace with users, who have roles in tenants and share datasets."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType

from framedex.access import Action, Actor, Role, Via
from framedex.api.workspace import Workspace
from framedex.hub.context import HubContext
from framedex.hub.copies import Copies
from framedex.hub.credentials import Credentials
from framedex.hub.datasets import Datasets
from framedex.hub.exports import HubExports
from framedex.hub.master_key import load_master_key
from framedex.hub.passwords import Passwords
from framedex.hub.providers import IdentityProvider, LocalProvider
from framedex.hub.sessions import Sessions
from framedex.hub.tasks import Tasks
from framedex.hub.tenants import Tenants
from framedex.hub.users import Users
from framedex.records import Profile
from framedex.storage.service_db import accounts, audit
from framedex.storage.service_db.database import DEFAULT_ID, open_service_db

KEPT_DAYS = 90
"""The number of days for which the audit is kept."""


class Hub:
    """A workspace with users: the rules of the service, usable without it; also a context manager.

    Users, sessions and keys are in ``service.db`` beside the catalog, which the first hub of a workspace makes. All
    methods take the actor on whose behalf they act: that of a session, of an API key, or the operator
    (:func:`framedex.access.operator_actor`).

    Args:
        workspace: the open workspace, which stays open.
        is_multi: whether there are many tenants, each with one admin or more; else a promotion to admin demotes the
            admin before.
        provider: where accounts live beside the database; by default nowhere.
        clock: returns the present time in UTC.

    Attributes:
        users: the accounts.
        tenants: organizations, tenants and members.
        datasets: datasets as users see them, and sharing.
        tasks: tasks of datasets.
        copies: copies of datasets.
        exports: exports of datasets, and their files.
        sessions: log-ins.
        credentials: API keys.

    Raises:
        WorkspaceError: the database cannot be used, or others can read it.
        MissingDependency: the extra ``http`` is not installed.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        is_multi: bool = False,
        provider: IdentityProvider | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        passwords, key = Passwords(), load_master_key(workspace.path)
        self._database = open_service_db(workspace.path)
        context = HubContext(workspace, self._database, passwords, key, is_single=not is_multi, clock=clock)
        self._context = context
        self.users = Users(context, provider or LocalProvider())
        self.tenants, self.datasets = Tenants(context), Datasets(context)
        self.tasks, self.copies = Tasks(context, self.datasets), Copies(context, self.datasets)
        self.exports = HubExports(context, self.datasets)
        self.sessions, self.credentials = Sessions(context), Credentials(context)

    def profile(self, actor: Actor) -> Profile:
        """Return the own account of an actor.

        Raises:
            NotAuthenticated: nobody is logged in.
        """
        self._context.require(actor, Action.OWN_ACCOUNT)
        assert actor.user_id is not None, "the actor is logged in"
        is_hub_user = actor.via in (Via.SESSION, Via.TOKEN)
        tenant_id = self.tenants.primary(actor) if is_hub_user else DEFAULT_ID
        row = None
        if is_hub_user:
            with self._database.read() as connection:
                row = accounts.find_user(connection, actor.user_id)
        return Profile(
            user_id=actor.user_id,
            username=actor.name if row is None else row.username,
            email=None if row is None else row.email,
            first_name=None if row is None else row.first_name,
            last_name=None if row is None else row.last_name,
            roles=sorted(actor.realm_roles),
            workspace_role=Role.ADMIN if row is None else actor.roles.get(tenant_id or ""),
            workspace_id=tenant_id,
            auth=actor.via,
            must_change_password=actor.password_is_temporary,
        )

    def derive(self, label: str, *parts: object) -> str:
        """Return the secret of a label and some parts, from the master key."""
        return self._context.key.derived(label, *parts)

    def sweep(self) -> None:
        """Delete rows that are not needed any more: ended sessions, old audit entries, homes of deleted datasets."""
        self.sessions.sweep()
        self.datasets.sweep()
        self.exports.sweep()
        with self._database.write() as connection:
            audit.delete_old(connection, self._context.clock() - timedelta(days=KEPT_DAYS))

    def close(self) -> None:
        """Close the database; the workspace stays open."""
        self._database.close()

    def __enter__(self) -> "Hub":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
