"""The comparison of two states of a dataset: which media were added, removed or changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.view import PinnedView, View
from framedex.core.checks import check_integer
from framedex.errors import InvalidInput
from framedex.export.table_columns import flag_name
from framedex.issue_types import issue_types
from framedex.operations.context import Context
from framedex.operations.pinned_rows import PinnedRows
from framedex.storage.id_index import find_halves, id_halves
from framedex.storage.media import EVERYTHING, Media

Change = Literal["added", "removed", "replaced", "relabelled", "retagged", "recaptioned", "newly_flagged", "resolved"]
CHANGES: tuple[Change, ...] = get_args(Change)
"""What can happen to a media item between two states, in the order in which a comparison lists it."""
_EDITED: dict[Change, str] = {"relabelled": "labels", "retagged": "tags", "recaptioned": "caption"}
_HASH = "content_hash"
_SCHEMA = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("image_filename", pa.string()),
        pa.field("change", pa.string()),
        pa.field("before", pa.list_(pa.string())),
        pa.field("after", pa.list_(pa.string())),
    ]
)
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Found:
    """The media with one change.

    Attributes:
        rows: int64: their rows in the later state; of those that were removed in the earlier one.
        before, after: lists of texts of what changed; None for nothing to say.
    """

    rows: Rows
    before: Any = None
    after: Any = None


class StateComparison:
    """The difference between two states of a dataset.

    A media item is *added* or *removed* by its id; *replaced* if its file has another content; *relabelled*, *retagged*
    or *recaptioned* if it has other labels, tags or another caption; *newly flagged* with the issue types that it has
    only in the later state, and *resolved* with those that it has only in the earlier one. An item can have several
    changes. The comparison stays as it is while the dataset changes.

    Args:
        context: the workspace.
        before: the media in the earlier state.
        after: the media in the later state.
    """

    def __init__(self, context: Context, before: Media, after: Media) -> None:
        self._context, self._before, self._after = context, before, after
        self._found: dict[Change, _Found] = {each: _Found(np.empty(0, np.int64)) for each in CHANGES}
        if before.generation.id != after.generation.id:
            self._compare()

    @property
    def nbytes(self) -> int:
        """The bytes of the rows and texts."""
        found = self._found.values()
        texts = sum(each.nbytes for one in found for each in (one.before, one.after) if each is not None)
        return int(1024 + texts + sum(each.rows.nbytes for each in found))

    @property
    def counts(self) -> dict[str, int]:
        """The number of media with each change; 0 for changes that did not happen."""
        return {change: len(found.rows) for change, found in self._found.items()}

    @property
    def generations(self) -> tuple[str, str]:
        """The ids of the generations that are compared, the earlier one first."""
        return self._before.generation.id, self._after.generation.id

    def to_arrow(self, change: Change | None = None, *, offset: int = 0, limit: int | None = None) -> pa.Table:
        """Return a row for each change of each media item.

        Args:
            change: only rows with this change; None for all.
            offset: the number of rows of each change that are left out, from the first on.
            limit: the maximum number of rows of each change; None for all.

        Returns:
            A table, change by change, each in the order of ingestion: ``media_id``, ``image_filename``, ``change``, and
            ``before`` and ``after``: lists of the labels, tags, captions or issue types that changed, else null.

        Raises:
            InvalidInput: there is no such change.
        """
        check_integer("offset", offset, minimum=0)
        check_integer("limit", limit, minimum=0, optional=True)
        part = slice(offset, None if limit is None else offset + limit)
        wanted = CHANGES if change is None else (check_change(change),)
        return pa.concat_tables([_SCHEMA.empty_table(), *(self._table(each, part) for each in wanted)])

    def view(self, change: Change) -> View:
        """Return the media with a change as a view.

        It is of the present dataset, and leaves out what that does not have any more. For ``removed`` it is of the
        earlier state, which can be read for ten minutes if no snapshot keeps it.

        Raises:
            InvalidInput: there is no such change.
        """
        check_change(change)
        media = self._before if change == "removed" else self._after
        rows = media.row_ids(EVERYTHING)[self._found[change].rows]
        step, owner = PinnedRows(media, rows, self.name_of(change)), media.generation.dataset_id
        if change == "removed":
            return PinnedView.of(self._context, owner, (step,), media, objects=False)
        return View(self._context, owner, (step,))

    def name_of(self, change: Change) -> str:
        """Return a text that is equal for the same change between the same states."""
        return f"{change} {self._before.generation.id} {self._after.generation.id}"

    def _table(self, change: Change, part: slice) -> pa.Table:
        found = self._found[change]
        state = self._before if change == "removed" else self._after
        rows = state.row_ids(EVERYTHING)[found.rows[part]]
        step = PinnedRows(state, rows, f"{change} {state.generation.id} {part}")
        view = PinnedView.of(self._context, state.generation.dataset_id, (step,), state, objects=False)
        names = view.to_arrow(["media_id", "image_filename"])
        count, kind = len(rows), _SCHEMA.field("before").type
        texts = (pa.nulls(count, kind) if each is None else each[part] for each in (found.before, found.after))
        return pa.table([*names.columns, pa.array([change] * count, pa.string()), *texts], schema=_SCHEMA)

    def _compare(self) -> None:
        ids = [id_halves(_read(self._context, each, ["media_id"])[0].combine_chunks()) for each in self._states]
        place = _places(ids[0], ids[1])
        self._found["added"] = _Found(np.flatnonzero(place < 0))
        self._found["removed"] = _Found(np.flatnonzero(_places(ids[1], ids[0]) < 0))
        after = np.flatnonzero(place >= 0)
        before = place[after]
        hashes = self._both([_HASH], before, after, stored=True)
        self._found["replaced"] = _Found(after[_differ(*(each[0] for each in hashes))])
        for change, column in _EDITED.items():
            values = [each[0] for each in self._both([column], before, after)]
            rows = np.flatnonzero(_differ(*values))
            self._found[change] = _Found(after[rows], *(_lists(each.take(pa.array(rows))) for each in values))
        self._compare_issues(before, after)

    def _compare_issues(self, before: Rows, after: Rows) -> None:
        types = list(issue_types())
        flags = [
            np.stack([np.asarray(pc.fill_null(column, fill_value=False)) for column in each], axis=1)
            for each in self._both([flag_name(each) for each in types], before, after)
        ]
        names = np.array(types)
        pairs: tuple[tuple[Change, int], ...] = (("newly_flagged", 1), ("resolved", 0))
        for change, state in pairs:
            only = flags[state] & ~flags[1 - state]
            rows = np.flatnonzero(only.any(axis=1))
            which = pa.array([names[each].tolist() for each in only[rows]], _SCHEMA.field("before").type)
            self._found[change] = _Found(after[rows], *((None, which) if state else (which, None)))

    @property
    def _states(self) -> tuple[Media, Media]:
        return self._before, self._after

    def _both(self, columns: Sequence[str], before: Rows, after: Rows, *, stored: bool = False) -> list[list[Any]]:
        """Return columns of rows that both states have."""
        found = []
        for state, rows in zip(self._states, (before, after), strict=True):
            if stored:
                values = [state.values(EVERYTHING, each)[1] for each in columns]
            else:
                values = [each.combine_chunks() for each in _read(self._context, state, columns).columns]
            found.append([each.take(pa.array(rows)) for each in values])
        return found

    def __repr__(self) -> str:
        parts = [f"{count:,} {change.replace('_', ' ')}" for change, count in self.counts.items() if count]
        return f"<framedex.StateComparison: {', '.join(parts) or 'nothing differs'}>"


def check_change(change: str) -> Change:
    """Return the name of a change.

    Raises:
        InvalidInput: there is no such change.
    """
    found = next((each for each in CHANGES if each == change), None)
    if found is None:
        raise InvalidInput(f"a change is one of {', '.join(CHANGES)}, not {change!r}")
    return found


def _read(context: Context, state: Media, columns: Sequence[str]) -> pa.Table:
    """Return columns of all media of a state, in the order of ingestion."""
    view = PinnedView.of(context, state.generation.dataset_id, (), state, objects=False)
    return view.to_arrow(columns)


def _places(ids: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> Rows:
    """Return the row of each wanted id among ids; -1 for others."""
    order = np.argsort(ids[:, 0], kind="stable")
    found = find_halves(ids[order], wanted)
    return np.where(found < 0, -1, np.append(order, -1)[found])


def _differ(before: Any, after: Any) -> npt.NDArray[np.bool_]:
    """Return whether values differ, row by row; null is another value, but an empty list is none."""
    if pa.types.is_null(before.type) or pa.types.is_null(after.type):
        return np.asarray(np.asarray(before.is_null()) != np.asarray(after.is_null()))
    if not pa.types.is_list(before.type):
        missing = np.asarray(before.is_null()), np.asarray(after.is_null())
        same = np.asarray(pc.fill_null(pc.equal(before, after), fill_value=False))
        return np.asarray(~(same | (missing[0] & missing[1])))
    lengths = [np.asarray(pc.fill_null(pc.list_value_length(each), 0)) for each in (before, after)]
    differ: npt.NDArray[np.bool_] = lengths[0] != lengths[1]
    rows = np.flatnonzero(~differ & (lengths[0] > 0))
    if len(rows):
        flat = [pc.list_flatten(each.take(pa.array(rows))) for each in (before, after)]
        unequal = ~np.asarray(pc.fill_null(pc.equal(*flat), fill_value=False))
        starts = np.concatenate([[0], np.cumsum(lengths[0][rows])[:-1]])
        differ[rows] = np.logical_or.reduceat(unequal, starts)
    return differ


def _lists(values: Any) -> Any:
    """Return texts as lists of one text, and null as the empty list; lists stay."""
    if pa.types.is_list(values.type):
        return pc.if_else(values.is_valid(), values, pa.scalar([], values.type)).cast(_SCHEMA.field("before").type)
    held = np.asarray(values.is_valid())
    offsets = np.concatenate([[0], np.cumsum(held)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values.drop_null().cast(pa.string()))
