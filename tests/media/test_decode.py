"""Images of every format are decoded once and shown right, or refused with the reason."""

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from framedex.core.suffixes import is_image
from framedex.errors import CannotDecode
from framedex.media.decode import decode
from framedex.media.decoded_image import DecodedImage
from tests.extras import missing
from tests.image_files import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    Pixels,
    bmp_claiming,
    encode,
    flat,
    gif_claiming,
    jpeg_claiming,
    oriented,
    photo,
    png_claiming,
    quadrants,
)
from tests.laws import rest_slow

MAX_PIXELS = 10_000_000
SHARED = Path(__file__).parents[3] / "shared" / "data" / "duplicates"
shared_files = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared images are not here")


def shown(data: bytes, *, detail: int | None = None) -> DecodedImage:
    """Return the decoded image."""
    image = decode(data, max_pixels=MAX_PIXELS, detail=detail)
    assert image.pixels.dtype == np.uint8
    assert image.pixels.ndim == 3
    assert image.pixels.shape[2] == 3
    if detail is None:
        assert image.pixels.shape[:2] == (image.height, image.width)
    return image


def assert_close(found: Pixels, expected: npt.NDArray[np.generic], *, within: float) -> None:
    """Check that two images look alike: their mean difference is at most some grey levels."""
    assert found.shape == expected.shape
    assert np.abs(found.astype(float) - expected.astype(float)).mean() <= within


def reason(data: bytes, *, max_pixels: int = MAX_PIXELS) -> str:
    """Return why data cannot be decoded."""
    with pytest.raises(CannotDecode) as caught:
        decode(data, max_pixels=max_pixels)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file_format", "name", "within", "options"),
    [
        ("PNG", "png", 0, {}),
        ("BMP", "bmp", 0, {}),
        ("TIFF", "tiff", 0, {}),
        ("TIFF", "tiff", 0, {"compression": "tiff_lzw"}),
        ("TIFF", "tiff", 3, {"compression": "jpeg", "quality": 95}),
        ("GIF", "gif", 12, {}),
        ("WEBP", "webp", 0, {"lossless": True}),
        ("WEBP", "webp", 4, {"quality": 90}),
        ("JPEG", "jpeg", 3, {"quality": 95}),
        ("JPEG", "jpeg", 3, {"quality": 95, "progressive": True}),
        ("JPEG2000", "jpeg2000", 0, {}),
    ],
)
def test_decode__formats(file_format: str, name: str, within: float, options: dict[str, object]) -> None:
    """Each format shows the image that was saved, with its size and its name."""
    pixels = photo(1)
    image = shown(encode(pixels, file_format, **options))
    assert (image.width, image.height, image.format) == (160, 120, name)
    assert_close(image.pixels, pixels, within=within)


