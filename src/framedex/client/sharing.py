"""Sharing of a dataset of a service with users."""

from framedex.api.record_list import RecordList
from framedex.client import calls
from framedex.client.connection import Connection
from framedex.records import DatasetMember


class ClientSharing:
    """Sharing of a dataset of a service, with the names of ``hub.datasets``."""

    _connection: Connection
    id: str

    def share(self, address: str, role: str = "viewer") -> None:
        """Share the dataset with a user; again, to change the role.

        Args:
            address: the e-mail address or the username, whatever the case.
            role: viewer or editor.

        Raises:
            NotFound: there is no such user.
            Forbidden: the caller may not share the dataset, or the settings do not allow sharing.
            InvalidInput: the role cannot be granted, or the user owns the dataset.
            TooManyAttempts: the caller has invited 30 times within an hour.
        """
        body = {"grant_to_user_email": address, "role": str(role)}
        self._connection.json(calls.INVITE, body=body, dataset_id=self.id)

    def unshare(self, address: str) -> None:
        """Take back what a user may do with the dataset.

        Raises:
            NotFound: the dataset is not shared with the user.
            Forbidden: the caller may not share the dataset.
            InvalidInput: the user owns the dataset.
        """
        self._connection.json(calls.UNSHARE, query={"email": address}, dataset_id=self.id)

    def members(self) -> list[DatasetMember]:
        """Return the owner of the dataset, and then those with whom it is shared."""
        answer = self._connection.json(calls.MEMBERS, dataset_id=self.id)
        return RecordList(DatasetMember.model_validate(each) for each in answer)
