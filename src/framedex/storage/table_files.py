"""Files of versioned tables: references of versions to files, and removal of unreferenced files.

Facts of Lance 14 that this relies on, each proved by a test: the clean-up of given versions keeps each file that
another version references. It treats files without a version as those of an active writer, unless ``delete_unverified``
is set. The newest version always stays.
"""

import shutil
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.regular_files import has_file
from framedex.errors import WorkspaceError
from framedex.storage import disk
from framedex.storage.engine_calls import engine_call
from framedex.storage.failures import on_table
from framedex.storage.overlay import CONFIG_KEY, FOLDER, Overlay

HINT = "_versions/latest_version_hint.json"
"""The file of a table that stays as long as any version does."""
_CLEANED = 512  # versions per call
_NO_VERSION = 2**62  # Lance takes no empty list of versions


@engine_call
@on_table("read")
def old_versions(path: Path, retained: Collection[int]) -> list[int]:
    """Return the versions of a table except *retained* and the newest, ascending."""
    import lance

    dataset = lance.dataset(str(path))
    return sorted({each["version"] for each in dataset.versions()} - {*retained, dataset.version})


@engine_call
@on_table("read")
def ends_with(path: Path, version: int) -> bool:
    """Return whether the newest version of a table references the same files as the given one."""
    import lance

    newest, other = lance.dataset(str(path)), lance.dataset(str(path), version=version)
    newest_files, other_files = (
        [each.metadata.to_json() for each in table.get_fragments()] + [table.config().get(CONFIG_KEY)]
        for table in (newest, other)
    )
    return bool(newest_files == other_files)


@engine_call
@on_table("clean up")
def remove_versions(path: Path, versions: Sequence[int]) -> None:
    """Remove versions of a table, and the files that only they reference.

    Other processes may append to the table meanwhile: files without a version stay.
    """
    import lance

    edited = _edit_files(path, {*versions} & {*_all_versions(path)})
    for start in range(0, len(versions), _CLEANED):
        lance.dataset(str(path)).cleanup_old_versions(versions=list(versions[start : start + _CLEANED]))
    if edited:
        # A file that only removed versions list is in no version to come: each writer starts from one that stays.
        for name in edited - _edit_files(path, _all_versions(path)):
            (path / name).unlink(missing_ok=True)


def _all_versions(path: Path) -> list[int]:
    import lance

    return [each["version"] for each in lance.dataset(str(path)).versions()]


def _edit_files(path: Path, versions: Collection[int]) -> set[str]:
    """Return the files with edited values that some versions of a table list."""
    import lance

    if not (path / FOLDER).is_dir():
        return set()
    overlays = (Overlay.of(path, lance.dataset(str(path), version=each).config().get(CONFIG_KEY)) for each in versions)
    return {name for overlay in overlays for name in overlay.files}


@engine_call
@on_table("clean up")
def remove_leftovers(path: Path) -> None:
    """Remove files of a table that no version references, as left by a killed writer.

    No other process may write to the table meanwhile.
    """
    import lance

    lance.dataset(str(path)).cleanup_old_versions(versions=[_NO_VERSION], delete_unverified=True)
    for name in unlisted_edits(path):
        (path / name).unlink(missing_ok=True)


@engine_call
@on_table("read")
def unlisted_edits(path: Path) -> set[str]:
    """Return the files with edited values that no version of a table lists, relative to its folder."""
    present = {f"{FOLDER}/{file.name}" for file, _ in disk.walk_files(path / FOLDER)}
    return present - _edit_files(path, _all_versions(path)) if present else present


@engine_call
@on_table("read")
def rows_key(path: Path, version: int) -> Hashable:
    """Return a key that is equal for two versions of a table only if both have the same rows; columns may differ."""
    import lance

    fragments = lance.dataset(str(path), version=version).get_fragments()
    return tuple((each.fragment_id, each.physical_rows, _deleted(each.metadata)) for each in fragments)


def _deleted(fragment: Any) -> Hashable:
    """Return the identity of a fragment's deletions: after a restore, an equal number of other rows may be deleted."""
    file = fragment.deletion_file
    return None if file is None else (file.read_version, file.id)


