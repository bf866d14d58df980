"""FFmpeg's libraries, version 8, as functions and structures: those that the wheel of OpenCV has.

OpenCV's own reader cannot be relied upon for pixels: it ignores that the conversion of an interlaced frame failed, and
then returns memory that nobody filled; it converts all colours by BT.601; and it stops at the first packet that cannot
be decoded (OpenCV 5.0, ``cap_ffmpeg_impl.hpp``). The libraries below it do none of this.

FFmpeg keeps the layout of its public structures within a major version of each library; new fields are added at the
end. So only these majors are used, and the layout is checked against values that a new structure has.
"""

import ctypes
import re
from collections.abc import Iterator
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32, c_void_p
from ctypes.util import find_library
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from framedex.errors import CannotDecode

_MAJORS = {"avutil": 60, "avcodec": 62, "avformat": 62, "swscale": 9}
_FOLDERS = ("opencv*.libs", "cv2/.dylibs", "av.libs", "av/.dylibs")  # in the order of preference
_QUIET = -8

NO_TIME = -(2**63)
END_OF_FILE = -int.from_bytes(b"EOF ", "little")
IO_ERROR = -5
VIDEO, COVER_IMAGE, SEEK_BACKWARD, SEEK_ANY = 0, 0x400, 1, 4
SEEK_SIZE, SEEK_FORCE = 0x10000, 0x20000
PACKET_KEY, PACKET_CORRUPT, PACKET_DISCARD = 1, 2, 4
FRAME_CORRUPT, FRAME_KEY = 1, 2
RGB24, FULL_RANGE, BICUBIC = 2, 2, 4
MATRIX_OF_STREAM = 5  # the kind of side data: how frames are turned and mirrored

READ = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
SEEK = ctypes.CFUNCTYPE(c_int64, c_void_p, c_int64, c_int)


class Rational(Structure):
    """A fraction."""

    _fields_ = (("num", c_int), ("den", c_int))

    def __float__(self) -> float:
        """Return its value; 0 if it has none."""
        return self.num / self.den if self.den else 0.0


class Input(Structure):
    """The beginning of ``AVFormatContext``."""

    _fields_ = (
        ("av_class", c_void_p), ("iformat", c_void_p), ("oformat", c_void_p), ("priv_data", c_void_p),
        ("pb", c_void_p), ("ctx_flags", c_int), ("nb_streams", c_uint), ("streams", POINTER(c_void_p)),
        ("nb_stream_groups", c_uint), ("stream_groups", c_void_p), ("nb_chapters", c_uint), ("chapters", c_void_p),
        ("url", c_void_p), ("start_time", c_int64), ("duration", c_int64),
    )  # fmt: skip


class InputStream(Structure):
    """The beginning of ``AVStream``."""

    _fields_ = (
        ("av_class", c_void_p), ("index", c_int), ("id", c_int), ("codecpar", c_void_p), ("priv_data", c_void_p),
        ("time_base", Rational), ("start_time", c_int64), ("duration", c_int64), ("nb_frames", c_int64),
        ("disposition", c_int), ("discard", c_int),
    )  # fmt: skip


class Parameters(Structure):
    """The beginning of ``AVCodecParameters``."""

    _fields_ = (
        ("codec_type", c_int), ("codec_id", c_int), ("codec_tag", c_uint32), ("extradata", c_void_p),
        ("extradata_size", c_int), ("coded_side_data", c_void_p), ("nb_coded_side_data", c_int), ("format", c_int),
        ("bit_rate", c_int64), ("bits_per_coded_sample", c_int), ("bits_per_raw_sample", c_int), ("profile", c_int),
        ("level", c_int), ("width", c_int), ("height", c_int),
    )  # fmt: skip


class Packet(Structure):
    """The beginning of ``AVPacket``."""

    _fields_ = (
        ("buf", c_void_p), ("pts", c_int64), ("dts", c_int64), ("data", c_void_p), ("size", c_int),
        ("stream_index", c_int), ("flags", c_int), ("side_data", c_void_p), ("side_data_elems", c_int),
        ("duration", c_int64), ("pos", c_int64),
    )  # fmt: skip


class IndexEntry(Structure):
    """``AVIndexEntry``: the place and the time of a packet."""

    _fields_ = (("pos", c_int64), ("timestamp", c_int64), ("flags_size", c_int), ("min_distance", c_int))


class SideData(Structure):
    """``AVPacketSideData``."""

    _fields_ = (("data", POINTER(c_int32)), ("size", c_size_t))