def test_decode__avif() -> None:
    """An AVIF shows its pixels; one that is cut off is refused."""
    data = encode(quadrants(), "AVIF", quality=95)
    assert_close(shown(data).pixels, quadrants(), within=12)
    with pytest.raises(CannotDecode):
        decode(data[: len(data) // 2], max_pixels=MAX_PIXELS)


def test_decode__heic() -> None:
    """HEIC is shown where its extra is installed."""
    pillow_heif = pytest.importorskip("pillow_heif")
    out = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(photo(1))).save(out, quality=90)
    image = shown(out.getvalue())
    assert (image.width, image.height, image.format) == (160, 120, "heif")
    assert_close(image.pixels, photo(1), within=4)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation__is_honoured(file_format: str, orientation: int) -> None:
    """All eight Exif orientations are shown upright, with the size as shown."""
    pixels = quadrants(width=64, height=32)
    image = shown(oriented(pixels, orientation, file_format))
    assert (image.width, image.height) == (64, 32)
    assert_close(image.pixels, pixels, within=4)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("detail", [16, 40, 80])
def test_orientation__is_honoured_at_less_detail(orientation: int, detail: int) -> None:
    """A reduced JPEG is upright too, and its whole size is the shown one."""
    image = shown(oriented(quadrants(width=640, height=320), orientation, "JPEG"), detail=detail)
    assert (image.width, image.height) == (640, 320)
    height, width = image.pixels.shape[:2]
    assert detail <= height < 320
    assert width == 2 * height
    corners = image.pixels[[4, 4, -4, -4], [4, -4, 4, -4]]
    assert_close(corners[None], np.array([[RED, GREEN, BLUE, WHITE]]), within=4)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_orientation__that_does_not_exist_is_ignored(orientation: int) -> None:
    """Numbers without a meaning leave the image as it is stored."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    for file_format in ("JPEG", "PNG"):
        image = shown(encode(quadrants(), file_format, exif=exif.tobytes()))
        assert (image.width, image.height) == (64, 48)
        assert_close(image.pixels, quadrants(), within=4)


def test_decode__dicom_without_its_extra() -> None:
    """Where pydicom is missing, the reason names the extra."""
    with missing("pydicom"):
        assert reason(bytes(128) + b"DICM") == "DICOM needs the extra: pip install 'framedex[dicom]'"


def test_exif__broken_is_ignored() -> None:
    """Exif data that is cut off or nonsense does not keep an image from being shown."""
    for exif in (
        b"Exif\0\0",
        b"Exif\0\0MM\0*\0\0\0\x08\0\xff",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0" + b"\xff" * 40,
    ):
        assert_close(shown(encode(quadrants(), "JPEG", exif=exif)).pixels, quadrants(), within=4)


@pytest.mark.parametrize("suffix", [".png", ".tiff"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bits__are_scaled(suffix: str, channels: int) -> None:
    """16-bit images, grey and in colour, show the same as their 8-bit version."""
    ramp = np.linspace(0, 65535, 64 * 48).reshape(48, 64).astype(np.uint16)
    colours = np.stack([ramp, ramp[::-1], ramp[:, ::-1]], axis=-1)
    stored = {1: ramp, 3: colours[..., ::-1], 4: np.dstack([colours[..., ::-1], np.full_like(ramp, 65535)])}[channels]
    ok, data = cv2.imencode(suffix, stored)
    assert ok
    expected = (np.stack([ramp] * 3, axis=-1) if channels == 1 else colours) / 257
    found = shown(data.tobytes()).pixels
    assert np.abs(found - expected).max() <= 1


def test_one_bit__is_black_and_white() -> None:
    """Images of one bit a pixel become 0 and 255."""
    bits = photo(2)[..., 0] > 128
    for file_format, options in (("PNG", {}), ("TIFF", {"compression": "group4"}), ("BMP", {}), ("GIF", {})):
        image = shown(encode(Image.fromarray(bits), file_format, **options))
        np.testing.assert_array_equal(image.pixels[..., 1], bits * np.uint8(255), file_format)


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "TIFF", "WEBP", "JPEG2000"])
def test_grey__has_three_equal_channels(file_format: str) -> None:
    """Grey images become RGB with equal channels."""
    grey = photo(3)[..., 1]
    found = shown(encode(Image.fromarray(grey), file_format)).pixels
    assert_close(found[..., 0], grey, within=4)
    assert np.all(np.ptp(found, axis=2) <= 1)


@pytest.mark.parametrize("file_format", ["JPEG", "TIFF"])
def test_cmyk__is_shown_in_its_colours(file_format: str) -> None:
    """The four inks of print are not mistaken for colours, nor inverted."""
    image = shown(encode(Image.fromarray(quadrants()).convert("CMYK"), file_format))
    assert_close(image.pixels, quadrants(), within=4)


def test_ycck__is_shown_in_its_colours() -> None:
    """Adobe's inverted CMYK in a JPEG with its marker is shown right."""
    image = shown(encode(Image.fromarray(flat((200, 100, 50))).convert("CMYK"), "JPEG", quality=95))
    assert_close(image.pixels, flat((200, 100, 50)), within=4)
    assert image.format == "jpeg"


def test_palette__with_and_without_transparency() -> None:
    """Palette images show their colours; transparent entries show white."""
    image = Image.fromarray(quadrants()).convert("P", palette=Image.Palette.ADAPTIVE, colors=4)
    np.testing.assert_array_equal(shown(encode(image, "PNG")).pixels, quadrants())
    red = image.getpixel((0, 0))
    expected = quadrants()
    expected[:24, :32] = WHITE
    for file_format in ("PNG", "GIF"):
        assert_close(shown(encode(image, file_format, transparency=red)).pixels, expected, within=1)


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "TIFF", "JPEG2000"])
def test_alpha__is_laid_over_white(file_format: str) -> None:
    """Transparent pixels become white, and half-transparent pixels a mixture, regardless of the hidden colour."""
    alpha = np.zeros((48, 64, 1), np.uint8)
    alpha[:24] = 255
    alpha[:, 32:] //= 2
    options = {"lossless": True, "exact": True} if file_format == "WEBP" else {}
    found = shown(encode(np.dstack([flat(BLUE), alpha]), file_format, **options)).pixels
    assert found[0, 0].tolist() == list(BLUE)
    assert found[-1, 0].tolist() == found[-1, -1].tolist() == list(WHITE)
    assert found[0, -1].tolist() == [128, 128, 255]


