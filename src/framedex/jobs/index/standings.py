"""The comparison of the members of near-duplicate groups at full size, which shows the original."""

import collections
import logging
import os
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.fidelity import Doubt, Fidelity, measure_fidelity, stand
from framedex.core.arrays import Pixels
from framedex.core.progress import Progress
from framedex.errors import Unavailable
from framedex.executors import open_executor
from framedex.jobs.context import JobContext
from framedex.jobs.index.columns import Columns, read_columns
from framedex.jobs.index.copies import LITTLE
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.media.decoded_image import DecodedImage
from framedex.media.jpeg import Traits
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES, STANDING
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

_LOG = logging.getLogger(__name__)
_MOST = 32  # members of a group that are compared
_STAGE = "comparing copies"
_Groups = npt.NDArray[np.int32]


def no_standings(count: int) -> Columns:
    """Return the columns without any value: float32, shape (count,)."""
    return {name: np.full(count, np.nan, np.float32) for name in STANDING}


def kept_standings(table: Table, kept: npt.NDArray[np.bool_] | None = None) -> Columns:
    """Return the columns as a table has them.

    Args:
        table: the table of media or objects.
        kept: bool, shape (rows,): only these rows.
    """
    columns = no_standings(table.count()) | read_columns(table, STANDING)
    return {name: values.copy() if kept is None else values[kept] for name, values in columns.items()}


@dataclass(frozen=True)
class Comparison:
    """The comparison of copies in a job.

    Attributes:
        job: the context of the job.
        roots: source roots by number; None for those of the job.
    """

    job: JobContext
    roots: Sequence[str] | None = None

    def columns(self, table: Table, groups: _Groups, copies: CopyPairs | None, progress: Progress) -> Columns:
        """Return the columns of the standings of all rows.

        Only groups whose members changed are compared; of large ones the first few members, and of equal files one. Of
        a group that has nothing but equal files none is read: nothing tells its members apart.

        Args:
            table: the media table before its index is written.
            groups: int32, shape (rows,): the group of each row at the lowest level; negative for none.
            copies: pairs of copies, which say what members show beside others of their group.
            progress: called with the stage and the share that is done; raises to stop.
        """
        columns = kept_standings(table)
        before = read_columns(table, [DUPLICATES[0]]).get(DUPLICATES[0], np.full(len(groups), -1))
        changed = _changed(groups, np.asarray(before), columns)
        for values in columns.values():
            values[changed | (groups < 0)] = np.nan
        members = np.flatnonzero(changed)
        members = members[np.lexsort((members, groups[members]))]
        starts = np.flatnonzero(np.diff(groups[members], prepend=-1))
        rank = np.arange(len(members)) - np.repeat(starts, np.diff(starts, append=len(members)))
        members = members[rank < _MOST]
        if len(members):
            try:
                known = NO_PAIRS if copies is None else copies
                shown = _Shown(known.shares_beside(groups), known.crops(groups))
                self._compare(table, groups, members, shown, columns, progress)
            except Unavailable as error:
                _LOG.warning("copies are not compared, because images cannot be read: %s", error)
        return columns

    def _compare(
        self,
        table: Table,
        groups: _Groups,
        members: npt.NDArray[np.int64],
        shown: "_Shown",
        columns: Columns,
        progress: Progress,
    ) -> None:
        media = Media(
            self.job.dataset_id,
            self.job.head,
            table,
            Sql(),
            self.job.roots if self.roots is None else tuple(self.roots),
        )
        rows = _rows(media, members)
        equal = _equal_files(members, groups, rows)
        for number, same in _without_others(equal, groups).items():
            width, height = (rows[number][name] for name in ("width", "height"))
            if width and height and all(_is_there(media.file_of(rows[each])) for each in same):
                del equal[number]
                columns[STANDING[0]][same] = width * height
                columns["keep_doubt"][same] = Doubt.NONE
        unread = self._compare_files(media, rows, equal, groups, shown, columns, progress)
        if unread:  # other files with the same content may still be there
            alone = {number: [number] for number in members.tolist() if int(groups[number]) in unread}
            self._compare_files(media, rows, alone, groups, shown, columns, lambda stage, _share: progress(stage, 1.0))

    def _compare_files(
        self,
        media: Media,
        rows: Mapping[int, Mapping[str, Any]],
        equal: Mapping[int, Sequence[int]],
        groups: _Groups,
        shown: "_Shown",
        columns: Columns,
        progress: Progress,
    ) -> set[int]:
        """Set the standings of members, by the file that is read for them, in order of their groups.

        Returns:
            The groups in which a file that is read for several members cannot be read.
        """
        waiting: list[tuple[int, Any]] = []
        unread: set[int] = set()
        done = 0
        with ExitStack() as stack:
            executor = stack.enter_context(open_executor(self.job.settings, is_little=len(equal) < LITTLE))
            results = decode_rows(
                media, (rows[number] for number in equal), _measured, _failed, detail=None,
                settings=self.job.settings, run_length=4, executor=executor,
            )  # fmt: skip
            for each in stack.enter_context(closing(results)):
                if each is None:
                    continue
                number, member = each
                if waiting and groups[waiting[0][0]] != groups[number]:
                    _set_standings(columns, waiting, shown)
                    waiting = []
                waiting += [(twin, member) for twin in equal[number]]
                if member is None and len(equal[number]) > 1:
                    unread.add(int(groups[number]))
                done += 1
                progress(_STAGE, done / len(equal))
        _set_standings(columns, waiting, shown)
        return unread


