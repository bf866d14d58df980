"""The hub: a workspace with users, who have roles in tenants and share datasets."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType

from framedex.api.workspace import Workspace
from framedex.hub.context import HubContext
from framedex.hub.credentials import Credentials
from framedex.hub.datasets import Datasets
from framedex.hub.master_key import load_master_key
from framedex.hub.passwords import Passwords
from framedex.hub.providers import IdentityProvider, LocalProvider
from framedex.hub.sessions import Sessions
from framedex.hub.tenants import Tenants
from framedex.hub.users import Users
from framedex.storage.service_db import audit
from framedex.storage.service_db.database import open_service_db

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
        self.sessions, self.credentials = Sessions(context), Credentials(context)

    def sweep(self) -> None:
        """Delete rows that are not needed any more: ended sessions, old audit entries, homes of deleted datasets."""
        self.sessions.sweep()
        self.datasets.sweep()
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
