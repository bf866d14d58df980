"""A pass over the images of a dataset: threads read and decode ahead of the consumer, with bounded memory."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, compress, islice
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.encoders import decode_side_px
from framedex.errors import CannotDecode, NotFound, Unavailable
from framedex.executors import Executor, ResultLost, ThreadExecutor
from framedex.jobs.ingest.guarded_calls import GuardedCalls
from framedex.jobs.ingest.image_runs import RUN_LENGTH, ImageLocation, Row, Run, is_long_run, runs
from framedex.jobs.ingest.pixel_shares import PixelShare, shared_pixels
from framedex.jobs.ingest.read_ahead import Stream, run_ahead
from framedex.media.budget import Budget, HeldOn, PixelBudget
from framedex.media.decoded_image import DecodedImage
from framedex.media.files import Reader
from framedex.media.remote import is_remote
from framedex.media.row_images import crop_image, open_video, read_frame, read_row
from framedex.media.video import Video
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, VIDEO

R = TypeVar("R")
Work = Callable[[Row, DecodedImage], R]
Failed = Callable[[Row, str], R]

_FIRST_ROWS = 1024
_NO_FILE = "neither a local file nor an object in a bucket"


class ImageModel(Protocol):
    """A model that takes images.

    Attributes:
        min_side_px: minimum length of the shorter side of an image in pixels.
    """

    @property
    def min_side_px(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return the model's input for one image; called on several threads at once."""
        ...


@dataclass(frozen=True)
class Prediction:
    """Output of a model for one image.

    Attributes:
        output: the image's row of the batch output; None if the image cannot be read.
        error: the reason.
    """

    output: npt.NDArray[Any] | None
    error: str | None = None


def run_model(
    media: Media,
    model: ImageModel,
    predict: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    *,
    batch: int,
    settings: Settings,
    progress: Callable[[float], None],
    mask: npt.NDArray[np.bool_] | None = None,
) -> Iterator[list[Prediction]]:
    """Yield the predictions of a model for the images of a dataset, in batches, in row order.

    The prediction of an image that cannot be read or decoded has the error.

    Args:
        media: the dataset.
        model: prepares the images.
        predict: returns N rows of output for N prepared images, stacked.
        batch: number of images per batch.
        settings: limits.
        progress: called with the share of rows that are done; raises to stop.
        mask: bool, shape (rows of the dataset,): the rows to process; None for all.

    Raises:
        Unavailable: no image of the dataset could be read, or an object store cannot be reached.
    """
    total, done, n_readable = max(media.table.count() if mask is None else int(mask.sum()), 1), 0, 0
    first_error: str | None = None
    # A few unreadable images do not show that the source is unavailable.
    requires_readable = media.parents is None and (mask is None or bool(mask.all()))
    results = decode_rows(
        media,
        _rows(media) if mask is None else compress(_rows(media), mask),
        lambda _row, image: Prediction(model.prepare(image.pixels)),
        lambda _row, reason: Prediction(None, reason),
        detail=decode_side_px(model),
        settings=settings,
    )
    with closing(results):
        prepared = (each for each in results if each is not None)
        while group := list(islice(prepared, batch)):
            predictions = _predict(group, predict)
            n_readable += sum(each.error is None for each in predictions)
            first_error = first_error or next((each.error for each in predictions if each.error), None)
            done += len(group)
            if (
                requires_readable and done == total and not n_readable
            ):  # before the last batch: a caller that has all rows may not continue the generator
                raise Unavailable(f"no image could be read: {counted(done, 'images')} failed, the first: {first_error}")
            yield predictions
            progress(done / total)


