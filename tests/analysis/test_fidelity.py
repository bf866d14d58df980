"""Traces of compression and enlargement are found, and the original stands above its copies."""

import io
from functools import cache

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from framedex.analysis.fidelity import Doubt, Fidelity, Standing, found_steps, measure_fidelity, spectrum, stand
from framedex.media.jpeg import read_header
from tests.image_files import Pixels, encode, flat
from tests.laws import examples

WIDTH, HEIGHT = 384, 288


@cache
def scene(seed: int, *, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    """Return an image with the spectrum of a photograph: its power falls with the square of the frequency."""
    rng = np.random.default_rng(seed)
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    radius[0, 0] = 1
    light, colour = (
        np.fft.ifft2(np.fft.fft2(rng.normal(size=(height, width))) / radius).real for _ in range(2)
    )  # fmt: skip
    channels = [light / light.std() + share * colour / colour.std() for share in (0.3, 0.0, -0.3)]
    return (128 + 45 * np.stack(channels, axis=2)).clip(0, 255).astype(np.uint8)


def grey(pixels: Pixels) -> Pixels:
    """Return the greyscale image."""
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def scaled(pixels: Pixels, factor: float) -> Pixels:
    """Return an image in another size."""
    method = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=method), dtype=np.uint8)


def saved(pixels: Pixels, quality: int) -> tuple[Pixels, tuple[int, ...]]:
    """Return an image after it was saved as a JPEG, and the steps in the file."""
    data = encode(pixels, "JPEG", quality=quality)
    header = read_header(data)
    assert header is not None
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")), header.traits.steps


def of_jpeg(pixels: Pixels, quality: int) -> Fidelity:
    """Return the measures of an image that is saved as a JPEG."""
    return measure_fidelity(*saved(pixels, quality))


def brightened(pixels: Pixels, factor: float = 1.15) -> Pixels:
    """Return an image with another brightness."""
    return (pixels * factor).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("quality", [50, 60, 75, 85])
def test_found_steps__of_a_jpeg(quality: int) -> None:
    """The steps of a JPEG are found in its pixels."""
    pixels, steps = saved(scene(1), quality)
    found = found_steps(grey(pixels))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, steps, rtol=0.06)


@pytest.mark.parametrize("seed", range(3))
def test_found_steps__of_an_image_without_compression(seed: int) -> None:
    """An image that was never compressed has no steps; nor has one that was made smaller since."""
    assert found_steps(grey(scene(seed))).tolist() == [0] * 8
    assert found_steps(grey(scaled(saved(scene(seed), 50)[0], 0.7))).tolist() == [0] * 8


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("size", [(301, 213), (300, 213), (301, 216)])
def test_measure_fidelity__turned_since(size: tuple[int, int], turns: int) -> None:
    """The traces of a compression are found in turned and mirrored images, whose blocks begin at another corner."""
    first, steps = saved(scene(11, width=size[0], height=size[1]), 50)
    for turned in (np.rot90(first, turns), np.rot90(first[:, ::-1], turns)):
        found = of_jpeg(np.ascontiguousarray(turned), 95)
        assert found.is_recompressed
        assert found.step == pytest.approx(np.mean(steps), rel=0.1)


@pytest.mark.parametrize("size", [(1, 1), (7, 300), (300, 7), (8, 8), (9, 17), (64, 64)])
def test_found_steps__too_few_blocks(size: tuple[int, int]) -> None:
    """An image with few blocks has no steps that could be known."""
    assert found_steps(np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)).tolist() == [0] * 8


def test_found_steps__of_a_large_image() -> None:
    """Of a large image, some blocks are enough."""
    pixels, steps = saved(np.tile(scene(2), (3, 3, 1)), 75)
    np.testing.assert_allclose(found_steps(grey(pixels)), steps, rtol=0.06)


