"""Names of what files hold that are not images of a supported format, by their first bytes."""

import re

from framedex.media.containers import container_of

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
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"%!PS", "a PostScript document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document"),
    (b"gimp xcf", "a GIMP image"),
    (b"AT&TFORM", "a DjVu document"),
    (b"\xd7\xcd\xc6\x9a", "a Windows metafile"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"bplist00", "a property list"),
    (b"\x7fELF", "a program"),
    (b"ID3", "an MP3 recording"),
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
_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_ANNEX = re.compile(rb"(?:/|(?:\.\./)*\.git/)annex/objects/")
_ENCODINGS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CONTAINERS = {"mp4": "MP4", "mov": "QuickTime", "mkv": "Matroska", "webm": "WebM", "avi": "AVI", "wmv": "WMV",
    "flv": "FLV", "ts": "MPEG transport stream", "mpg": "MPEG", "es": "MPEG", "ogg": "Ogg"}  # fmt: skip
_HEAD, _LEAST_TEXT = 1024, 16


def file_kind(data: bytes) -> str | None:
    """Return what a file is, for the sentence "it is …"; None if it is not known."""
    head = data[:_HEAD]
    for start, name in _STARTS:
        if head.startswith(start):
            return name
    if head[4:8] == b"ftyp" and head[8:12] in _BRANDS:
        return _BRANDS[head[8:12]]
    if (container := container_of(head)) is not None:
        return f"a video ({_CONTAINERS.get(container, container)})"
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "a WAV recording"
    if _ANNEX.match(head):
        return "a git-annex pointer: run `git annex get` to fetch the file"
    encoding = next((name for start, name in _ENCODINGS if head.startswith(start)), None)
    text = head if encoding is None else head.decode(encoding, "ignore").encode().removeprefix("\ufeff".encode())
    text = text.lstrip()
    if text.startswith(b"<") and (markup := next((name for each, name in _MARKUP if each.search(text)), None)):
        return markup
    if _JSON.match(text):
        return "a JSON document"
    return "a text file" if len(text) >= _LEAST_TEXT and _is_text(text) else None


def _is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters, but for a character that is cut off at the end."""
    return not _CONTROLS.search(head) and "\ufffd" not in head.decode("utf-8", "replace")[:-1]
