"""Segments as files: what is read is what was written, or nothing."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.fulltext.segment_file import open_segment, write_segment
from framedex.fulltext.tokenizer import TextField
from tests.fulltext.strategies import segment_of
from tests.fulltext.test_segment import Text, check, some_texts
from tests.laws import examples

CONTENT: list[Text] = [
    (TextField.CAPTION, "a red car"),
    (TextField.LABELS, "café dogs"),
    (TextField.FILE_NAME, "IMG_12"),
]


@examples(30)
@given(some_texts)
def test_write__round_trip(tmp_path_factory: pytest.TempPathFactory, content: list[Text]) -> None:
    """A segment comes back as it was."""
    path = write_segment(tmp_path_factory.mktemp("texts") / "new", segment_of(content), "key")
    found = open_segment(path, "key")
    assert found is not None
    check(found, content)


def test_write__is_named_by_its_content(tmp_path: Path) -> None:
    """Who writes the same writes the same file, and nothing else is left."""
    paths = {write_segment(tmp_path, segment_of(CONTENT), "key") for _ in range(2)}
    assert set(tmp_path.iterdir()) == paths


def test_write__that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A folder that cannot be is an error, and there is no part of a file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"exists|directory"):
        write_segment(tmp_path / "file", segment_of(CONTENT), "key")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_read__another_key(tmp_path: Path) -> None:
    """What was made with other words is of no use."""
    assert open_segment(write_segment(tmp_path, segment_of(CONTENT), "key"), "other") is None


@examples(60)
@given(st.data())
def test_read__damaged(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever octets of a file are changed or missing, it is not taken for a segment."""
    path = write_segment(tmp_path_factory.mktemp("texts"), segment_of(CONTENT), "key")
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        del content[place:]
    path.write_bytes(content)
    assert open_segment(path, "key") is None


def test_read__is_mapped(tmp_path: Path) -> None:
    """The arrays are those of the file: no copy is held."""
    found = open_segment(write_segment(tmp_path, segment_of(CONTENT), "key"), "key")
    assert found is not None
    assert not any(
        array.flags.owndata or array.flags.writeable for array in (found.text, found.position, found.keys.low)
    )
    assert found.start.dtype == np.int64
