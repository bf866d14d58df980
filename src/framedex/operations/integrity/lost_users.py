"""The loss of a service's database or key: which part is lost, and how the service goes on."""

import os
from dataclasses import dataclass
from pathlib import Path

from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db.checks import only_indices, service_file_faults
from framedex.storage.service_db.database import KEY_NAME

_LOST = (
    "users, their roles and workspaces, grants, API keys, sessions, notifications, settings and the audit of the "
    "service are lost; `framedex users create --admin NAME` makes an admin again"
)
_DATASETS = "all datasets belong to the default workspace of users and its admin, without owners"
_KEY = (
    f"{KEY_NAME} is missing: unless the service gets its key by FRAMEDEX_SECRET_KEY, it makes a new one when it "
    "starts, and users need new secrets of their API keys"
)


@dataclass(frozen=True)
class LostUsers:
    """A service's database or key that is lost.

    Attributes:
        damaged: the database, to be set aside; None if it is missing or sound.
        lines: descriptions of the loss, and of what to do.
    """

    damaged: Path | None
    lines: list[str]


def find_lost_users(workspace: Path) -> LostUsers | None:
    """Return which part of a service's database and key is lost in a workspace; None if nothing is.

    A database of which only indices are damaged is not lost: `framedex check --repair` makes these again.

    Raises:
        WorkspaceError: the database cannot be checked now.
    """
    path, key = workspace / SERVICE_DB_NAME, workspace / KEY_NAME
    if not path.exists():
        return LostUsers(None, [f"{path.name} is missing: {_LOST}", _DATASETS]) if key.exists() else None
    if (faults := service_file_faults(path)) and not only_indices(faults):
        return LostUsers(path, [f"{path.name} {faults[0]}: {_LOST}", _DATASETS])
    return None if key.exists() or os.environ.get("FRAMEDEX_SECRET_KEY") else LostUsers(None, [_KEY])
