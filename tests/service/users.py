"""Users of a service: an admin, an editor and a viewer of the default tenant, made once in a process of tests."""

import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex import Workspace
from framedex.access import Role, operator_actor
from framedex.hub import Hub
from tests.gallery import SETTINGS

PASSWORD = "correct horse"
OPERATOR = operator_actor("operator")
ROLES = {"ann": Role.ADMIN, "eve": Role.EDITOR, "vic": Role.VIEWER}


@contextmanager
def hub_with_users(workspace: Workspace) -> Iterator[Hub]:
    """Yield the users of a workspace that had none; hashes of their passwords are cheap."""
    for name, content in _files().items():
        path = workspace.path / name
        path.touch(mode=0o600)
        path.write_bytes(content)
    with Hub(workspace) as hub:
        yield hub


@functools.cache
def _files() -> dict[str, bytes]:
    """Return the files of the users in a workspace, by name."""
    with tempfile.TemporaryDirectory() as folder:
        with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
            for name, role in ROLES.items():
                hub.users.create(OPERATOR, name, PASSWORD, role=role, email=f"{name}@example.org")
        return {path.name: path.read_bytes() for path in Path(folder).glob("service.*")}
