"""Candidates for copies contain the copies in any pose, and what is verified fits the budget."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.components import connected_components
from framedex.analysis.copies import (
    Candidates,
    Costs,
    OnDisk,
    Units,
    affordable,
    canonical_poses,
    find_candidates,
)
from framedex.analysis.copies.pairs import FoundPairs
from framedex.analysis.products import CpuProducts
from framedex.encoders.gist import POSES, Gist, cells, layouts, poses
from framedex.executors import Executor, ProcessExecutor, ThreadExecutor
from tests.analysis.arrays import Vectors, unit
from tests.image_files import Pixels, photo
from tests.laws import examples, rest_slow
from tests.tuning import Tuning, tuned

SIDE = 6
GIST = Gist()
Pairs = set[tuple[int, int]]


def grids(count: int, *, seed: int = 0) -> Vectors:
    """Return layouts of zero mean and unit length, which have nothing in common: shape (count, 36)."""
    values = np.random.default_rng(seed).normal(size=(count, SIDE**2))
    return unit(values - values.mean(axis=1, keepdims=True))


def as_grids(vectors: Vectors) -> Vectors:
    """Return vectors as layouts: shape (N, 6, 6)."""
    return vectors.reshape(-1, SIDE, SIDE)


def as_cells(vectors: Vectors) -> Vectors:
    """Return the quarters of layouts, of unit length: shape (N, 4, 9)."""
    quarters = as_grids(vectors).reshape(-1, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4).reshape(-1, 4, 9)
    return np.asarray(quarters / np.maximum(np.linalg.norm(quarters, axis=2, keepdims=True), 1e-6), dtype=np.float32)


def all_poses(vectors: Vectors) -> Vectors:
    """Return layouts in all poses: shape (8, N, 36)."""
    some = as_grids(vectors)
    return np.stack(
        [
            np.rot90(some[:, :, ::-1] if pose >= 4 else some, pose % 4, axes=(1, 2)).reshape(len(some), SIDE**2)
            for pose in range(POSES)
        ]
    )


def units(whole: Vectors, panels: Vectors | None = None, images: list[int] | None = None) -> Units:
    """Return images and the panels of some of them."""
    parts = whole if panels is None else np.concatenate([whole, panels])
    return Units(parts, np.concatenate([np.arange(len(whole)), np.array(images or [], np.int64)]))


def candidates_of(some: Units, *, added: int = 0, owners: npt.NDArray[np.int32] | None = None) -> Candidates:
    """Return candidates among layouts, and check their arrays."""
    found = find_candidates(some, all_poses, as_grids, as_cells, added=added, owners=owners, engine=CpuProducts(1))
    assert [each.dtype for each in (found.a, found.b)] == [np.int32] * 2
    assert [each.dtype for each in (found.pose, found.whole_pose)] == [np.int8] * 2
    assert [each.dtype for each in (found.similarity, found.whole, found.priority)] == [np.float32] * 3
    assert (found.a < found.b).all()
    assert len(pairs_of(found)) == len(found.a)
    assert (found.similarity >= found.whole).all()
    return found


def pairs_of(found: Candidates) -> Pairs:
    """Return the pairs."""
    return set(zip(found.a.tolist(), found.b.tolist(), strict=True))


def at(found: Candidates, a: int, b: int) -> int:
    """Return the place of a pair."""
    return list(zip(found.a.tolist(), found.b.tolist(), strict=True)).index((a, b))


def inverse(pose: int) -> int:
    """Return the pose that undoes a pose."""
    return pose if pose >= 4 else -pose % 4


@pytest.mark.parametrize("added", [0, 12])
@pytest.mark.parametrize("pose", range(POSES))
def test_find_candidates__copies_in_all_poses(pose: int, added: int) -> None:
    """The copy of each image is found in any pose, whether all images are compared or those that were added."""
    base = grids(12)
    found = candidates_of(units(np.concatenate([base, all_poses(base)[pose]])), added=added)
    for image in range(12):
        place = at(found, image, 12 + image)
        assert found.similarity[place] == pytest.approx(1, abs=1e-5)
        assert found.whole[place] == pytest.approx(1, abs=1e-5)
        assert found.pose[place] == found.whole_pose[place] == inverse(pose)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("added", [0, 12])
def test_find_candidates__panels(added: int, is_first: bool, turned: bool) -> None:
    """An image that is a panel of another one is found, whichever of them comes first, turned or not."""
    whole = grids(13)
    part = all_poses(whole[[12 if is_first else 3]])[1 if turned else 0]
    found = candidates_of(units(whole, part, [3 if is_first else 12]), added=added)
    place = at(found, 3, 12)
    assert found.similarity[place] == pytest.approx(1, abs=1e-5)
    assert found.whole[place] < 0.9
    expected = 0 if not turned else 1 if is_first else 3
    assert found.pose[place] == expected


def test_find_candidates__several_panels() -> None:
    """Of the panels of an image, the most similar one counts; panels of one image are no candidates."""
    whole = grids(6)
    other = grids(4, seed=1)
    half = unit(whole[[0]] + 0.5 * other[[0]])
    found = candidates_of(units(whole, np.concatenate([other, half, whole[[0]], half]), [5] * 7))
    place = at(found, 0, 5)
    assert found.similarity[place] == pytest.approx(1, abs=1e-5)
    assert not pairs_of(found) & {(image, image) for image in range(6)}


@pytest.mark.parametrize("added", [0, 2, 4])
def test_find_candidates__owners(added: int) -> None:
    """Images of one owner are no candidates for each other; images without an owner are."""
    base = grids(1)
    same = np.concatenate([base] * 6)
    owners = np.array([0, 0, 1, 1, -1, -1], np.int32)
    found = candidates_of(units(same), added=added, owners=owners)
    apart = {(a, b) for b in range(6) for a in range(b) if owners[a] < 0 or owners[a] != owners[b]}
    assert pairs_of(found) == {pair for pair in apart if pair[1] >= added}


def test_find_candidates__owner_with_many_images() -> None:
    """Frames of the added video do not take the places of its copies in another one."""
    base, rest = grids(1), grids(40, seed=3)
    frames = unit(np.repeat(base, 30, axis=0) + 0.01 * grids(30, seed=1))
    owners = np.array([0] + [-1] * 40 + [7] * 30, np.int32)
    found = candidates_of(units(np.concatenate([base, rest, frames])), added=41, owners=owners)
    assert {(0, frame) for frame in range(41, 71)} <= pairs_of(found)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("added", [0, 1])
def test_find_candidates__nothing_to_compare(count: int, added: int) -> None:
    """No image and a single image have no candidates, not even with their own panels."""
    assert len(candidates_of(units(grids(count)), added=added).a) == 0
    if count:
        assert len(candidates_of(units(grids(1), grids(1), [0]), added=added).a) == 0


def test_find_candidates__nothing_added() -> None:
    """Without an added image, no pair is returned."""
    assert len(candidates_of(units(grids(5)), added=5).a) == 0
    assert len(candidates_of(units(grids(5)), added=9).a) == 0


@pytest.mark.parametrize("count", [2, 3, 60])
@pytest.mark.parametrize("added", [0, 1])
def test_find_candidates__equal_images(count: int, added: int) -> None:
    """Equal images have no principal components; they are candidates all the same, with finite values."""
    found = candidates_of(units(np.repeat(grids(1), count, axis=0)), added=added)
    np.testing.assert_allclose(found.similarity, 1, atol=1e-5)
    np.testing.assert_allclose(found.priority, found.priority[0], atol=1e-5)
    assert {image for pair in pairs_of(found) for image in pair} == set(range(count))


def test_find_candidates__half_precision() -> None:
    """Descriptors as the table stores them, in half precision, give the same pairs."""
    base = grids(10)
    some = units(np.concatenate([base, all_poses(base)[6]]))
    rounded = Units(some.vectors[:].astype(np.float16), some.image)
    expected, found = candidates_of(some), candidates_of(rounded)
    assert {(image, 10 + image) for image in range(10)} <= pairs_of(found) & pairs_of(expected)
    np.testing.assert_allclose(np.sort(found.similarity)[-10:], 1, atol=2e-3)


def test_find_candidates__progress() -> None:
    """The share that is done ascends to 1, for all images and for added ones."""
    for added in (0, 20):
        shares: list[float] = []
        find_candidates(units(grids(30)), all_poses, as_grids, as_cells, added=added, progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1)


@examples(60)
@given(st.integers(2, 14), st.integers(0, 6), st.integers(0, 14), st.integers(0, 2**16), st.booleans())
def test_find_candidates__law(count: int, panels: int, added: int, seed: int, with_owners: bool) -> None:
    """Each pair has an added image and two owners; its similarity is that of the most similar units and poses.

    Copies of an added image are among the pairs. The same input gives the same pairs.
    """
    rng = np.random.default_rng(seed)
    some = grids(count, seed=seed)
    copied = rng.integers(0, count, count // 2)
    for place in copied.tolist():
        some[rng.integers(0, count)] = all_poses(some[[place]])[rng.integers(0, POSES), 0]
    owners = rng.integers(-1, 2, count).astype(np.int32) if with_owners else None
    images = rng.integers(0, count, panels).tolist()
    every = units(some, grids(panels, seed=seed + 1), images)
    found = candidates_of(every, added=added, owners=owners)
    again = candidates_of(every, added=added, owners=owners)
    vectors = every.vectors[:].astype(np.float32)
    scores = np.einsum("nd,pmd->nmp", vectors, all_poses(vectors)).max(axis=2)
    for a, b, similarity, whole in zip(found.a, found.b, found.similarity, found.whole, strict=True):
        parts = [np.flatnonzero(every.image[count:] == image) + count for image in (a, b)]
        expected = max([scores[a, b], *scores[parts[0], b], *scores[parts[1], a]])
        assert similarity == pytest.approx(expected, abs=1e-5)
        assert whole == pytest.approx(scores[a, b], abs=1e-5)
        assert b >= added
        assert owners is None or owners[a] < 0 or owners[a] != owners[b]
    copies = {
        (a, b)
        for b in range(added, count)
        for a in range(b)
        if scores[a, b] > 0.999 and (owners is None or owners[a] < 0 or owners[a] != owners[b])
    }
    if added:
        assert copies <= pairs_of(found)
    else:  # a few of many copies are pairs, which join all of them
        joined = connected_components(count, found.a[found.whole > 0.999], found.b[found.whole > 0.999])[1]
        assert owners is not None or {(a, b) for a, b in copies if joined[a] != joined[b]} == set()
    for name in vars(found):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def posed(pixels: Pixels, pose: int) -> Pixels:
    """Return an image in a pose."""
    return np.ascontiguousarray(np.rot90(pixels[:, ::-1] if pose >= 4 else pixels, pose % 4))


@pytest.mark.parametrize("pose", [0, 3, 5])
def test_find_candidates__equal_parts_come_first(pose: int) -> None:
    """Of two equally similar images, the one with an equal part has the higher priority, in any pose."""
    base = grids(40)
    image, noise = as_grids(base[[0]])[0], as_grids(grids(2, seed=5))
    changed = image.copy()
    changed[3:] = noise[0, 3:]  # the lower half shows something else
    changed = unit((changed - changed.mean()).reshape(1, -1))
    similarity = float((changed @ base[0])[0])
    other = unit(noise[1].reshape(1, -1) - (noise[1].ravel() @ base[0]) * base[0])
    blended = similarity * base[[0]] + np.sqrt(1 - similarity**2) * other
    added = all_poses(np.concatenate([changed, blended]).astype(np.float32))[pose]
    found = candidates_of(units(np.concatenate([base, added])))
    equal_part, as_a_whole = at(found, 0, 40), at(found, 0, 41)
    assert found.whole[equal_part] == pytest.approx(found.whole[as_a_whole], abs=1e-4)
    assert found.priority[equal_part] > found.priority[as_a_whole] + 0.1


def test_find_candidates__descriptors_of_images() -> None:
    """With the real descriptors, each of some turned and mirrored images is the best candidate of its original."""
    originals = [photo(seed) for seed in range(24)]
    turned = [posed(pixels, 1 + number % 7) for number, pixels in enumerate(originals)]
    vectors = GIST.encode_images(np.stack([GIST.prepare(each) for each in [*originals, *turned]]))
    found = find_candidates(units(vectors), poses, layouts, cells)
    order = np.lexsort((found.b, found.a, -found.priority))
    best = {(int(found.a[place]), int(found.b[place])) for place in order[:24]}
    assert best == {(image, 24 + image) for image in range(24)}
    for image in range(24):
        assert found.pose[at(found, image, 24 + image)] == inverse(1 + image % 7)


def test_canonical_poses__by_hand() -> None:
    """Light at the upper left, more of it to the left than to the top, is the pose that a clear layout takes."""
    bright = np.zeros((SIDE, SIDE), np.float32)
    bright[0, 0], bright[1, 0], bright[2, 0], bright[3, 0] = 4, 3, 3, 2
    bright -= bright.mean()
    for pose in range(POSES):
        taken = canonical_poses(all_poses(bright.reshape(1, -1))[pose].reshape(1, SIDE, SIDE))
        assert np.flatnonzero(taken[:, 0]).tolist() == [inverse(pose)]


def test_canonical_poses__no_light() -> None:
    """A layout without any light, or with the same at all sides, takes all poses."""
    ring = np.ones((SIDE, SIDE), np.float32)
    ring[1:-1, 1:-1] = 0
    for layout in (np.zeros((SIDE, SIDE), np.float32), ring - ring.mean()):
        assert canonical_poses(layout[None]).all()


@pytest.mark.parametrize("side", [2, 4, 8])
def test_canonical_poses__shape(side: int) -> None:
    """Any number of layouts, including zero, has a row for each pose."""
    for count in (0, 1, 3):
        taken = canonical_poses(np.zeros((count, side, side), np.float32))
        assert (taken.shape, taken.dtype) == ((8, count), np.dtype(bool))


@examples(200)
@given(st.integers(2, 9), st.integers(0, POSES - 1), st.integers(0, 2**16), st.floats(0, 3), st.floats(-1, 1))
def test_canonical_poses__law(side: int, pose: int, seed: int, slope: float, other: float) -> None:
    """A unit takes a pose in which it is equal to a pose that its turned or mirrored copy takes."""
    rows, columns = (np.mgrid[:side, :side] - (side - 1) / 2) / side
    layout = np.random.default_rng(seed).normal(size=(side, side)) + slope * (rows + other * columns)
    layout = (layout - layout.mean()).astype(np.float32)
    copy = np.rot90(layout[:, ::-1] if pose >= 4 else layout, pose % 4)

    def canonical(one: Vectors) -> set[bytes]:
        taken = canonical_poses(one[None])
        shown = [np.rot90(one[:, ::-1] if number >= 4 else one, number % 4) for number in range(POSES)]
        return {np.ascontiguousarray(shown[number]).tobytes() for number in np.flatnonzero(taken[:, 0])}

    assert canonical(layout) & canonical(copy)


def candidates(images: list[tuple[int, int]], priority: list[float] | None = None) -> Candidates:
    """Return candidates with priorities; by default in descending order."""
    rows = np.array(images, np.int32).reshape(-1, 2)
    values = np.array(priority or range(len(images), 0, -1), np.float32)
    zeros = np.zeros(len(rows), np.int8)
    return Candidates(rows[:, 0], rows[:, 1], values, values, zeros, zeros, values[: len(rows)])


NONE = candidates([])


def chosen_of(
    some: Candidates,
    budget_ms: float,
    *,
    near: Sequence[int] = (),
    free: Sequence[int] = (),
    added: int = 0,
) -> list[int]:
    """Return the pairs that are affordable: keypoints of an image cost 5 ms, a comparison 1 ms, a registration 3 ms."""
    is_near, is_free = (np.isin(np.arange(len(some.a)), places) for places in (near, free))
    costs = Costs(5.0, 1.0, 3.0)
    found = affordable(some, budget_ms=budget_ms, costs=costs, near=is_near, free=is_free, added=added)
    assert found.dtype == np.int64
    return [int(place) for place in found]


def test_affordable__best_first() -> None:
    """Pairs come in the order of their priority; ties in the order of their images."""
    some = candidates([(0, 1), (2, 3), (4, 6), (4, 5)], [0.1, 0.3, 0.2, 0.2])
    assert chosen_of(some, 1e9) == [1, 3, 2, 0]


def test_affordable__keypoints_cost_once() -> None:
    """Keypoints of an image are paid for with its first pair, those of images that are known not at all."""
    some = candidates([(0, 1), (0, 2), (1, 2), (1, 3)])
    assert [len(chosen_of(some, budget)) for budget in (0, 10.9, 11, 16.9, 17, 18, 23.9, 24)] == [
        0,
        0,
        1,
        1,
        2,
        3,
        3,
        4,
    ]
    assert [len(chosen_of(some, budget, added=3)) for budget in (0, 1, 2, 3, 8.9, 9)] == [0, 1, 2, 3, 3, 4]


@pytest.mark.parametrize("budget", [0.0, -1.0])
def test_affordable__without_a_budget(budget: float) -> None:
    """Without a budget, nothing is verified that costs something."""
    assert chosen_of(candidates([(0, 1)]), budget) == []


def test_affordable__no_candidates() -> None:
    """No candidates give no pairs."""
    assert chosen_of(NONE, 100) == []


def test_affordable__images_that_are_alike_come_first() -> None:
    """Pairs that are alike as they are come before others, and pay no keypoints; some of them are free."""
    some = candidates([(0, 2), (0, 3), (1, 2), (1, 3)])
    assert chosen_of(some, 1e9, near=[2, 3], free=[3]) == [3, 2, 0, 1]
    assert [chosen_of(some, budget, near=[2, 3], free=[3]) for budget in (0, 3, 13, 14)] == [
        [3],
        [3, 2],
        [3, 2],
        [3, 2, 0],
    ]


IMAGES = 8
SOME_PAIRS = st.lists(st.sampled_from([(a, b) for b in range(IMAGES) for a in range(b)]), unique=True, max_size=16)


@examples(200)
@given(
    SOME_PAIRS,
    st.integers(0, 120),
    st.integers(0, IMAGES),
    st.randoms(use_true_random=False),
)
def test_affordable__law(pairs: list[tuple[int, int]], budget: int, added: int, random: Random) -> None:
    """The costs of the pairs fit the budget, a larger budget adds pairs, and the order of the input does not matter."""
    priority = [float(random.randrange(3)) for _ in pairs]
    some = candidates(pairs, priority)
    chosen = chosen_of(some, budget, added=added)
    images = {image for place in chosen for image in pairs[place]}
    assert len(chosen) + 5 * sum(image >= added for image in images) <= budget or not chosen
    everything = chosen_of(some, 1e9, added=added)
    assert everything[: len(chosen)] == chosen
    assert [priority[place] for place in everything] == sorted((priority[place] for place in everything), reverse=True)
    assert len(set(chosen)) == len(chosen)
    shuffled = np.array(random.sample(range(len(pairs)), len(pairs)), np.int64)
    again = chosen_of(some.take(shuffled), budget, added=added)
    assert shuffled[again].tolist() == chosen


def test_take__by_number_and_by_mask() -> None:
    """Some pairs keep all of their values."""
    some = replace(
        candidates([(0, 1), (0, 2), (1, 2)]), pose=np.array([4, 5, 6], np.int8), whole_pose=np.array([1, 2, 3], np.int8)
    )
    for selected in (np.array([2, 0]), np.array([True, False, True])):
        taken = some.take(selected)
        for name in vars(some):
            np.testing.assert_array_equal(getattr(taken, name), getattr(some, name)[selected])
    assert len(some.take(np.zeros(3, dtype=bool)).a) == 0


def test_units__number_of_images() -> None:
    """Panels do not count as images."""
    assert units(grids(0)).images == 0
    assert units(grids(3), grids(2), [0, 2]).images == 3


@pytest.mark.parametrize(("pose", "budget_ms", "expected"), [(3, 11, [0]), (4, 11, []), (4, 12, [0])])
def test_affordable__mirrored_ones_are_compared_twice(pose: int, budget_ms: float, expected: list[int]) -> None:
    """A pair that may be mirrored is compared as it is, too, and the budget counts both comparisons."""
    some = dataclasses.replace(candidates([(0, 1)]), pose=np.array([pose], np.int8))
    assert chosen_of(some, budget_ms) == expected


@pytest.fixture(scope="module", params=[1, 3, "processes"])
def workers(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Executors of different kinds and sizes."""
    if request.param != "processes":
        with ThreadExecutor(request.param) as threads:
            yield threads
        return
    if sys.platform == "win32":
        pytest.skip("processes are started as on POSIX")
    with ProcessExecutor(2) as processes:
        yield processes


