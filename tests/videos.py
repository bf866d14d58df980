"""Makes videos for tests with the encoders that OpenCV brings, and changes their headers."""

import struct
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from tests.image_files import Pixels, photo

FPS = 10.0
_CODECS = {".mp4": "mp4v", ".mov": "mp4v", ".m4v": "mp4v", ".avi": "MJPG", ".mkv": "mp4v", ".webm": "VP80"}
_PARENTS = (b"moov", b"trak", b"mdia", b"minf", b"stbl")


def numbered(count: int, *, seed: int = 0, width: int = 160, height: int = 120) -> list[Pixels]:
    """Return frames that are all different, of one scene: a photograph over which a bar moves."""
    still = photo(seed, width=width, height=height)
    frames = [still.copy() for _ in range(count)]
    for place, frame in enumerate(frames):
        frame[:, (place * 7) % width : (place * 7) % width + 12] = (place * 37 % 256, 255 - place * 11 % 256, 128)
    return frames


def write_video(path: Path, frames: Sequence[Pixels], *, fps: float = FPS) -> Path:
    """Write RGB frames as a video, in the container of the path's suffix; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = frames[0].shape[:2] if frames else (120, 160)
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*_CODECS[path.suffix]), fps, (width, height))
    assert writer.isOpened(), f"no encoder for {path.name}"
    for frame in frames:
        writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
    writer.release()
    return path


def decoded(path: Path) -> list[Pixels]:
    """Return all frames of a video as RGB, decoded one after the other by OpenCV alone."""
    capture, frames = cv2.VideoCapture(str(path)), list[Pixels]()
    while True:
        found, frame = capture.read()
        if not found:
            return frames
        frames.append(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), dtype=np.uint8))


def with_durations(path: Path, ticks: Sequence[int]) -> None:
    """Give the frames of an MP4 that OpenCV wrote durations of their own, in ticks of its time scale."""
    entries = b"".join(struct.pack(">II", 1, each) for each in ticks)
    path.write_bytes(_replaced(path.read_bytes(), b"stts", struct.pack(">II", 0, len(ticks)) + entries))


def time_scale(path: Path) -> int:
    """Return how many ticks of an MP4's video a second has."""
    data = path.read_bytes()
    return int(struct.unpack_from(">I", data, data.index(b"mdhd") + 16)[0])


def with_matrix(path: Path, a: float, b: float, c: float, d: float) -> None:
    """Give an MP4 a matrix by which its frames are shown: ``0, 1, -1, 0`` turns, ``2, 0, 0, 1`` stretches."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 44
    fixed = [round(value * 65536) for value in (a, b, 0, c, d, 0, 0, 0)]
    struct.pack_into(">8iI", data, at, *fixed, 1 << 30)
    path.write_bytes(data)


def as_sound(path: Path) -> None:
    """Make the video of an MP4 a track of sound."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b"vide", b"soun").replace(b"vmhd", b"smhd"))


def index_first(path: Path) -> None:
    """Put the index of an MP4 before its frames, so that it can be cut off at its end and still be read."""
    data = path.read_bytes()
    boxes = dict(_boxes(data))
    moov = bytearray(boxes[b"moov"])
    at = moov.index(b"stco") + 8
    for place in range(struct.unpack_from(">I", moov, at)[0]):
        spot = at + 4 + 4 * place
        struct.pack_into(">I", moov, spot, struct.unpack_from(">I", moov, spot)[0] + len(moov))
    rest = b"".join(box for kind, box in _boxes(data) if kind not in (b"ftyp", b"moov"))
    path.write_bytes(boxes[b"ftyp"] + bytes(moov) + rest)


def _boxes(data: bytes) -> list[tuple[bytes, bytes]]:
    found, place = [], 0
    while place < len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        found.append((kind, data[place : place + size]))
        place += size
    return found


def _replaced(data: bytes, wanted: bytes, content: bytes) -> bytes:
    out = b""
    for kind, box in _boxes(data):
        inner = box[8:]
        if kind == b"edts":  # it would end what is shown where it ended before
            continue
        if kind == wanted:
            inner = content
        elif kind in _PARENTS:
            inner = _replaced(inner, wanted, content)
        out += struct.pack(">I4s", len(inner) + 8, kind) + inner
    return out
