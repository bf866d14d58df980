"""One more look at all pictures of a dataset, by the data path of ingestion: threads ahead of a model, bounded."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.encoders import reading_detail
from framedex.errors import CannotDecode, NotFound, Unavailable
from framedex.jobs.ahead import Stream, ahead, in_chunks
from framedex.media.decode import PixelBudget
from framedex.media.files import Reader
from framedex.media.remote import is_remote
from framedex.pictures import read_row
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.media_rows import VIDEO

_CHUNK = 16
_NO_FILE = "neither a local file nor an object in a bucket"


class Looking(Protocol):
    """A model that looks at pictures.

    Attributes:
        detail: pixels that the shorter side of a picture should have at least.
    """

    @property
    def detail(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return what the model needs of one picture; called on several threads at once."""
        ...


@dataclass(frozen=True)
class Seen:
    """What a model says of a picture.

    Attributes:
        found: its row of what the model says of a batch; None where the picture cannot be shown.
        error: why not.
    """

    found: npt.NDArray[Any] | None
    error: str | None = None


@dataclass(frozen=True)
class _Place:
    """Where a picture is.

    Attributes:
        location: a path or an object's URI; None for neither.
        role: to assume for reading it.
        row: what the table says of it.
    """

    location: str | None
    role: str | None
    row: dict[str, Any]


def look(
    media: Media,
    model: Looking,
    ask: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    *,
    batch: int,
    settings: Settings,
    progress: Callable[[float], None],
) -> Iterator[list[Seen]]:
    """Yield what a model says of the pictures of a dataset, some at a time, in row order.

    A picture that cannot be read or decoded now has the reason.

    Args:
        media: the dataset.
        model: prepares the pictures.
        ask: given N prepared ones, stacked, returns what is said of them: N rows.
        batch: how many are asked for at a time.
        settings: limits.
        progress: called with the share of rows that are done; raises to stop.

    Raises:
        Unavailable: no picture at all could be read, or an object store cannot be reached.
    """
    examiner = _Examiner(media, model, settings)
    total, done, shown = max(media.table.count(), 1), 0, 0
    first_error: str | None = None
    looking = ahead(
        in_chunks(_places(media), _CHUNK, _never),
        is_long=_never,
        work=examiner.examine_all,
        long_work=_no_stream,
        threads=examiner.threads,
        meanwhile=lambda: None,
    )
    with closing(looking) as examined:
        found = (each for each in examined if each is not None)
        while group := list(islice(found, batch)):
            seen = _asked(group, ask)
            shown += sum(each.error is None for each in seen)
            first_error = first_error or next((each.error for each in seen if each.error), None)
            done += len(group)
            if done == total:  # before the last ones are given away: who has them all may ask no further
                examiner.check_any_read()
                if not shown:
                    raise Unavailable(f"none of the {done:,} pictures could be read; the first one: {first_error}")
            yield seen
            progress(done / total)


def _asked(group: list[Seen], ask: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> list[Seen]:
    prepared = [each.found for each in group if each.found is not None]
    answers = iter(ask(np.stack(prepared)) if prepared else ())
    return [each if each.found is None else Seen(next(answers)) for each in group]


def _never(_place: _Place) -> bool:
    """Return that no place takes long: frames are found one by one."""
    return False


def _no_stream(_place: _Place, _stream: Stream[Seen]) -> None:
    raise AssertionError("no place takes long")


def _places(media: Media) -> Iterator[_Place]:
    for rows in media.table.scan([*media.location, "error"]):
        for row in rows.to_pylist():
            yield _Place(media.location_of(row), media.role_of(row), row)


def has_pictures(media: Media, rows: int = 1024) -> bool:
    """Return whether one of the first rows, at least, is a local file or an object."""
    return any(place.location for place, _ in zip(_places(media), range(rows), strict=False))


class _Examiner:
    """Reads, decodes and prepares pictures; used by several threads at once.

    Attributes:
        threads: how many pictures are looked at at a time: of objects more, as they are waited for.
    """

    def __init__(self, media: Media, model: Looking, settings: Settings) -> None:
        self._model, self._settings = model, settings
        roles: dict[str, str] = media.generation.summary.get("roles", {})
        self._readers: Mapping[str | None, Reader] = {
            role: Reader(settings, role) for role in chain([None], roles.values())
        }
        self._budget = PixelBudget(settings.pixels_in_flight)
        self._detail = reading_detail(model)
        remote = any(map(is_remote, media.roots))
        self.threads = max(settings.threads, settings.s3_connections if remote else 0)

    def examine_all(self, places: list[_Place]) -> list[Seen]:
        return [self._examine(place) for place in places]

    def _examine(self, place: _Place) -> Seen:
        if place.location is None:
            return Seen(None, _NO_FILE)
        if place.row.get("kind") == VIDEO:
            return Seen(None, place.row["error"])
        try:
            picture = read_row(
                place.row, place.location, self._readers[place.role], self._settings, self._detail, self._budget
            )
        except (CannotDecode, NotFound) as error:
            return Seen(None, str(error))
        return Seen(self._model.prepare(picture.pixels))

    def check_any_read(self) -> None:
        for reader in self._readers.values():
            reader.check_any_read()
