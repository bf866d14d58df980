"""Relocations: source folders that were moved, or are at another place on this machine."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.core.progress import Progress
from framedex.errors import CannotDecode, Conflict, InvalidInput, NotFound, Unavailable
from framedex.media.files import Reader, allowed_folders, below, locate, object_store
from framedex.media.presence import GONE, Place
from framedex.media.remote import SCHEME, is_remote, split_uri
from framedex.operations.context import Context, open_media
from framedex.operations.source_files import file_blocks
from framedex.records import RelocatedRoot, Relocation
from framedex.settings import Settings, user_path
from framedex.storage import datasets, task_rows
from framedex.storage.media_rows import path_of_text, text_of_path
from framedex.storage.schema import BLOBS_ROOT

OPERATION = "relocate"
_COMPARED = 32  # files of a root whose content is compared, or up to twice as many
_COMPARED_BYTES = 2**30  # content that is read for that, beside the first file
_EXAMPLES = 20
_SHOWN = 5  # examples in a message
_ROOTS = 10  # source folders that an error lists


class _Root(NamedTuple):
    """A source root of a dataset that moves."""

    dataset_id: str
    name: str
    number: int
    before: str
    after: str


class _Obstacle(NamedTuple):
    """A reason against a relocation, in words, and whether it may be done nevertheless."""

    words: str
    can_be_forced: bool


class _Found(NamedTuple):
    """The source roots of all datasets, as a relocation finds them.

    Attributes:
        moving: those that move.
        parts: those that stay and contain the old place; they "move" to where they are.
        every: the places of all.
        clash: what keeps the roots from moving.
    """

    moving: list[_Root]
    parts: list[_Root]
    every: set[str]
    clash: _Obstacle | None


class _Sample(NamedTuple):
    """A file whose content is compared."""

    path: str
    content_hash: bytes
    size_bytes: int


@dataclass
class _Tally:
    """Counts of the files of a root at its new place, and examples."""

    files: int = 0
    missing: int = 0
    unreadable: int = 0
    compared: int = 0
    different: int = 0
    examples: list[str] = field(default_factory=list)
    sample: list[_Sample] = field(default_factory=list)
    step: int = 1

    def note(self, path: str, fault: str) -> None:
        """Add an example, unless there are enough."""
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{_shown(path)}: {fault}")

    def offer(self, path: str, content_hash: bytes, size_bytes: int) -> None:
        """Add a file to the sample, which is spread over all files that are offered."""
        if self.files % self.step:
            return
        self.sample.append(_Sample(path, content_hash, size_bytes))
        if len(self.sample) > 2 * _COMPARED:
            self.sample, self.step = self.sample[::2], 2 * self.step


def relocate(
    context: Context,
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    check: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Relocation:
    """Change the place of source folders; see :meth:`framedex.Workspace.relocate`.

    Args:
        context: the open workspace.
        old: the folder, or the URI of a folder, where the files were.
        new: where they are now.
        check: only compare the files.
        force: go on although files are missing or different.
        progress: called with the stage and the share that is done; raises to stop.
    """
    if not check:
        context.catalog.check_writable()
    before, after = place_of(old), place_of(new)
    check_allowed_place(after, context.settings)
    with context.catalog.read() as connection:
        found = _find(connection, before, after)
    moving, clash = found.moving, found.clash
    notes = list(_notes(context, found.parts, before, after))
    if not moving:
        raise _nothing_there(before, found, notes)
    places: dict[tuple[str, AssumedRole | None], Place] = {}
    tallies = []
    for number, root in enumerate(moving):

        def step(name: str = root.name, share: float = number / len(moving)) -> None:
            if progress is not None:
                progress(name, share)

        tallies.append(_look(context, root, places, step))
    roots = [_record(root, tally) for root, tally in zip(moving, tallies, strict=True)]
    obstacle = clash or _obstacle(after, roots, places.values())
    is_done = not check and (obstacle is None or (force and obstacle.can_be_forced))
    if is_done:
        _commit(context, moving)
    elif not check and obstacle is not None:
        raise Conflict(f"{obstacle.words}. Nothing was changed")
    return Relocation(
        before=_shown(before),
        after=_shown(after),
        is_done=is_done,
        roots=roots,
        obstacle=None if obstacle is None or is_done else obstacle.words,
        notes=notes,
    )


def _shown(path: str) -> str:
    return text_of_path(path)[0]


def place_of(path: str | os.PathLike[str]) -> str:
    """Return a folder as roots are stored: an absolute path that keeps links, or the URI of a folder.

    Raises:
        InvalidInput: it is neither.
    """
    if isinstance(path, str) and is_remote(path):
        bucket, key = split_uri(path)
        return f"{SCHEME}{bucket}/{key}".rstrip("/")
    if not isinstance(path, str | os.PathLike) or not os.fspath(path).strip():
        raise InvalidInput(f"a folder is a path or the URI s3://bucket/folder, not {path!r:.80}")
    if "\0" in os.fspath(path):
        raise InvalidInput(f"a path has no null character, as {os.fspath(path)!r:.80} does")
    return os.path.abspath(user_path(path))  # noqa: PTH100 - keeps links, unlike resolve


def check_allowed_place(place: str, settings: Settings) -> None:
    """Check that files may be read at a place.

    Raises:
        Forbidden: they may not.
    """
    if is_remote(place):
        object_store(settings).check_allowed(place)
    elif (allowed := allowed_folders(settings)) is not None:
        allowed.check(place)


def _find(connection: Any, before: str, after: str) -> _Found:
    """Return the roots that a relocation concerns.

    Raises:
        InvalidInput: both places are the same.
    """
    if before == after:
        raise InvalidInput(f"the old and the new place are the same: {_shown(before)}")
    records = datasets.list_datasets(connection)
    of_dataset = {each.id: datasets.get_roots(connection, each.id) for each in records}
    every = {root for roots in of_dataset.values() for root in roots if root != BLOBS_ROOT}
    start = before if any(below(before, root) is not None for root in every) else _same_place(before, every)
    moving, parts, clash = list[_Root](), list[_Root](), None
    for record in records:
        roots, after_all = of_dataset[record.id], list(of_dataset[record.id])
        for number, root in enumerate(roots):
            if root == BLOBS_ROOT:
                continue
            if (rest := below(start, root)) is not None:
                after_all[number] = locate(after, rest) if rest else after
                moving.append(_Root(record.id, record.display_name, number, root, after_all[number]))
            elif below(root, start) or below(root, before):
                parts.append(_Root(record.id, record.display_name, number, root, root))
        if (both := _nested(roots, after_all)) is not None:
            words = " and ".join(map(_shown, both))
            clash = clash or _Obstacle(
                f"dataset {record.display_name!r} would have the files below {words} twice, as both would be its "
                "sources. Remove the media of one of them first (`framedex delete`), or give another place",
                can_be_forced=False,
            )
    return _Found(moving, parts, every, clash)


def _notes(context: Context, parts: Sequence[_Root], before: str, after: str) -> Iterator[str]:
    """Yield what each dataset has at the old place that does not move."""
    with context.catalog.read() as connection:
        records = datasets.list_datasets(connection)
    for record in records:
        within = {each.number: each.before for each in parts if each.dataset_id == record.id}
        own, of_parts = 0, set[str]()
        with suppress(Conflict, NotFound):  # it has no media yet, or was deleted meanwhile
            media = open_media(context, record.id, early=True)
            for block in file_blocks(media):
                staying = pc.or_(pc.is_null(block["root"]), pc.is_in(block["root"], pa.array(within, pa.int32())))
                for row in block.filter(staying).to_pylist():
                    if below(before, media.location_of(row) or "") is not None:
                        own += row["root"] is None
                        of_parts.update([] if row["root"] is None else [within[row["root"]]])
        for root in sorted(of_parts):
            yield (
                f"dataset {record.display_name!r} has these files as a part of {_shown(root)}, which stays; "
                f"`framedex sync {record.display_name} --from {_shown(after)}` finds them again"
            )
        if own:
            yield (
                f"dataset {record.display_name!r} names {counted(own, 'files')} below the old place by paths of their "
                "own, as its table does, and these stay; a link from the old place to the new one keeps them readable"
            )


def _same_place(place: str, roots: set[str]) -> str:
    """Return how the roots name a folder to which a path leads over links; the path itself if none does.

    The text of a root whose name is no UTF-8 stands for that root, as nothing else of it can be written.
    """
    shown = next((root for root in roots if _shown(root) == place), None)
    if shown is not None or is_remote(place):
        return shown or place
    real = os.path.realpath(place)
    for root in sorted(roots, key=len):
        if not is_remote(root) and below(real, os.path.realpath(root)) == "":
            return root
    return real


def _nested(before: Sequence[str], after: Sequence[str]) -> tuple[str, str] | None:
    """Return two roots of which one will contain the other, and did not before; None if there are none."""
    for one in range(len(after)):
        for other in range(len(after)):
            if one == other or BLOBS_ROOT in (after[one], after[other]) or after == before:
                continue
            if below(after[one], after[other]) is not None and below(before[one], before[other]) is None:
                return after[one], after[other]
    return None


def _nothing_there(before: str, found: _Found, notes: Sequence[str]) -> NotFound:
    if notes:
        return NotFound(
            f"no dataset has {_shown(before)} as a source, and a source moves as a whole: {'; '.join(notes)}"
        )
    shown = sorted(map(_shown, found.every))
    more = f" and {len(shown) - _ROOTS:,} more" if len(shown) > _ROOTS else ""
    listed = f"they are {', '.join(shown[:_ROOTS])}{more}" if shown else "there are none"
    return NotFound(f"no dataset has {_shown(before)} as a source, or a source below it; {listed}")


def _look(
    context: Context, root: _Root, places: dict[tuple[str, AssumedRole | None], Place], step: Callable[[], None]
) -> _Tally:
    """Return what is at the new place of a root: all files by size, and a sample by content."""
    tally = _Tally()
    try:
        media = open_media(context, root.dataset_id, early=True)
    except Conflict:  # it has no media yet
        return tally
    role = media.generation.summary.role_of(root.number) if is_remote(root.after) else None
    place = places.setdefault((root.after, role), Place(root.after, context.settings, role))
    for block in file_blocks(media):
        step()
        rows = block.to_pylist()
        rows = [row for row in rows if row["root"] == root.number]
        paths = [path_of_text(row["path"], row["path_raw"]) for row in rows]
        for row, path, look in zip(rows, paths, place.look(paths), strict=True):
            _count(tally, row, path, look.size_bytes, look.fault)
    _compare(tally, root, Reader(context.settings, role), step)
    return tally


def _count(tally: _Tally, row: Mapping[str, Any], path: str, size: int | None, fault: str | None) -> None:
    if fault is not None:
        tally.missing += fault == GONE
        tally.unreadable += fault != GONE
        tally.note(path, fault)
    elif row["size_bytes"] not in (None, size):
        tally.different += 1
        tally.note(path, f"it has {counted(size or 0, 'bytes')}, and had {row['size_bytes']:,}")
    elif row["content_hash"] is not None and size is not None:
        tally.offer(path, row["content_hash"], size)
    tally.files += 1


def _compare(tally: _Tally, root: _Root, reader: Reader, step: Callable[[], None]) -> None:
    """Compare the content of the sample with what was indexed, until enough was read."""
    left = _COMPARED_BYTES
    for each in tally.sample:
        if tally.compared and each.size_bytes > left:
            continue
        step()
        left -= each.size_bytes
        try:
            digest = reader.digest(locate(root.after, each.path))
        except (CannotDecode, Unavailable) as error:
            tally.unreadable += 1
            tally.note(each.path, str(error))
            continue
        tally.compared += 1
        if digest != each.content_hash:
            tally.different += 1
            tally.note(each.path, "it has another content of the same size")


def _record(root: _Root, tally: _Tally) -> RelocatedRoot:
    return RelocatedRoot(
        dataset_id=root.dataset_id,
        dataset_name=root.name,
        before=_shown(root.before),
        after=_shown(root.after),
        files=tally.files,
        missing=tally.missing,
        unreadable=tally.unreadable,
        compared=tally.compared,
        different=tally.different,
        examples=tally.examples,
    )


def _obstacle(after: str, roots: Sequence[RelocatedRoot], places: Iterable[Place]) -> _Obstacle | None:
    """Return what the files at the new place say against a relocation; None if they are the same."""
    fault = next((f"{_shown(each.root)}: {fault}" for each in places if (fault := each.fault()) is not None), None)
    if fault is not None:
        return _Obstacle(f"the new place cannot be used: {fault}", can_be_forced=False)
    files, missing, unreadable, different = (
        sum(getattr(each, name) for each in roots) for name in ("files", "missing", "unreadable", "different")
    )
    examples = [line for each in roots for line in each.examples][:_SHOWN]
    named = f": {'; '.join(examples)}" if examples else ""
    go_on = "Give the folder that has the files at the same paths as before, or go on with force=True (--force)"
    if different:
        return _Obstacle(
            f"{counted(different, 'files')} of {files:,} at {_shown(after)} are not those that were indexed{named}. "
            f"If they were edited since, force=True (--force) goes on; otherwise it is another folder",
            can_be_forced=True,
        )
    if 2 * (missing + unreadable) > files:
        return _Obstacle(
            f"{counted(missing, 'files')} of {files:,} are missing at {_shown(after)}"
            f"{f', and {unreadable:,} cannot be read' if unreadable else ''}{named}. {go_on}",
            can_be_forced=True,
        )
    return None


def _commit(context: Context, moving: Sequence[_Root]) -> None:
    """Store the new roots of all datasets in one transaction.

    Raises:
        Conflict: a task works on one of the datasets, or its sources have changed since they were read.
    """
    context.runner.settle()
    of_dataset: dict[str, list[_Root]] = {}
    for each in moving:
        of_dataset.setdefault(each.dataset_id, []).append(each)
    with context.catalog.write() as connection:
        task_rows.fail_interrupted(connection)
        for dataset_id, changes in of_dataset.items():
            name = changes[0].name
            if (busy := task_rows.running_on(connection, dataset_id)) is not None:
                raise Conflict(
                    f"Operation '{OPERATION}' is blocked while {busy} task of dataset {name!r} is running; wait for "
                    "it, or abort it. Nothing was changed"
                )
            roots = datasets.get_roots(connection, dataset_id)
            for each in changes:
                if each.number >= len(roots) or roots[each.number] != each.before:
                    raise Conflict(f"the sources of dataset {name!r} were changed meanwhile; nothing was changed")
                roots[each.number] = each.after
            datasets.put_roots(connection, dataset_id, roots)
