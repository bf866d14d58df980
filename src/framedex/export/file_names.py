"""Names of files in a ZIP that are distinct on every system and contain no control characters.

macOS and Windows file systems ignore the case of names. macOS also treats composed and decomposed letters as equal. If
two names of a ZIP were equal in that sense, the second file would replace the first when the ZIP is unpacked.
"""

import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ODD = r"[\p{Cc}\\]"
"""Control characters, which terminals execute, and backslashes, which some systems read as slashes (RE2)."""


def fold_names(names: pa.Array) -> list[str]:
    """Return names in a folded form, which is the same for names that some file system treats as equal."""
    if pc.all(pc.string_is_ascii(names), min_count=0).as_py():
        lower: list[str] = pc.utf8_lower(names).to_pylist()
        return lower
    return [_fold_name(name) for name in names.to_pylist()]


def _fold_name(name: str) -> str:
    # Canonical caseless matching (Unicode 16.0, section 3.13.5, D145).
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def hash_names(names: pa.Array) -> npt.NDArray[np.int64]:
    """Return hashes of folded names, valid within this process: int64, shape (len(names),)."""
    return np.fromiter(map(hash, fold_names(names)), np.int64, len(names))


def find_repeats(blocks: Iterable[npt.NDArray[np.int64]]) -> frozenset[int]:
    """Return the hashes that occur more than once. The memory is eight bytes a name."""
    ordered = np.sort(np.concatenate([np.empty(0, np.int64), *blocks]))
    return frozenset(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
