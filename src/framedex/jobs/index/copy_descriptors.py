"""Copy descriptors of the images of a table and of their panels."""

import hashlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies import Units
from framedex.analysis.neighbours import row_keys
from framedex.analysis.vector_sources import VectorsInFile
from framedex.core.arrays import Vectors
from framedex.core.mapped_files import write_matrix
from framedex.encoders.copy_descriptor import DIMENSION
from framedex.storage.copy_pairs import compared_column, read_descriptors, video_owners
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.table_versions import Table, flat

Rows = npt.NDArray[np.int64]
_FEW = 16  # below a share of 1/16, vectors are read by row
_WRITTEN = 8192  # descriptors that are written at a time


def read_units(table: Table, chosen: Rows | None = None) -> tuple[Rows, Units]:
    """Return the rows of a table, or some ascending ones, with a descriptor, and the descriptors, in memory."""
    if chosen is not None and len(chosen) * _FEW < table.count():
        places, vectors = read_descriptors(table, chosen)
        positions = chosen[places]
    else:
        positions, vectors = table.vectors(compared_column(table))
        if chosen is not None:
            kept = np.isin(positions, chosen, assume_unique=True)
            positions, vectors = positions[kept], vectors[kept]
    return positions, _with_panels(table, positions, vectors)


def descriptors_key(table: Table, facts: tuple[Any, ...], *, check: Callable[[], None]) -> str:
    """Return a key of all descriptors of a table, of the videos of their images, and of other facts: 32 hex digits.

    Args:
        table: the media table.
        facts: the other facts.
        check: called between blocks; raises to stop.
    """
    digest = hashlib.blake2b(pickle.dumps((facts, DIMENSION)), digest_size=16)
    rows = [np.empty(0, np.int64)]
    for its_rows, vectors in descriptor_blocks(table):
        check()
        rows.append(its_rows)
        digest.update(row_keys(vectors).tobytes())
    positions = np.concatenate(rows)
    digest.update(positions.tobytes())
    for panels, images in _panels(table, positions):
        check()
        digest.update(row_keys(panels).tobytes())
        digest.update(images.tobytes())
    owners = video_owners(table, positions)
    digest.update(b"" if owners is None else owners.tobytes())
    return digest.hexdigest()


def units_in_file(
    table: Table, path: Path, *, check: Callable[[], None], chosen: Rows | None = None
) -> tuple[Rows, Units]:
    """Write the descriptors of the rows of a table to a file; return the rows, and the descriptors.

    Args:
        table: the media table.
        path: the file.
        check: called between blocks; raises to stop.
        chosen: int64, ascending: the rows; None for all.
    """
    rows, images = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    with path.open("wb") as file:
        for its_rows, vectors in descriptor_blocks(table):
            check()
            kept = slice(None) if chosen is None else np.isin(its_rows, chosen, assume_unique=True)
            rows.append(its_rows[kept])
            write_matrix(file, vectors[kept])
        positions = np.concatenate(rows)
        images.append(np.arange(len(positions), dtype=np.int32))
        for panels, its_images in _panels(table, positions):
            check()
            images.append(its_images.astype(np.int32))
            write_matrix(file, panels)
    image = np.concatenate(images)
    return positions, Units(VectorsInFile(path, DIMENSION, 0, len(image)), image)


def descriptor_blocks(table: Table) -> Iterator[tuple[Rows, Vectors]]:
    """Yield rows with a descriptor, and their descriptors, in row order."""
    column, start = compared_column(table), 0
    if column in table.overlay.columns:
        positions, vectors = table.vectors(column)
        for first in range(0, len(positions), _WRITTEN):
            yield positions[first : first + _WRITTEN], vectors[first : first + _WRITTEN]
        return
    for batch in table.vector_batches(column, 0):
        array = batch.column(0)
        valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        yield valid + start, flat(array, DIMENSION)[valid]
        start += len(array)


def _with_panels(table: Table, positions: Rows, vectors: Vectors) -> Units:
    panels, images = read_panels(table, positions)
    parts = [vectors, panels] if len(panels) else [vectors]
    return Units(
        np.concatenate(parts) if len(parts) > 1 else vectors, np.concatenate([np.arange(len(positions)), images])
    )


def read_panels(table: Table, positions: Rows) -> tuple[Vectors, Rows]:
    """Return the descriptors of the panels of some rows, and the number of its row among them for each.

    Args:
        table: the media table.
        positions: int64, ascending: the rows.
    """
    parts, images = [np.empty((0, DIMENSION), np.float32)], [np.empty(0, np.int64)]
    for vectors, its_images in _panels(table, positions):
        parts.append(vectors)
        images.append(its_images)
    return np.concatenate(parts), np.concatenate(images)


def _panels(table: Table, positions: Rows) -> Iterator[tuple[Vectors, Rows]]:
    """Yield the descriptors of the panels of some ascending rows, and the number of its row among them for each."""
    start = 0
    for batch in table.scan([PANEL_DESCRIPTORS]):
        column = batch.column(0)
        counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False) // DIMENSION
        rows = np.repeat(np.arange(start, start + len(column)), counts)
        values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, DIMENSION)
        place = np.searchsorted(positions, rows)
        described = positions[np.minimum(place, len(positions) - 1)] == rows if len(positions) else rows < 0
        yield values[described], place[described]
        start += len(column)
