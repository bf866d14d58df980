"""The part of :class:`framedex.Workspace` that differs between handles: the user, the namespace and the settings."""

from typing import Self, Unpack

from framedex.core.naming import check_namespace, check_user
from framedex.operations.context import Context
from framedex.settings import ChangeableSettings, Settings
from framedex.storage import datasets


class WorkspaceHandle:
    """A way into an open workspace, for one user and one namespace."""

    _context: Context
    _is_owner: bool

    @property
    def user(self) -> str:
        """The user for whom this handle acts: the name in ``created_by`` of what it starts.

        Examples:
            >>> ws.user
            'ann@example.org'
        """
        return self._context.settings.user

    @property
    def namespace(self) -> str:
        """The namespace in which this handle creates datasets and finds them by name; empty for the default.

        Examples:
            >>> ws.in_namespace("team a").namespace
            'team a'
        """
        return self._context.namespace

    @property
    def read_only(self) -> bool:
        """True if the workspace refuses changes: it was opened for reading, or before a fork.

        Examples:
            >>> framedex.Workspace("~/framedex", read_only=True).read_only
            True
        """
        return self._context.catalog.read_only

    @property
    def settings(self) -> Settings:
        """The settings at this moment. :meth:`change_settings` changes some of them.

        Examples:
            >>> ws.settings.delete_dataset_enabled
            True
        """
        return self._context.settings

    def change_settings(self, **values: Unpack[ChangeableSettings]) -> Settings:
        """Change settings of the open workspace, for all its handles in this process, and return all settings.

        Later calls obey the new values at once; tasks in progress continue. Nothing is stored: the next process starts
        with its environment again.

        Args:
            values: any of ``add_media_enabled, dataset_snapshots_enabled, dataset_share_enabled,
                delete_dataset_enabled`` (a boolean, or its text) and ``log_level`` (a level of Python's logging, for
                the logger ``framedex``). None restores the value at opening.

        Raises:
            InvalidInput: another setting is named, or a value does not fit; nothing is changed.

        Examples:
            >>> ws.change_settings(delete_dataset_enabled=False).delete_dataset_enabled
            False
            >>> ws.delete_dataset("pets")
            Traceback (most recent call last):
                ...
            framedex.errors.Forbidden: Delete dataset feature is not enabled
        """
        self._context.live_settings.change(values)
        return self.settings

    def acting_as(self, user: str, *, user_id: str | None = None) -> Self:
        """Return a handle of this open workspace that acts for another user.

        Datasets, tasks, exports, snapshots, tags, fields and decisions that are made through it name that user. A
        retried task keeps the user who started it. The handle shares everything else with this one. Closing it closes
        nothing.

        Args:
            user: an e-mail address or another name, up to 255 printable characters.
            user_id: the id of the user's account in a hub, which datasets keep; None for no account.

        Raises:
            InvalidInput: the name cannot be used.

        Examples:
            >>> bob = ws.acting_as("bob@example.org")
            >>> bob.dataset("pets").create_tag("mine").created_by
            'bob@example.org'
        """
        return self._handle(self._context.acting_as(check_user(user), creator_id=user_id))

    def in_namespace(self, namespace: str) -> Self:
        """Return a handle of this open workspace for the datasets of a namespace.

        Names of datasets are unique within a namespace. The handle creates datasets in its namespace, lists only these,
        and finds only these by name; it finds any dataset by id. Copies of a dataset stay in the dataset's namespace.
        Tasks, :meth:`vacuum`, :meth:`check` and :meth:`disk_usage` are about the whole workspace. Closing the handle
        closes nothing.

        Args:
            namespace: a name of up to 255 printable characters; empty for the default namespace.

        Raises:
            InvalidInput: the name cannot be used.

        Examples:
            >>> team = ws.in_namespace("team a")
            >>> draft = team.create_draft("pets")
            >>> [(each.display_name, each.n_images) for each in team.datasets()]
            [('pets', 0)]
        """
        return self._handle(self._context.in_namespace(check_namespace(namespace)))

    def namespaces(self) -> list[str]:
        """Return the namespaces that have datasets, sorted.

        Examples:
            >>> draft = ws.in_namespace("team a").create_draft("pets")
            >>> ws.namespaces()
            ['', 'team a']
        """
        with self._context.catalog.read() as connection:
            return datasets.list_namespaces(connection)

    def _handle(self, context: Context) -> Self:
        handle = type(self).__new__(type(self))
        handle._context, handle._is_owner = context, False
        return handle
