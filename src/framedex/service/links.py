"""URIs of files of datasets, as they stand in answers."""

from collections.abc import Callable
from functools import partial

from framedex.access import LOCAL_USER_ID, Actor
from framedex.service.state import ServiceState


class Links:
    """Makes the URIs of files for an actor: absolute, and signed where log-ins are needed.

    Args:
        state: the running service.
        actor: who asks.
        base_url: the address under which the client reaches the service, from the request.
    """

    def __init__(self, state: ServiceState, actor: Actor, base_url: str) -> None:
        self._sign = state.uris.signer(actor.user_id or LOCAL_USER_ID)
        self._base = "" if state.settings.relative_uris else (state.settings.public_url or base_url.rstrip("/"))

    def media(self, dataset_id: str, media_id: str, file: str, **query: str | int) -> str:
        """Return the URI of a file of a media item.

        Args:
            dataset_id: the dataset.
            media_id: the media item.
            file: ``file``, ``thumbnail`` or ``video``.
            query: further parameters.
        """
        return self.path(f"/api/v1/dataset/{dataset_id}/media/{media_id}/{file}", **query)

    def of_media(self, dataset_id: str) -> Callable[[str, str], str]:
        """Return the function that makes the URIs of the files of a dataset's media, for results with many."""
        return partial(self.media, dataset_id)

    def path(self, path: str, **query: str | int) -> str:
        """Return the URI of a path of this service, with further parameters."""
        return self._base + self._sign(path, **query)
