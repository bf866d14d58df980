"""Labels of a dataset of a service that are probably wrong, ranked."""

import json

from framedex.api.label_issues import LabelIssues
from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.view import ClientView

_MOST_ROWS = 2_000_000


class ClientLabelIssues:
    """Labels of a dataset of a service that are probably wrong."""

    _connection: Connection
    id: str

    def label_issues(self, method: str = "combined") -> LabelIssues[ClientView]:
        """Return all labelled media, those with probably wrong labels first; see :meth:`framedex.Dataset.label_issues`.

        Args:
            method: ``neighbours``, ``head`` (a linear model), or ``combined``: both.

        Raises:
            InvalidInput: there is no such method, fewer than 20 media have labels, or all have the same.
            Conflict: the dataset has no index yet.
        """
        query = {"method": method, "limit": _MOST_ROWS}
        table = self._connection.table(calls.LABEL_ISSUES, query=query, dataset_id=self.id)
        found = json.loads(table.schema.metadata[b"estimate"])
        view = ClientView(self._connection, self.id)
        interval = found["low"], found["high"]
        return LabelIssues(table.replace_schema_metadata(), found["rate"], interval, found["notes"], view)
