"""Comparison of a dataset with its folders: what is new, changed, moved or gone."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.label_index import Annotations
from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.errors import CannotDecode, InvalidInput, Unavailable
from framedex.jobs.ingest.changed_files import ChangedFiles, ExistingRows
from framedex.jobs.ingest.decoding import is_video_item
from framedex.jobs.ingest.origins import read_origins
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.jobs.sync import FileChanges, NewPlace
from framedex.media.files import Reader, allowed_folders, below, locate, object_store
from framedex.media.presence import GONE, Look, Place
from framedex.media.remote import is_remote
from framedex.media.remote_sources import open_remote
from framedex.media.sources import FolderSource, Item, Source
from framedex.operations.context import Context, check_indexed, open_media
from framedex.operations.presence import NOT_LOOKED_AT, KnownFile, known_files, location_of, looks_of, marked_files
from framedex.operations.relocation import check_allowed_place, place_of
from framedex.operations.source_files import file_blocks
from framedex.records import LostSource, SyncResult
from framedex.storage import datasets
from framedex.storage.dataset_origins import whole_roots
from framedex.storage.file_index import FileIndex
from framedex.storage.generation import SourceFolder
from framedex.storage.media import Media
from framedex.storage.media_rows import text_of_path
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.videos import open_videos

_EXAMPLES = 100
_FEW = 5  # files that may be gone from a folder that is empty now
_UNMOUNTED = "the folder is there, and none of its files; is a disk not mounted?"
_UNWATCHED = (
    "new files are not looked for below {}, as it was not added as a whole folder; add_media of the folder adds them, "
    "and is remembered"
)


class _Found(NamedTuple):
    """A file in a folder that the dataset does not have, or has with other content."""

    root: int
    path: str
    location: str
    size_bytes: int | None
    is_video: bool
    file_id: str | None  # of the row at its place
    folder: SourceFolder | None  # in which it is new; None for a folder in which only moved files are looked for


@dataclass
class SyncPlan:
    """The differences between a dataset and its folders, and the changes that follow for its rows.

    Attributes:
        head: the generation that was compared.
        roots_before, roots: the source roots that were compared, and those afterwards.
        changes: of rows.
        gone: the ids of the images and videos whose files are gone.
        folders: the folders in which files are new or changed.
        result: what is said of it.
    """

    head: str
    roots_before: tuple[str, ...]
    roots: tuple[str, ...]
    changes: FileChanges
    gone: frozenset[str]
    folders: list[SourceFolder]
    result: SyncResult


def plan_sync(
    context: Context,
    dataset_id: str,
    *,
    sources: Sequence[str | os.PathLike[str]] = (),
    mark_lost: bool = False,
    step: Callable[[], None] = lambda: None,
) -> SyncPlan:
    """Compare a dataset with its folders; see :meth:`framedex.Dataset.sync`.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        sources: further folders in which files that moved are looked for.
        mark_lost: whether the files of sources, and of folders in them, of which nothing is found are gone.
        step: called now and then; raises to stop.
    """
    media = open_media(context, dataset_id)
    check_indexed(context, media)
    return _Comparison(context, media, step).plan(sources, mark_lost=mark_lost)


class _Comparison:
    """A comparison in progress.

    Args:
        context: the open workspace.
        media: the dataset's media.
        step: called now and then; raises to stop.
    """

    def __init__(self, context: Context, media: Media, step: Callable[[], None]) -> None:
        self._context, self._media, self._step = context, media, step
        self._summary = media.generation.summary
        self._roots = list(media.roots)
        self._readers: dict[int, Reader] = {}
        self._notes: list[str] = []
        self._examples: dict[str, list[str]] = defaultdict(list)
        self._counts = Counter[str]()

    def plan(self, sources: Sequence[str | os.PathLike[str]], *, mark_lost: bool) -> SyncPlan:
        """Return the plan."""
        marked = marked_files(self._media)
        gone, present, unreadable = dict[str, KnownFile](), dict[int, int](), Counter[str]()
        back: list[KnownFile] = []
        faults: dict[int, str] = {}
        of_root = Counter[int]()
        for file, look in self._looks(faults):
            assert file.root is not None or look.fault is not None, "a file without a place is not found"
            if file.root is not None:
                of_root[file.root] += 1
            if look.fault is None:
                present[file.root or 0] = present.get(file.root or 0, 0) + 1
                if file.id in marked:
                    back.append(file)
            elif look.fault == GONE or file.root in faults:
                gone[file.id] = file
            else:
                unreadable[look.fault] += 1
        found = list(self._found(sources, faults))
        absent = gone | self._rows_of([each.file_id for each in found if each.file_id is not None])
        moves = self._moves(absent, found)
        used = set(moves.values())
        displaced = {  # another file is at their place now
            file_id: NewPlace(None, found[number].path)
            for number in used
            if (file_id := found[number].file_id) is not None and file_id not in moves
        }
        arrived = Counter(gone[each].root for each in moves if each in gone)
        lost = [] if mark_lost else self._lost(gone, moves, faults, of_root, present, arrived)
        lost_roots = {number for number, _ in lost}
        here = [each for each in gone.values() if each.root not in lost_roots]
        emptied = {} if mark_lost else self._emptied(here, moves, marked)
        in_emptied = frozenset[str]().union(*emptied.values())
        missing = {each.id for each in here if each.id not in moves and each.id not in in_emptied}
        missing |= displaced.keys()
        returned = [each for each in back if each.id not in moves and each.id not in displaced]
        rest = [each for number, each in enumerate(found) if number not in used and each.folder is not None]
        for each in rest:
            is_changed = each.file_id is not None and each.file_id not in moves and each.file_id not in displaced
            self._count("changed" if is_changed else "new", each.location)
        for file_id, number in moves.items():
            self._count("moved", f"{location_of(absent[file_id], self._media)} → {found[number].location}")
        for location in sorted(location_of(absent[each], self._media) for each in missing):
            self._count("missing", location)
        self._note_equal([absent[each] for each in sorted(missing)])
        for file in returned:
            self._count("back", location_of(file, self._media))
        places = {file_id: NewPlace(found[number].root, found[number].path) for file_id, number in moves.items()}
        changes = FileChanges(
            places=places | displaced,
            missing=missing - marked,
            back={each.id for each in returned} | (marked & moves.keys()),
        )
        used_roots = max([len(self._media.roots), *(found[number].root + 1 for number in used)])
        return SyncPlan(
            head=self._media.generation.id,
            roots_before=self._media.roots,
            roots=tuple(self._roots[:used_roots]),
            changes=changes,
            gone=frozenset(missing),
            folders=list(dict.fromkeys(each.folder for each in rest if each.folder is not None)),
            result=self._result(
                dict(unreadable),
                [
                    *((self._media.roots[number], reason, of_root[number]) for number, reason in lost),
                    *((folder, _UNMOUNTED, len(ids)) for folder, ids in emptied.items()),
                ],
            ),
        )

    def _result(self, unreadable: dict[str, int], lost: Sequence[tuple[str, str, int]]) -> SyncResult:
        counts = {name: self._counts[name] for name in ("new", "changed", "moved", "missing", "back")}
        return SyncResult(
            is_applied=False,
            **counts,
            removed=0,
            unreadable=unreadable,
            lost=[self._lost_record(*each) for each in lost],
            examples=dict(self._examples),
            notes=list(dict.fromkeys(self._notes)),
        )

    def _count(self, kind: str, shown: str) -> None:
        self._counts[kind] += 1
        if len(self._examples[kind]) < _EXAMPLES:
            self._examples[kind].append(text_of_path(shown)[0])

    def _note_equal(self, missing: Sequence[KnownFile]) -> None:
        """Note how many missing files have the content of others that are there, as where moved files were added."""
        contents = Counter(each.content_hash for each in missing if each.content_hash is not None)
        ids, hashes = pa.array([each.id for each in missing], pa.string()), pa.array(list(contents), pa.binary(16))
        found = set[bytes]()
        for block in file_blocks(self._media) if contents else ():
            is_other = pc.invert(pc.is_in(block["id"], value_set=ids))
            same = block["content_hash"].filter(pc.and_(pc.is_in(block["content_hash"], value_set=hashes), is_other))
            found.update(same.to_pylist())
        if equal := sum(contents[each] for each in found):
            self._notes.append(
                f"{counted(equal, 'missing files', 'have')} the content of other media, as files that were added after "
                "they moved; labels and edits of the missing ones are not carried over"
            )

    def _looks(self, faults: dict[int, str]) -> Iterator[tuple[KnownFile, Look]]:
        unchecked = 0
        for file, look in looks_of(self._context, self._media, faults):
            self._step()
            unchecked += look is NOT_LOOKED_AT
            if look is not NOT_LOOKED_AT:
                yield file, look
        if unchecked:
            files = counted(unchecked, "files", "are")
            self._notes.append(f"{files} not looked at, as a table names them by URIs of their own")

    def _found(self, sources: Sequence[str | os.PathLike[str]], faults: Mapping[int, str]) -> Iterator[_Found]:
        """Yield the files that are new in the folders of the dataset, or have changed, and those in further folders."""
        origins = read_origins(self._media.table)
        videos = open_videos(self._media.table.path, self._media.generation.tables)
        images = FileIndex(self._media.table)
        existing = ExistingRows(images, None if videos is None else FileIndex(videos, "video_id"))
        namespace, seen = self._summary.namespace or self._media.dataset_id, set[str]()
        for folder, source in [*self._own_folders(faults), *self._further(sources)]:
            number, prefix = self._placed(source.root) if folder is None else (folder.root, folder.path)
            placement = SourcePlacement(number, f"{prefix}/" if prefix else "", origins=origins)
            for item in ChangedFiles(
                source, Annotations(), namespace, placement, existing, allowed_folders(self._context.settings)
            ):
                self._step()
                location = locate(source.root, item.path)
                if location in seen:
                    continue
                seen.add(location)
                is_video = is_video_item(item)
                index = existing.videos if is_video else existing.media
                file_id = placement.media_id(namespace, item.path)
                is_known = index is not None and index.positions([file_id])[0] >= 0
                yield _Found(
                    number,
                    placement.prefix + item.path,
                    location,
                    _size(item, location),
                    is_video,
                    file_id if is_known else None,
                    folder,
                )

    def _own_folders(self, faults: Mapping[int, str]) -> Iterator[tuple[SourceFolder | None, Source]]:
        """Yield the folders that were added as a whole and can be read."""
        folders = self._summary.folders
        if folders is None:
            with self._context.catalog.read() as connection:
                numbers = whole_roots(connection, self._media.dataset_id, self._media.roots)
            folders = [SourceFolder(root=number) for number in numbers]
        for number, root in enumerate(self._media.roots):
            if root != BLOBS_ROOT and number not in faults and not any(each.root == number for each in folders):
                self._notes.append(_UNWATCHED.format(text_of_path(root)[0]))
        for folder in folders:
            if folder.root in faults or folder.root >= len(self._media.roots):
                continue
            root = (
                locate(self._media.roots[folder.root], folder.path) if folder.path else self._media.roots[folder.root]
            )
            if (source := self._source(root, self._summary.role_of(folder.root))) is not None:
                yield folder, source

    def _further(self, sources: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[None, Source]]:
        for each in sources:
            root = place_of(each)
            check_allowed_place(root, self._context.settings)
            if (fault := Place(root, self._context.settings).fault()) is not None:
                raise InvalidInput(f"files cannot be looked for in {text_of_path(root)[0]}: {fault}")
            if (source := self._source(root, None)) is not None:
                yield None, source

    def _source(self, root: str, role: AssumedRole | None) -> Source | None:
        settings = self._context.settings
        if not is_remote(root):
            if not os.path.isdir(root):  # noqa: PTH112 - any bytes
                return None
            return FolderSource(root, allowed=allowed_folders(settings))
        try:
            return open_remote(f"{root}/", object_store(settings, role), max_bytes=settings.max_file_bytes, role=role)
        except InvalidInput:  # it has no images any more
            return None

    def _placed(self, root: str) -> tuple[int, str]:
        """Return the number of the source root that a further folder belongs to, and its path below that root."""
        for number, existing in enumerate(self._roots):
            if existing != BLOBS_ROOT and (path := below(existing, root)) is not None:
                return number, path
        self._roots.append(root)
        return len(self._roots) - 1, ""

    def _rows_of(self, ids: Sequence[str]) -> dict[str, KnownFile]:
        """Return the files of the dataset with some ids."""
        chosen, found = pa.array(ids, pa.string()), dict[str, KnownFile]()
        for block in file_blocks(self._media) if ids else ():
            found |= {each.id: each for each in known_files(block.filter(pc.is_in(block["id"], value_set=chosen)))}
        return found

    def _moves(self, absent: Mapping[str, KnownFile], found: Sequence[_Found]) -> dict[str, int]:
        """Return which files have moved: by the id of the row the number of the found file with its content."""
        by_size: dict[tuple[int, bool], list[KnownFile]] = defaultdict(list)
        for file in absent.values():
            if file.size_bytes is not None and file.content_hash is not None:
                by_size[file.size_bytes, file.is_video].append(file)
        by_content: dict[tuple[bytes, bool], list[int]] = defaultdict(list)
        for number, each in enumerate(found):
            if each.size_bytes is not None and (each.size_bytes, each.is_video) in by_size:
                self._step()
                if (digest := self._digest(each)) is not None:
                    by_content[digest, each.is_video].append(number)
        moves: dict[str, int] = {}
        for files in by_size.values():
            for is_same in (_has_same_name, lambda _file, _found: True):
                for file in files:
                    assert file.content_hash is not None, "only these are among them"
                    numbers = by_content.get((file.content_hash, file.is_video), [])
                    same = next((each for each in numbers if is_same(file, found[each])), None)
                    if same is not None and file.id not in moves:
                        moves[file.id] = same
                        numbers.remove(same)
        return moves

    def _digest(self, found: _Found) -> bytes | None:
        if found.root not in self._readers:
            self._readers[found.root] = Reader(self._context.settings, self._summary.role_of(found.root))
        try:
            return self._readers[found.root].digest(found.location)
        except (CannotDecode, Unavailable):
            return None

    def _lost(
        self,
        gone: Mapping[str, KnownFile],
        moves: Mapping[str, int],
        faults: Mapping[int, str],
        of_root: Mapping[int, int],
        present: Mapping[int, int],
        arrived: Mapping[int | None, int],
    ) -> list[tuple[int, str]]:
        """Return the roots of which no file is found, and why."""
        lost = [(number, fault) for number, fault in faults.items() if of_root[number] > arrived.get(number, 0)]
        absent = Counter(each.root for each in gone.values() if each.id not in moves)
        for number, count in of_root.items():
            is_empty = not present.get(number) and not arrived.get(number) and absent[number] == count
            if number not in faults and is_empty:
                lost.append((number, _UNMOUNTED))
        return lost

    def _emptied(
        self, gone: Sequence[KnownFile], moves: Mapping[str, int], marked: Collection[str]
    ) -> dict[str, set[str]]:
        """Return the files that are gone from folders that are empty now, by folder, as the mount point of a disk is.

        Folders from which a file has moved, and those that had a few files, are left out; so are marked files.
        """
        folder_of: dict[str, str | None] = {}
        files, others = defaultdict[str, set[str]](set), set[str]()
        for file in gone:
            if file.root is None or is_remote(root := self._media.roots[file.root]):
                continue
            parent = location_of(file, self._media).rpartition("/")[0]
            if parent not in folder_of:
                self._step()
                folder_of[parent] = _empty_folder(parent, root)
            if (folder := folder_of[parent]) is None:
                continue
            if file.id in moves:
                others.add(folder)
            elif file.id not in marked:
                files[folder].add(file.id)
        return {folder: ids for folder, ids in files.items() if folder not in others and len(ids) > _FEW}

    def _lost_record(self, source: str, reason: str, files: int) -> LostSource:
        with self._context.catalog.read() as connection:
            name = datasets.find_dataset(connection, self._media.dataset_id).display_name
        return LostSource(
            dataset_id=self._media.dataset_id,
            dataset_name=name,
            source=text_of_path(source)[0],
            files=files,
            reason=reason,
        )


def _has_same_name(file: KnownFile, found: _Found) -> bool:
    return file.path.rpartition("/")[2] == found.path.rpartition("/")[2]


def _empty_folder(path: str, root: str) -> str | None:
    """Return the folder at a path, or the nearest above it that exists, if it is empty and below a root; else None."""
    while below(root, path):
        try:
            with os.scandir(path) as entries:
                return path if next(entries, None) is None else None
        except FileNotFoundError:
            path = path.rpartition("/")[0]
        except OSError:
            return None
    return None


def _size(item: Item, location: str) -> int | None:
    if item.size_bytes is not None or is_remote(location):
        return item.size_bytes
    try:
        return os.stat(location).st_size  # noqa: PTH116 - names may be any bytes
    except OSError:
        return None
