"""Division of exported images into parts for training, validation and tests."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import RowIds
from framedex.core.counts import counted
from framedex.errors import InvalidInput
from framedex.export.objects import as_condition, media_of
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, DUPLICATES, NEAR
from framedex.storage.table_versions import ROW_ID

Select = Callable[[Media], Condition | RowIds]
"""Return the media of a part."""
SplitRequest = Mapping[str, float | Select]
"""The parts by name: the share of each, or the function that selects its media."""
_NAME = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_TOLERANCE = 1e-9
_MAX_PARTS = 100
_TOGETHER = (NEAR, DUPLICATES[0])
"""Columns of the groups that stay together: images that are alike, and copies."""


@dataclass(frozen=True)
class Splits:
    """The parts of an export.

    Attributes:
        names: of the parts, in the order of the request.
        rows: the media that are in a part, in row order.
        codes: int8, shape (len(rows),): index of each one's part in *names*.
        media_ids: the ids of these media.
        left_out: the number of selected media that are in no part.
    """

    names: tuple[str, ...]
    rows: RowIds
    codes: npt.NDArray[np.int8]
    media_ids: pa.Array
    left_out: int

    def of(self, media_ids: pa.Array) -> pa.Array:
        """Return the names of the parts that some media are in."""
        positions = pc.index_in(media_ids, value_set=self.media_ids)
        return pa.array(self.names, pa.string()).take(pa.array(self.codes).take(positions))


def check_request(split: Any, parse: Callable[[Any], Select]) -> SplitRequest:
    """Return the parts of an export as requested by a user.

    Args:
        split: a mapping of names to shares, or of names to filters.
        parse: returns the function that selects the media of a filter; raises if it is invalid.

    Raises:
        InvalidInput: it is no such mapping.
    """
    if not isinstance(split, Mapping) or not split:
        raise InvalidInput(
            "split must map the name of each part to its share, such as {'train': 0.8, 'val': 0.2}, or to a filter, "
            f"such as {{'train': vql.tags('train')}}, not {split!r}"
        )
    for name in split:
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            raise InvalidInput(
                f"a part of a split is named by letters, digits, '_' and '-', such as 'train', not {name!r}"
            )
    if len({name.lower() for name in split}) < len(split):
        raise InvalidInput(f"the parts of a split must differ in more than case: {', '.join(split)}")
    shares = [each for each in split.values() if isinstance(each, int | float) and not isinstance(each, bool)]
    if not shares:
        return {name: parse(each) for name, each in split.items()}
    if len(shares) < len(split):
        raise InvalidInput(f"a split has either shares or filters, not both: {split!r}")
    if not all(0 < each <= 1 for each in shares) or sum(shares) > 1 + _TOLERANCE:
        raise InvalidInput(f"the shares of a split must be above 0, and at most 1 together, not {dict(split)!r}")
    return {name: float(each) for name, each in split.items()}


def checked_shares(parts: Any, stratify: Any = None) -> dict[str, float]:
    """Return the share of each part of a split into which all rows go.

    Args:
        parts: the parts as requested by a user.
        stratify: ``labels`` or None, as requested by a user.

    Raises:
        InvalidInput: *parts* is no mapping of up to 100 names to shares that are 1 together, or *stratify* is neither.
    """
    if stratify not in (None, "labels"):
        raise InvalidInput(f"stratify must be 'labels' or None, not {stratify!r:.60}")
    shares = {name: each for name, each in check_request(parts, _no_filter).items() if isinstance(each, float)}
    if abs(sum(shares.values()) - 1) > _TOLERANCE:
        raise InvalidInput(f"the shares of a split must be 1 together, so that each row is in a part, not {parts!r}")
    if len(shares) > _MAX_PARTS:
        raise InvalidInput(f"a split has at most {_MAX_PARTS} parts, not {len(shares)}")
    return shares


def _no_filter(part: Any) -> Any:
    raise InvalidInput(f"view.split takes the share of each part, such as 0.8, not {part!r:.60}")


def divide(media: Media, rows: Condition | RowIds, request: SplitRequest) -> Splits:
    """Divide media into parts.

    By shares, frames of one video and near-duplicates are in one part, so that no image of a test was trained on. The
    order of the ids decides, which are hashes, so another export of the same images divides them equally.

    Args:
        media: the dataset's media.
        rows: the selected media.
        request: the parts.

    Raises:
        InvalidInput: a media item is in two parts.
    """
    all_rows = media.row_ids(rows) if isinstance(rows, Condition) else np.sort(rows)
    shares = {name: each for name, each in request.items() if isinstance(each, float)}
    if shares:
        codes = divide_by_shares(media, all_rows, list(shares.values()))
    else:
        codes = _by_filter(media, all_rows, {name: each for name, each in request.items() if callable(each)})
    chosen = all_rows[codes >= 0]
    ids = media.take(chosen.tolist(), ["media_id"])["media_id"].combine_chunks()
    return Splits(tuple(request), chosen, codes[codes >= 0], ids, len(all_rows) - len(chosen))


def _by_filter(media: Media, rows: RowIds, parts: Mapping[str, Select]) -> npt.NDArray[np.int8]:
    members = {}
    for name, select in parts.items():
        chosen = select(media)
        members[name] = np.isin(rows, media.row_ids(chosen) if isinstance(chosen, Condition) else chosen)
    for (one, first), (other, second) in combinations(members.items(), 2):
        if count := int(np.count_nonzero(first & second)):
            raise InvalidInput(
                f"{counted(count, 'images', 'are')} in two parts of the split, {one!r} and {other!r}; their filters "
                "must exclude each other"
            )
    codes = np.full(len(rows), -1, np.int8)
    for number, mask in enumerate(members.values()):
        codes[mask] = number
    return codes


def divide_by_shares(
    media: Media, rows: RowIds, shares: list[float], *, seed: int | None = None, by_labels: bool = False
) -> npt.NDArray[np.int8]:
    """Return the number of each row's part; -1 for rows in no part.

    Frames of one video and near-duplicates are in one part. Objects are in the part of their image, and shares are
    those of the images.

    Args:
        media: the dataset's media, or the objects in them.
        rows: uint64, shape (N,), ascending.
        shares: the share of each part, at most 1 together.
        seed: order groups of rows at random, the same for the same seed and paths; None for the order of their ids,
            which are hashes.
        by_labels: give each part its share of the images with the same labels, too.

    Returns:
        int8, shape (N,).
    """
    if media.parents is not None:
        return _by_media(media, rows, shares, seed=seed, by_labels=by_labels)
    groups = _groups(media, rows, seed)
    group = groups.indices.to_numpy()
    sizes = np.bincount(group, minlength=len(groups.dictionary))
    order = pc.sort_indices(groups.dictionary).to_numpy()  # ids are hashes, so their order is random and stays
    if by_labels:
        order = order[np.argsort(_labels_of_groups(media, rows, group)[order], kind="stable")]
        spread = np.empty(len(order), np.int8)
        spread[order] = _spread(sizes[order], shares)
        return np.asarray(spread[group], np.int8)
    middles = np.empty(len(order))
    middles[order] = (np.cumsum(sizes[order]) - sizes[order] / 2) / max(len(rows), 1)
    limits = np.cumsum(shares)
    if abs(limits[-1] - 1) < _TOLERANCE:
        limits[-1] = 1.0
    codes = np.searchsorted(limits, middles, side="right")
    codes[codes == len(shares)] = -1
    chosen: npt.NDArray[np.int8] = codes[group].astype(np.int8)
    return chosen


def _labels_of_groups(media: Media, rows: RowIds, group: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Return a number for the labels of each group's first row; equal labels have equal numbers.

    Args:
        media: the dataset's media.
        rows: uint64, shape (N,), ascending.
        group: int, shape (N,): the group of each row.
    """
    text = f"SELECT {ROW_ID}, coalesce(array_to_string(list_sort(labels), chr(31)), '') AS labels FROM chosen"
    table = media.query(f"{text} ORDER BY {ROW_ID}", as_condition(rows), ["labels"], keep=False)
    labels = table["labels"].combine_chunks().cast(pa.string()).dictionary_encode()
    ranks = np.argsort(pc.sort_indices(labels.dictionary).to_numpy())  # so that the order of rows does not matter
    _, first = np.unique(group, return_index=True)
    return np.asarray(ranks[labels.indices.to_numpy()[first]], np.int64)


