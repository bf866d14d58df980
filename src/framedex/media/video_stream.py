"""The frames of a video stream in the order of presentation, as FFmpeg decodes them, with what it says of damage."""

import ctypes
import errno
import os
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media import ffmpeg
from framedex.media.containers import codec_name, not_opened
from framedex.media.decoded_image import check_size

_BUFFER = 1 << 16
_MICROSECONDS = 1e6
_ROUNDED_S = 2e-6
_ALIGNED = 64  # bytes, as FFmpeg's own rows; its fast conversions write whole groups of pixels
_FORMATS = {
    "mp4": b"mov", "mov": b"mov", "avi": b"avi", "mkv": b"matroska", "webm": b"matroska", "wmv": b"asf", "flv": b"flv",
    "ogg": b"ogg", "ts": b"mpegts", "mpg": b"mpeg", "es": None,
}  # fmt: skip
"""FFmpeg's reader of each container; None lets FFmpeg find it."""
_FROM_ZERO = ("mkv", "webm")
"""Containers whose duration is the time of their end, whenever they begin."""
_UNREAD = 512
_ANY = 1 << 62
_MOST_UNREAD = {"mp4": _ANY, "mov": _ANY, "es": _ANY, "ts": _ANY, "mpg": _ANY, "ogg": _ANY, "wmv": 1 << 16}
"""The most bytes between the data of two packets in an intact file.

Packets of MP4 are found by an index, in any order; the places of others are those of larger units, or they have bytes
of other programs between them.
"""
_NEED_HARDWARE = (b"av1",)  # decoders that only pass packets to hardware
_HOLE = bytes(512)
_OF_UNITS, _LENGTHS = ("h264", "hevc"), b"\1"  # codecs of units; how the header begins if their lengths are given
_DENSE = (*_OF_UNITS, "vp8", "vp9", "dvvideo")
"""Codecs whose data has no runs of zeros: by their escapes, by arithmetic coding, or by headers each 80 bytes."""
_AVI_HEAD = 8  # bytes before the data of a packet
_PROBED = 1 << 26  # pixels of a frame that may be decoded to find its size, whatever the limit is
_MOST_DELAY = 64  # frames that a decoder shows after an error before the lost frame is passed
_LAST = 2**63 - 1
Matrix = tuple[tuple[int, int], tuple[int, int]]
_UPRIGHT: Matrix = ((1, 0), (0, 1))


class NoDecoder(Exception):
    """The libraries lack a decoder for the codec of a video, which is the only argument."""