def test_alpha__of_grey_images() -> None:
    """Grey with alpha, and grey with one transparent value, are laid over white."""
    grey = Image.fromarray(np.dstack([np.zeros((4, 4), np.uint8), np.arange(16, dtype=np.uint8).reshape(4, 4) * 17]))
    assert grey.mode == "LA"
    assert shown(encode(grey, "PNG")).pixels[..., 0].ravel().tolist() == [255 - 17 * n for n in range(16)]
    ramp = Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4))
    assert shown(encode(ramp, "PNG", transparency=3)).pixels[0, :, 0].tolist() == [0, 1, 2, 255]


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_alpha__one_transparent_grey_value_of_each_depth(depth: int) -> None:
    """A PNG's transparent grey value is one of the stored values, whatever their number of bits."""
    row = sum(value << depth * (3 - place) for place, value in enumerate((0, 1, 0, 1))).to_bytes(-(-depth * 4 // 8))
    if depth == 1:
        row = b"\x50"
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 4, 1, depth, 0, 0, 0, 0)), (b"tRNS", struct.pack(">H", 1)),
        (b"IDAT", zlib.compress(b"\0" + row)), (b"IEND", b""),
    ]  # fmt: skip
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
    assert shown(data).pixels[0, :, 0].tolist() == [0, 255, 0, 255]


@pytest.mark.parametrize(("alpha", "is_shown"), [((0, 0), True), ((0, 255), False), ((255, 255), True)])
def test_alpha__of_bmp_that_is_empty(alpha: tuple[int, int], is_shown: bool) -> None:
    """A BMP whose alpha is 0 everywhere is opaque, as browsers show it; one with any alpha is not."""
    bands = np.dstack([flat(RED)[..., ::-1], np.full((48, 64), alpha[0], np.uint8)])
    bands[0, 0, 3] = alpha[1]
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000) + b"sRGB" + bytes(48)
    header = struct.pack("<IiiHHIIiiII", 108, 64, 48, 1, 32, 3, bands.nbytes, 2835, 2835, 0, 0) + masks
    data = b"BM" + struct.pack("<IHHI", 122 + bands.nbytes, 0, 0, 122) + header + bands[::-1].tobytes()
    found = shown(data).pixels
    assert found[0, 0].tolist() == list(RED)
    assert found[-1, -1].tolist() == list(RED if is_shown else WHITE)


@pytest.mark.parametrize("file_format", ["GIF", "WEBP", "PNG", "TIFF"])
def test_animation__shows_the_first_frame(file_format: str) -> None:
    """Of several frames the first is the image."""
    frames = [Image.fromarray(flat(colour)) for colour in (RED, GREEN, BLUE)]
    options = {"lossless": True} if file_format == "WEBP" else {}
    image = shown(encode(frames[0], file_format, save_all=True, append_images=frames[1:], **options))
    assert_close(image.pixels, flat(RED), within=1)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 30}])
