"""Paths within a workspace folder, and checks that a folder is a usable workspace."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from framedex.core.atomic import write_atomic
from framedex.core.ids import is_id, objects_dataset
from framedex.core.regular_files import read_text
from framedex.errors import FormatTooNew, WorkspaceError
from framedex.settings import user_path

FORMAT_VERSION = 1
MARKER = "framedex.toml"
SPILL = "spill"
"""The name of the folder of temporary files."""
SERVICE_DB_NAME = "service.db"
"""The name of the file with the database of the service."""


@dataclass(frozen=True)
class Layout:
    """The paths of a workspace.

    Attributes:
        root: absolute path of the workspace folder.
    """

    root: Path

    @property
    def marker(self) -> Path:
        """The file that marks a folder as a workspace and contains the format version."""
        return self.root / MARKER

    @property
    def models(self) -> Path:
        """The file with the user's registered enrichment models; may be missing."""
        return self.root / "models.toml"

    @property
    def catalog(self) -> Path:
        """The SQLite catalog."""
        return self.root / "catalog.db"

    @property
    def service_db(self) -> Path:
        """The SQLite database of the service; missing if there are no users."""
        return self.root / SERVICE_DB_NAME

    @property
    def datasets(self) -> Path:
        """The folder that contains one folder for each dataset."""
        return self.root / "datasets"

    @property
    def cache(self) -> Path:
        """The folder that contains one thumbnail folder for each dataset; may be deleted at any time."""
        return self.root / "cache" / "thumbnails"

    @property
    def text_cache(self) -> Path:
        """The folder that contains one folder of indexed texts for each dataset; may be deleted at any time."""
        return self.root / "cache" / "text"

    @property
    def caption_cache(self) -> Path:
        """The folder that contains one folder of caption embeddings for each dataset; may be deleted at any time."""
        return self.root / "cache" / "captions"

    @property
    def vector_cache(self) -> Path:
        """The folder that contains one vector index folder for each dataset; may be deleted at any time."""
        return self.root / "cache" / "vectors"

    @property
    def anchor_cache(self) -> Path:
        """The folder that contains one folder of query images for each dataset; may be deleted at any time."""
        return self.root / "cache" / "anchors"

    @property
    def keypoint_cache(self) -> Path:
        """The folder that contains one folder of keypoints for each dataset; may be deleted at any time."""
        return self.root / "cache" / "keypoints"

    @property
    def map_cache(self) -> Path:
        """The folder that contains one folder of maps for each dataset; may be deleted at any time."""
        return self.root / "cache" / "maps"

    @property
    def spill(self) -> Path:
        """The folder that contains one folder of temporary files for each dataset, of tasks that run or were killed."""
        return self.root / "cache" / SPILL

    @property
    def caches(self) -> tuple[Path, ...]:
        """The cache folders, each with a folder for each dataset and for its objects; may be deleted at any time."""
        return (
            self.cache,
            self.text_cache,
            self.caption_cache,
            self.vector_cache,
            self.anchor_cache,
            self.keypoint_cache,
            self.map_cache,
        )

    def cached(self, dataset_id: str) -> tuple[Path, ...]:
        """Return the cache folders of a dataset and of its objects; they may be missing or deleted at any time."""
        return tuple(cache / each for each in (dataset_id, objects_dataset(dataset_id)) for cache in self.caches)

    def spilled(self, dataset_id: str) -> tuple[Path, ...]:
        """Return the folders of temporary files of a dataset's tasks; they may be missing."""
        return tuple(self.spill / each for each in (dataset_id, objects_dataset(dataset_id)))

    def dataset(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's tables."""
        return self.datasets / dataset_id

    def media(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's media table."""
        return self.table(dataset_id, "media")

    def table(self, dataset_id: str, name: str) -> Path:
        """Return the folder of a dataset's table by its name in a generation: ``media``, ``cells``, ``decisions``."""
        return self.dataset(dataset_id) / f"{name}.lance"

    def blobs(self, dataset_id: str) -> Path:
        """Return the folder of the files uploaded to a dataset, by the hash of their content."""
        return self.dataset(dataset_id) / "blobs"

    def thumbnails(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's thumbnails; may be deleted at any time."""
        return self.cache / dataset_id

    def texts(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's full-text index; may be deleted at any time."""
        return self.text_cache / dataset_id

    def captions(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's caption embeddings, by text encoder; may be deleted at any time."""
        return self.caption_cache / dataset_id

    def vectors(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's vector index; may be deleted at any time."""
        return self.vector_cache / dataset_id

    def keypoints(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's keypoints; may be deleted at any time."""
        return self.keypoint_cache / dataset_id

    def maps(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's maps, by neighbour graph; may be deleted at any time."""
        return self.map_cache / dataset_id

    def anchors(self, dataset_id: str) -> Path:
        """Return the folder of a dataset's query images; may be deleted at any time."""
        return self.anchor_cache / dataset_id


def names_dataset(folder: Path) -> bool:
    """Return whether a folder's name is a dataset id."""
    return is_id(folder.name)


def open_layout(folder: str | os.PathLike[str], *, read_only: bool) -> Layout:
    """Return the layout of a workspace; make *folder* a workspace if it is empty or missing.

    Raises:
        WorkspaceError: the folder is a file, cannot be created or read, is missing while *read_only*, or contains files
            that do not belong to a workspace.
        FormatTooNew: a newer version of Framedex wrote it.
    """
    root = user_path(folder).absolute()
    layout = Layout(root)
    try:
        if not str(root).isprintable():  # Lance treats paths as URLs in UTF-8
            raise WorkspaceError(f"the path of a workspace must be printable text, not {str(root)!r}")
        if root.exists() and not root.is_dir():
            raise WorkspaceError(f"{root} is a file; a workspace is a folder")
        if not layout.marker.is_file():
            _create(layout, read_only=read_only)
        _check_version(layout)
    except WorkspaceError:
        raise
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise WorkspaceError(f"cannot use {str(root)!r} as a workspace: {reason}") from error
    return layout


def _create(layout: Layout, *, read_only: bool) -> None:
    if read_only:
        raise WorkspaceError(f"{layout.root} is not a workspace: it holds no {MARKER}")
    has_other_files = layout.root.exists() and any(not entry.name.startswith(".") for entry in layout.root.iterdir())
    if has_other_files and not layout.marker.is_file():  # another process may have created the workspace meanwhile
        raise WorkspaceError(
            f"{layout.root} holds other files and no {MARKER}; choose an empty or a new folder for a workspace"
        )
    layout.root.mkdir(parents=True, exist_ok=True)
    # Write the marker first and atomically, so that the folder is a workspace at any time, also after a crash.
    write_marker(layout)
    (layout.root / "datasets").mkdir(exist_ok=True)


def write_marker(layout: Layout) -> None:
    """Make a folder a workspace.

    Raises:
        OSError: the file cannot be written.
    """
    write_atomic(layout.marker, f"format_version = {FORMAT_VERSION}\n".encode(), fsync=True)


def _check_version(layout: Layout) -> None:
    try:
        version = tomllib.loads(read_text(layout.marker)).get("format_version")
    except RecursionError:
        raise WorkspaceError(f"{layout.marker} cannot be read: it is nested too deep") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{layout.marker} cannot be read: {error}") from error
    if not isinstance(version, int) or version < 1:
        raise WorkspaceError(f"{layout.marker} names no usable format_version: {version!r}")
    if version > FORMAT_VERSION:
        raise FormatTooNew(
            f"{layout.root} has format version {version}; this Framedex reads up to {FORMAT_VERSION}: "
            "install a newer Framedex"
        )
