"""Paths, URIs and names of whole columns equal those of single rows."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.core.ids import media_id
from framedex.export.locations import file_paths, image_names, marked_name, uris
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import LOCATION, Media
from framedex.storage.media_rows import text_of_path

DATASET = "12345678-1234-4234-8234-123456789abc"
ROOTS = ["/photos", "/", os.fsdecode(b"/b\xff s"), "/with space/#1"]
PATHS = [
    "a.jpg", "x/y.png", "a b#%?.png", "./a.jpg", "a//b.jpg", "../up.jpg", "a/../b.jpg", ".hidden", "no suffix",
    "猫.png", "source-1/a.jpg", "x" * 255, "x" * 300 + ".jpg", "y/" * 1200 + "z.jpg", "a.b/c", "end.", "new\nline.jpg",
    os.fsdecode(b"\xff.png"),
]  # fmt: skip
URIS = [
    "https://example.org/a b.jpg", "https://example.org/a.jpg?x=1#y", "s3://bucket/key.png", "/absolute/a.jpg", "x://",
    "file:///a.jpg", "file:///a%20b.jpg", "file:///a?b.jpg", "file:/a.jpg", "file:a.jpg", "file://host/a.jpg",
    "data:,x", "C:\\a.jpg", "https://example.org/" + "long" * 200 + ".jpeg", "/", "//", "file:///", "a://b://c.jpg",
]  # fmt: skip
ROWS = st.tuples(
    st.sampled_from(range(len(ROOTS))), st.sampled_from(PATHS) | st.text(min_size=1, max_size=9)
) | st.tuples(st.none(), st.sampled_from(URIS))


def block_of(rows: list[tuple[int | None, str]]) -> pa.Table:
    """Return rows as the table stores them."""
    texts = [text_of_path(path) for _, path in rows]
    return pa.table(
        {
            "path": pa.array([text for text, _ in texts], pa.string()),
            "path_raw": pa.array([raw for _, raw in texts], pa.binary()),
            "root": pa.array([root for root, _ in rows], pa.int32()),
            "content_hash": pa.nulls(len(rows), pa.binary()),
            "media_id": pa.array([media_id(DATASET, f"{root}/{path}") for root, path in rows], pa.string()),
        }
    )


def _can_be(root: int | None, path: str) -> bool:
    """Return whether a row can have that location: a path below a root is relative."""
    return "\0" not in path and (root is None or not path.startswith("/"))


def media_of(*roots: str) -> Media:
    """Return media with roots only."""
    generation = Generation(
        id=DATASET, dataset_id=DATASET, tables={"media": 1}, n_images=0, created_at=datetime.now(UTC), summary=Summary()
    )
    return Media(DATASET, generation, cast("Any", None), cast("Any", None), roots)


@given(st.lists(ROWS, max_size=8).filter(lambda rows: all(_can_be(*row) for row in rows)))
@example([(0, path) for path in PATHS])
@example([(None, uri) for uri in URIS])
def test_places__law(rows: list[tuple[int | None, str]]) -> None:
    """Whole columns equal the values of single rows."""
    try:
        block = block_of(rows)
    except UnicodeEncodeError:
        return  # surrogates that stand for no byte are no names of files
    media = media_of(*ROOTS)
    single = block.select(LOCATION).to_pylist()
    paths = [media.file_of(row) or row["path"] for row in single]
    assert file_paths(media, block).to_pylist() == [
        os.fsencode(path).decode("utf-8", "backslashreplace") for path in paths
    ]
    assert uris(media, block).to_pylist() == [media.uri_of(row) for row in single]


@given(st.lists(ROWS, max_size=8, unique=True).filter(lambda rows: all("\0" not in path for _, path in rows)))
@example([(0, path) for path in PATHS])
@example([(None, uri) for uri in URIS])
def test_image_names__law(rows: list[tuple[int | None, str]]) -> None:
    """Names are distinct, stay within the folder, and are valid on file systems."""
    try:
        block = block_of(rows)
    except UnicodeEncodeError:
        return
    names = image_names(media_of(*ROOTS), block).to_pylist()
    assert len(set(names)) == len(rows)
    for (root, _), name in zip(rows, names, strict=True):
        parts = name.split("/")
        assert all(part not in ("", ".", "..") for part in parts)
        assert all(len(part.encode()) <= 255 for part in parts)
        assert len(name.encode()) < 4000
        assert (parts[0] == f"source-{root}") == bool(root)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("x/y.jpg", "x/y.jpg"),
        ("./x/y.jpg", "x/y-ID.jpg"),
        ("../../etc/passwd", "etc/passwd-ID"),
        ("a\\b.jpg", "a\\b.jpg"),
        ("a//b.jpg", "a/b-ID.jpg"),
        ("a/../b.jpg", "a/b-ID.jpg"),
        ("a/.b/c.jpg", "a/.b/c.jpg"),
        (os.fsdecode(b"\xff.png"), "\\xff-ID.png"),
        ("x" * 255, "x" * 255),
        ("x" * 256, "x" * 175 + "-ID"),
        ("y/" + "x" * 300 + ".jpeg", "y/" + "x" * 175 + "-ID.jpeg"),
        ("猫" * 100 + ".jpeg", "猫" * 58 + "-ID.jpeg"),
    ],
)
def test_image_names__of_one_source(path: str, name: str) -> None:
    """A valid path is its own name; other paths are changed, with a part of the id before the suffix."""
    block = block_of([(0, path)])
    (found,) = image_names(media_of("/photos"), block).to_pylist()
    assert found == name.replace("ID", block["media_id"][0].as_py()[:8])


def test_image_names__below_no_source() -> None:
    """With several sources, images without a source are in no folder of a source."""
    block = block_of([(None, "https://example.org/a.jpg"), (1, "a.jpg")])
    first, second = image_names(media_of("/a", "/b"), block).to_pylist()
    assert first == f"example.org/a-{block['media_id'][0].as_py()[:8]}.jpg"
    assert second == "source-1/a.jpg"


def test_image_names__stay_when_a_source_is_added() -> None:
    """Names of the first source do not depend on further sources, even if they look like names of one."""
    block = block_of([(0, "a.jpg"), (0, "source-1/a.jpg"), (0, "source-x/a.jpg"), (0, "x/source-1/a.jpg")])
    names = image_names(media_of("/a"), block).to_pylist()
    assert names == image_names(media_of("/a", "/b"), block).to_pylist()
    mark = block["media_id"][1].as_py()[:8]
    assert names == ["a.jpg", f"source-1/a-{mark}.jpg", "source-x/a.jpg", "x/source-1/a.jpg"]


@pytest.mark.slow
def test_marked_name__many_folders() -> None:
    """A path that is too long loses its first folders."""
    name = marked_name("f/" * 5000 + "a.jpg", "0123456789")
    assert name.endswith("/f/a-01234567.jpg")
    assert len(name) < 2100


def test_uris__of_plain_paths(tmp_path: Path) -> None:
    """Characters that need no escape are unchanged in a URI."""
    block = block_of([(0, "a-b_c.d~e/F0.jpg"), (0, "a b.jpg")])
    found = uris(media_of(str(tmp_path)), block).to_pylist()
    assert found == [(tmp_path / "a-b_c.d~e/F0.jpg").as_uri(), f"file://{quote(str(tmp_path))}/a%20b.jpg"]