@pytest.mark.parametrize("detail", [None, 30])
def test_truncated__jpeg(options: dict[str, object], detail: int | None) -> None:
    """A JPEG that is cut off anywhere is refused, at any detail, not shown half grey."""
    data = encode(photo(5, width=320, height=240), "JPEG", **options)
    for kept in (*range(1, len(data) - 2, len(data) // 17), len(data) - 9):
        with pytest.raises(CannotDecode):
            decode(data[:kept], max_pixels=MAX_PIXELS, detail=detail)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}])
@pytest.mark.parametrize("detail", [None, 30])
def test_jpeg__without_its_end_marker(options: dict[str, object], detail: int | None) -> None:
    """A JPEG that lacks only its end marker, or a byte of it, is the same image without damage."""
    data = encode(photo(5, width=320, height=240), "JPEG", **options)
    whole = decode(data, max_pixels=MAX_PIXELS, detail=detail)
    for cut in (data[:-2], data[:-1]):
        image = decode(cut, max_pixels=MAX_PIXELS, detail=detail)
        assert image.damage is None
        assert (image.pixels == whole.pixels).all()


@pytest.mark.parametrize("detail", [None, 30])
def test_jpeg__damaged_within(detail: int | None, capfd: pytest.CaptureFixture[str]) -> None:
    """A JPEG with zeros in its middle is decoded up to them and after them; the damage is said, but not on stderr."""
    data = encode(photo(5, width=640, height=480), "JPEG", restart_marker_rows=1)
    damaged = bytearray(data)
    middle = len(data) // 2
    damaged[middle : middle + 500] = bytes(500)
    image, whole = (decode(bytes(each), max_pixels=MAX_PIXELS, detail=detail) for each in (damaged, data))
    assert image.damage
    assert whole.damage is None
    rows = len(whole.pixels)
    assert (image.pixels[: rows // 4] == whole.pixels[: rows // 4]).all()
    assert (image.pixels[-rows // 8 :] == whole.pixels[-rows // 8 :]).mean() > 0.9
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "options",
    [
        {"progressive": True},
        {"subsampling": "4:4:4"},
        {"subsampling": "4:2:2"},
        {"subsampling": "4:1:1"},
        {"optimize": True, "quality": 5},
        {"comment": b"\xff\xd9" * 20},
        {"exif": b"Exif\0\0" + b"\xff\xd8\xff\xd9" * 30},
        {"restart_marker_blocks": 1},
        {"keep_rgb": True},
    ],
)
def test_jpeg__harmless(options: dict[str, object], capfd: pytest.CaptureFixture[str]) -> None:
    """Odd but valid JPEGs, and ones with bytes after their end, are intact."""
    data = encode(photo(5, width=321, height=243), "JPEG", **options)
    for each in (data, data + b"\0" * 100, data + b"a trailer", data + data):
        assert decode(each, max_pixels=MAX_PIXELS).damage is None
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "BMP", "TIFF", "GIF"])
def test_truncated__other_formats(file_format: str) -> None:
    """Other images that are cut off in their data are refused too."""
    data = encode(photo(5), file_format)
    for share in (0.02, 0.1, 0.5, 0.9):
        with pytest.raises(CannotDecode):
            decode(data[: int(len(data) * share)], max_pixels=MAX_PIXELS)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "the file is empty"),
        (bytes(1000), "only zero bytes"),
        (b"These are words, not an image.", "it is a text file"),
        ("Größe und Gewicht\n".encode("utf-16"), "it is a text file"),
        (b"../.git/annex/objects/3f/SHA256E-s1--a.jpg", "a git-annex pointer: run `git annex get`"),
        (b"\0\0\1\xba" + bytes(99), "it is a video (MPEG)"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "it is an SVG drawing"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n", "it is a PostScript document"),
        (b"\xff\xd8", "beginning is damaged"),
        (b"\xff\xd8\xff", "beginning is damaged"),
        (b"\xff" * 500, "not an image of a supported format"),
        (b"\x89PNG\r\n\x1a\n", "beginning is damaged"),
        (b"GIF89a", "beginning is damaged"),
        (b"BM", "beginning is damaged"),
        (b"II*\0\x08\0\0\0\0\0", ""),
        (b"RIFF\x10\0\0\0WEBPVP8 ", ""),
        (b"\0\0\0\x0cjP  \r\n\x87\n", ""),
    ],
)
def test_no_image__is_refused_with_the_reason(data: bytes, text: str) -> None:
    """Data that is no image, or only the beginning of one, is refused in words for people."""
    found = reason(data)
    assert text in found
    assert found