def test_measure_fidelity__recompressed() -> None:
    """A coarse compression before a fine one is found, with its step; the other way round it is gone."""
    first, steps = saved(scene(1), 40)
    found = of_jpeg(first, 92)
    assert found.is_recompressed
    assert found.step == pytest.approx(np.mean(steps), rel=0.06)
    again, fine = of_jpeg(saved(scene(1), 92)[0], 40), of_jpeg(scene(1), 92)
    assert (again.is_recompressed, fine.is_recompressed) == (False, False)
    assert again.step == pytest.approx(np.mean(again.steps))


@pytest.mark.parametrize("quality", [30, 50, 75, 90, 100])
def test_measure_fidelity__saved_once(quality: int) -> None:
    """A JPEG that was saved once has the steps of its file, and is not recompressed."""
    pixels, steps = saved(scene(3), quality)
    found = measure_fidelity(pixels, steps)
    assert not found.is_recompressed
    assert found.step == np.mean(steps)
    assert found.steps.tolist() == list(steps)


def test_measure_fidelity__saved_again_without_loss() -> None:
    """A file without compression keeps the traces of an earlier one."""
    pixels, steps = saved(scene(4), 50)
    found = measure_fidelity(pixels)
    assert found.is_recompressed
    assert found.step == pytest.approx(np.mean(steps), rel=0.06)
    assert found.steps.tolist() == [1] * 8


def test_measure_fidelity__step_of_other_formats() -> None:
    """The step is 0 without compression, and not known for another one with a loss."""
    assert measure_fidelity(scene(1)).step == 0
    assert measure_fidelity(scene(1), is_lossy=True).step is None


def test_measure_fidelity__borders() -> None:
    """Pixels of uniform borders do not count."""
    bare, framed = (measure_fidelity(each) for each in (scene(1), np.pad(scene(1), ((50, 50), (80, 80), (0, 0)))))
    assert bare.inner == WIDTH * HEIGHT
    assert (framed.width, framed.height) == (WIDTH + 160, HEIGHT + 100)
    assert 0.85 * bare.inner < framed.inner <= bare.inner


@pytest.mark.parametrize("times", [1, 4])
def test_measure_fidelity__places_are_those_of_the_size(times: int) -> None:
    """Images of one size are compared at the same places, large ones at some of their places."""
    tiled = [np.tile(scene(seed), (times, times, 1)) for seed in (1, 2)]
    found = [measure_fidelity(each) for each in tiled]
    assert found[0].luminance.shape == found[1].luminance.shape
    assert found[0].coefficients.shape == found[1].coefficients.shape
    assert (len(found[0].luminance) < times**2 * WIDTH * HEIGHT) == (times > 1)


def test_spectrum__of_an_enlarged_image() -> None:
    """The spectrum of a scene is about even; that of an enlarged one ends at the frequency of the smaller size."""
    whole, enlarged = (spectrum(grey(each)) for each in (scene(1), scaled(scaled(scene(1), 0.5), 2)))
    assert whole.shape == (64,)
    assert whole.dtype == np.float32
    assert whole[48:60].mean() > 0.3 * whole[12:24].mean()
    assert enlarged[48:60].mean() < 0.03 * enlarged[12:24].mean()


@pytest.mark.parametrize("size", [(1, 1), (63, 600), (600, 63)])
def test_spectrum__too_small(size: tuple[int, int]) -> None:
    """An image that is too small has zeros."""
    assert spectrum(np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)).tolist() == [0] * 64


@pytest.mark.parametrize("size", [(128, 128), (129, 128), (512, 512), (513, 700), (130, 1000)])
def test_spectrum__any_size(size: tuple[int, int]) -> None:
    """Noise has power at all frequencies, whatever the size; an even image has none."""
    noise = spectrum(np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8))
    assert np.isfinite(noise).all()
    assert (noise > 0).all()
    np.testing.assert_allclose(spectrum(np.full(size, 200, np.uint8)), 0, atol=1e-3)


def test_stand__nothing() -> None:
    """No copies have no standings; a single image has those of itself."""
    assert stand([]) == []
    assert stand([measure_fidelity(scene(1))]) == [
        Standing(WIDTH * HEIGHT, None, None, 0.0, 0, None, is_derived=False, doubt=Doubt.NONE)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.4, 0.5, 0.6])