class Frame(Structure):
    """The beginning of ``AVFrame``."""

    _fields_ = (
        ("data", c_void_p * 8), ("linesize", c_int * 8), ("extended_data", c_void_p), ("width", c_int),
        ("height", c_int), ("nb_samples", c_int), ("format", c_int), ("pict_type", c_int),
        ("sample_aspect_ratio", Rational), ("pts", c_int64), ("pkt_dts", c_int64), ("time_base", Rational),
        ("quality", c_int), ("opaque", c_void_p), ("repeat_pict", c_int), ("sample_rate", c_int),
        ("buf", c_void_p * 8), ("extended_buf", c_void_p), ("nb_extended_buf", c_int), ("side_data", c_void_p),
        ("nb_side_data", c_int), ("flags", c_int), ("color_range", c_int), ("color_primaries", c_int),
        ("color_trc", c_int), ("colorspace", c_int), ("chroma_location", c_int), ("best_effort_timestamp", c_int64),
        ("metadata", c_void_p), ("decode_error_flags", c_int),
    )  # fmt: skip


_INT, _POINTER, _LONG, _TEXT = c_int, c_void_p, c_int64, c_char_p
_FUNCTIONS: dict[str, dict[str, tuple[Any, ...]]] = {  # the type of the result, then those of the arguments
    "avutil": {
        "av_malloc": (_POINTER, c_size_t),
        "av_freep": (None, _POINTER),
        "av_log_set_level": (None, _INT),
        "av_opt_set_int": (_INT, _POINTER, _TEXT, _LONG, _INT),
        "av_dict_set_int": (_INT, _POINTER, _TEXT, _LONG, _INT),
        "av_dict_free": (None, _POINTER),
        "av_frame_alloc": (POINTER(Frame),),
        "av_frame_free": (None, _POINTER),
    },
    "avcodec": {
        "av_packet_alloc": (POINTER(Packet),),
        "av_packet_free": (None, _POINTER),
        "av_packet_unref": (None, POINTER(Packet)),
        "av_packet_side_data_get": (POINTER(SideData), _POINTER, _INT, _INT),
        "avcodec_alloc_context3": (_POINTER, _POINTER),
        "avcodec_find_decoder": (_POINTER, _INT),
        "avcodec_flush_buffers": (None, _POINTER),
        "avcodec_free_context": (None, _POINTER),
        "avcodec_get_name": (_TEXT, _INT),
        "avcodec_open2": (_INT, _POINTER, _POINTER, _POINTER),
        "avcodec_parameters_alloc": (POINTER(Parameters),),
        "avcodec_parameters_free": (None, _POINTER),
        "avcodec_parameters_to_context": (_INT, _POINTER, _POINTER),
        "avcodec_receive_frame": (_INT, _POINTER, POINTER(Frame)),
        "avcodec_send_packet": (_INT, _POINTER, POINTER(Packet)),
    },
    "avformat": {
        "av_codec_get_tag": (c_uint, _POINTER, _INT),
        "av_find_best_stream": (_INT, POINTER(Input), _INT, _INT, _INT, _POINTER, _INT),
        "av_find_input_format": (_POINTER, _TEXT),
        "av_guess_frame_rate": (Rational, POINTER(Input), POINTER(InputStream), _POINTER),
        "av_guess_sample_aspect_ratio": (Rational, POINTER(Input), POINTER(InputStream), _POINTER),
        "av_read_frame": (_INT, POINTER(Input), POINTER(Packet)),
        "av_seek_frame": (_INT, POINTER(Input), _INT, _LONG, _INT),
        "avformat_alloc_context": (POINTER(Input),),
        "avformat_close_input": (None, _POINTER),
        "avformat_find_stream_info": (_INT, POINTER(Input), _POINTER),
        "avformat_get_riff_video_tags": (_POINTER,),
        "avformat_index_get_entry": (POINTER(IndexEntry), POINTER(InputStream), _INT),
        "av_index_search_timestamp": (_INT, POINTER(InputStream), _LONG, _INT),
        "avformat_new_stream": (POINTER(InputStream), POINTER(Input), _POINTER),
        "avformat_open_input": (_INT, _POINTER, _TEXT, _POINTER, _POINTER),
        "avio_alloc_context": (_POINTER, _POINTER, _INT, _INT, _POINTER, READ, _POINTER, SEEK),
        "avio_context_free": (None, _POINTER),
    },
    "swscale": {
        "sws_freeContext": (None, _POINTER),
        "sws_getCoefficients": (_POINTER, _INT),
        "sws_getContext": (_POINTER, *(_INT,) * 7, _POINTER, _POINTER, POINTER(c_double)),
        "sws_scale": (_INT, _POINTER, _POINTER, _POINTER, _INT, _INT, _POINTER, _POINTER),
        "sws_setColorspaceDetails": (_INT, _POINTER, _POINTER, _INT, _POINTER, *(_INT,) * 4),
    },
}