def _changed(groups: _Groups, before: npt.NDArray[Any], columns: Columns) -> npt.NDArray[np.bool_]:
    """Return the members of groups that have other members than before, or were never compared: bool, shape (rows,)."""
    count = int(max(groups.max(initial=-1), before.max(initial=-1))) + 1
    is_other = groups != before
    is_changed = np.zeros(count, dtype=bool)
    for numbers in (groups, before):
        is_changed[numbers[is_other & (numbers >= 0)]] = True
    is_compared = np.zeros(count, dtype=bool)
    known = (groups >= 0) & ~np.isnan(columns[STANDING[0]])
    is_compared[groups[known]] = True
    member = groups >= 0
    changed = np.zeros(len(groups), dtype=bool)
    changed[member] = (is_changed | ~is_compared)[groups[member]]
    return changed


def _equal_files(
    members: npt.NDArray[np.int64], groups: _Groups, rows: Mapping[int, Mapping[str, Any]]
) -> dict[int, list[int]]:
    """Return members with equal files, by the first of them in its group: only this one is decoded and measured."""
    first: dict[tuple[Any, ...], int] = {}
    equal: dict[int, list[int]] = {}
    for number in members.tolist():
        row = rows[number]
        key = (int(groups[number]), row["content_hash"] or number, row.get("frame_number"))
        equal.setdefault(first.setdefault(key, number), []).append(number)
    return equal


def _without_others(equal: Mapping[int, Sequence[int]], groups: _Groups) -> dict[int, Sequence[int]]:
    """Return the entries of :func:`_equal_files` that are all members of their groups which are compared."""
    files = collections.Counter(int(groups[number]) for number in equal)
    return {number: same for number, same in equal.items() if files[int(groups[number])] == 1}


def _is_there(path: str | None) -> bool:
    """Return whether there is a file at a path; False for what is no file of this machine."""
    return path is not None and os.path.isfile(path)  # noqa: PTH113 - names that are no text


def _rows(media: Media, members: npt.NDArray[np.int64]) -> dict[int, dict[str, Any]]:
    """Return the rows of members by number, with what their locations need."""
    wanted, found, start = np.sort(members), {}, 0
    columns = dict.fromkeys([*media.location, "error", "acutance", "content_hash", "width", "height"])
    for batch in media.table.scan(list(columns)):
        some = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, start + batch.num_rows)]
        for number, row in zip(some.tolist(), batch.take(some - start).to_pylist(), strict=True):
            found[number] = {**row, "number": number}
        start += batch.num_rows
    return found


