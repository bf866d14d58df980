"""Images of a view by their position, read in any process without a table.

Workers of a data loader are forked or spawned. Lance survives no fork, and engines take long to load in a new process.
So this module imports no engine, and an object of it has arrays alone.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.core.allowed_folders import OwnPath
from framedex.core.arrays import Pixels
from framedex.core.assumed_roles import AssumedRole
from framedex.core.forks import abandon
from framedex.errors import CannotDecode, NotFound
from framedex.media.decode import decode_pixels
from framedex.media.display_range import Range
from framedex.media.files import Reader
from framedex.media.remote import is_remote
from framedex.media.row_images import cut_out, open_video
from framedex.media.video import Video
from framedex.settings import Settings
from framedex.training.texts import Texts


@dataclass(frozen=True)
class Location:
    """The place of one image.

    Attributes:
        path: the path of a file, an OwnPath for an upload, or the URI of an object in a bucket.
        role: the role to assume for reading it.
        frame: number and time in seconds of a frame of the video at the path; None for an image file.
        box: x, y, width and height in pixels of an object in the image; None for the whole image.
        shown: the values that are black and white; None for values as they are.
    """

    path: str
    role: AssumedRole | None = None
    frame: tuple[int, float] | None = None
    box: tuple[float, float, float, float] | None = None
    shown: Range | None = None


class Images(Protocol):
    """Images by their position, read in any process."""

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def read(self, index: int) -> Pixels:
        """Return an image, a frame, or the crop of an object: uint8, shape (H, W, 3), RGB, upright."""
        ...

    def data(self, index: int) -> bytes:
        """Return the content of the file of an image."""
        ...

    def is_whole_file(self, index: int) -> bool:
        """Return whether the content of the file is the image."""
        ...

    def local_path(self, index: int) -> str | None:
        """Return the path of the file; None if it is not on this machine."""
        ...


class StoredImages:
    """The images of some rows, in order. Each is read from its file when it is asked for, by any process or thread.

    Args:
        locations: the places of the images.
        settings: limits, and access to buckets.
    """

    def __init__(self, locations: Sequence[Location], settings: Settings) -> None:
        self._settings = settings
        self._paths = Texts(each.path for each in locations)
        self._is_own = np.array([isinstance(each.path, OwnPath) for each in locations], bool)
        self._roles: list[AssumedRole | None] = list(dict.fromkeys(each.role for each in locations))
        numbers = {role: number for number, role in enumerate(self._roles)}
        self._role = np.array([numbers[each.role] for each in locations], np.int32)
        self._frames: npt.NDArray[np.float64] | None = None
        if any(each.frame is not None for each in locations):
            self._frames = np.array([(-1, -1) if each.frame is None else each.frame for each in locations])
        self._boxes: npt.NDArray[np.float64] | None = None
        if any(each.box is not None for each in locations):
            self._boxes = np.array([each.box for each in locations], np.float64)
        self._shown: npt.NDArray[np.float64] | None = None
        if any(each.shown is not None for each in locations):
            self._shown = np.array([each.shown or (np.nan, np.nan) for each in locations])
        self._process: _Process | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._paths)

    def __getstate__(self) -> Mapping[str, Any]:
        """Return the arrays, without the open files of this process."""
        return {**self.__dict__, "_process": None}

    def path(self, index: int) -> str:
        """Return the path or the URI of the file of an image."""
        text = self._paths[index]
        return OwnPath(text) if self._is_own[index] else text

    def local_path(self, index: int) -> str | None:
        """Return the path of the file of an image; None for an object in a bucket."""
        path = self.path(index)
        return None if is_remote(path) else path

    def is_whole_file(self, index: int) -> bool:
        """Return whether an image is a whole file, neither a frame nor the crop of an object."""
        return self._boxes is None and not self._is_frame(index)

    def read(self, index: int) -> Pixels:
        """Return an image, a frame, or the crop of an object: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            NotFound: the file is gone.
            CannotDecode: the file is not an image, or the video no longer has the frame.
            Unavailable: the file is in a bucket that cannot be reached.
        """
        path = self.path(index)
        try:
            pixels = self._frame(index, path) if self._is_frame(index) else self._image(index, path)
            if self._boxes is None:
                return pixels
            x, y, width, height = self._boxes[index].tolist()
            return cut_out(pixels, x, y, width, height)
        except CannotDecode as error:
            raise CannotDecode(f"{path!r} cannot be read: {error}", error.fault) from error

    def data(self, index: int) -> bytes:
        """Return the content of the file of an image.

        Raises:
            NotFound: the file is gone.
            Unavailable: the file is in a bucket that cannot be reached.
        """
        path = self.path(index)
        try:
            return self._here().reader(self._role_of(index)).read(path)[1]
        except CannotDecode as error:
            raise NotFound(f"the file {path!r}: {error}") from error

    def _image(self, index: int, path: str) -> Pixels:
        low, high = (np.nan, np.nan) if self._shown is None else self._shown[index].tolist()
        shown = None if np.isnan(low) else (low, high)
        return decode_pixels(self.data(index), max_pixels=self._settings.max_pixels, display_range=shown)

    def _is_frame(self, index: int) -> bool:
        return self._frames is not None and self._frames[index, 0] >= 0

    def _frame(self, index: int, path: str) -> Pixels:
        assert self._frames is not None, "it is a frame"
        number, time_s = self._frames[index].tolist()
        return self._here().frame(path, self._role_of(index), int(number), time_s)

    def _role_of(self, index: int) -> AssumedRole | None:
        return self._roles[int(self._role[index])]

    def _here(self) -> "_Process":
        """Return the open files of this process."""
        if self._process is None or self._process.id != os.getpid():
            if self._process is not None:  # of the parent: its video shares the position in the file with this process
                abandon(self._process)
            self._process = _Process(self._settings)
        return self._process


class _Process:
    """The readers and the last video of one process."""

    def __init__(self, settings: Settings) -> None:
        self.id, self._settings = os.getpid(), settings
        self._readers: dict[AssumedRole | None, Reader] = {}
        self._video: tuple[str, Video] | None = None
        self._opened, self._lock = ExitStack(), threading.Lock()

    def reader(self, role: AssumedRole | None) -> Reader:
        """Return the reader that assumes a role."""
        if role not in self._readers:
            self._readers[role] = Reader(self._settings, role)
        return self._readers[role]

    def frame(self, path: str, role: AssumedRole | None, number: int, time_s: float) -> Pixels:
        """Return a frame of a video, which stays open for the next one."""
        with self._lock:
            if self._video is None or self._video[0] != path:
                self._opened.close()
                self._video = None
                video = self._opened.enter_context(open_video(path, self.reader(role), self._settings))
                self._video = path, video
            self._video[1].find(number, time_s)
            return self._video[1].pixels()