def libraries() -> Iterator[Any]:
    """Yield objects with the functions of FFmpeg's libraries: of OpenCV, and where they are installed, of PyAV.

    PyAV has decoders that OpenCV lacks, for example of AV1. The libraries print nothing about damaged files.

    Raises:
        CannotDecode: this installation has no libraries of FFmpeg 8.
    """
    is_empty = True
    for functions in filter(None, (_loaded(*files) for files in _beside_opencv())):
        is_empty = False
        yield functions
    if is_empty and (functions := _loaded(*_of_system())) is not None:
        yield functions
    elif is_empty:
        raise CannotDecode(
            "videos need the libraries of FFmpeg 8, which this installation of OpenCV lacks: "
            "pip install opencv-python-headless, or PyAV (pip install av)",
            "not_supported",
        )


@cache
def _beside_opencv() -> tuple[tuple[str, ...], ...]:
    """Return the files of the libraries of OpenCV and of PyAV, each in the order of :data:`_MAJORS`."""
    spec = find_spec("cv2")
    root = Path(spec.origin).parent.parent if spec is not None and spec.origin else Path()
    folders = [sorted(each.iterdir()) for pattern in _FOLDERS for each in sorted(root.glob(pattern))]
    return tuple(
        tuple(str(path) for name in _MAJORS for path in files if re.match(rf"(lib)?{name}[-.]", path.name))
        for files in folders
    )


@cache
def _of_system() -> tuple[str, ...]:
    """Return the files of the system's libraries. The search starts other programs."""
    return tuple(path for name in _MAJORS if (path := find_library(name)) is not None)


_SLOW = frozenset((
    "av_seek_frame", "avcodec_flush_buffers", "avcodec_free_context", "avcodec_open2", "avcodec_send_packet",
    "avformat_find_stream_info", "avformat_open_input", "sws_scale",
))  # fmt: skip
"""The functions that release the interpreter lock: those that may take long. Packets are decoded when they are sent.

To release it for each short call costs more than the call where other threads wait for the lock.
"""


@cache
def _loaded(*files: str) -> Any:
    """Return the functions of libraries; None if one is missing, or is of another version."""
    if len(files) != len(_MAJORS):
        return None
    functions = _Functions()
    try:
        for path, (name, major) in zip(files, _MAJORS.items(), strict=True):
            library, short = ctypes.CDLL(path), ctypes.PyDLL(path)
            version = getattr(library, f"{name}_version")
            version.restype = c_uint
            if version() >> 16 != major:
                return None
            for function, (result, *arguments) in _FUNCTIONS[name].items():
                entry = getattr(library if function in _SLOW else short, function)
                entry.restype, entry.argtypes = result, arguments
                setattr(functions, function, entry)
    except (OSError, AttributeError):
        return None
    if not _has_layout(functions):
        return None
    functions.av_log_set_level(_QUIET)
    return functions


class _Functions(SimpleNamespace):
    """The functions of all libraries, as attributes."""


def _has_layout(functions: Any) -> bool:
    """Return whether new structures have their initial values at the expected places."""
    frame, packet = functions.av_frame_alloc(), functions.av_packet_alloc()
    parameters, source = functions.avcodec_parameters_alloc(), functions.avformat_alloc_context()
    stream = functions.avformat_new_stream(source, None)
    try:
        of_frame, of_stream = frame.contents, stream.contents
        found = (
            (of_frame.format, of_frame.pts, of_frame.pkt_dts, of_frame.best_effort_timestamp, of_frame.colorspace),
            (of_frame.extended_data, of_frame.color_primaries, of_frame.color_trc, of_frame.sample_aspect_ratio.den),
            (packet.contents.pts, packet.contents.dts, packet.contents.pos),
            (parameters.contents.codec_type, parameters.contents.format, parameters.contents.level),
            (source.contents.nb_streams, source.contents.streams[0]),
            (of_stream.start_time, of_stream.duration, of_stream.index),
        )
        return found == (
            (-1, NO_TIME, NO_TIME, NO_TIME, 2), (ctypes.addressof(of_frame), 2, 2, 1), (NO_TIME, NO_TIME, -1),
            (-1, -1, -99), (1, ctypes.addressof(of_stream)), (NO_TIME, NO_TIME, 0),
        )  # fmt: skip
    finally:
        functions.av_frame_free(ctypes.byref(frame))
        functions.av_packet_free(ctypes.byref(packet))
        functions.avcodec_parameters_free(ctypes.byref(parameters))
        functions.avformat_close_input(ctypes.byref(source))
