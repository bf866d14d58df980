"""The search for copies of one image among the rows of a media table."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.crops import CropIndex
from framedex.analysis.linkage import ROUNDING
from framedex.analysis.neighbours import ignore_progress
from framedex.core.arrays import Pixels, Vectors
from framedex.core.atomic import atomic_file
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.borders import BorderedImage
from framedex.core.regular_files import regular
from framedex.encoders.copy_descriptor import MIRRORED, describe, poses, prepare_panels, prepare_whole
from framedex.encoders.gist import cell_values
from framedex.encoders.placed_image import placements
from framedex.executors import Executor, open_executor
from framedex.jobs.index.compared_images import ImageSource
from framedex.jobs.index.copies import ALIKE, DOUBTFUL
from framedex.jobs.index.copy_descriptors import descriptor_blocks
from framedex.jobs.index.query_images import QuerySource
from framedex.jobs.index.verified_copies import verified_pairs
from framedex.media.decoded_image import reduced
from framedex.settings import Settings
from framedex.storage.copy_pairs import CopyPairs, read_descriptors
from framedex.storage.media import Media
from framedex.storage.table_versions import Table

Rows = npt.NDArray[np.int64]
INDEX_PREFIX = "crops-1-"
"""The beginning of the names of files with an index."""
_UNREADABLE = (OSError, ValueError, EOFError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error)
_WHOLE, _MOST_WHOLE, _PARTS = 24, 1536, 8  # images that are compared as a whole, and those that may show the image
_DESCRIBED_SIDE = 128  # pixels of the shorter side, as at ingestion


@dataclass(frozen=True)
class CopySearchIndex:
    """An index of the copy descriptors of a table, for whole images and for parts of them.

    Attributes:
        positions: int64, ascending: the rows with a descriptor.
        crops: their cells.
    """

    positions: Rows
    crops: CropIndex

    @classmethod
    def of(cls, table: Table) -> "CopySearchIndex":
        """Return the index of the rows of a media table, whose descriptors are read."""
        sizes = table.scan(["width", "height"]).read_all()
        width, height = (sizes.column(name).fill_null(1).to_numpy().astype(np.float64) for name in ("width", "height"))
        aspect = np.maximum(width, 1) / np.maximum(height, 1)
        found: list[Rows] = []

        def blocks() -> Iterator[tuple[Vectors, Vectors]]:
            for rows, vectors in descriptor_blocks(table):
                if len(rows):
                    found.append(rows)
                    yield vectors.astype(np.float32), aspect[rows]

        crops = CropIndex.of(table.count(), cell_values, blocks())
        return cls(np.concatenate([np.empty(0, np.int64), *found]), crops)

    @classmethod
    def read(cls, path: Path) -> "CopySearchIndex | None":
        """Return an index from a file; None if it is missing or damaged."""
        try:
            with regular(path).open("rb") as file:  # NumPy leaves a damaged one open
                values = dict(np.load(file))
            return cls(values.pop("positions"), CropIndex(**values))
        except _UNREADABLE:
            return None

    def write(self, path: Path) -> None:
        """Write the index to a file, in the place of those of other states; it is left out on a full disk."""
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as partial, partial.open("wb") as file:
                np.savez(file, positions=self.positions, **self.crops.arrays)
            for other in path.parent.glob(f"{INDEX_PREFIX}*{path.suffix}"):
                if other != path:
                    other.unlink(missing_ok=True)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self.positions.nbytes + self.crops.nbytes


def find_copies(
    media: Media, query: QuerySource, index: CopySearchIndex, settings: Settings, folder: Path
) -> tuple[CopyPairs, bool]:
    """Return the copies of an image among media, which are verified as those of an index are.

    Candidates are the images that are nearest to it, or to one of its panels, in any pose, and those of which it may be
    a part.

    Args:
        media: the media.
        query: the image; its number is that behind the last row of the table.
        index: of the table.
        settings: limits.
        folder: of cached keypoints.

    Returns:
        The pairs, and whether all images could be read that may be copies.
    """
    count, source = media.table.count(), ImageSource(media, settings, folder)
    with open_executor(settings, is_little=True) as executor, single_threaded_blas():
        rows, near, mirrored, widths = _candidates(media.table, query.pixels, index, executor)
        ends = np.full(len(rows), count, np.int64)
        pairs = verified_pairs(
            [source, query],
            ends,
            rows,
            near=near,
            mirrored=mirrored,
            widths=widths,
            executor=executor,
            progress=ignore_progress,
        )
    order = np.lexsort((np.where(pairs.a == count, pairs.b, pairs.a), -pairs.similarity))
    ends = np.where(pairs.a == count, pairs.b, pairs.a)[order]
    first = np.zeros(len(order), bool)
    first[order[np.unique(ends, return_index=True)[1]]] = True
    return pairs.take(first), not source.unread


def _candidates(
    table: Table, pixels: Pixels, index: CopySearchIndex, executor: Executor
) -> tuple[Rows, npt.NDArray[np.bool_], npt.NDArray[np.bool_], Vectors]:
    """Return rows, whether they are alike as they are, may be mirrored, and the width that the image takes in them."""
    if not len(index.positions):
        return np.empty(0, np.int64), np.empty(0, bool), np.empty(0, bool), np.empty(0, np.float32)
    image = BorderedImage(reduced(pixels, _DESCRIBED_SIDE))
    units = describe(
        np.concatenate([prepare_whole(image)[None], *([] if (p := prepare_panels(image)) is None else [p])])
    )
    posed = poses(units)
    values = cell_values(posed.reshape(-1, units.shape[1]))
    size = _WHOLE
    while True:
        places = index.crops.nearest(values, size, executor=executor)
        rows = np.sort(index.positions[places])
        described, vectors = read_descriptors(table, rows)
        products = np.einsum("pud,nd->npu", posed, vectors)
        best = products.max(axis=(1, 2))
        if size >= min(_MOST_WHOLE, len(index.positions)) or (best < ALIKE).any():
            break
        size *= 4  # more images may be alike
    rows = rows[described][best >= DOUBTFUL]
    products = products[best >= DOUBTFUL]
    near = products[:, 0, 0] >= ALIKE - ROUNDING
    mirrored = products.max(axis=2).argmax(axis=1) >= MIRRORED
    inner = image.inner_pixels
    aspect = inner.shape[1] / inner.shape[0]
    showing = index.crops.whole_images(aspect, partial(placements, image), _PARTS, executor=executor)
    parts = index.positions[showing.rows]
    return (
        np.concatenate([rows, parts]),
        np.concatenate([near, np.zeros(len(parts), bool)]),
        np.concatenate([mirrored, np.zeros(len(parts), bool)]),
        np.concatenate([np.full(len(rows), np.nan, np.float32), showing.widths]),
    )