@pytest.mark.parametrize("seed", range(40))
def test_damaged__never_raises_anything_else(seed: int) -> None:
    """Random damage ends in an image or in a refusal, never in another error or a warning."""
    rng = np.random.default_rng(seed)
    for file_format in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000"):
        data = bytearray(encode(photo(6, width=60, height=40), file_format))
        for place in rng.integers(0, min(len(data), int(rng.choice([64, 10**6]))), 4):
            data[place] = rng.integers(0, 256)
        with suppress(CannotDecode):
            assert decode(bytes(data), max_pixels=MAX_PIXELS, detail=20).pixels.size


@pytest.mark.parametrize("claiming", [png_claiming, jpeg_claiming, gif_claiming, bmp_claiming])
@pytest.mark.parametrize("size", [(30_000, 30_000), (65_000, 65_000)])
def test_bomb__is_refused_by_its_header(claiming: object, size: tuple[int, int]) -> None:
    """A few bytes that claim a huge image are refused before any pixel is made, with the limit and the way out."""
    assert callable(claiming)
    for limit in (MAX_PIXELS, 178_956_970):
        found = reason(claiming(*size), max_pixels=limit)
        assert f"{size[0]}×{size[1]} is more than {limit:,} pixels" in found
        assert "FRAMEDEX_MAX_PIXELS" in found


def test_bomb__limit_is_ours_alone() -> None:
    """Between Pillow's limits and beyond them only ours counts: the image is taken, and is found to be cut off."""
    for width, limit in ((10_000, 178_956_970), (20_000, 10**9)):
        assert "bomb" not in reason(png_claiming(width, 10_000), max_pixels=limit)


def test_bomb__limit_is_inclusive() -> None:
    """An image of exactly as many pixels as allowed is shown."""
    for file_format in ("PNG", "JPEG"):
        data = encode(photo(1), file_format)
        assert decode(data, max_pixels=160 * 120).width == 160
        assert "is more than" in reason(data, max_pixels=160 * 120 - 1)


def test_size__of_nothing_is_refused() -> None:
    """A header that claims no rows or no columns is refused."""
    for data in (png_claiming(0, 10), jpeg_claiming(0, 10), jpeg_claiming(10, 0)):
        reason(data)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [(1, 1), (1, 100), (100, 1), (30_000, 20), (7, 3001)])
def test_size__odd(file_format: str, size: tuple[int, int]) -> None:
    """The smallest and the longest images are shown, also at less detail."""
    data = encode(photo(7, width=size[0], height=size[1]), file_format)
    for detail in (None, 1, 64):
        image = shown(data, detail=detail)
        assert (image.width, image.height) == size
        assert min(image.pixels.shape[:2]) >= min(*size, detail or min(size))


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [(640, 480), (641, 479), (333, 999), (129, 128), (127, 300)])
@pytest.mark.parametrize("detail", rest_slow([64, 1, 500, 31, 128], 0, long=3))
@pytest.mark.slow
@pytest.mark.only_soak
def test_detail__keeps_the_shorter_side(file_format: str, size: tuple[int, int], detail: int) -> None:
    """Reduced pixels have at least the detail that was asked for, not twice of it, and show the same."""
    pixels = np.asarray(
        cv2.GaussianBlur(photo(8, width=size[0], height=size[1]), (0, 0), min(size) / 12), dtype=np.uint8
    )
    image = shown(encode(pixels, file_format), detail=detail)
    assert (image.width, image.height) == size
    height, width = image.pixels.shape[:2]
    assert min(height, width) >= min(detail, *size)
    assert min(height, width) < max(2 * detail, 2) or min(height, width) == min(size)
    assert width / height == pytest.approx(size[0] / size[1], rel=0.1) or min(height, width) < 10
    small = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    assert_close(image.pixels, small, within=6 if detail > 1 else 20)