def _spread(sizes: npt.NDArray[np.integer[Any]], shares: list[float]) -> npt.NDArray[np.int8]:
    """Return the part of each of some groups: always that which lacks most, so that each run of groups is divided.

    Args:
        sizes: int, shape (groups,): the numbers of their rows.
        shares: the share of each part, at most 1 together; what is left is part -1.

    Returns:
        int8, shape (groups,).
    """
    rest = max(0.0, 1 - sum(shares))
    wanted = [*shares, rest] if rest > _TOLERANCE else list(shares)
    lacking, codes = [0.0] * len(wanted), np.empty(len(sizes), np.int8)
    for number, size in enumerate(sizes.tolist()):
        for part, share in enumerate(wanted):
            lacking[part] += share * size
        chosen = max(range(len(wanted)), key=lacking.__getitem__)
        lacking[chosen] -= size
        codes[number] = chosen if chosen < len(shares) else -1
    return codes


def _by_media(
    objects: Media, rows: RowIds, shares: list[float], *, seed: int | None, by_labels: bool
) -> npt.NDArray[np.int8]:
    """Return the number of the part of the media item that contains each object."""
    assert objects.parents is not None, "they are objects"
    if not len(rows):
        return np.empty(0, np.int8)
    holders = media_of(objects, rows)
    codes = divide_by_shares(objects.parents, holders, shares, seed=seed, by_labels=by_labels)
    parents = objects.take(rows.tolist(), ["parent_id"])["parent_id"]
    ids = objects.parents.values_at(holders, "media_id")
    chosen: npt.NDArray[np.int8] = codes[pc.index_in(parents, value_set=ids).to_numpy()]
    return chosen


def random_order(media: Media, seed: int) -> tuple[str, tuple[str, ...]]:
    """Return an SQL expression whose order is random, but the same for the same seed and paths; and its columns.

    It is the MD5 hash of the seed, the path within the source, and the frame or the box.
    """
    present = set(media.table.schema.names)
    columns = tuple(name for name in ("path", "frame_number", *BOX) if name in present)
    return f"md5(concat_ws('/', '{int(seed)}', {', '.join(columns)}))", columns


def _groups(media: Media, rows: RowIds, seed: int | None) -> pa.DictionaryArray:
    """Return the group of each row: the least media id of the group, or a hash of its least path and the seed."""
    present = set(media.table.schema.names)
    by = [name for name in ("video_id", *_TOGETHER) if name in present]
    keys = ", ".join([*(f"'{name}' || CAST({name} AS VARCHAR)" for name in by), "media_id"])
    value, columns = ("media_id", ()) if seed is None else ("path", ("path",))
    least = f"min({value}) OVER (PARTITION BY coalesce({keys}))"
    part = least if seed is None else f"md5(concat_ws('/', '{int(seed)}', {least}))"
    text = f"SELECT {ROW_ID}, {part} AS part FROM chosen ORDER BY {ROW_ID}"
    table = media.query(text, as_condition(rows), ["media_id", *by, *columns], keep=False)
    return table["part"].combine_chunks().cast(pa.string()).dictionary_encode()
