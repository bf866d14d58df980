"""Sources of media that requests name: folders of the server, and buckets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from framedex.access import Action, Actor, TenantSubject, require
from framedex.core.allowed_folders import AllowedFolders
from framedex.errors import Forbidden, InvalidInput, Unavailable
from framedex.media.remote import INVALID_URI, SCHEME, is_remote
from framedex.service.errors import Refusal
from framedex.service.settings import RunMode, is_loopback
from framedex.service.state import ServiceState

_NOT_ENABLED = "Ingestion from server folders is not enabled"
_INVALID_PATH = "Invalid path specified"


def check_server_path(service: ServiceState, actor: Actor, path: str, tenant_id: str) -> str:
    """Return a folder, file or list of the server that a request names, after all checks; or a URI of a bucket.

    One sentence answers all paths that cannot be used, so that none tells what is on the server.

    Args:
        service: the running service.
        actor: who makes the request.
        path: an absolute path, or a URI ``s3://…``.
        tenant_id: the tenant of the dataset.

    Raises:
        Forbidden: the actor may not read folders of the server.
        Refusal: such folders are no sources here, or the path cannot be used.
    """
    if is_remote(path):
        return check_bucket(service, path)
    require(actor, Action.TENANT_INGEST_PATH, TenantSubject(tenant_id, service.settings.ingest_path_role))
    roots = service.workspace.settings.media_roots
    is_private = service.auth_off and all(is_loopback(host) for host in service.bound)
    if service.settings.run_mode is RunMode.CLOUD or (not roots and not (roots is None and is_private)):
        raise Refusal(403, _NOT_ENABLED)
    if not os.path.isabs(path) or "\0" in path or (roots and not AllowedFolders(roots).contains(path)):  # noqa: PTH117
        raise Refusal(400, _INVALID_PATH)
    if not os.path.exists(path):  # noqa: PTH110 - never raises
        raise Refusal(400, _INVALID_PATH)
    return path


def check_bucket(service: ServiceState, uri: str) -> str:
    """Return the URI of a folder or a manifest in a bucket; the scheme may be missing.

    Raises:
        Refusal: the URI has another scheme, so that the library would take it for a path of the server; or no bucket
            may be read: in the cloud, the allowed ones must be named.
    """
    has_none = service.settings.run_mode is RunMode.CLOUD and service.workspace.settings.s3_allowed is None
    if has_none or ("://" in uri and not is_remote(uri)):
        raise Refusal(400, INVALID_URI)
    return uri if is_remote(uri) else SCHEME + uri


def check_role(service: ServiceState, role_arn: str | None) -> str | None:
    """Return the role that a request wants to assume for reading from a bucket.

    Raises:
        Refusal: the settings do not list the role.
    """
    if role_arn is not None and role_arn not in service.settings.s3_allowed_roles:
        raise Refusal(403, "assume_role is not allowed")
    return role_arn


@contextmanager
def reading_source(source: str | None) -> Iterator[None]:
    """Refuse a source outside of what may be read, or out of reach, by the sentence of the interface.

    Args:
        source: the path or the URI; None for no such source.

    Raises:
        Refusal: it cannot be read.
    """
    try:
        yield
    except (Forbidden, Unavailable, InvalidInput) as error:
        if source is None or (isinstance(error, InvalidInput) and str(error) != INVALID_URI):
            raise
        raise Refusal(400, INVALID_URI if is_remote(source) else _INVALID_PATH) from None
