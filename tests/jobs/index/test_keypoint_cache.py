"""Keypoints come back from the cache as they were put, and damage to its file only means that they are made again."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.keypoints import MOST, SIDE, Keypoints
from framedex.jobs.index.keypoint_cache import KeypointCache, key_of
from tests.laws import examples

ONE_RECORD = 29_124  # bytes


PARTS = tuple((top, 2 * top, top + 40, SIDE) for top in range(5))


def key(number: int) -> bytes:
    """Return a key."""
    return key_of(str(number).encode(), None, mirrored=False)


def keypoints(seed: int, count: int = 30) -> Keypoints:
    """Return keypoints at places that the cache keeps exactly."""
    rng = np.random.default_rng(seed)
    points = (rng.integers(0, SIDE * 64, (count, 2)) / 64).astype(np.float32)
    descriptors, thumbnail = (rng.integers(0, 256, size, dtype=np.uint8) for size in ((count, 32), (16, 16)))
    return Keypoints(points, descriptors, SIDE, 200 + seed % 100, 0.75, PARTS[: seed % 6], thumbnail)


def assert_same(found: Keypoints | None, expected: Keypoints) -> None:
    """Check that keypoints are equal, in type as in value."""
    assert found is not None
    assert found.points.dtype == np.float32
    assert found.descriptors.dtype == np.uint8
    assert (found.width, found.height, found.inner) == (expected.width, expected.height, expected.inner)
    assert found.parts == expected.parts
    assert found.descriptors.flags.c_contiguous
    np.testing.assert_array_equal(found.points, expected.points)
    np.testing.assert_array_equal(found.descriptors, expected.descriptors)
    np.testing.assert_array_equal(found.thumbnail, expected.thumbnail)


def file_of(folder: Path) -> Path:
    """Return the file of a cache."""
    (path,) = folder.iterdir()
    return path


def filled(folder: Path, count: int) -> Path:
    """Write a cache of some keypoints, and return its file."""
    with KeypointCache(folder) as cache:
        cache.put({key(number): keypoints(number) for number in range(count)})
    return file_of(folder)


def test_key_of__all_parts_count() -> None:
    """Keys differ by content, frame and mirroring; they are of one length and have no zero byte."""
    keys = {
        key_of(content, frame, mirrored=mirrored)
        for content in [bytes([number]) * 32 for number in range(100)]
        for frame in (None, 0, 1, 11)
        for mirrored in (False, True)
    }
    assert len(keys) == 800
    assert {len(each) for each in keys} == {16}
    assert not any(b"\0" in each for each in keys)


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, MOST)), max_size=8), st.integers(0, 8))
def test_get__law(tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, int]], at: int) -> None:
    """Each key has the keypoints that were put last, in the open cache and after it was opened again."""
    folder, expected = tmp_path_factory.mktemp("keypoints"), {}
    for part in (made[:at], made[at:]):
        with KeypointCache(folder) as cache:
            for seed, (number, count) in enumerate(part):
                expected[number] = keypoints(seed, count)
                cache.put({key(number): expected[number]})
                assert_same(cache.get(key(number)), expected[number])
            for number in range(10):
                assert (key(number) in cache) == (number in expected)
                assert number not in expected or cache.get(key(number)) is not None
    with KeypointCache(folder) as cache:
        for number, each in expected.items():
            assert_same(cache.get(key(number)), each)


def test_get__rounded_places(tmp_path: Path) -> None:
    """Places of keypoints are kept to a fraction of a pixel, up to the far corner."""
    exact = Keypoints(np.array([[0.013, 319.99], [320, 0.5]], np.float32), np.ones((2, 32), np.uint8), 320, 320)
    with KeypointCache(tmp_path) as cache:
        cache.put({key(1): exact})
        found = cache.get(key(1))
    assert found is not None
    np.testing.assert_allclose(found.points, exact.points, atol=1 / 128)


def test_put__most_and_none(tmp_path: Path) -> None:
    """An image without keypoints, and one with the maximum number, are records as all others."""
    made = {key(0): keypoints(0, 0), key(1): keypoints(1, MOST)}
    with KeypointCache(tmp_path) as cache:
        cache.put(made)
    assert file_of(tmp_path).stat().st_size == 2 * ONE_RECORD
    with KeypointCache(tmp_path) as cache:
        for each, expected in made.items():
            assert_same(cache.get(each), expected)


def test_put__nothing(tmp_path: Path) -> None:
    """To put nothing changes nothing, in a new cache as in one with records."""
    with KeypointCache(tmp_path / "a") as cache:
        cache.put({})
        assert cache.get(key(0)) is None
        assert key(0) not in cache
    path = filled(tmp_path / "b", 2)
    before = path.read_bytes()
    with KeypointCache(tmp_path / "b") as cache:
        cache.put({})
        assert_same(cache.get(key(1)), keypoints(1))
    assert path.read_bytes() == before


@pytest.mark.parametrize("left", [0, 1, ONE_RECORD - 1, ONE_RECORD, ONE_RECORD + 1, 2 * ONE_RECORD - 7])
def test_open__cut_file(left: int, tmp_path: Path) -> None:
    """Of a file that was cut, the whole records remain; later ones follow them."""
    path = filled(tmp_path, 3)
    path.write_bytes(path.read_bytes()[:left])
    whole = left // ONE_RECORD
    with KeypointCache(tmp_path) as cache:
        assert [key(number) in cache for number in range(3)] == [number < whole for number in range(3)]
        cache.put({key(2): keypoints(2)})
        assert_same(cache.get(key(2)), keypoints(2))
    assert path.stat().st_size == (whole + 1) * ONE_RECORD
    with KeypointCache(tmp_path) as cache:
        assert_same(cache.get(key(2)), keypoints(2))


@pytest.mark.parametrize("place", [16, 18, 20, 22, 26, 28, 67, 1667, 1668, ONE_RECORD - 1])
def test_get__flipped_byte(place: int, tmp_path: Path) -> None:
    """A record with a flipped byte is ignored and made again; the others are not affected."""
    path = filled(tmp_path, 3)
    content = bytearray(path.read_bytes())
    content[ONE_RECORD + place] ^= 0x10
    path.write_bytes(content)
    with KeypointCache(tmp_path) as cache:
        assert [key(number) in cache for number in range(3)] == [True, False, True]
        cache.put({key(1): keypoints(1)})
        assert_same(cache.get(key(1)), keypoints(1))
    with KeypointCache(tmp_path) as cache:
        for number in range(3):
            assert_same(cache.get(key(number)), keypoints(number))


@pytest.mark.parametrize("place", [0, 15])
def test_get__flipped_key(place: int, tmp_path: Path) -> None:
    """A record whose key was damaged is not found under its key, nor valid under another one."""
    path = filled(tmp_path, 2)
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    other = bytes(content[:16])
    with KeypointCache(tmp_path) as cache:
        assert [each in cache for each in (key(0), other, key(1))] == [False, False, True]


@examples(40)
@given(st.binary(max_size=3 * ONE_RECORD))
def test_open__any_file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any file is a cache without valid records, to which keypoints can be added."""
    folder = tmp_path_factory.mktemp("keypoints")
    filled(folder, 1).write_bytes(content)
    with KeypointCache(folder) as cache:
        assert key(0) not in cache
        assert content[:16] not in cache
        cache.put({key(0): keypoints(0)})
        assert_same(cache.get(key(0)), keypoints(0))


