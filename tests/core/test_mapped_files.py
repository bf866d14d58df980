"""Values of arrays in files."""

import sys
from pathlib import Path

import numpy as np
import pytest

from framedex.core.mapped_files import mapped_at_random, read_matrix, write_matrix


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8])
def test_write_matrix__are_read_again(tmp_path: Path, dtype: type[np.generic]) -> None:
    """Rows are those that were written, in parts and as a map, also of arrays in another memory order."""
    values = np.arange(60).reshape(20, 3).astype(dtype)
    with (tmp_path / "values").open("wb") as file:
        for part in (values[:0], values[:7], np.asfortranarray(values[7:12]), values[::-1][:8][::-1]):
            write_matrix(file, part)
    np.testing.assert_array_equal(read_matrix(tmp_path / "values", dtype, 3, 0, 20), values)
    np.testing.assert_array_equal(read_matrix(tmp_path / "values", dtype, 3, 5, 9), values[5:9])
    assert read_matrix(tmp_path / "values", dtype, 3, 9, 5).shape == (0, 3)
    mapped = mapped_at_random(tmp_path / "values", dtype, 3)
    np.testing.assert_array_equal(mapped[[19, 0, 0]], values[[19, 0, 0]])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such device")
@pytest.mark.parametrize("count", [1, 300, 100_000])
def test_write_matrix__to_a_full_disk(count: int) -> None:
    """A full disk is an error, however few bytes are written."""
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("wb") as file:
        write_matrix(file, np.zeros(count))
