"""Doors to the insides of a workspace, for what no public name shows; other test modules open none of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.hub.context import HubContext
from framedex.operations.context import Context, open_media
from framedex.storage.catalog import Catalog
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.tasks import Runner


def context_of(owner: Workspace | Dataset) -> Context:
    """Return the open parts of a workspace, as operations take them."""
    return owner._context


def catalog_of(owner: Workspace | Dataset) -> Catalog:
    """Return the catalog, whose rows tests read and change."""
    return context_of(owner).catalog


def layout_of(owner: Workspace | Dataset) -> Layout:
    """Return the paths of the files."""
    return context_of(owner).layout


def runner_of(owner: Workspace | Dataset) -> Runner:
    """Return what starts tasks in this process."""
    return context_of(owner).runner


def waiting_edits(dataset: Dataset) -> int:
    """Return how many threads of this process hold the lease of a dataset or wait for it."""
    return len(catalog_of(dataset).turns_of(dataset.id)._queue)


def stored_media(dataset: Dataset) -> Media:
    """Return the media of a dataset at its current head."""
    return open_media(context_of(dataset), dataset.id)


@contextmanager
def without_reserved_names() -> Iterator[None]:
    """Let custom fields have any name in a block, as in versions with fewer columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("framedex.jobs.edits.fields.reserved_names", frozenset)
        yield


def hub_context(hub: Hub) -> HubContext:
    """Return the open parts of a workspace with users."""
    return hub._context
