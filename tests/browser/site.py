"""A service whose pages a browser shows."""

from dataclasses import dataclass
from pathlib import Path

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
