"""The hub: a workspace with users, who have roles in tenants and share datasets."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from framedex.access import Action, Actor, Role, Subject, Via
from framedex.api.workspace import Workspace
from framedex.errors import WorkspaceError
from framedex.hub.admin_settings import AdminSettings
from framedex.hub.alert_calls import AlertCalls
from framedex.hub.alert_targets import AlertTarget
from framedex.hub.context import HubContext
from framedex.hub.copies import Copies
from framedex.hub.credentials import Credentials
from framedex.hub.datasets import Datasets
from framedex.hub.deletions import finish_deletions
from framedex.hub.events import Events
from framedex.hub.exports import HubExports
from framedex.hub.external import ExternalAccounts
from framedex.hub.feed import Feed
from framedex.hub.identities import Identities
from framedex.hub.master_key import load_master_key
from framedex.hub.metadata import Metadata
from framedex.hub.notifications import Notifications
from framedex.hub.own_sessions import OwnSessions
from framedex.hub.passwords import Passwords
from framedex.hub.providers import IdentityProvider, LocalProvider
from framedex.hub.results import Results
from framedex.hub.sessions import Sessions
from framedex.hub.tasks import Tasks
from framedex.hub.tenants import Tenants
from framedex.hub.trail import Trail
from framedex.hub.users import Users
from framedex.hub.views import SavedViews
from framedex.records import AuditEntry, Profile
from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db import accounts
from framedex.storage.service_db.database import DEFAULT_ID, open_service_db


class Hub:
    """A workspace with users: the rules of the service, usable without it; also a context manager.

    Users, sessions and keys are in ``service.db`` beside the catalog, which the first hub of a workspace makes. All
    methods take the actor on whose behalf they act: that of a session, of an API key, or the operator
    (:func:`framedex.access.operator_actor`). Of a workspace that was opened for reading the users can be read, and
    present sessions and keys work; one without users gets none, and stays as it is.

    Args:
        workspace: the open workspace, which stays open.
        is_multi: whether there are many tenants, each with one admin or more; else a promotion to admin demotes the
            admin before. None for the setting ``multi_workspace``.
        provider: where accounts live beside the database; by default nowhere.
        ingest_path_role: the least role, editor or admin, with which members create datasets from folders of the
            server.
        on_alert: receivers of alerts beside the users.
        clock: returns the present time in UTC.

    Attributes:
        users: the accounts.
        tenants: organizations, tenants and members.
        datasets: datasets as users see them, and sharing.
        tasks: tasks of datasets.
        copies: clones and enriched copies of datasets.
        metadata: custom fields in two steps.
        exports: exports of datasets, and their files.
        views: saved views of datasets.
        notifications: what users were notified of.
        calls: passes alerts to receivers beside the users.
        feed: delivers alerts, and wakes those who listen for notifications.
        sessions: log-ins.
        credentials: API keys.
        external: accounts of people whom an identity provider knows.
        identities: ids of accounts at identity providers.
        admin_settings: settings that change while the hub is open.
        trail: the audit.
        results: results and clean-up plans that are kept for users.
        events: what changes, for listeners.

    Raises:
        WorkspaceError: the database cannot be used, or others can read it.
        MissingDependency: the extra ``http`` is not installed.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        is_multi: bool | None = None,
        provider: IdentityProvider | None = None,
        ingest_path_role: Role = Role.ADMIN,
        on_alert: Sequence[AlertTarget] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        passwords, self._temporary = Passwords(), _folder_without_users(workspace)
        folder = workspace.path if self._temporary is None else Path(self._temporary.name)
        key = load_master_key(folder, read_only=workspace.read_only)
        self._database = open_service_db(folder, read_only=workspace.read_only)
        is_single = not (workspace.settings.multi_workspace if is_multi is None else is_multi)
        context = HubContext(workspace, self._database, passwords, key, is_single, Role(ingest_path_role), clock)
        self._context = context
        self.users = Users(context, provider or LocalProvider())
        self.tenants, self.datasets = Tenants(context), Datasets(context)
        self.tasks, self.copies = Tasks(context, self.datasets), Copies(context, self.datasets)
        self.metadata = Metadata(context, self.datasets)
        self.exports = HubExports(context, self.datasets)
        self.trail = Trail(context)
        self.views = SavedViews(context, self.datasets, self.trail)
        self.calls = AlertCalls(context, on_alert)
        self.notifications = Notifications(context, self.datasets, self.calls)
        self.feed = Feed(context, self.notifications)
        self.sessions, self.credentials = Sessions(context), Credentials(context)
        self.own_sessions = OwnSessions(context)
        self.external = ExternalAccounts(context)
        self.identities, self.admin_settings = Identities(context), AdminSettings(context)
        self.results, self.events = Results(), Events(context, self.datasets, self.notifications)
        if not workspace.read_only:
            with suppress(WorkspaceError):  # a full disk; a sweep tries again
                finish_deletions(context)
                self.users.finish_deletions()
                self.datasets.finish_creations()

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
            read_only=self._context.workspace.read_only,
        )

    def derive(self, label: str, *parts: object) -> str:
        """Return the secret of a label and some parts, from the master key."""
        return self._context.key.derived(label, *parts)

    def deriver(self, label: str, *parts: object) -> Callable[[object], str]:
        """Return a function that returns the secret of a label, some parts, and a last one, from the master key."""
        return self._context.key.deriver(label, *parts)

    def audit(self, actor: Actor, *, limit: int = 100, offset: int = 0) -> list[AuditEntry]:
        """Return a page of what users did that matters for security, the newest first.

        Args:
            actor: who asks.
            limit: of the page, 1 to 1,000.
            offset: of the page.

        Raises:
            Forbidden: the actor is no admin of the default tenant.
            InvalidInput: the limit or the offset is out of range.
        """
        return self.trail.page(actor, limit=limit, offset=offset).entries

    def check(self, actor: Actor, action: Action, subject: Subject = None) -> None:
        """Check that an actor may do something; the audit notes refusals of what matters for security.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: the actor must not learn that the subject exists.
            Forbidden: the actor may not do it.
        """
        self._context.require(actor, action, subject)

    def sweep(self) -> None:
        """Delete rows that are not needed any more: ended sessions, old audit entries, homes of deleted datasets.

        Users are notified of alerts that still wait. Deletions and creations of datasets whose process ended are
        finished. Settings that another process stored hold here, too.
        """
        self.admin_settings.refresh()
        self.sessions.sweep()
        self.external.sweep()
        self.users.finish_deletions()
        self.datasets.sweep()
        self.metadata.sweep()
        self.exports.sweep()
        self.notifications.deliver()
        self.calls.sweep()
        self.trail.sweep()

    def close(self) -> None:
        """Close the database; the workspace stays open."""
        self.feed.close()
        self.calls.close()
        self.events.close()
        self.datasets.close()
        self._database.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> "Hub":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _folder_without_users(workspace: Workspace) -> TemporaryDirectory[str] | None:
    """Return a folder with the database of no users, for a workspace that must not change and has none; else None."""
    if not workspace.read_only or (workspace.path / SERVICE_DB_NAME).exists():
        return None
    folder = TemporaryDirectory(prefix="framedex-hub-")
    load_master_key(Path(folder.name))
    open_service_db(Path(folder.name)).close()
    return folder