class VideoStream:
    """The best video stream of a file, decoded frame by frame.

    Args:
        library: the functions of FFmpeg's libraries.
        file: the video file; read as needed.
        container: its container format.
        max_pixels: the maximum number of pixels of a frame.
        threads: the number of decoding threads.

    Attributes:
        codec: FourCC in lower case, or FFmpeg's name of the codec.
        width, height: the size of a stored frame in pixels.
        sample_aspect_ratio: width by height of a pixel; 0 if unknown.
        matrix: rows of the matrix by which frames are turned and mirrored: -1, 0 or 1.
        fps: the mean frame rate from the header; 0 if unknown.
        duration_s: the duration from the header in seconds; 0 if unknown.
        delay_s: the time in seconds by which the stream begins after the file, for example after its sound.
        time_s: the presentation time of the current frame in seconds from the start of the file; None if it has none.
        is_key: whether the current frame can be decoded without others.
        is_damaged: whether the current frame is damaged, or was decoded after one that is.
        lost_s: the presentation times of the frames before the current one, or before the end, that could not be
            decoded.
        is_after_gap: whether the current frame is near bytes of the file in which no packet was found.
        is_cut_off: whether the file ended within a packet of the stream.

    Raises:
        NoDecoder: the libraries have no decoder for its codec.
        CannotDecode: the file cannot be decoded as a video; the message has the reason.
    """

    def __init__(self, library: Any, file: BinaryIO, container: str, *, max_pixels: int, threads: int) -> None:
        self._process = os.getpid()
        self._library, self._file, self._max_pixels = library, file, max_pixels
        self._threads = threads
        self._container = container
        self._failure: BaseException | None = None
        self._source: Any = None
        self._io: Any = None
        self._decoder: Any = None
        self._scaler: Any = None
        self._frame, self._packet = self._library.av_frame_alloc(), self._library.av_packet_alloc()
        self._scaling: tuple[int, ...] = ()
        # FFmpeg calls these; they must live as long as it has them.
        self._callbacks = ffmpeg.READ(self._read), ffmpeg.SEEK(self._seek_in_file)
        self._most_unread = _MOST_UNREAD.get(container, _UNREAD)
        self.is_cut_off = False
        self._reset()
        try:
            self._open(container)
            self._open_decoder()
        except BaseException:
            self.close()
            raise

    def _open(self, container: str) -> None:
        library = self._library
        reader = _FORMATS[container]
        self._file.seek(0)
        buffer = library.av_malloc(_BUFFER)
        self._io = library.avio_alloc_context(buffer, _BUFFER, 0, None, self._callbacks[0], None, self._callbacks[1])
        self._source = library.avformat_alloc_context()
        self._source.contents.pb = self._io
        demuxer = None if reader is None else library.av_find_input_format(reader)
        code = library.avformat_open_input(ctypes.byref(self._source), b"", demuxer, None)
        self._check(code, lambda: not_opened(self._file, container))
        self._check_sizes()
        self._find_streams()
        number = library.av_find_best_stream(self._source, ffmpeg.VIDEO, -1, -1, None, 0)
        self._check(number, lambda: not_opened(self._file, container))
        self._number = number
        source = self._source.contents
        self._stream = ctypes.cast(source.streams[number], ctypes.POINTER(ffmpeg.InputStream))
        stream = self._stream.contents
        if stream.disposition & ffmpeg.COVER_IMAGE:
            raise not_opened(self._file, container)
        self._set_header(source, stream)

    def _check_sizes(self) -> None:
        """Check the sizes that the container names."""
        source = self._source.contents
        for number in range(source.nb_streams):
            stream = ctypes.cast(source.streams[number], ctypes.POINTER(ffmpeg.InputStream)).contents
            parameters = ctypes.cast(stream.codecpar, ctypes.POINTER(ffmpeg.Parameters)).contents
            if parameters.codec_type == ffmpeg.VIDEO and parameters.width and parameters.height:
                check_size(parameters.width, parameters.height, self._max_pixels)

    def _find_streams(self) -> None:
        """Let FFmpeg read ahead and decode what tells it the sizes; it decodes no frames of extreme size."""
        count = self._source.contents.nb_streams
        options = (ctypes.c_void_p * max(count, 1))()
        for number in range(count):
            place = ctypes.byref(options, number * ctypes.sizeof(ctypes.c_void_p))
            self._library.av_dict_set_int(place, b"max_pixels", max(self._max_pixels, _PROBED), 0)
        code = self._library.avformat_find_stream_info(self._source, options)
        for number in range(count):
            self._library.av_dict_free(ctypes.byref(options, number * ctypes.sizeof(ctypes.c_void_p)))
        self._check(code, lambda: CannotDecode("its streams cannot be read"))

    def _set_header(self, source: ffmpeg.Input, stream: ffmpeg.InputStream) -> None:
        library = self._library
        parameters = ctypes.cast(stream.codecpar, ctypes.POINTER(ffmpeg.Parameters)).contents
        self.codec = self._codec_of(parameters)
        self.width, self.height = parameters.width, parameters.height
        if not (self.width and self.height):
            most = max(self._max_pixels, _PROBED)
            raise CannotDecode(f"no frame can be decoded, or frames have more than {most:,} pixels", "not_supported")
        check_size(self.width, self.height, self._max_pixels)
        self.sample_aspect_ratio = float(library.av_guess_sample_aspect_ratio(self._source, self._stream, None))
        data = library.av_packet_side_data_get(
            parameters.coded_side_data, parameters.nb_coded_side_data, ffmpeg.MATRIX_OF_STREAM
        )
        self.matrix = _matrix(data.contents.data) if data else _UPRIGHT
        self.fps = float(library.av_guess_frame_rate(self._source, self._stream, None))
        self._unit_s = float(stream.time_base)
        self._start = 0 if stream.start_time == ffmpeg.NO_TIME else stream.start_time
        begin_s = 0.0 if source.start_time == ffmpeg.NO_TIME else source.start_time / _MICROSECONDS
        delay_s = self._start * self._unit_s - begin_s
        self.delay_s = delay_s if abs(delay_s) > _ROUNDED_S else 0.0
        whole_s = source.duration / _MICROSECONDS if source.duration > 0 else 0.0
        if self._container in _FROM_ZERO:
            whole_s = max(whole_s - begin_s, 0.0)
        self.duration_s = stream.duration * self._unit_s if stream.duration > 0 else whole_s
        if self._container == "avi" and self.fps:  # FFmpeg shortens the duration of one that is cut off
            self.duration_s = max(self.duration_s, stream.nb_frames / self.fps)

    def _codec_of(self, parameters: ffmpeg.Parameters) -> str:
        name: str = self._library.avcodec_get_name(parameters.codec_id).decode()
        self._is_dense = name in _DENSE
        head = ctypes.string_at(parameters.extradata, 1) if parameters.extradata_size else b""
        self._has_start_codes = name in _OF_UNITS and head != _LENGTHS
        if tag := codec_name(parameters.codec_tag):
            return tag
        tables = (ctypes.c_void_p * 2)(self._library.avformat_get_riff_video_tags(), None)
        return (
            name if len(name) == 4 else codec_name(self._library.av_codec_get_tag(tables, parameters.codec_id)) or name
        )

    def _open_decoder(self) -> None:
        library = self._library
        parameters = ctypes.cast(self._stream.contents.codecpar, ctypes.POINTER(ffmpeg.Parameters))
        codec = library.avcodec_find_decoder(parameters.contents.codec_id)
        if not codec or ctypes.cast(codec, ctypes.POINTER(ctypes.c_char_p))[0] in _NEED_HARDWARE:
            raise NoDecoder(self.codec)
        self._decoder = ctypes.c_void_p(library.avcodec_alloc_context3(codec))
        library.avcodec_parameters_to_context(self._decoder, parameters)
        library.av_opt_set_int(self._decoder, b"threads", self._threads, 0)
        library.av_opt_set_int(self._decoder, b"max_pixels", self._max_pixels, 0)
        self._check(
            library.avcodec_open2(self._decoder, codec, None),
            lambda: CannotDecode(f"the codec {self.codec!r} cannot be opened", "not_supported"),
        )

    def _check(self, code: int = 0, error: Callable[[], CannotDecode] | None = None) -> None:
        """Raise an error if a call failed, or the exception of the file if that was the reason."""
        failure, self._failure = self._failure, None
        if isinstance(failure, OSError):
            raise CannotDecode(f"cannot be read: {failure.strerror or failure}", "unreadable") from failure
        if failure is not None:
            raise failure
        if code < 0 and error is not None:
            raise error()

    def _read(self, _opaque: int | None, place: int, size: int) -> int:
        try:
            data = self._file.read(size)
        except BaseException as error:  # raised again when FFmpeg has returned
            self._failure = error
            return ffmpeg.IO_ERROR
        ctypes.memmove(place, data, len(data))
        return len(data) or ffmpeg.END_OF_FILE

    def _seek_in_file(self, _opaque: int | None, offset: int, whence: int) -> int:
        try:
            if whence & ffmpeg.SEEK_SIZE:
                here = self._file.tell()
                end = self._file.seek(0, 2)
                self._file.seek(here)
                return end
            return self._file.seek(offset, whence & ~ffmpeg.SEEK_FORCE)
        except BaseException as error:
            self._failure = error
            return ffmpeg.IO_ERROR

    def _reset(self) -> None:
        """Forget the frames before, at the beginning and after a seek."""
        self.time_s: float | None = None
        self.is_key = self.is_damaged = self.is_after_gap = False
        self.lost_s: list[float] = []
        self._before, self._shift = -_LAST, 0  # time of the last packet; what is added to the times of packets
        self._end, self._shown = -1, 0  # where the last packet ends in the file; the number of frames shown
        self._errors = deque[int]()  # for each packet that could not be decoded, the number of frames shown before
        self._waiting: list[int] = []  # a heap of the times of packets whose frames did not come yet
        self._sent, self._places = 0, dict[int, int]()  # the number of packets sent; the place of those in the heap
        self._suspect: set[int] = set()  # times of packets that are damaged, or decoded after damage
        self._is_broken = self._is_sent_broken = False  # whether there was damage since the last key frame: shown, sent
        self._gap: tuple[int, int] | None = None  # times of the packets around bytes without one

    def next(self) -> bool:
        """Decode the next frame and make it the current one; return whether there is one.

        A packet that cannot be decoded is skipped.
        """
        while True:
            code = self._library.avcodec_receive_frame(self._decoder, self._frame)
            if code == 0:
                self._set_frame()
                return True
            if code == ffmpeg.END_OF_FILE:
                self._set_lost(_LAST)
                return False
            if code == -errno.EAGAIN:
                self._send()
            else:
                self._note_error()

    def _note_error(self) -> None:
        """Note that a packet could not be decoded: one of the last ones, as each thread decodes another."""
        self._errors.append(self._shown)
        self._note_damage(self._sent - self._threads)

    def _note_damage(self, place: int) -> None:
        """Note damage of the packet at a place: all that are decoded after it, up to a key frame, are suspect."""
        self._suspect.update(stamp for stamp, other in self._places.items() if other > place)
        self._is_sent_broken = True

    def _send(self) -> None:
        """Send the next packet of the stream to the decoder; after the last one, its end."""
        packet, library = self._packet, self._library
        while (code := library.av_read_frame(self._source, packet)) >= 0:
            self._check()
            sent = packet.contents
            unread, self._end = sent.pos - self._end, sent.pos + sent.size
            if sent.stream_index != self._number or sent.size == 0:  # a packet without data repeats a frame
                library.av_packet_unref(packet)
                continue
            is_gap = self._most_unread < unread < sent.pos
            if is_gap and self._container == "avi":
                self._shift += self._late_by(sent)
            sent.pts, sent.dts = (each + self._shift * (each != ffmpeg.NO_TIME) for each in (sent.pts, sent.dts))
            before, self._before = self._before, _time_of(sent)
            if is_gap:
                self._gap = before, self._before
            self._sent += 1
            if sent.pts != ffmpeg.NO_TIME and not sent.flags & ffmpeg.PACKET_DISCARD:
                heappush(self._waiting, sent.pts)
                self._places[sent.pts] = self._sent
            self.is_cut_off = bool(sent.flags & ffmpeg.PACKET_CORRUPT)
            self._is_sent_broken &= not sent.flags & ffmpeg.PACKET_KEY
            self._is_sent_broken |= self.is_cut_off or self._has_hole(sent)
            if self._is_sent_broken:
                self._suspect.add(self._before)
            if library.avcodec_send_packet(self._decoder, packet) < 0:
                self._note_error()
            library.av_packet_unref(packet)
            return
        self._check()
        self.is_cut_off |= code != ffmpeg.END_OF_FILE
        library.avcodec_send_packet(self._decoder, None)

    def _has_hole(self, packet: ffmpeg.Packet) -> bool:
        """Return whether a packet has zeros where its codec allows none."""
        if not self._is_dense:
            return False
        data = ctypes.string_at(packet.data, packet.size)
        place = data.find(_HOLE)
        # Between units with start codes, and after the last one, there may be any number of zeros.
        return place >= 0 and not (self._has_start_codes and data[place:].lstrip(b"\0")[:1] in (b"", b"\1"))

    def _late_by(self, packet: ffmpeg.Packet) -> int:
        """Return by how much a packet after lost ones is later than FFmpeg, which counts packets of AVI, says.

        The index has its time; a seek uses that.
        """
        library, stamp = self._library, _time_of(packet) + self._shift
        number = library.av_index_search_timestamp(self._stream, stamp, ffmpeg.SEEK_ANY)
        while number >= 0 and (entry := library.avformat_index_get_entry(self._stream, number)):
            if entry.contents.pos + _AVI_HEAD >= packet.pos:
                return max(int(entry.contents.timestamp) - stamp, 0)
            number += 1
        return 0

    def _set_frame(self) -> None:
        frame = self._frame.contents
        stamp = frame.best_effort_timestamp
        self.time_s = None if stamp == ffmpeg.NO_TIME else self._seconds(stamp)
        self.is_key = bool(frame.flags & ffmpeg.FRAME_KEY)
        has_errors = bool(frame.flags & ffmpeg.FRAME_CORRUPT or frame.decode_error_flags)
        self.is_damaged = has_errors or stamp in self._suspect
        self._suspect.discard(stamp)
        if has_errors:
            self._note_damage(self._places.get(stamp, 0))
        self._set_lost(stamp)
        self._is_broken = self.is_damaged or (self._is_broken and not self.is_key)
        self.is_after_gap = self._gap is not None and self._gap[0] <= stamp <= self._gap[1]
        if self._gap is not None and stamp >= self._gap[1]:
            self._gap = None

    def _set_lost(self, stamp: int) -> None:
        """Note which packets before a time gave no frame.

        Some packets give none because their frame is hidden, or is the second field of one. So none is lost unless
        packets could not be decoded shortly before. Of the packets after those, a decoder may skip some.
        """
        self._shown += 1
        while self._errors and self._shown - self._errors[0] > _MOST_DELAY:
            self._errors.popleft()
        missing = []
        while self._waiting and self._waiting[0] < stamp:
            missing.append(heappop(self._waiting))
        while self._waiting and self._waiting[0] == stamp:
            heappop(self._waiting)
        for passed in (*missing, stamp):
            self._places.pop(passed, None)
        self._is_broken |= bool(missing and self._errors)
        self.lost_s = [self._seconds(each) for each in missing] if self._is_broken else []
        for _ in self.lost_s[: len(self._errors)]:
            self._errors.popleft()

    def _seconds(self, stamp: int) -> float:
        return (stamp - self._start) * self._unit_s + self.delay_s

    def seek(self, time_s: float) -> bool:
        """Go to a frame that can be decoded without others, at or before a time; return whether that was possible."""
        stamp = self._start + round((time_s - self.delay_s) / self._unit_s)
        code = self._library.av_seek_frame(self._source, self._number, stamp, ffmpeg.SEEK_BACKWARD)
        self._library.avcodec_flush_buffers(self._decoder)
        self._reset()
        self._check()
        return bool(code >= 0)

    def pixels(self) -> Pixels:
        """Return the current frame: uint8, shape (height, width, 3), RGB, as it is stored: not upright.

        Both fields of an interlaced frame are in it, line by line. Colours are converted by the matrix and the range
        that the frame names, BT.601 and the limited range if it names none, as FFmpeg does without a filter. A frame of
        another size than the first is scaled to that size.

        Raises:
            CannotDecode: the frame cannot be converted.
        """
        frame, library = self._frame.contents, self._library
        check_size(frame.width, frame.height, self._max_pixels)
        self._set_scaler(frame)
        row_bytes = -(-self.width * 3 // _ALIGNED) * _ALIGNED
        rows: npt.NDArray[np.uint8] = np.empty((self.height + 1, row_bytes), np.uint8)
        planes, lines = (ctypes.c_void_p * 4)(rows.ctypes.data), (ctypes.c_int * 4)(row_bytes)
        count = library.sws_scale(self._scaler, frame.data, frame.linesize, 0, frame.height, planes, lines)
        if count != self.height:
            raise CannotDecode(f"its pixels in format {frame.format} cannot be converted", "not_supported")
        return np.ascontiguousarray(rows[: self.height, : self.width * 3]).reshape(self.height, self.width, 3)

    def _set_scaler(self, frame: ffmpeg.Frame) -> None:
        is_full = int(frame.color_range == ffmpeg.FULL_RANGE)
        scaling = frame.width, frame.height, frame.format, frame.colorspace, is_full
        if scaling == self._scaling:
            return
        library = self._library
        library.sws_freeContext(self._scaler)
        size = self.width, self.height
        self._scaler = library.sws_getContext(*scaling[:3], *size, ffmpeg.RGB24, ffmpeg.BICUBIC, None, None, None)
        self._scaling = scaling if self._scaler else ()
        if not self._scaler:
            raise CannotDecode(f"its pixels in format {frame.format} cannot be converted", "not_supported")
        table = library.sws_getCoefficients(frame.colorspace)
        library.sws_setColorspaceDetails(self._scaler, table, is_full, table, 1, 0, 1 << 16, 1 << 16)

    def __del__(self) -> None:
        """Release a decoder that was not closed. In the child of a fork it lacks its threads, and stays."""
        if self._process == os.getpid():
            self.close()

    def close(self) -> None:
        """Release the decoder; the file stays open."""
        library = self._library
        library.sws_freeContext(self._scaler)
        library.avcodec_free_context(ctypes.byref(self._decoder or ctypes.c_void_p()))
        library.av_frame_free(ctypes.byref(self._frame))
        library.av_packet_free(ctypes.byref(self._packet))
        library.avformat_close_input(ctypes.byref(self._source or ctypes.c_void_p()))
        if self._io:
            library.av_freep(self._io + ctypes.sizeof(ctypes.c_void_p))  # its buffer follows its class
            library.avio_context_free(ctypes.byref(ctypes.c_void_p(self._io)))
        self._io = self._decoder = self._scaler = self._source = None


def _time_of(packet: ffmpeg.Packet) -> int:
    return int(packet.dts if packet.pts == ffmpeg.NO_TIME else packet.pts)


def _matrix(values: Any) -> Matrix:
    """Return the directions in a display matrix: a quarter turn, half a turn or none, and mirrored or not."""
    a, b, c, d = (values[place] for place in (0, 1, 3, 4))
    matrix = ((_sign(a), 0), (0, _sign(d))) if abs(a) >= abs(b) else ((0, _sign(c)), (_sign(b), 0))
    return matrix if all(map(any, matrix)) else _UPRIGHT


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
