"""The map of a dataset of a service."""

import pyarrow as pa

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.work import ClientTask
from framedex.errors import NotFound
from framedex.records import EntityType, TaskRecord


class ClientMaps:
    """The map of a dataset of a service."""

    _connection: Connection
    id: str

    def map(self, entity_type: str = EntityType.IMAGES) -> pa.Table:
        """Return a place in the plane for each media item; see :meth:`framedex.Dataset.map`.

        The service makes the map at the first call after an index, which is waited for.

        Args:
            entity_type: ``IMAGES``, ``OBJECTS`` or ``VIDEOS``.

        Returns:
            A table in the order of ingestion: ``media_id`` (or the id of the video), and ``x`` and ``y``, float32.

        Raises:
            InvalidInput: the entity type is unknown.
            NotFound: the dataset was deleted, or the user may no longer view it.
            Conflict: the dataset has no index yet.
            WorkspaceError: there is no map, and the service may only read its workspace.
            Aborted: the task was aborted.
            TaskFailed: the task failed.
        """
        try:
            return self._read(entity_type)
        except NotFound:
            self.start_map(entity_type).wait()
            return self._read(entity_type)

    def start_map(self, entity_type: str = EntityType.IMAGES) -> ClientTask:
        """Start to make the map and return the task, or the one that makes it already; see :meth:`map`."""
        query = {"entity_type": str(entity_type)}
        body = self._connection.json(calls.MAKE_MAP, query=query, dataset_id=self.id)
        return ClientTask(self._connection, TaskRecord.model_validate(body).task_id, self.id)

    def _read(self, entity_type: str) -> pa.Table:
        return self._connection.table(calls.MAP, query={"entity_type": str(entity_type)}, dataset_id=self.id)
