"""One more look at pictures of a dataset, by the data path of ingestion: threads ahead of who uses it, bounded."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress, islice
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from framedex.encoders import decode_side_px
from framedex.errors import CannotDecode, NotFound, Unavailable
from framedex.images.reading import crop_image, open_video, read_frame, read_row
from framedex.jobs.ingest.image_runs import PICTURES, ImageLocation, Row, Run, is_long_run, runs
from framedex.jobs.ingest.read_ahead import Stream, ahead
from framedex.media.decode import Budget, HeldOn, Picture, PixelBudget
from framedex.media.files import Reader
from framedex.media.remote import is_remote
from framedex.media.video import Video
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, VIDEO

R = TypeVar("R")
Work = Callable[[Row, Picture], R]
Failed = Callable[[Row, str], R]

_FIRST_ROWS = 1024
_NO_FILE = "neither a local file nor an object in a bucket"


class ImageModel(Protocol):
    """A model that looks at pictures.

    Attributes:
        min_side_px: pixels that the shorter side of a picture should have at least.
    """

    @property
    def min_side_px(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return what the model needs of one picture; called on several threads at once."""
        ...


@dataclass(frozen=True)
class Prediction:
    """What a model says of a picture.

    Attributes:
        found: its row of what the model says of a batch; None where the picture cannot be shown.
        error: why not.
    """

    found: npt.NDArray[Any] | None
    error: str | None = None


def run_model(
    media: Media,
    model: ImageModel,
    ask: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    *,
    batch: int,
    settings: Settings,
    progress: Callable[[float], None],
    chosen: npt.NDArray[np.bool_] | None = None,
) -> Iterator[list[Prediction]]:
    """Yield what a model says of the pictures of a dataset, some at a time, in row order.

    A picture that cannot be read or decoded now has the reason.

    Args:
        media: the dataset.
        model: prepares the pictures.
        ask: given N prepared ones, stacked, returns what is said of them: N rows.
        batch: how many are asked for at a time.
        settings: limits.
        progress: called with the share of rows that are done; raises to stop.
        chosen: shape (rows of the dataset,): which ones are looked at; None for all.

    Raises:
        Unavailable: none of all pictures of the dataset could be read, or an object store cannot be reached.
    """
    total, done, shown = max(media.table.count() if chosen is None else int(chosen.sum()), 1), 0, 0
    first_error: str | None = None
    # That none of a few can be read says nothing of where the others are.
    needs_some = media.parents is None and (chosen is None or bool(chosen.all()))
    pictures = decode_rows(
        media,
        _rows(media) if chosen is None else compress(_rows(media), chosen),
        lambda _row, picture: Prediction(model.prepare(picture.pixels)),
        lambda _row, reason: Prediction(None, reason),
        detail=decode_side_px(model),
        settings=settings,
    )
    with closing(pictures) as examined:
        found = (each for each in examined if each is not None)
        while group := list(islice(found, batch)):
            seen = _asked(group, ask)
            shown += sum(each.error is None for each in seen)
            first_error = first_error or next((each.error for each in seen if each.error), None)
            done += len(group)
            if (
                needs_some and done == total and not shown
            ):  # before the last ones are given away: who has them all may ask no further
                raise Unavailable(f"none of the {done:,} pictures could be read; the first one: {first_error}")
            yield seen
            progress(done / total)


