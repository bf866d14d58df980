"""A workspace with a dataset that is made once and copied for tests that change it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex import Workspace
from tests.gallery import SETTINGS, make_gallery
from tests.prepared import prepared
from tests.service.users import hub_with_users


def make_template(folder: Path) -> Path:
    """Make a workspace with the dataset ``pets`` and the users of the tests below a folder, and return its path."""
    make_gallery(folder / "gallery")
    with Workspace(folder / "ws", settings=SETTINGS) as workspace, hub_with_users(workspace):
        prepared(workspace, "pets", folder / "gallery")
    return folder / "ws"


@contextmanager
def copied(template: Path, folder: Path) -> Iterator[Workspace]:
    """Open a copy of a workspace."""
    shutil.copytree(template, folder)
    with Workspace(folder, settings=SETTINGS) as workspace:
        yield workspace
