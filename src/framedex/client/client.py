"""The client of a service."""

import os
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from framedex.api.dataset_table import datasets_html
from framedex.api.record_list import RecordList
from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.dataset import ClientDataset, local_files, send_files
from framedex.client.notifications import ClientNotifications
from framedex.client.parts import dataset_record
from framedex.client.people import ClientAdminSettings, ClientTenants, ClientUsers
from framedex.client.work import ClientTask
from framedex.core.ids import is_id
from framedex.errors import NotFound
from framedex.records import (
    AuditPage,
    DatasetRecord,
    Profile,
    Relocation,
    SourcePreview,
    SourceState,
    TaskFilters,
    TaskPage,
)

if TYPE_CHECKING:  # it would load engines
    from framedex.operations.task_pages import TaskSearch

_BUCKET = "s3://"


class Client:
    """A client of a Framedex service, with the names of :class:`framedex.Workspace`; also a context manager.

    A script that works with a workspace works with a service after one change::

        ws = framedex.Workspace("~/framedex")
        ws = framedex.Client("https://images.example.com", key, secret)

    Threads may share a client. Errors are those of the library.

    Args:
        url: the address of the service.
        key: the API key; None where the service needs no log-in.
        secret: the secret of the key.
        timeout_s: the number of seconds to wait for an answer.
        transport: what carries requests in place of the network, as for :class:`httpx2.Client`.

    Raises:
        InvalidInput: the URL, the key or the secret cannot be used, or only one of key and secret is given.
        MissingDependency: the extra ``client`` is not installed.

    Examples:
        >>> with framedex.Client(url, key, secret) as ws:
        ...     ws.dataset("pets").count()
        33
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        secret: str | None = None,
        *,
        timeout_s: float = 120.0,
        transport: Any = None,
    ) -> None:
        self._connection = Connection(url, key, secret, timeout_s=timeout_s, transport=transport)

    @property
    def me(self) -> Profile:
        """The account for which the client acts.

        Raises:
            NotAuthenticated: the key is not valid.
            Unavailable: the service cannot be reached.

        Examples:
            >>> client.me.username, client.me.workspace_role
            ('ann', 'admin')
        """
        return Profile.model_validate(self._connection.json(calls.ME))

    @property
    def notifications(self) -> ClientNotifications:
        """The notifications of the user: pages, marks of what was read, and a stream.

        Examples:
            >>> client.notifications.unread_count()
            0
        """
        return ClientNotifications(self._connection)

    @property
    def user(self) -> str:
        """The user for whom the client acts.

        Examples:
            >>> client.user
            'ann@example.org'
        """
        me = self.me
        return me.email or me.username

    def create_dataset(self, name: str, source: str | os.PathLike[str], wait: bool = True) -> ClientDataset:
        """Create a dataset; see :meth:`framedex.Workspace.create_dataset`.

        Args:
            name: up to 255 characters, without slashes; unique among the datasets of the workspace.
            source: a folder on this machine, whose media are sent; or a folder or manifest in a bucket, ``s3://…``.
            wait: return when the task is done; else at once, with the task as ``dataset.task``.

        Raises:
            InvalidInput: the name or the source cannot be used. No dataset is created.
            Conflict: the name is taken.
            Forbidden: the user may not create datasets.
            TaskFailed: another error occurred.

        Examples:
            >>> client.create_dataset("more", "new")
            <framedex.ClientDataset 'more': 3 images, READY>
        """
        if str(source).startswith(_BUCKET):
            answer = self._connection.send(
                calls.CREATE_FROM_BUCKET, form={"dataset_name": name, "bucket_path": str(source)}
            )
            dataset = ClientDataset(self._connection, answer.json()["dataset_id"])
        else:
            files = local_files(source)
            dataset = self.create_draft(name)
            try:
                send_files(self._connection, dataset.id, files)
            except BaseException:
                dataset._discard()
                raise
        dataset.task = dataset._started(None, wait=wait)
        return dataset

    def create_draft(self, name: str) -> ClientDataset:
        """Create an empty dataset in status DRAFT; see :meth:`framedex.Workspace.create_draft`.

        Examples:
            >>> print(client.create_draft("inbox").info.status_new)
            DRAFT
        """
        answer = self._connection.json(calls.NEW_DRAFT, query={"dataset_name": name})
        return ClientDataset(self._connection, answer["dataset_id"])

    def dataset(self, name_or_id: str) -> ClientDataset:
        """Return a dataset that the user may view, by its name or its id.

        Raises:
            NotFound: there is no such dataset, or the user may not view it.

        Examples:
            >>> client.dataset("pets").where(vql.labels("dog")).count()
            7
        """
        if is_id(name_or_id):
            return ClientDataset(self._connection, self._connection.json(calls.DATASET, dataset_id=name_or_id)["id"])
        found = next((each for each in self.datasets() if each.display_name == name_or_id), None)
        if found is None:
            raise NotFound(f"no dataset {name_or_id!r} in {self._connection.url}")
        return ClientDataset(self._connection, found.id)

    def datasets(self) -> list[DatasetRecord]:
        """Return the records of the datasets that the user may view, newest first.

        Examples:
            >>> [(each.display_name, each.n_images) for each in client.datasets()]
            [('new', 3), ('pets', 31)]
        """
        return RecordList(dataset_record(each) for each in self._connection.json(calls.DATASETS))

    def delete_dataset(self, name_or_id: str) -> None:
        """Delete a dataset with all data that the service stores for it; the source files are not changed.

        Raises:
            Forbidden: the user or the settings do not allow it.
            NotFound: the dataset does not exist.
            Conflict: a task of the dataset is running.

        Examples:
            >>> client.delete_dataset("new")
            >>> client.dataset("new")
            Traceback (most recent call last):
                ...
            framedex.errors.NotFound: no dataset 'new' in http://127.0.0.1:...
        """
        self._connection.json(calls.DELETE_DATASET, dataset_id=self.dataset(name_or_id).id)

    def tasks(self, **query: Unpack["TaskSearch"]) -> TaskPage:
        """Return a page of tasks, newest first; see :meth:`framedex.Workspace.tasks`.

        Examples:
            >>> for each in client.tasks(dataset_name="pets").tasks:
            ...     print(each.task_type, each.status)
            MAP COMPLETED
            CUSTOM_METADATA COMPLETED
            DATASET_CREATION COMPLETED
        """
        named = {"task_status" if name == "status" else name: value for name, value in query.items()}
        return TaskPage.model_validate(self._connection.json(calls.TASKS, query=named))

    def task_filters(self, start_time_from: Any = None, start_time_to: Any = None) -> TaskFilters:
        """Return the values that occur in the tasks of a period; see :meth:`framedex.Workspace.task_filters`.

        Examples:
            >>> client.task_filters().task_types
            ['CUSTOM_METADATA', 'DATASET_CREATION', 'MAP']
        """
        query = {"start_time_from": _time(start_time_from), "start_time_to": _time(start_time_to)}
        return TaskFilters.model_validate(self._connection.json(calls.TASK_FILTERS, query=query))

    def task(self, task_id: str) -> ClientTask:
        """Return a task, for inspection, waiting, aborting or retrying.

        Raises:
            NotFound: the task does not exist.

        Examples:
            >>> client.task(ds.last_task.task_id)
            <framedex.ClientTask MAP COMPLETED: ...>
        """
        task = ClientTask(self._connection, task_id)
        _ = task.record  # raises if there is no such task
        return task

    @property
    def users(self) -> ClientUsers:
        """The user accounts of the service.

        Examples:
            >>> client.users.find("ann").email
            Traceback (most recent call last):
                ...
            AttributeError: 'User' object has no attribute 'email'
        """
        return ClientUsers(self._connection)

    @property
    def tenants(self) -> ClientTenants:
        """The workspaces of users that the user belongs to, their members and organizations.

        Examples:
            >>> [(each.username, each.role) for each in client.tenants.members()]
            [('ann', 'admin')]
        """
        return ClientTenants(self._connection)

    @property
    def admin_settings(self) -> ClientAdminSettings:
        """The settings that administrators change while the service runs.

        Examples:
            >>> client.admin_settings.change("DELETE_DATASET_ENABLED", False)
            'false'
        """
        return ClientAdminSettings(self._connection)

    def preview(self, path: str) -> SourcePreview:
        """Return how the beginning of a folder or a list of the server is understood; see ``Workspace.preview``.

        Raises:
            InvalidInput: the source cannot be used.
            Forbidden: the user may not read folders of the server.

        Examples:
            >>> client.preview("list.csv")
            Traceback (most recent call last):
                ...
            framedex.errors.Forbidden: Ingestion from server folders is not enabled
        """
        return SourcePreview.model_validate(self._connection.json(calls.PREVIEW, query={"path": path}))

    def sources(self) -> list[SourceState]:
        """Return the source folders of all datasets, and whether they can be found; see ``Workspace.sources``.

        Raises:
            Forbidden: the user is no administrator.

        Examples:
            >>> [(each.dataset_name, each.n_media, each.fault) for each in client.sources()]
            [('new', 3, None), ('pets', 33, None)]
        """
        return RecordList(SourceState.model_validate(each) for each in self._connection.json(calls.SOURCES))

    def relocate(self, old: str, new: str, *, check: bool = False, force: bool = False) -> Relocation:
        """Change the place of a source folder of the server; see :meth:`framedex.Workspace.relocate`.

        Raises:
            InvalidInput: a place is none, or both are the same.
            NotFound: no dataset has *old* as a source.
            Forbidden: the user is no administrator, or the settings do not allow to read at the new place.
            Conflict: files differ or are missing, or a task of one of the datasets is running.

        Examples:
            >>> client.relocate("unknown", "pets", check=True)
            Traceback (most recent call last):
                ...
            framedex.errors.NotFound: no dataset has ... as a source, or a source below it; they are ...
        """
        body = {"old": old, "new": new, "check": check, "force": force}
        return Relocation.model_validate(self._connection.json(calls.RELOCATE, body=body))

    def audit(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        user_id: str | None = None,
        action: str | None = None,
        dataset_id: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> AuditPage:
        """Return a page of who did what in the last 90 days, the newest first; see ``hub.trail.page``.

        Args:
            limit: of the page, 1 to 1,000.
            offset: of the page.
            user_id: the id of the user who did it; None for all, as for each further condition.
            action: the beginning of the action's name: ``users`` finds ``users.create``.
            dataset_id: the dataset.
            since: the earliest time, as a datetime or ISO 8601 text; UTC without a zone.
            until: the time before which it was done.

        Raises:
            Forbidden: the user is no administrator.
            InvalidInput: a value cannot be used.

        Examples:
            >>> [(each.username, each.action) for each in client.audit(limit=2).entries]
            [('ann', 'credentials.rotate'), ('ann', 'log_in')]
        """
        query = {"limit": limit, "offset": offset, "user_id": user_id, "action": action, "dataset_id": dataset_id}
        query |= {"since": _time(since), "until": _time(until)}
        return AuditPage.model_validate(self._connection.json(calls.AUDIT, query=query))

    def close(self) -> None:
        """Close the connection.

        Examples:
            >>> client.close()
        """
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<framedex.Client {self._connection.url}>"

    def _repr_html_(self) -> str:
        return datasets_html(self._connection.url, self.datasets())


def _time(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