@pytest.mark.parametrize("seed", range(2))
def test_stand__enlarged(seed: int, factor: float) -> None:
    """An image that was enlarged from a copy has no more detail than the copy; one that was made smaller has."""
    large = scene(seed)
    small = scaled(large, factor)
    enlarged = np.asarray(cv2.resize(small, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    pixels = small.shape[0] * small.shape[1]
    for order in ([small, enlarged], [enlarged, small]):
        standings = stand([measure_fidelity(each) for each in order])
        assert [each.detail for each in standings] == [pixels] * 2
        surplus = [each.shape[0] * each.shape[1] - pixels for each in order]
        assert [each.surplus for each in standings] == surplus
    assert [each.detail for each in stand([measure_fidelity(each) for each in (small, large)])] == [
        pixels,
        large.size / 3,
    ]


def test_stand__enlarged_step_by_step() -> None:
    """Of several sizes that were enlarged from the smallest, all have its detail."""
    small = scaled(scene(2), 0.5)
    sizes = [small, scaled(small, 1.5), scaled(small, 2.25)]
    assert [each.detail for each in stand([measure_fidelity(each) for each in sizes])] == [small.size / 3] * 3


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1, 2])
def test_stand__enlarged_and_framed(place: int) -> None:
    """A wide frame around one of several enlarged copies does not hide that they were enlarged, wherever it stands."""
    small = scaled(scene(9), 0.5)
    framed = scaled(small, 2)
    framed[:110], framed[-110:], framed[:, :110], framed[:, -110:] = 0, 0, 0, 0
    copies = [scaled(small, 2)] * 2
    copies.insert(place, framed)
    standings = stand([measure_fidelity(each) for each in [*copies, small]])
    assert [each.detail for each in standings] == [small.size / 3] * 4


def test_stand__bordered() -> None:
    """A border adds pixels, but no detail."""
    bare = scene(1)
    framed = np.pad(bare, ((60, 60), (60, 60), (0, 0)))
    standings = stand([measure_fidelity(each) for each in (framed, bare)])
    assert standings[0].detail <= standings[1].detail == WIDTH * HEIGHT
    assert standings[0].surplus >= (WIDTH + 120) * (HEIGHT + 120) - WIDTH * HEIGHT
    assert standings[1].surplus == 0