@dataclass(frozen=True)
class _Shown:
    """The parts of others that rows show.

    Attributes:
        shares: the share of a row that shows another member of its group, where it shows other content beside it.
        crops: rows that show a part of another member only.
    """

    shares: Mapping[int, float]
    crops: Set[int]


@dataclass(frozen=True)
class GroupMember:
    """The measures of a member of a group.

    Attributes:
        fidelity: of its pixels.
        acutance: the share of brightness steps that a blur takes away; NaN if unknown.
        colour_share: the number of its colour values as a share of those of brightness; 0 for grey images.
        has_metadata: whether its file has data about the image.
    """

    fidelity: Fidelity
    acutance: float
    colour_share: float
    has_metadata: bool

    @classmethod
    def of(cls, pixels: Pixels, traits: Traits, acutance: float | None) -> "GroupMember":
        """Return the measures of an image: uint8, shape (H, W, 3), RGB, at full size."""
        fidelity = measure_fidelity(pixels, traits.steps, table=traits.table, is_lossy=traits.is_lossy)
        colour = traits.colour_share if fidelity.has_colour else 0.0
        return cls(fidelity, np.nan if acutance is None else acutance, colour, traits.has_metadata)


def _measured(row: Any, image: DecodedImage) -> tuple[int, GroupMember | None]:
    return row["number"], GroupMember.of(image.pixels, image.traits, row["acutance"])


def _failed(row: Any, _reason: str) -> tuple[int, GroupMember | None]:
    return row["number"], None


def _set_standings(columns: Columns, group: list[tuple[int, GroupMember | None]], shown: _Shown) -> None:
    """Set the values of the members of a group, in place."""
    members = sorted(((number, member) for number, member in group if member is not None), key=itemgetter(0))
    numbers = [number for number, _ in members]
    shares = [shown.shares.get(number, 1.0) for number in numbers]
    values = compare_members([member for _, member in members], shares, [number in shown.crops for number in numbers])
    for name, of_members in values.items():
        columns[name][numbers] = of_members


def compare_members(
    members: Sequence[GroupMember], shares: Sequence[float] = (), crops: Sequence[bool] = ()
) -> dict[str, npt.NDArray[np.float32]]:
    """Return the values of the members of a group by column: float32, shape (N,); NaN if unknown.

    Args:
        members: the N members.
        shares: the share of each that shows another member, where it shows other content beside it, which counts as
            added pixels; by default 1.
        crops: whether each shows a part of another member only; by default none does.
    """
    shares, crops = shares or [1.0] * len(members), crops or [False] * len(members)
    standings = stand([member.fidelity for member in members], [share < 1 for share in shares], crops)
    # Sharpening raises the acutance above that of the original, so it counts only as far as half of the copies have it.
    known = sorted(member.acutance for member in members if not np.isnan(member.acutance))
    usual = known[len(known) // 2] if known else np.nan
    rows = []
    for member, standing, share, is_crop in zip(members, standings, shares, crops, strict=True):
        beside = (1 - share) * member.fidelity.width * member.fidelity.height
        rows.append(
            (
                standing.detail * share, standing.surplus + beside, standing.altered, member.fidelity.step,
                member.colour_share, float(member.has_metadata), float(standing.is_derived),
                float(member.fidelity.is_recompressed), standing.distance, float(standing.sources),
                min(member.acutance, usual), standing.closest, float(is_crop), standing.doubt, member.fidelity.clipped,
            )
        )  # fmt: skip
    values = np.array(rows, np.float64).reshape(-1, len(STANDING)).astype(np.float32)
    return dict(zip(STANDING, values.T, strict=True))
