"""Files of maps: what is stored is read again, and what is damaged is not."""

from pathlib import Path

import numpy as np
import pytest

from framedex.storage.map_files import newest_map, read_map, sorted_map, write_map

KEY = "0" * 32
IDS = np.array([[7, 1], [3, 2], [2**64 - 1, 0]], np.uint64)
PLACES = np.array([[0.5, 1.5], [-2, 3], [4, 5]], np.float32)


def test_write_map__is_read_again(tmp_path: Path) -> None:
    """Rows come back in the order of their ids, each with its place."""
    stored = write_map(tmp_path / "maps", KEY, IDS, PLACES)
    found = read_map(tmp_path / "maps", KEY)
    assert found is not None
    for each in (stored, found):
        assert each.ids.tolist() == [[3, 2], [7, 1], [2**64 - 1, 0]]
        assert each.places.tolist() == [[-2, 3], [0.5, 1.5], [4, 5]]
    assert [path.name for path in (tmp_path / "maps").iterdir()] == [f"{KEY}.npy"]


def test_rows_of__finds_ids() -> None:
    """Each id has its row; unknown ids, and those with an equal half, have none."""
    found = sorted_map(KEY, IDS, PLACES)
    wanted = np.array([[2**64 - 1, 0], [3, 2], [3, 1], [8, 1], [0, 0]], np.uint64)
    assert found.rows_of(wanted).tolist() == [2, 0, -1, -1, -1]
    empty = sorted_map(KEY, IDS[:0], PLACES[:0])
    assert empty.rows_of(wanted).tolist() == [-1] * 5
    assert len(empty) == 0


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[:-1], id="cut off"),
        pytest.param(lambda _content: b"", id="empty"),
        pytest.param(lambda _content: b"\x80\x04N.", id="a pickle"),
        pytest.param(lambda content: content.replace(b"first", b"third"), id="other columns"),
        pytest.param(lambda content: content[:-4] + b"\0\0\xc0\x7f", id="no number"),
        pytest.param(lambda content: content[:-72] + content[-24:] + content[-48:-24] + content[-72:-48], id="order"),
    ],
)
def test_read_map__damaged(tmp_path: Path, damage: object) -> None:
    """A damaged file is no map, so that it is made again."""
    write_map(tmp_path, KEY, IDS, PLACES)
    path = tmp_path / f"{KEY}.npy"
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    assert read_map(tmp_path, KEY) is None
    assert newest_map(tmp_path) is None


def test_newest_map__of_several(tmp_path: Path) -> None:
    """The last one and the one before it stay; without any there is none."""
    assert newest_map(tmp_path / "none") is None
    for number in range(4):
        write_map(tmp_path, f"{number:032x}", IDS, PLACES + number)
    found = newest_map(tmp_path)
    assert found is not None
    assert found.key == f"{3:032x}"
    assert sorted(path.stem[-1] for path in tmp_path.iterdir()) == ["2", "3"]