def test_open__missing_folder(tmp_path: Path) -> None:
    """The folder is made if it is missing."""
    filled(tmp_path / "a" / "b", 1)
    with KeypointCache(tmp_path / "a" / "b") as cache:
        assert_same(cache.get(key(0)), keypoints(0))


@pytest.mark.parametrize("is_folder_taken", [False, True])
def test_open__name_is_taken(is_folder_taken: bool, tmp_path: Path) -> None:
    """Where the folder or the file cannot be made, keypoints are kept in memory."""
    if is_folder_taken:
        (tmp_path / "cache").write_bytes(b"")
    else:
        path = filled(tmp_path / "cache", 1)
        path.unlink()
        path.mkdir()
    with KeypointCache(tmp_path / "cache") as cache:
        assert key(0) not in cache
        cache.put({})
        cache.put({key(number): keypoints(number) for number in range(3)})
        for number in range(3):
            assert_same(cache.get(key(number)), keypoints(number))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_open__unwritable_folder(tmp_path: Path) -> None:
    """In a folder that is not writable, keypoints are kept in memory."""
    tmp_path.chmod(0o500)
    try:
        with KeypointCache(tmp_path) as cache:
            cache.put({key(0): keypoints(0)})
            assert_same(cache.get(key(0)), keypoints(0))
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o700)


