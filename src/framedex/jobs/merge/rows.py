"""Rows of a dataset as rows of the merged one: with other ids, places and numbers, and without an index."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.ids import media_id, object_id
from framedex.jobs.merge.definitions import MergedDefinitions
from framedex.jobs.merge.moved_media import (
    NEW,
    MovedMedia,
    PlacedRoots,
    moved_video_id,
    new_origin,
    placed_paths,
)
from framedex.storage.definitions import TAGGED_AT, TAGGED_SCHEMA, TAGS
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import BOX, ID_LOCATION, MODEL_CAPTION, index_columns_of
from framedex.storage.table_names import IN_BASKET, KEEPER
from framedex.storage.table_versions import Table

_SEPARATOR = "\0"
_REPEATED = 4  # equal boxes of an image whose ids are recognised
_OF_ORIGINS = ("video_id", "path", "path_raw", "root", ID_LOCATION.name)


@dataclass(frozen=True)
class Moving:
    """The changes of the rows of the second dataset.

    Attributes:
        identities: of its media.
        placed: its source roots.
        definitions: tags and fields of both.
        first_batch: the number that its first batch gets.
        namespaces: the dataset ids from which ids of both are computed.
    """

    identities: MovedMedia
    placed: PlacedRoots
    definitions: MergedDefinitions
    first_batch: int
    namespaces: tuple[str, str]

    def media(self, table: Table) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns and the batches of the media that only the second dataset has."""
        names = _kept(table)
        fields = [self._field(table.schema.field(name)) for name in names]
        if self.placed.used and ID_LOCATION.name not in names:
            fields.append(ID_LOCATION)
        return pa.schema(fields), self._media(table, names, pa.schema(fields))

    def _media(self, table: Table, names: list[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in table.scan(names):
            is_new = self.identities.same[start : start + batch.num_rows] == NEW
            ids = self.identities.new_ids.slice(start, batch.num_rows)
            start += batch.num_rows
            if is_new.any():
                mask = pa.array(is_new)
                part, values = batch.filter(mask), {"media_id": ids.filter(mask)}
                if ID_LOCATION.name in schema.names:
                    values[ID_LOCATION.name] = self._origins(part, "media_id")
                yield self._moved(part, values, [*names, *schema.names[len(names) :]], schema)

    def _origins(self, batch: pa.RecordBatch, own: str) -> pa.Array:
        """Return the texts from which the ids of rows are computed that are not their locations, as bytes."""
        rows = batch.select(
            [name for name in dict.fromkeys((own, *_OF_ORIGINS)) if name in batch.schema.names]
        ).to_pylist()
        origins = [new_origin(row, row[own], self.placed) for row in rows]
        return pa.array([None if each is None else os.fsencode(each) for each in origins], pa.binary())

    def objects(self, table: Table, existing: IdIndex | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns and the batches of the objects in all media that the merged dataset has.

        Objects that the first dataset has already are left out: the same box with the same label in the same image.
        """
        names = _kept(table)
        schema = pa.schema([table.schema.field(name) for name in names])
        return schema, self._objects(table, names, schema, existing)

    def _objects(
        self, table: Table, names: list[str], schema: pa.Schema, existing: IdIndex | None
    ) -> Iterator[pa.RecordBatch]:
        for batch in table.scan(names):
            parents = self.identities.moved(batch.column("parent_id"))
            held = parents.is_valid()
            part, parents = batch.filter(held), parents.filter(held)
            ids = self._object_ids(part, parents.to_pylist())
            is_new = np.ones(len(ids), np.bool_) if existing is None else ~existing.contains(ids)
            if is_new.any():
                mask = pa.array(is_new)
                values = {"media_id": pa.array(ids, pa.string()).filter(mask), "parent_id": parents.filter(mask)}
                yield self._moved(part.filter(mask), values, names, schema)

    def _object_ids(self, batch: pa.RecordBatch, parents: list[str]) -> list[str]:
        """Return the ids of objects in the merged dataset, as an addition of their annotations computes them."""
        columns = ("media_id", "parent_id", "source", "labels", *BOX)
        found = []
        for parent, row in zip(parents, batch.select(list(columns)).to_pylist(), strict=True):
            box = " ".join(repr(row[name]) for name in BOX)
            label = (row["labels"] or [""])[0]
            found.append(self._object_id(row, f"{label}{_SEPARATOR}{box}", parent))
        return found

    def _object_id(self, row: Mapping[str, Any], box: str, parent: str) -> str:
        before, after = self.namespaces[1], self.namespaces[0]
        for model in ("", row["source"]):
            for number in range(_REPEATED):
                text = f"{model}{_SEPARATOR}{box}{_SEPARATOR}{number}"
                if object_id(before, row["parent_id"], text) == row["media_id"]:
                    return object_id(after, parent, text)
        return media_id(after, row["media_id"])  # its label was changed

    def _field(self, field: pa.Field) -> pa.Field:
        merged = self.definitions.columns.get(field.name)
        return field if merged is None else merged.column

    def _moved(
        self, batch: pa.RecordBatch, values: Mapping[str, pa.Array], names: list[str], schema: pa.Schema
    ) -> pa.RecordBatch:
        values = {**values, **placed_paths(batch, self.placed)}
        values["batch"] = pc.add(batch.column("batch"), pa.scalar(self.first_batch, pa.int32()))
        if "video_id" in names:
            values["video_id"] = self._video_ids(batch)
        if TAGS in names:
            values |= self.tag_lists(batch.column(TAGS), batch.column(TAGGED_AT))
        columns = [values[name] if name in values else batch.column(name) for name in names]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def tag_lists(self, tags: pa.Array, dates: pa.Array) -> dict[str, pa.Array]:
        """Return the columns about tags with the numbers of the merged dataset, without those of deleted tags."""
        numbers = self.definitions.tag_numbers
        pairs = [
            [(numbers[tag], date) for tag, date in zip(each or (), times or (), strict=True) if tag in numbers]
            for each, times in zip(tags.to_pylist(), dates.to_pylist(), strict=True)
        ]
        return _tag_columns(pairs)

    def _video_ids(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [name for name in _OF_ORIGINS if name in batch.schema.names]
        known: dict[str, str] = {}
        for row in batch.select(columns).to_pylist():
            if row["video_id"] is not None and row["video_id"] not in known:
                known[row["video_id"]] = moved_video_id(row, self.placed, self.namespaces)
        return pa.array([known.get(each) for each in batch.column("video_id").to_pylist()], pa.string())

    def videos(self, table: Table, existing: IdIndex | None) -> Iterator[pa.RecordBatch]:
        """Yield the videos that only the second dataset has, as rows of the merged one."""
        names = table.schema.names
        for batch in table.scan(names):
            ids = self._video_ids(batch)
            is_new = np.ones(len(ids), np.bool_) if existing is None else ~existing.contains(ids.to_pylist())
            part = batch.filter(pa.array(is_new))
            values = {ID_LOCATION.name: self._origins(part, "video_id")} if ID_LOCATION.name in names else {}
            yield self._moved(part, values, names, table.schema)


def _kept(table: Table) -> list[str]:
    """Return the columns of a table that no index wrote."""
    written = {*index_columns_of(table.schema.names)}
    return [name for name in table.schema.names if name not in written]


def filled_columns(
    first: Table, second: Table, moving: Moving, progress: Callable[[float], None]
) -> dict[str, pa.Array]:
    """Return the values of the first dataset's rows, with those that only the second one has for the same items.

    Labels, captions and fields are taken where the first dataset has none; tags of both are joined, what is in one
    basket is in the basket, and the keepers of both are keepers.

    Returns:
        Columns of all rows of the first dataset that change, by name.
    """
    same = moving.identities.same
    others = np.flatnonzero(same >= 0)
    rows, found = same[others], dict[str, pa.Array]()
    if not len(others):
        return found
    names = [name for name in second.schema.names if _is_value(name)]
    for number, name in enumerate(names):
        merged = moving.definitions.columns.get(name)
        target = name if merged is None else merged.column.name
        theirs = _column(second, name).take(pa.array(others))
        field = second.schema.field(name) if merged is None else merged.column
        mine = _column(first, target) if target in first.schema.names else pa.nulls(first.count(), field.type)
        held = mine.take(pa.array(rows))
        if name == KEEPER:
            joined = pc.max_element_wise(held, theirs.cast(held.type))  # the choice of a person comes first
        else:
            joined = pc.if_else(_is_empty(held), theirs.cast(held.type), held)
        if not joined.equals(held):
            found[target] = _replaced(mine, rows, joined)
        progress((number + 1) / len(names))
    return found | _joined_tags(first, second, moving, others, rows)


def _is_value(name: str) -> bool:
    return name in ("labels", "caption", MODEL_CAPTION.name, IN_BASKET, KEEPER) or name.startswith("field_")


def _column(table: Table, name: str) -> Any:
    return table.scan([name]).read_all().column(0).combine_chunks()


def _is_empty(values: Any) -> Any:
    if not pa.types.is_list(values.type):
        return values.is_null()
    return pc.fill_null(pc.equal(pc.list_value_length(values), 0), fill_value=True)


def _replaced(values: Any, rows: npt.NDArray[np.int64], new: Any) -> Any:
    places = np.arange(len(values))
    places[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([values, new]).take(pa.array(places))


def _joined_tags(
    first: Table, second: Table, moving: Moving, others: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> dict[str, pa.Array]:
    """Return the columns about tags, with those of the same items; of a tag of both, the date of the first dataset."""
    if TAGS not in second.schema.names:
        return {}
    theirs = moving.tag_lists(*(_column(second, name).take(pa.array(others)) for name in TAGGED_SCHEMA.names))
    has_tags = TAGS in first.schema.names
    mine = [_column(first, each.name) if has_tags else pa.nulls(first.count(), each.type) for each in TAGGED_SCHEMA]
    held = [each.take(pa.array(rows)) for each in mine]
    columns = [each.to_pylist() for each in (*held, *theirs.values())]
    pairs = []
    for tags, dates, others_tags, others_dates in zip(*columns, strict=True):
        own = dict(zip(tags or (), dates or (), strict=True))
        new = dict(zip(others_tags or (), others_dates or (), strict=True))
        pairs.append([*own.items(), *((tag, date) for tag, date in new.items() if tag not in own)])
    joined = _tag_columns(pairs)
    if joined[TAGS].equals(held[0]):
        return {}
    return {name: _replaced(column, rows, joined[name]) for name, column in zip(TAGGED_SCHEMA.names, mine, strict=True)}


def _tag_columns(pairs: list[list[tuple[int, Any]]]) -> dict[str, pa.Array]:
    """Return the columns about tags from (number, date) of the tags of each row."""
    return {
        field.name: pa.array([[pair[place] for pair in row] or None for row in pairs], field.type)
        for place, field in enumerate(TAGGED_SCHEMA)
    }