@dataclass(frozen=True)
class DataFile:
    """A file with some columns of some rows.

    Attributes:
        path: path relative to the folder of the table.
        bytes_of: approximate number of its bytes by column name.
        live: share of its rows that were not deleted, 0 to 1.
        replaced: whether it also contains columns that the table no longer has.
    """

    path: str
    bytes_of: dict[str, float]
    live: float
    replaced: bool


@engine_call
@on_table("read")
def data_files(path: Path, version: int) -> list[DataFile]:
    """Return the data files of a version of a table."""
    import lance

    dataset: Any = lance.dataset(str(path), version=version)
    sizes = {each.id: each.bytes_on_disk for each in dataset.stats.data_stats().fields}
    names = {number: field.name() for field in dataset.lance_schema.fields() for number in _numbers(field)}
    fragments = [each.metadata for each in dataset.get_fragments()]
    rows = max(sum(each.physical_rows for each in fragments), 1)
    results = []
    for each in fragments:
        live = each.num_rows / max(each.physical_rows, 1)
        for file in each.files:
            bytes_of: dict[str, float] = defaultdict(float)
            for number in file.fields:
                bytes_of[names.get(number, "")] += sizes.get(number, 0) * each.physical_rows / rows
            replaced = "" in bytes_of
            bytes_of.pop("", None)
            results.append(DataFile(f"data/{file.path}", dict(bytes_of), live, replaced))
    overlay = Overlay.of(path, dataset.config().get(CONFIG_KEY))
    for layer in overlay.layers:
        size = (path / FOLDER / layer.file).stat().st_size
        results.append(
            DataFile(f"{FOLDER}/{layer.file}", dict.fromkeys(layer.columns, size / len(layer.columns)), 1.0, False)
        )
    return results


def _numbers(field: Any) -> list[int]:
    """Return the field ids of a field and of its nested fields."""
    return [field.id(), *(number for child in field.children() for number in _numbers(child))]


@engine_call
@on_table("read")
def files_of(path: Path, versions: Collection[int]) -> set[str]:
    """Return the files that some versions of a table reference, as paths relative to its folder."""
    import lance

    paths: set[str] = set()
    if not versions:
        return paths
    requested = pa.array(sorted(versions), pa.int64())
    for batch in lance.dataset(str(path)).tracked_files(min_version=min(versions)):
        needed = batch.filter(pc.is_in(batch.column("version"), value_set=requested))
        paths.update(needed.column("path").unique().to_pylist())
    return paths | _edit_files(path, versions)


@engine_call
@on_table("read")
def files_of_snapshots(path: Path, versions: Collection[int], *, is_in_head: bool) -> set[str]:
    """Return the files that the versions of snapshots reference, and those that must stay if the head has no version.

    Args:
        path: folder of the table.
        versions: the versions.
        is_in_head: whether the head has a version of the table.
    """
    import lance

    if is_in_head or not versions:
        return files_of(path, versions)
    newest = lance.dataset(str(path)).version
    stays = any(ends_with(path, version) for version in versions)
    return files_of(path, {*versions, newest} if stays else versions) | {HINT}


@engine_call
@on_table("read")
def files_of_head(path: Path, version: int) -> set[str]:
    """Return the files that the head's version references, and those that must stay with it."""
    import lance

    newest = lance.dataset(str(path)).version
    return files_of(path, {version, newest} if ends_with(path, version) else {version}) | {HINT}


@on_table("link")
def link(path: Path, version: int, target: Path) -> None:
    """Create a table with one version of another table; later changes of either do not affect the other.

    Files are written once, so both tables can share them by hard links. They are copied if the file system has no hard
    links, or the target is on another one.

    Args:
        path: folder of the table.
        version: the version to take.
        target: folder of the new table.

    Raises:
        WorkspaceError: a file of the version is missing, or is no regular file.
    """
    for name in sorted(files_of(path, [version])):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if not has_file(path / name):
            raise WorkspaceError(
                f"the file {name!r} of the table {path.stem!r} of dataset {path.parent.name} is missing or no regular "
                "file; `framedex check` lists all such files"
            )
        link_file(path / name, target / name)


def link_file(source: Path, target: Path) -> None:
    """Create a hard link to a file, or copy it if that is not possible."""
    try:
        disk.hard_link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)