def _predict(group: list[Prediction], predict: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> list[Prediction]:
    prepared = [each.output for each in group if each.output is not None]
    outputs = iter(predict(np.stack(prepared)) if prepared else ())
    return [each if each.output is None else Prediction(next(outputs)) for each in group]


def has_files(media: Media) -> bool:
    """Return whether at least one of the first 1024 rows is a local file or a remote object."""
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
    run_length: int = RUN_LENGTH,
    executor: Executor | None = None,
) -> Generator[R | None, None, None]:
    """Yield a result for each row, in the order of the rows, while threads work a limited number of images ahead.

    Frames of one video in consecutive rows are read in one pass over the video. Closing the generator stops the
    threads.

    Args:
        media: the dataset.
        rows: with the columns ``media.location`` and ``error`` at least, in any order; read as needed.
        work: returns the result of a row and its image, not None; called on several threads at once. The pixels count
            towards the memory limit until it returns, and must not be stored.
        failed: returns the result of a row whose image cannot be read or decoded, given the reason.
        detail: minimum length of the shorter side of an image in pixels; None for full size.
        settings: limits.
        run_length: number of images that one thread decodes in a row; smaller if results are large.
        executor: its processes decode local images in place of threads; *work* and *failed* are functions of modules
            then. An image that ends its process each time has failed. None, and threads, for threads.

    Yields:
        Results; None at intervals while the next one takes long, so that the caller can check for a stop.

    Raises:
        Unavailable: an object store cannot be reached, or no object could be read; before the last result is yielded.
    """
    places = _Places.of(media)
    decoder = _RowDecoder(places, work, failed, detail, settings, PixelBudget(settings.pixels_in_flight))
    with ExitStack() as stack:
        elsewhere: _Runs[R] | None = None
        if executor is not None and not isinstance(executor, ThreadExecutor) and not places.is_remote:
            share = stack.enter_context(shared_pixels(settings, executor))
            remote = _RemoteRows(places, work, failed, detail, settings, share)
            elsewhere = _Runs(GuardedCalls(executor, remote, lambda image, reason: failed(image.row, reason)))
        results = run_ahead(
            ([run] for run in runs(media, rows, run_length)),
            is_long=is_long_run,
            work=decoder.decode_runs,
            long_work=decoder.decode_frames,
            threads=decoder.threads if elsewhere is None or executor is None else executor.workers,
            meanwhile=lambda: None,
            elsewhere=elsewhere,
        )
        last: list[R] = []
        stack.enter_context(closing(results))
        stack.callback(decoder.stop)
        for each in results:
            if each is None:
                yield None
                continue
            yield from last
            last = [each]
    decoder.check_any_read()
    yield from last


@dataclass(frozen=True)
class _Places:
    """The places of images, which can be pickled.

    Attributes:
        of_objects: whether the rows are objects, which are crops of images.
        roles: the roles that are assumed for reading.
        is_remote: whether some are in buckets.
    """

    of_objects: bool
    roles: tuple[AssumedRole, ...]
    is_remote: bool

    @classmethod
    def of(cls, media: Media) -> "_Places":
        """Return the places of media."""
        roles = tuple(media.generation.summary.assumed_roles())
        return cls(media.parents is not None, roles, any(map(is_remote, media.roots)))


@dataclass(frozen=True)
class _RemoteRows(Generic[R]):
    """A decoder of runs in another process, which is pickled without what it opens there."""

    places: _Places
    work: Work[R]
    failed: Failed[R]
    detail: int | None
    settings: Settings
    share: PixelShare

    def __call__(self, run: Run) -> list[R]:
        """Return the results of a short run."""
        with single_threaded_opencv():
            return self._decoder.decode_runs([run])

    @cached_property
    def _decoder(self) -> "_RowDecoder[R]":
        return _RowDecoder(self.places, self.work, self.failed, self.detail, self.settings, self.share.budget())


class _Runs(Generic[R]):
    """Short runs, each a chunk of its own, in processes.

    Args:
        calls: decode a run.
    """

    def __init__(self, calls: GuardedCalls[ImageLocation, R]) -> None:
        self._calls = calls

    def submit(self, items: list[Run]) -> "Future[list[R]]":
        """Return the results of the images, later."""
        return self._calls.submit(items[0])

    def after_loss(self, items: list[Run], lost: ResultLost) -> list[R]:
        """Return the results of the images, one of which has ended its process each time."""
        return self._calls.after_loss(items[0], lost)


