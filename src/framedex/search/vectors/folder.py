"""Vector index files in a cache folder: built on first use, and never part of a commit.

    <folder>/<index>/centroids.npy, index.json         the cells, and how far a search goes
    <folder>/<index>/<part>/*.npy, part.json           the rows of some files of the table

Each part appears complete, under a unique name, and never changes. Rows that the index lacks are read from the table.
So other processes, kills and the deletion of the cache do no harm.
"""

import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.codes import Codes
from framedex.analysis.quantized_ivf import Block
from framedex.core.ids import new_id
from framedex.core.mapped_arrays import read_sparsely
from framedex.core.regular_files import regular
from framedex.storage.disk import sync_file

_FORMAT = 2
_ARRAYS = ("int8", "residual", "scale", "starts", "numbers")
_UNFINISHED = ".part"


@dataclass(frozen=True)
class FilePart:
    """Rows of some files, as codes in cells.

    Attributes:
        files: number of rows by file name; rows are numbered through the files in this order.
        part: the rows with a vector, in the order of cells.
        numbers: int64, shape (M,): row number of each code.
    """

    files: Mapping[str, int]
    part: Block
    numbers: npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoredIndex:
    """An index in a folder or in memory.

    Attributes:
        centroids: float32, shape (C, D), unit length.
        n_candidates: number of candidates in a search.
        parts: the parts with the rows.
        folder: its folder; None if it is in memory only.
        reach: the reach of a search for few results, see :meth:`QuantizedIvf.nearest`; None without one.
    """

    centroids: npt.NDArray[np.float32]
    n_candidates: int
    parts: list[FilePart] = field(default_factory=list)
    folder: Path | None = None
    reach: float | None = None


def read_indices(folder: Path, *, column: str, dimension: int) -> list[StoredIndex]:
    """Return the indices in a folder; damaged ones, and those of another format or column, are skipped."""
    if not folder.is_dir():
        return []
    indices = []
    for each in sorted(folder.iterdir()):
        with suppress(OSError, ValueError, KeyError, TypeError, EOFError):
            meta = _meta(each / "index.json")
            if each.name.endswith(_UNFINISHED) or (meta["column"], meta["dimension"]) != (column, dimension):
                continue
            centroids = np.load(regular(each / "centroids.npy"))
            parts = [part for path in sorted(each.iterdir()) if (part := _read_part(path, centroids)) is not None]
            indices.append(StoredIndex(centroids, int(meta["n_candidates"]), parts, each, _reach(meta)))
    return indices


def _reach(meta: dict[str, Any]) -> float | None:
    """Return the reach in the description of an index; None if it has none, as before there were any.

    Raises:
        ValueError, TypeError: it is no finite number.
    """
    if (reach := meta.get("reach")) is None:
        return None
    if not math.isfinite(reach):
        raise ValueError(f"a reach is finite, not {reach!r}")
    return float(reach)


def _meta(path: Path) -> dict[str, Any]:
    meta: dict[str, Any] = json.loads(path.read_text())
    if meta["format"] != _FORMAT:
        raise ValueError(f"{path} is of format {meta['format']!r}")
    return meta


def _read_part(path: Path, centroids: npt.NDArray[np.float32]) -> FilePart | None:
    if not path.is_dir() or path.name.endswith(_UNFINISHED):
        return None
    with suppress(OSError, ValueError, KeyError, TypeError, EOFError):
        files = _meta(path / "part.json")["files"]
        arrays = {name: np.load(regular(path / f"{name}.npy"), mmap_mode="r") for name in _ARRAYS}
        codes = _sparse(Codes(arrays["int8"], arrays["residual"], np.asarray(arrays["scale"])))
        starts, numbers = np.asarray(arrays["starts"]), np.asarray(arrays["numbers"])
        rows = len(numbers)
        fits = codes.int8.shape == codes.residual.shape == (rows, centroids.shape[1]) and codes.scale.shape == (rows,)
        if fits and len(starts) == len(centroids) + 1 and starts[-1] == rows:
            return FilePart({str(name): int(count) for name, count in files}, Block(codes, starts), numbers)
    return None


def _sparse(codes: Codes) -> Codes:
    """Return mapped codes of which searches read only the compared rows from disk."""
    read_sparsely(codes.int8)
    read_sparsely(codes.residual)
    return codes


def begin_index(folder: Path, centroids: npt.NDArray[np.float32]) -> Path:
    """Create a folder for an unfinished index and return it; :func:`finish_index` publishes it."""
    path = folder / f"{new_id()}{_UNFINISHED}"
    path.mkdir(parents=True)
    np.save(path / "centroids.npy", centroids)
    return path


def finish_index(path: Path, *, column: str, dimension: int, n_candidates: int, reach: float | None) -> Path:
    """Publish an index under its final name, and return its folder."""
    meta = {
        "format": _FORMAT,
        "column": column,
        "dimension": dimension,
        "n_candidates": n_candidates,
        "reach": reach,
    }
    (path / "index.json").write_text(json.dumps(meta))
    return publish(path)


class PartWriter:
    """A writer of a part's codes, which receives them while they are computed.

    No file remains of an unfinished part.

    Args:
        index: folder of the index.
        rows, dimension: number and length of the codes.
    """

    def __init__(self, index: Path, rows: int, dimension: int) -> None:
        self._path = index / f"{new_id()}{_UNFINISHED}"
        self._path.mkdir()
        self.codes = Codes(
            int8=_array(self._path / "int8.npy", np.int8, (rows, dimension)),
            residual=_array(self._path / "residual.npy", np.int8, (rows, dimension)),
            scale=_array(self._path / "scale.npy", np.float32, (rows,)),
        )

    def finish(
        self, files: Mapping[str, int], starts: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
    ) -> FilePart:
        """Publish the part and return it."""
        np.save(self._path / "starts.npy", starts)
        np.save(self._path / "numbers.npy", numbers)
        (self._path / "part.json").write_text(json.dumps({"format": _FORMAT, "files": list(files.items())}))
        publish(self._path)
        return FilePart(files, Block(_sparse(self.codes), starts), numbers)

    def give_up(self) -> None:
        """Remove the written files."""
        shutil.rmtree(self._path, ignore_errors=True)


def _array(path: Path, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if not shape[0]:  # an empty file cannot be mapped
        np.save(path, np.empty(shape, dtype))
        return np.empty(shape, dtype)
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def publish(path: Path) -> Path:
    """Sync an unfinished file or folder to disk and rename it to its final name; return the new path."""
    for each in _entries(path):
        if each.is_file():
            sync_file(each)
    return path.rename(path.with_name(path.name.removesuffix(_UNFINISHED)))


def remove_superseded(folder: Path, current: Path, *, is_old: Callable[[Path], bool]) -> None:
    """Remove all indices of a folder except one; unfinished ones only if old, as another process may build them.

    A process that still uses one keeps its mapped files.
    """
    for each in _entries(folder):
        if each != current and (not each.name.endswith(_UNFINISHED) or is_old(each)):
            shutil.rmtree(each, ignore_errors=True)
    for each in _entries(current):
        if each.name.endswith(_UNFINISHED) and is_old(each):
            shutil.rmtree(each, ignore_errors=True)


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return sorted(Path(each) for each in os.scandir(folder))
    except OSError:
        return []
