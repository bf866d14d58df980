"""Lists of upload transactions: what was appended comes back, up to the length that counts and to the first damage."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import WorkspaceError
from framedex.records import UploadRecord, UploadState
from framedex.storage.upload_lists import (
    ReceivedFile,
    append_files,
    intact_list,
    list_path,
    listed_files,
    listed_hashes,
    stored_lists,
)
from tests.laws import examples

TIME = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
UPLOAD = UploadRecord(
    id=7, dataset_id="d", created_by="me", created_at=TIME, changed_at=TIME, state=UploadState.OPEN,
    n_files=0, n_bytes=0, task_id=None,
)  # fmt: skip
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=8)
FILES = st.builds(ReceivedFile, NAMES, st.binary(min_size=16, max_size=16), st.integers(0, 2**40))


def file_of(number: int) -> ReceivedFile:
    """Return a file of its own name and content."""
    return ReceivedFile(f"{number}.png", bytes([number]) * 16, number)


def written(path: Path, *calls: list[ReceivedFile]) -> list[int]:
    """Append the files of some calls; return the length after each."""
    ends = [0]
    for call in calls:
        ends.append(append_files(path, UPLOAD, call, end=ends[-1]))
    return ends


@given(st.lists(st.lists(FILES, min_size=1, max_size=4), min_size=1, max_size=4), st.binary(max_size=9))
@examples(50)
def test_list__round_trip(calls: list[list[ReceivedFile]], rest: bytes) -> None:
    """The files of each call come back in order, whatever a killed call left behind them."""
    with tempfile.TemporaryDirectory() as folder:
        path = list_path(Path(folder), 7)
        ends = written(path, *calls)
        with path.open("ab") as file:
            file.write(rest)
        for number, end in enumerate(ends):
            assert list(listed_files(path, end)) == [file for call in calls[:number] for file in call]
        everything = [file for call in calls for file in call]
        stored = intact_list(path)
        assert stored is not None
        assert (stored.upload_id, stored.created_by, stored.created_at) == (7, "me", TIME)
        assert (stored.n_files, stored.n_bytes) == (len(everything), sum(file.size for file in everything))
        assert stored.list_bytes == ends[-1]
        hashes = [each for array in listed_hashes(Path(folder)) for each in array.to_pylist()]
        assert hashes == [file.digest for file in everything]


def test_append__overwrites_what_a_killed_call_left(tmp_path: Path) -> None:
    """Bytes beyond the length that counts are replaced, also those of a whole call, and of a first one."""
    path = list_path(tmp_path, 7)
    append_files(path, UPLOAD, [file_of(9), file_of(8)], end=0)
    first = append_files(path, UPLOAD, [file_of(1)], end=0)
    append_files(path, UPLOAD, [file_of(2), file_of(3)], end=first)
    end = append_files(path, UPLOAD, [file_of(4)], end=first)
    assert list(listed_files(path, end)) == [file_of(1), file_of(4)]
    assert path.stat().st_size == end


def test_list__damage_of_any_byte_is_recognised(tmp_path: Path) -> None:
    """Whichever byte changes, no wrong file is read: the list ends before the damaged block."""
    path = list_path(tmp_path, 7)
    ends = written(path, [file_of(1)], [file_of(2)])
    sound = path.read_bytes()
    for position in range(0, len(sound), 7):
        damaged = bytearray(sound)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(WorkspaceError, match="is damaged"):
            list(listed_files(path, ends[-1]))
        stored = intact_list(path)
        assert (0 if stored is None else stored.n_files) == int(position >= ends[1])
    for length in range(0, len(sound), 5):
        path.write_bytes(sound[:length])
        with pytest.raises(WorkspaceError, match="is damaged"):
            list(listed_files(path, ends[-1]))
    path.write_bytes(sound[: ends[1]])
    with pytest.raises(WorkspaceError, match="is damaged"):
        append_files(path, UPLOAD, [file_of(3)], end=ends[2])


def test_list__missing_files(tmp_path: Path) -> None:
    """A list that is missing raises and has no hashes; other files of the folder are not lists."""
    path = list_path(tmp_path, 7)
    with pytest.raises(WorkspaceError, match="cannot read"):
        list(listed_files(path, 10))
    assert intact_list(path) is None
    assert list(listed_hashes(tmp_path)) == []
    written(path, [file_of(1)])
    for name in ("x.files", "07.files", "7.files.partial", "notes.txt"):
        (path.parent / name).write_bytes(b"?")
    assert list(stored_lists(tmp_path)) == [(7, path)]
    assert [each.type for each in listed_hashes(tmp_path)] == [pa.binary(16)]
