"""Files without what they say about their image: the pixels and the orientation stay."""

import io

import pytest
from PIL import Image, PngImagePlugin

from framedex.errors import CannotDecode
from framedex.media.decode import decode
from framedex.media.metadata_removal import without_metadata
from tests.image_files import encode, photo

SECRET = b"SECRET-OWNER"


def _image() -> Image.Image:
    return Image.fromarray(photo(1))


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = orientation, SECRET.decode()
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 0.0)})
    return exif.tobytes()


def _file(file_format: str, orientation: int) -> bytes:
    """Return a file with everything that its format can say about an image."""
    target, image = io.BytesIO(), _image()
    if file_format == "PNG":
        texts = PngImagePlugin.PngInfo()
        texts.add_text("Author", SECRET.decode())
        texts.add_itxt("XML:com.adobe.xmp", SECRET.decode(), zip=True)
        image.save(target, "PNG", exif=_exif(orientation), pnginfo=texts)
    elif file_format == "GIF":
        image.save(target, "GIF", comment=SECRET, save_all=True, append_images=[Image.fromarray(photo(2))], loop=0)
    elif file_format == "JPEG":
        image.save(target, "JPEG", exif=_exif(orientation), comment=SECRET, xmp=SECRET)
    elif file_format == "progressive":
        image.save(target, "JPEG", exif=_exif(orientation), comment=SECRET, progressive=True)
    else:
        image.save(target, file_format, **({} if file_format == "BMP" else {"exif": _exif(orientation), "xmp": SECRET}))
    return target.getvalue()


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
@pytest.mark.parametrize("file_format", ["JPEG", "progressive", "PNG", "WEBP", "GIF", "BMP"])
def test_without_metadata__keeps_pixels_and_orientation(file_format: str, orientation: int) -> None:
    """Nothing is left but the image, upright as before; a second removal changes nothing."""
    data = _file(file_format, orientation)
    cleaned = without_metadata(data)
    assert SECRET not in cleaned
    before, after = (decode(each, max_pixels=10**7) for each in (data, cleaned))
    assert (after.pixels == before.pixels).all()
    with Image.open(io.BytesIO(cleaned)) as image:
        exif = image.getexif()
        assert set(exif) <= {0x0112}
        assert not exif.get_ifd(0x8825)
        if file_format == "GIF":
            assert image.n_frames == 2  # type: ignore[attr-defined] # of a GIF
            assert image.info["loop"] == 0
    assert without_metadata(cleaned) == cleaned


def test_without_metadata__keeps_the_colour_profile() -> None:
    """Colours depend on the profile."""
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for file_format in ("JPEG", "PNG", "WEBP"):
        data = encode(_image(), file_format, icc_profile=profile, exif=_exif(1))
        with Image.open(io.BytesIO(without_metadata(data))) as image:
            assert image.info["icc_profile"] == profile


def test_without_metadata__drops_what_follows_the_image() -> None:
    """Some cameras append further images, with metadata of their own."""
    data = _file("JPEG", 1)
    assert SECRET not in without_metadata(data + data)
    assert without_metadata(data + data) == without_metadata(data)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF"])
def test_without_metadata__of_a_cut_file(file_format: str) -> None:
    """A file that ends early gives no file with metadata: a message, or what is whole."""
    data = _file(file_format, 6)
    for length in (0, 1, 2, 3, 10, 40, len(data) // 2):
        try:
            assert SECRET not in without_metadata(data[:length])
        except CannotDecode as error:
            assert "cannot" in str(error)  # noqa: PT017 - either is right


def test_without_metadata__of_other_formats() -> None:
    """The metadata of a TIFF cannot be removed without decoding it."""
    with pytest.raises(CannotDecode, match="without decoding"):
        without_metadata(encode(photo(1), "TIFF"))