@pytest.mark.slow
@pytest.mark.parametrize(("added", "split"), rest_slow([(0, 200), (390, None), (0, None), (1, None)], 2, several=True))
def test_find_candidates__in_any_blocks(workers: Executor, tuning: Tuning, added: int, split: int | None) -> None:
    """Blocks of any size on any executor give the very same pairs and numbers, also where many are equally similar."""
    vectors = grids(400, seed=5)
    vectors[150:250] = vectors[150]  # more equal images than an image has candidates
    some = units(vectors, grids(90, seed=6) + vectors[:90], list(range(0, 180, 2)))

    def found(executor: Executor | None) -> Candidates:
        return find_candidates(some, all_poses, as_grids, as_cells, added=added, split=split, executor=executor)

    whole = found(None)
    assert len(whole.a) > 100
    tuning.copy_work = 128
    tuning.copy_queries = 512
    tuning.copy_priorities = 100
    in_blocks = found(workers)
    for each in dataclasses.fields(Candidates):
        np.testing.assert_array_equal(getattr(in_blocks, each.name), getattr(whole, each.name), strict=True)


MEMORY = 2_000_000


def spread_copies(count: int) -> Units:
    """Return images of which each third one is a turned copy of another one with noise, and panels of some."""
    vectors = grids(count, seed=7)
    for number, image in enumerate(range(2, count, 3)):
        noisy = unit(vectors[[image - 1]] + 0.1 * grids(1, seed=image))
        vectors[image] = all_poses(noisy)[number % POSES, 0]
    return units(vectors, vectors[: count // 10] + 0.1 * grids(count // 10, seed=8), list(range(count // 10, 0, -1)))


@pytest.mark.slow
@pytest.mark.parametrize("added", [pytest.param(0, marks=pytest.mark.slow), 2950])
def test_find_candidates__on_disk(tmp_path: Path, added: int) -> None:
    """What does not fit into memory has the same copies; nothing is left in the folder, and the share ascends."""
    some, shares = spread_copies(3000), [0.0]
    owners = np.where(np.arange(3000) % 100 < 2, np.arange(3000) // 100, -1).astype(np.int32)
    expected = find_candidates(some, all_poses, as_grids, as_cells, added=added, owners=owners, engine=CpuProducts(1))
    found = find_candidates(
        some, all_poses, as_grids, as_cells,
        added=added, owners=owners, on_disk=OnDisk(tmp_path, MEMORY), progress=shares.append,
    )  # fmt: skip
    copied = {(image - 1, image) for image in range(2, 3000, 3) if image >= added}
    copied = {(a, b) for a, b in copied if owners[a] < 0 or owners[a] != owners[b]}
    assert copied <= pairs_of(found)
    assert len(pairs_of(found) & pairs_of(expected)) >= 0.95 * len(pairs_of(expected))
    assert (np.diff(found.a.astype(np.int64) * 3000 + found.b) > 0).all()
    assert not list(tmp_path.iterdir())
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


@pytest.mark.slow
def test_find_candidates__on_disk_on_any_executor(workers: Executor, tmp_path: Path) -> None:
    """Executors give the very same pairs."""

    def found(executor: Executor | None, name: str) -> Candidates:
        (tmp_path / name).mkdir()
        return find_candidates(
            some, all_poses, as_grids, as_cells, on_disk=OnDisk(tmp_path / name, MEMORY), executor=executor
        )

    some = spread_copies(900)
    expected, other = found(None, "thread"), found(workers, "workers")
    for each in dataclasses.fields(Candidates):
        np.testing.assert_array_equal(getattr(other, each.name), getattr(expected, each.name), strict=True)


def test_find_candidates__on_disk_may_cost_too_much(tmp_path: Path) -> None:
    """The cost is known before the images are compared."""

    def refuse(multiply_adds: float, _dimension: int) -> None:
        raise OverflowError(multiply_adds)

    with pytest.raises(OverflowError):
        find_candidates(
            spread_copies(900), all_poses, as_grids, as_cells, on_disk=OnDisk(tmp_path, MEMORY, refuse)
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("pose", [0, 5])
def test_find_candidates__many_equal_images(tmp_path: Path, pose: int, *, on_disk: bool) -> None:
    """Equal images, of which there are more than neighbours, are joined, and do not hide as many copies of them."""
    vectors = grids(150, seed=11)
    vectors[20:70] = vectors[20]
    vectors[80:130] = all_poses(unit(vectors[[20]] + 0.1 * grids(1, seed=12)))[pose, 0]
    found = find_candidates(
        units(vectors), all_poses, as_grids, as_cells, on_disk=OnDisk(tmp_path, MEMORY) if on_disk else None
    )
    for least, sets in ((0.9999, 2), (0.95, 1)):
        is_copy = found.similarity > least
        joined = connected_components(150, found.a[is_copy], found.b[is_copy])[1]
        assert len({joined[image] for image in (*range(20, 70), *range(80, 130))}) == sets


def test_find_candidates__many_equal_images_of_owners() -> None:
    """Equal frames of two videos are candidates for each other, those of one video are none."""
    same = np.repeat(grids(1), 120, axis=0)
    owners = np.repeat(np.array([0, 1], np.int32), 60)
    found = candidates_of(units(same), owners=owners)
    assert len(found.a)
    assert all(a < 60 <= b for a, b in pairs_of(found))


@pytest.mark.parametrize("count", [5, 8, 12])
def test_find_candidates__near_copy_of_equal_panels(count: int) -> None:
    """An image is a candidate of each of some collages that show the same one."""
    whole, shown = grids(60, seed=21), grids(1, seed=22)
    whole[0] = unit(shown + 0.1 * grids(1, seed=23))[0]
    found = candidates_of(units(whole, np.repeat(shown, count, axis=0), list(range(10, 10 + count))))
    is_similar = found.similarity >= 0.9
    assert {(0, image) for image in range(10, 10 + count)} <= pairs_of(found.take(is_similar))


@pytest.mark.parametrize("count", [5, 8, 12])
def test_find_candidates__near_copy_of_equal_frames(count: int) -> None:
    """An image is a candidate of each of some equal frames of a video."""
    whole = grids(60, seed=24)
    whole[10 : 10 + count] = whole[10]
    whole[0] = unit(whole[[10]] + 0.1 * grids(1, seed=25))[0]
    owners = np.full(60, -1, np.int32)
    owners[10 : 10 + count] = 3
    found = candidates_of(units(whole), owners=owners)
    is_similar = found.similarity >= 0.9
    assert pairs_of(found.take(is_similar)) == {(0, image) for image in range(10, 10 + count)}


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60), st.integers(1, 40))
def test_found_pairs__law(given_pairs: list[tuple[int, int]], span: int) -> None:
    """Pairs come once, in order, with an ascending share, from memory as from files of any number of images."""
    expected = sorted({(min(pair), max(pair)) for pair in given_pairs})
    with TemporaryDirectory() as folder, tuned() as tuning:
        tuning.copy_span_images = span
        for found in (FoundPairs(30), FoundPairs(30, Path(folder))):
            for start in range(0, len(given_pairs), 7):
                some = np.array(given_pairs[start : start + 7])
                found.add(some[:, 0], some[:, 1])
            parts = list(found.ordered())
            assert [each for a, b, _ in parts for each in zip(a.tolist(), b.tolist(), strict=True)] == expected
            shares = [share for _, _, share in parts]
            assert shares == sorted(shares)
            assert not given_pairs or shares[-1] == 1
        assert not list(Path(folder).iterdir())


@pytest.mark.slow
def test_find_candidates__least_similarity() -> None:
    """Pairs below a similarity are left out, and the others keep their numbers."""
    some = spread_copies(300)
    every = candidates_of(some)
    found = find_candidates(some, all_poses, as_grids, as_cells, least=0.5, engine=CpuProducts(1))
    kept = every.take(every.similarity >= 0.5)
    assert 0 < len(found.a) < len(every.a)
    for each in dataclasses.fields(Candidates):
        np.testing.assert_array_equal(getattr(found, each.name), getattr(kept, each.name), strict=True)
