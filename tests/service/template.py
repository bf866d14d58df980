"""A workspace with a dataset that is made once and copied for tests that change it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from tests.gallery import SETTINGS, make_gallery
from tests.service.client import PASSWORD
from tests.service.conftest import OPERATOR


def make_template(folder: Path) -> Path:
    """Make a workspace with the dataset ``pets`` and the users of the tests below a folder, and return its path."""
    make_gallery(folder / "gallery")
    with Workspace(folder / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        workspace.create_dataset("pets", folder / "gallery")
        for name, role in (("ann", Role.ADMIN), ("eve", Role.EDITOR), ("vic", Role.VIEWER)):
            hub.users.create(OPERATOR, name, PASSWORD, role=role, email=f"{name}@example.org")
    return folder / "ws"


@contextmanager
def copied(template: Path, folder: Path) -> Iterator[Workspace]:
    """Open a copy of a workspace."""
    shutil.copytree(template, folder)
    with Workspace(folder, settings=SETTINGS) as workspace:
        yield workspace