def soft(seed: int, *, width: int = 600, height: int = 450) -> Pixels:
    """Return an image without fine detail, so that its spectrum does not show whether it was enlarged."""
    return np.asarray(cv2.GaussianBlur(scene(seed, width=width, height=height), (0, 0), 1.6), dtype=np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("quality", [75, 92, 98])
@pytest.mark.parametrize("side", [0, 1])
def test_stand__a_soft_image_enlarged(quality: int, side: int) -> None:
    """An image has the detail of a smaller one if enlarging it explains all but the quantisation."""
    original, steps = saved(soft(12, width=600 + 7 * side, height=450 - 5 * side), 60)
    standings = stand([measure_fidelity(original, steps), of_jpeg(scaled(original, 2), quality)])
    assert [each.detail for each in standings] == [original.size / 3] * 2


@pytest.mark.slow
def test_stand__a_large_image_with_a_smaller_copy() -> None:
    """An image with detail that its smaller copy cannot have is not taken for an enlarged one, however compressed."""
    large = scene(14, width=1200, height=900)
    for quality in (60, 90):
        copies = [of_jpeg(scaled(large, 0.5), 95), of_jpeg(large, quality)]
        assert stand(copies)[1].detail == large.size / 3


def test_stand__the_source_of_others() -> None:
    """The image from which others could have been saved is known among its edits, as are its nearest copies."""
    original, steps = saved(scene(15), 85)
    copies = [
        measure_fidelity(original, steps),
        of_jpeg(original, 97),
        of_jpeg(original, 40),
        of_jpeg(brightened(original), 92),
        of_jpeg(brightened(original, 0.8), 92),
    ]
    standings = stand(copies)
    assert [each.sources for each in standings] == [2, 1, 0, 0, 0]
    closest = np.array([each.closest for each in standings], np.float64)
    assert closest[0] == closest[1]
    assert closest[2:].min() > 10 * closest[0]


def edits(original: Pixels) -> dict[str, Pixels]:
    """Return edits of an image, each of its own kind."""
    marked = original.copy()
    cv2.putText(marked, "sample", (40, 190), cv2.FONT_HERSHEY_SIMPLEX, 3, (255, 255, 255), 15)
    blurred = np.asarray(cv2.GaussianBlur(original, (0, 0), 4), dtype=np.uint8)
    return {
        "bright": brightened(original),
        "marked": marked,
        "grey": np.repeat(grey(original)[..., None], 3, 2) // 2,
        "blurred": blurred,
    }


@pytest.mark.slow
@pytest.mark.parametrize("names", [("bright", "marked"), ("marked", "blurred"), ("bright", "grey", "blurred")])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_stand__the_unaltered_one(place: int, names: tuple[str, ...]) -> None:
    """Among copies of one size the original is nearest to the others, wherever it stands."""
    copies = [edits(scene(5))[name] for name in names]
    copies.insert(place, scene(5))
    standings = stand([measure_fidelity(each) for each in copies])
    altered = [each.altered for each in standings]
    assert None not in altered
    assert int(np.argmin(np.array(altered, np.float64))) == place
    assert [each.distance for each in standings] == altered
    assert not standings[place].is_derived


def test_stand__compression_is_no_alteration() -> None:
    """Compressed copies of an image are as little altered as the image, the nearest of them to the other copies."""
    original, bright = scene(6), brightened(scene(6), 1.3)
    copies = [measure_fidelity(original), of_jpeg(original, 90), measure_fidelity(bright), of_jpeg(bright, 90)]
    plain, compressed, edited, edited_compressed = stand(copies)
    assert plain.altered == compressed.altered
    assert edited.altered == edited_compressed.altered
    assert plain.altered is not None
    assert edited.altered is not None
    assert plain.distance is not None
    assert compressed.distance is not None
    assert plain.altered == min(plain.distance, compressed.distance)


def test_stand__equal_images() -> None:
    """Equal images differ by rounding only, and none was made from another one."""
    standings = stand([measure_fidelity(scene(7))] * 4)
    assert standings == [standings[0]] * 4
    assert standings[0].altered == pytest.approx(0, abs=0.1)
    assert not standings[0].is_derived


@pytest.mark.parametrize("count", [1, 2])
def test_stand__too_few_of_one_size(count: int) -> None:
    """One other image of the same size does not show which of both was altered."""
    copies = [scene(1), brightened(scene(1))][:count]
    assert [
        (each.altered, each.distance, each.closest) for each in stand([measure_fidelity(each) for each in copies])
    ] == [(None, None, None)] * count


def test_stand__size_of_most_copies() -> None:
    """The size that most copies have is no surplus, though a smaller copy has the same detail."""
    small = scaled(scene(1), 0.5)
    large = scaled(small, 2)
    copies = [large, brightened(large), brightened(large, 0.8), small]
    assert [each.surplus for each in stand([measure_fidelity(each) for each in copies])] == [0.0] * 4


@pytest.mark.parametrize("quality", [85, 95])
def test_stand__saved_again(quality: int) -> None:
    """A file that was made by saving a coarser one again, with or without a loss, is derived from it."""
    first, steps = saved(scene(8), 50)
    copies = [measure_fidelity(first, steps), of_jpeg(first, quality), measure_fidelity(first)]
    assert [each.is_derived for each in stand(copies)] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("quality", [98, 95, 90, 85, 75, 50])
def test_stand__saved_with_loss(quality: int) -> None:
    """A compressed copy is derived from its source, and never the other way round, though fine steps explain all."""
    original, fine = scene(8), 98
    source, copy = stand([measure_fidelity(original), of_jpeg(original, quality)])
    assert not source.is_derived
    assert copy.is_derived or quality > 90
    first, steps = saved(original, fine)
    assert not stand([measure_fidelity(first, steps), of_jpeg(first, min(quality, 90))])[0].is_derived


@pytest.mark.slow
@pytest.mark.parametrize("quality", [40, 75, 92, 98, 100])
def test_stand__saved_without_loss(quality: int) -> None:
    """A file without a loss that has the pixels of a JPEG is derived from it; the source of a JPEG is not."""
    pixels, steps = saved(scene(8), quality)
    copies = [measure_fidelity(pixels, steps), measure_fidelity(pixels), measure_fidelity(pixels, is_lossy=True)]
    assert [each.is_derived for each in stand(copies)] == [False, True, True]
    assert not stand([measure_fidelity(scene(8)), copies[0]])[0].is_derived


def test_measure_fidelity__colour() -> None:
    """An image of three equal channels has no colour, also where a decoder rounded them."""
    assert measure_fidelity(scene(1)).has_colour
    shades = np.repeat(grey(scene(1))[..., None], 3, axis=2)
    assert not measure_fidelity(shades).has_colour
    shades[::3, ::3, 0] += 1
    assert not measure_fidelity(shades).has_colour


def test_stand__saved_twice_from_one_image() -> None:
    """Of files that were made from one image, the finest could be the source of the others."""
    copies = [of_jpeg(scene(8), 50), of_jpeg(scene(8), 90), of_jpeg(scene(8), 75)]
    assert [each.is_derived for each in stand(copies)] == [True, False, True]


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (7, 7), (8, 8), (63, 65), (64, 64)])
def test_stand__tiny_images(size: tuple[int, int]) -> None:
    """Tiny and plain images have finite standings, among larger ones, too."""
    rng = np.random.default_rng(0)
    tiny = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for _ in range(3)]
    plain = flat((9, 9, 9), width=size[1], height=size[0])
    copies = [measure_fidelity(each, (16,) * 8) for each in [*tiny, plain, scene(1)]]
    assert not any(each.is_recompressed for each in copies[:4])
    for count in range(1, len(copies) + 1):
        for each in stand(copies[:count]):
            assert 0 < each.detail <= WIDTH * HEIGHT
            assert each.surplus >= 0
            assert each.altered is None or np.isfinite(each.altered)


