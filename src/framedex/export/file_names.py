"""Names of files in a ZIP, so that each is one file of its own on every system, and shows nothing but itself.

File systems of macOS and Windows take names for the same that differ in case only; that of macOS also takes composed
and decomposed letters for the same. Unpacked there, the later of two such files would replace the other.
"""

import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ODD = r"[\p{Cc}\\]"
"""Control characters, which steer terminals, and backslashes, which some systems take for slashes (RE2)."""


def folded(names: pa.Array) -> list[str]:
    """Return what is the same for two names if some file system takes them for the same."""
    if pc.all(pc.string_is_ascii(names), min_count=0).as_py():
        lower: list[str] = pc.utf8_lower(names).to_pylist()
        return lower
    return [_folded(name) for name in names.to_pylist()]


def _folded(name: str) -> str:
    # Canonical caseless matching (Unicode 16.0, section 3.13.5, D145).
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def hashes(names: pa.Array) -> npt.NDArray[np.int64]:
    """Return the hashes of folded names, which hold within this process: int64, shape (len(names),)."""
    return np.fromiter(map(hash, folded(names)), np.int64, len(names))


def repeated(blocks: Iterable[npt.NDArray[np.int64]]) -> frozenset[int]:
    """Return the hashes that come more than once; finding out takes eight bytes for each name."""
    found = np.sort(np.concatenate([np.empty(0, np.int64), *blocks]))
    return frozenset(found[1:][found[1:] == found[:-1]].tolist())