@shared_files
def test_shared__odd_formats_are_shown_or_refused() -> None:
    """Real files of odd formats show the same photograph, or say why not."""
    expected = shown((SHARED / "formats_images/ukbench09380.png").read_bytes())
    for name in ("ukbench09380.bmp", "ukbench09380.jpeg", "ukbench09380.webp"):
        image = shown((SHARED / "formats_images" / name).read_bytes())
        assert_close(image.pixels, expected.pixels, within=8)
    for path in sorted((SHARED / "formats_images").iterdir()):
        if is_image(path.name):
            shown(path.read_bytes())
    shown((SHARED / "alpha_channel_image.png").read_bytes())


@shared_files
def test_shared__corrupt_file_is_refused() -> None:
    """A real damaged photograph among good ones is refused."""
    for path in sorted((SHARED / "mixed_images").iterdir()):
        if "corrupt" in path.name:
            assert reason(path.read_bytes())
        else:
            assert shown(path.read_bytes(), detail=128).width > 0


def test_decode__gif_that_cannot_be_as_large_as_it_says() -> None:
    """A GIF of 35 bytes that says it is 13,000 pixels wide and high is refused before memory is taken for them."""
    lie = struct.pack("<6sHHBBB", b"GIF89a", 13_000, 13_000, 0x80, 0, 0) + bytes(6)
    lie += struct.pack("<BHHHHB", 0x2C, 0, 0, 13_000, 13_000, 0) + b"\x02\x01\x4c\x00\x3b"
    with pytest.raises(CannotDecode, match=f"header lies: {len(lie)} bytes of GIF cannot hold 13000×13000 pixels"):
        decode(lie, max_pixels=200_000_000)


@pytest.mark.parametrize(
    "data",
    [
        bmp_claiming(13_000, 13_000),
        b"P6\n13000 13000\n255\n" + bytes(100),
        b"P6\n13000 13000\n9\n" + bytes(100),
        b"P5\n13000 13000\n255\n" + bytes(100),
        b"P4\n13000 13000\n" + bytes(100),
        b"P3\n13000 13000\n255\n" + b"1 " * 50,
    ],
    ids=["BMP", "RGB", "few values", "grey", "one bit", "plain"],
)
def test_decode__uncompressed_that_cannot_be_as_large_as_it_says(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """An uncompressed image of a few bytes is refused before memory is taken for its pixels."""
    monkeypatch.delattr("PIL.ImageFile.ImageFile.load")
    with pytest.raises(CannotDecode, match=r"header lies: .* cannot hold 13000×13000 pixels"):
        decode(data, max_pixels=200_000_000)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("file_format", ["BMP", "PPM", "TIFF"])
@pytest.mark.parametrize("width", [1, 7, 32, 33])
def test_decode__uncompressed_of_each_mode(mode: str, file_format: str, width: int) -> None:
    """Uncompressed images have as many bytes as their headers say."""
    image = Image.new(mode, (width, 5))
    if file_format == "PPM":
        image = image.convert("RGB") if mode in ("P", "RGBA") else image
    assert shown(encode(image, file_format)).width == width


@pytest.mark.slow
def test_decode__gif_of_one_colour() -> None:
    """The smallest GIF that an encoder makes of a size is not taken for a lie."""
    data = encode(Image.fromarray(np.zeros((3000, 3000), np.uint8)), "GIF")
    image = decode(data, max_pixels=200_000_000)
    assert (image.width, image.height) == (3000, 3000)