class _Crops:
    """Reader of object crops; consecutive boxes of one image read that image once.

    Args:
        read: returns the whole image, or frame, at a location.
    """

    def __init__(self, read: Callable[[ImageLocation, Budget], DecodedImage]) -> None:
        self._read = read
        self._last: tuple[tuple[Any, ...], DecodedImage] | None = None

    def __call__(self, image: ImageLocation, budget: Budget) -> DecodedImage:
        """Return the crop at a location."""
        row = image.row
        source = (image.location, row.get("frame_number"))
        if self._last is None or self._last[0] != source:
            self._last = None  # release it before the next image is read
            whole = {name: value for name, value in row.items() if name not in BOX}
            self._last = source, self._read(replace(image, row=whole), budget)
        return crop_image(self._last[1], *(row[name] for name in BOX))


class _RowDecoder(Generic[R]):
    """Reads and decodes the images of rows and calls the work function; used by several threads at once.

    Attributes:
        threads: number of images in progress at the same time; more for remote objects, which wait for the network.
    """

    def __init__(
        self,
        places: _Places,
        work: Work[R],
        failed: Failed[R],
        detail: int | None,
        settings: Settings,
        budget: PixelBudget,
    ) -> None:
        self._of_objects = places.of_objects
        self._work, self._failed, self._settings = work, failed, settings
        self._detail = None if self._of_objects else detail  # a crop needs the image at full size
        self._readers: Mapping[AssumedRole | None, Reader] = {
            role: Reader(settings, role) for role in chain([None], places.roles)
        }
        self._budget = budget
        self.threads = max(settings.threads, settings.s3_connections if places.is_remote else 0)
        self._stopped = threading.Event()

    def decode_runs(self, short: list[Run]) -> list[R]:
        """Return the results of short runs."""
        return [result for run in short for result in self._decode_run(run, threads=1)]

    def decode_frames(self, run: Run, stream: Stream[R]) -> None:
        """Put the results of a long run of video frames into a stream."""
        with closing(self._decode_run(run, threads=self._settings.threads)) as results:
            for result in results:
                stream.put(result)

    def _decode_run(self, run: Run, threads: int) -> Generator[R, None, None]:
        """Yield results until the end of the run, or until the decoder is stopped."""
        with ExitStack() as opened:
            read, video = self._read, run[0].video
            if video is not None:
                location, role = video
                try:
                    opened_one = open_video(location, self._readers[role], self._settings, threads)
                    read = partial(self._frame, opened.enter_context(opened_one))
                except (CannotDecode, NotFound) as error:
                    yield from (self._failed(image.row, str(error)) for image in run)
                    return
            read = _Crops(read) if self._of_objects else read
            for image in run:
                if self._stopped.is_set():
                    return
                yield self._decode_row(image, read)

    def _decode_row(self, image: ImageLocation, read: Callable[[ImageLocation, Budget], DecodedImage]) -> R:
        with HeldOn(self._budget) as budget:
            try:
                decoded = read(image, budget)
            except (CannotDecode, NotFound) as error:
                return self._failed(image.row, str(error))
            return self._work(image.row, decoded)

    def _read(self, image: ImageLocation, budget: Budget) -> DecodedImage:
        if image.location is None:
            raise NotFound(_NO_FILE)
        if image.row.get("kind") == VIDEO:
            raise CannotDecode(image.row["error"])
        return read_row(image.row, image.location, self._readers[image.role], self._settings, self._detail, budget)

    def _frame(self, video: Video, image: ImageLocation, budget: Budget) -> DecodedImage:
        return read_frame(video, image.row, self._detail, budget)

    def stop(self) -> None:
        """Stop the threads after their current image."""
        self._stopped.set()

    def check_any_read(self) -> None:
        """Raise Unavailable if no remote object could be read."""
        for reader in self._readers.values():
            reader.check_any_read()