def _asked(group: list[Prediction], ask: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> list[Prediction]:
    prepared = [each.found for each in group if each.found is not None]
    answers = iter(ask(np.stack(prepared)) if prepared else ())
    return [each if each.found is None else Prediction(next(answers)) for each in group]


def has_pictures(media: Media) -> bool:
    """Return whether one of the first rows, at least, is a local file or an object."""
    return any(media.location_of(row) for row in islice(_rows(media), _FIRST_ROWS))


def _rows(media: Media) -> Iterator[Row]:
    for rows in media.table.scan([*media.location, "error"]):
        yield from rows.to_pylist()


def decode_rows(
    media: Media,
    rows: Iterable[Row],
    work: Work[R],
    failed: Failed[R],
    *,
    detail: int | None,
    settings: Settings,
    at_once: int = PICTURES,
) -> Generator[R | None, None, None]:
    """Yield a result for each row, in their order, while threads read and work a few pictures ahead and no further.

    Frames of one video whose rows follow each other are found in one pass over it. Closing the generator stops the
    threads.

    Args:
        media: the dataset.
        rows: of it, with the columns ``media.location`` and ``error`` at least; taken as they are needed, and any
            number of times.
        work: returns the result for a row and its picture, and not None; called on several threads at once. The
            picture's pixels count as in memory until it returns, and should not be kept.
        failed: returns the result for a row whose picture cannot be read or decoded, and the reason.
        detail: pixels that the shorter side of a picture needs at least; None for all.
        settings: limits.
        at_once: how many pictures one thread looks at in a row; fewer where results are large.

    Yields:
        Results; None now and then while the next one takes long, so that the caller can look whether to stop.

    Raises:
        Unavailable: an object store cannot be reached, or no object could be read; before the last result is yielded.
    """
    examiner = _Examiner(media, work, failed, detail, settings)
    results = ahead(
        ([run] for run in runs(media, rows, at_once)),
        is_long=is_long_run,
        work=examiner.examine_all,
        long_work=examiner.examine_frames,
        threads=examiner.threads,
        meanwhile=lambda: None,
    )
    last: list[R] = []
    with closing(results) as examined:
        try:
            for each in examined:
                if each is None:
                    yield None
                    continue
                yield from last
                last = [each]
        finally:
            examiner.stop()
    examiner.check_any_read()
    yield from last


class _Crops:
    """Gives what is in boxes of pictures; the picture of boxes that follow each other is read once.

    Args:
        read: gives the whole picture, or frame, at a place.
    """

    def __init__(self, read: Callable[[ImageLocation, Budget], Picture]) -> None:
        self._read = read
        self._last: tuple[tuple[Any, ...], Picture] | None = None

    def __call__(self, place: ImageLocation, budget: Budget) -> Picture:
        """Return what is in the box of a place."""
        row = place.row
        of = (place.location, row.get("frame_number"))
        if self._last is None or self._last[0] != of:
            self._last = None  # two whole pictures are never held
            whole = {name: value for name, value in row.items() if name not in BOX}
            self._last = of, self._read(replace(place, row=whole), budget)
        return crop_image(self._last[1], *(row[name] for name in BOX))


class _Examiner(Generic[R]):
    """Reads and decodes pictures and has them worked on; used by several threads at once.

    Attributes:
        threads: how many pictures are looked at at a time: of objects more, as they are waited for.
    """

    def __init__(self, media: Media, work: Work[R], failed: Failed[R], detail: int | None, settings: Settings) -> None:
        self._of_objects = media.parents is not None
        self._work, self._failed, self._settings = work, failed, settings
        self._detail = None if self._of_objects else detail  # a box may be a small part of its picture
        roles: dict[str, str] = media.generation.summary.get("roles", {})
        self._readers: Mapping[str | None, Reader] = {
            role: Reader(settings, role) for role in chain([None], roles.values())
        }
        self._budget = PixelBudget(settings.pixels_in_flight)
        remote = any(map(is_remote, media.roots))
        self.threads = max(settings.threads, settings.s3_connections if remote else 0)
        self._stopped = threading.Event()

    def examine_all(self, short: list[Run]) -> list[R]:
        """Return the results of runs that take little."""
        return [result for run in short for result in self._examined(run, threads=1)]

    def examine_frames(self, run: Run, stream: Stream[R]) -> None:
        """Hand the results of many frames of a video over."""
        with closing(self._examined(run, threads=self._settings.threads)) as results:
            for result in results:
                stream.put(result)

    def _examined(self, run: Run, threads: int) -> Generator[R, None, None]:
        """Yield results until there is an end, or nobody wants any more."""
        with ExitStack() as opened:
            read, video = self._read, run[0].video
            if video is not None:
                location, role = video
                try:
                    opened_one = open_video(location, self._readers[role], self._settings, threads)
                    read = partial(self._frame, opened.enter_context(opened_one))
                except (CannotDecode, NotFound) as error:
                    yield from (self._failed(place.row, str(error)) for place in run)
                    return
            read = _Crops(read) if self._of_objects else read
            for place in run:
                if self._stopped.is_set():
                    return
                yield self._worked(place, read)

    def _worked(self, place: ImageLocation, read: Callable[[ImageLocation, Budget], Picture]) -> R:
        with HeldOn(self._budget) as budget:
            try:
                picture = read(place, budget)
            except (CannotDecode, NotFound) as error:
                return self._failed(place.row, str(error))
            return self._work(place.row, picture)

    def _read(self, place: ImageLocation, budget: Budget) -> Picture:
        if place.location is None:
            raise NotFound(_NO_FILE)
        if place.row.get("kind") == VIDEO:
            raise CannotDecode(place.row["error"])
        return read_row(place.row, place.location, self._readers[place.role], self._settings, self._detail, budget)

    def _frame(self, video: Video, place: ImageLocation, budget: Budget) -> Picture:
        return read_frame(video, place.row, self._detail, budget)

    def stop(self) -> None:
        """Let the threads end after the picture that they are at."""
        self._stopped.set()

    def check_any_read(self) -> None:
        """Raise Unavailable if not one of the objects could be read."""
        for reader in self._readers.values():
            reader.check_any_read()