def test_measure_fidelity__damaged_table() -> None:
    """Steps of zero, which only a damaged file has, are taken as they are."""
    found = measure_fidelity(saved(scene(1), 50)[0], (0,) * 8)
    assert found.is_recompressed
    assert np.isfinite([each.detail for each in stand([found, measure_fidelity(scene(1))])]).all()


@pytest.fixture(scope="module")
def mixed() -> list[Fidelity]:
    """Copies of several sizes: edited, framed, compressed and enlarged."""
    original = scene(9)
    small = scaled(original, 0.5)
    framed = original.copy()
    framed[:110], framed[-110:], framed[:, :110], framed[:, -110:] = 0, 0, 0, 0
    enlarged = scaled(small, 2)
    return [
        measure_fidelity(original),
        of_jpeg(original, 50),
        measure_fidelity(framed),
        measure_fidelity(enlarged),
        measure_fidelity(small),
        of_jpeg(brightened(small), 70),
        measure_fidelity(scaled(original, 0.3)),
        measure_fidelity(np.ascontiguousarray(small.transpose(1, 0, 2))),
    ]


def close(values: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bool:
    """Return whether standings are equal, but for rounding."""
    return np.allclose(values, other, rtol=1e-4, atol=0.05, equal_nan=True)


@examples(60)
@given(order=st.permutations(range(8)), count=st.integers(1, 8))
def test_stand__law(mixed: list[Fidelity], order: list[int], count: int) -> None:
    """The standings do not depend on the order of the copies."""

    def standings(places: list[int]) -> dict[int, tuple[float | None, ...]]:
        found = stand([mixed[place] for place in places])
        return {place: tuple(vars(each).values()) for place, each in zip(places, found, strict=True)}

    chosen = order[:count]
    found, expected = standings(chosen), standings(sorted(chosen))
    for place in chosen:
        assert close(np.array(found[place], np.float64), np.array(expected[place], np.float64))
