"""Names of what files hold that are not images of a supported format, by their first bytes."""

import re

UNIDENTIFIED = "not an image of a supported format, or its beginning is damaged"
"""What is wrong with an image file that no reader accepts, and whose kind is not known."""

_STARTS = (
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer: run `git lfs pull` to fetch the file"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL image"),
    (b"\xff\xd8\xff\xf7", "a JPEG-LS image"),
    (b"8BPS", "a Photoshop document"),
    (b"%PDF-", "a PDF document"),
    (b"v/1\x01", "an OpenEXR image"),
    (b"#?RADIANCE", "a Radiance HDR image"),
    (b"\x97JB2\r\n\x1a\n", "a JBIG2 image"),
    (b"FUJIFILMCCD-RAW", "a raw image of a Fujifilm camera"),
    (b"FOVb", "a raw image of a Sigma camera"),
    (b"II\xbc", "a JPEG XR image"),
    (b"qoif", "a QOI image"),
    (b"DDS ", "a DirectDraw surface"),
    (b"SIMPLE  =", "a FITS image"),
    (b"\0\0\1\0", "an icon"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (b"OggS", "an Ogg file"),
)
_BRANDS = {b"avif": None, b"avis": None, b"crx ": "a raw image of a Canon camera"}
_MARKUP = (
    (re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE), "an HTML page"),
    (re.compile(rb"<svg\b", re.IGNORECASE), "an SVG drawing"),
    (re.compile(rb"<\?xml\b"), "an XML document"),
)
"""The first pattern that occurs counts: an SVG drawing is an XML document, and a page may have drawings."""
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\d\]])")
_HEAD = 1024


def file_kind(data: bytes) -> str | None:
    """Return what a file is, for the sentence "it is …"; None if it is not known."""
    head = data[:_HEAD]
    for start, name in _STARTS:
        if head.startswith(start):
            return name
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "a video (MP4 or QuickTime)")
    if head[128:132] == b"DICM":
        return "a DICOM image"
    if head[:4] == b"RIFF" and head[8:12] in (b"AVI ", b"WAVE"):
        return "an AVI video" if head[8:12] == b"AVI " else "a WAV recording"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<") and (markup := next((name for each, name in _MARKUP if each.search(text)), None)):
        return markup
    return "a JSON document" if _JSON.match(text) else None