def test_put__beyond_the_limit(tmp_path: Path) -> None:
    """Keypoints beyond the size limit are kept until the cache is closed."""
    with KeypointCache(tmp_path, max_bytes=2 * ONE_RECORD) as cache:
        for number in range(4):
            cache.put({key(number): keypoints(number)})
        for number in range(4):
            assert_same(cache.get(key(number)), keypoints(number))
    assert file_of(tmp_path).stat().st_size == 2 * ONE_RECORD
    with KeypointCache(tmp_path, max_bytes=2 * ONE_RECORD) as cache:
        assert [key(number) in cache for number in range(4)] == [True, True, False, False]


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """Let writes beyond a size fail, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("left", [0, 1, ONE_RECORD, 2 * ONE_RECORD - 8192, 2 * ONE_RECORD - 1])
def test_put__full_disk(left: int, tmp_path: Path) -> None:
    """On a full disk, keypoints are kept in memory, and no part of a record stays in the file."""
    path = filled(tmp_path, 2)
    with KeypointCache(tmp_path) as cache:
        with limited_files(2 * ONE_RECORD + left):
            cache.put({key(number): keypoints(number) for number in (2, 3)})
            for number in range(4):
                assert_same(cache.get(key(number)), keypoints(number))
            assert path.stat().st_size == 2 * ONE_RECORD
        cache.put({key(4): keypoints(4)})
    with KeypointCache(tmp_path) as cache:
        assert [key(number) in cache for number in range(5)] == [True, True, False, False, True]


def test_close__full_disk(tmp_path: Path) -> None:
    """Where the disk is full until the end, the cache is closed without an error."""
    path = filled(tmp_path, 1)
    with limited_files(2 * ONE_RECORD - 1), KeypointCache(tmp_path) as cache:
        cache.put({key(1): keypoints(1)})
        assert_same(cache.get(key(1)), keypoints(1))
    assert path.stat().st_size == ONE_RECORD


def test_put__two_caches_at_once(tmp_path: Path) -> None:
    """Two jobs that have the cache open keep their records one behind the other."""
    filled(tmp_path, 1)
    with KeypointCache(tmp_path) as one, KeypointCache(tmp_path) as other:
        for number in range(1, 7):
            (one, other)[number % 2].put({key(number): keypoints(number)})
        for number in range(1, 7):
            assert_same((one, other)[number % 2].get(key(number)), keypoints(number))
            assert key(number) not in (other, one)[number % 2]
    with KeypointCache(tmp_path) as cache:
        for number in range(7):
            assert_same(cache.get(key(number)), keypoints(number))


def test_get__folder_deleted_while_open(tmp_path: Path) -> None:
    """A cache may be deleted at any time: the open one goes on, and the next one starts afresh."""
    path = filled(tmp_path, 1)
    with KeypointCache(tmp_path) as cache:
        path.unlink()
        cache.put({key(1): keypoints(1)})
        for number in range(2):
            assert_same(cache.get(key(number)), keypoints(number))
    assert list(tmp_path.iterdir()) == []
    with KeypointCache(tmp_path) as cache:
        assert key(0) not in cache


def test_forget__keeps_those_of_the_file(tmp_path: Path) -> None:
    """Keypoints for which the file has no space are gone, the others are not."""
    with KeypointCache(tmp_path, max_bytes=ONE_RECORD) as cache:
        for number in range(3):
            cache.put({key(number): keypoints(number)})
        assert [key(number) in cache for number in range(3)] == [True, True, True]
        cache.forget()
        assert [key(number) in cache for number in range(3)] == [True, False, False]
