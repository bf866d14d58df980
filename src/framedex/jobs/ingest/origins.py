"""Origins of ids: the texts from which the ids of files are computed that are not at their first place any more.

The id of a file is computed from its location, and stays when the file moves: its row then stores the text from which
the id was computed, its *origin*. A new file at a location that a moved one has left gets an origin of its own.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.jobs.ingest.placement import location_text
from framedex.storage import tables
from framedex.storage.media_rows import ID_LOCATION, MISSING_SINCE, path_of_text
from framedex.storage.table_versions import ROW_ID, Table

_SEPARATOR = "\0\0\0\0"  # other ids are computed from texts with up to three
_PLACE = ("path", "path_raw", "root")


def read_origins(table: Table) -> dict[str, str]:
    """Return the origins of all locations of which the id is not computed; empty where no file was moved.

    These are the locations of moved files, and those that they left and where another file may be now.
    """
    present, missing, used = dict[str, str](), dict[str, str](), set[str]()
    for row, origin in _rows(table):
        used.add(origin)
        if (location := _location_of(row)) is not None:  # what is where a row without a place was is another file
            (missing if row.get(MISSING_SINCE.name) is not None else present)[location] = origin
    of_places = missing | present  # of two rows at one place, the file there is that of the one that is not missing
    return of_places | {origin: fresh_origin(origin, used) for origin in used - of_places.keys()}


def used_origins(table: Table) -> frozenset[str]:
    """Return the origins of all rows that have one: ids of other files cannot be computed from these texts."""
    return frozenset(origin for _, origin in _rows(table))


def _rows(table: Table) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the rows with an origin, and their origins."""
    if ID_LOCATION.name not in table.schema.names:
        return
    names = [*_PLACE, ID_LOCATION.name, *({MISSING_SINCE.name} & set(table.schema.names))]
    for batch in table.scan(names):
        for row in batch.filter(batch[ID_LOCATION.name].is_valid()).to_pylist():
            yield row, os.fsdecode(row[ID_LOCATION.name])


def _location_of(row: Mapping[str, Any]) -> str | None:
    """Return the location of a row; None for one without a place."""
    return None if row["root"] is None else location_text(row["root"], path_of_text(row["path"], row["path_raw"]))


def fresh_origin(location: str, used: Collection[str]) -> str:
    """Return an origin for a file at a location whose own text is the origin of another one."""
    number = 1
    while (origin := f"{location}{_SEPARATOR}{number}") in used:
        number += 1
    return origin


def write_origins(table: Table, origins: Mapping[str, str], *, first: int) -> int:
    """Write the origins of new rows; return the table's new version, the same if nothing changes.

    Args:
        table: the media table, at its newest version.
        origins: by location, as the ids of the rows were computed.
        first: the first new row.
    """
    row_ids, texts, number = list[int](), list[bytes](), 0
    for batch in table.scan(_PLACE, row_ids=True) if origins else ():
        for row in batch.slice(max(first - number, 0)).to_pylist():
            location = _location_of(row)
            if location is not None and origins.get(location, location) != location:
                row_ids.append(row[ROW_ID])
                texts.append(os.fsencode(origins[location]))
        number += batch.num_rows
    if not row_ids:
        return table.version
    order = np.argsort(row_ids)
    values = pa.array(texts, pa.binary()).take(pa.array(order))
    return tables.put_values(table, {ID_LOCATION.name: (np.array(row_ids, dtype=np.uint64)[order], values)})
