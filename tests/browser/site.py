"""A service whose pages a browser shows."""

import re
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from framedex import Dataset, Workspace
from framedex.service.state import ServiceState


@dataclass(frozen=True)
class Site:
    """A running service.

    Attributes:
        url: its address.
        workspace: what it serves.
        dataset: the dataset ``pets``.
        gallery: the folder of its images.
        state: the open parts of the service.
    """

    url: str
    workspace: Workspace
    dataset: Dataset
    gallery: Path
    state: ServiceState


def first_image(page: Page) -> Locator:
    """Return the first image of the grid once its values are there, with the focus."""
    first = page.get_by_role("gridcell").first
    expect(first).to_have_accessible_name(re.compile("animals"))
    first.focus()
    return first


def all_saved(page: Page) -> None:
    """Wait until the service has confirmed all changes of the page, which it shows before that."""
    expect(page.get_by_text(re.compile("^Saving "))).to_have_count(0)
