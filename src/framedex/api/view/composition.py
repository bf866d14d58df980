"""Methods that return another view: filters, orders, windows, samples, parts."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from framedex.api.view.base import ViewBase, check_count
from framedex.core.checks import check_flag, check_integer
from framedex.errors import InvalidInput, NotFound
from framedex.export.splits import checked_shares
from framedex.operations.sorting import sort_field
from framedex.operations.steps import Filtered, Part, Picked, Sampled, Searched, Sorted, Window
from framedex.vql import parse


class Composition(ViewBase):
    """Methods that return another view. Each step applies to the rows that the steps before it left, in their order."""

    def where(self, vql: Sequence[Any]) -> Self:
        """Return a view of the rows that also pass a filter, in the same order.

        After a limit, a slice or a sample, the filter applies to the rows that these left. Directly after a search it
        applies before the ranking, so that the limit of the search counts rows that pass.

        Args:
            vql: a list of elements, the same as JSON text, or an expression of :mod:`framedex.vql`.

        Raises:
            InvalidFilter: the filter is invalid; the message has the JSON path of the wrong element.

        Examples:
            >>> ds.where(vql.labels("cat")).where(vql.issues("duplicates")).count()
            1
            >>> ds.where([{"label": "cat"}])
            Traceback (most recent call last):
                ...
            framedex.errors.InvalidFilter: invalid filter at $[0]: expected one key of text, ...; did you mean 'labels'?
        """
        # A filter before an order is the same as one after it, and there are fewer rows to sort.
        place = len(self._steps)
        if place and isinstance(self._steps[-1], Searched):
            place -= 1
        while place and isinstance(self._steps[place - 1], Sorted):
            place -= 1
        before, after = self._steps[:place], self._steps[place:]
        if before and isinstance(before[-1], Filtered):
            return self._with((*before[:-1], Filtered(parse([*before[-1].vql, *parse(vql)])), *after))
        return self._with((*before, Filtered(parse(vql)), *after))

    def sort_by(self, column: str, *, descending: bool = False) -> Self:
        """Return the view sorted by a column. Rows without a value are last; ties are in the order of ingestion.

        Args:
            column: a column of :meth:`View.to_arrow` with one value a row: ``file_name``, ``width``, the value of an
                issue type (``blur``), a custom field; or a stored column of the dataset's table.
            descending: whether the largest value is first.

        Raises:
            InvalidInput: the column does not exist, or its values have no order.

        Examples:
            >>> [row["image_filename"] for row in ds.view.sort_by("dark").limit(2)]
            ['night.jpg', 'dog-7.jpg']
        """
        check_flag("descending", descending)
        sort_field(self._media(), column)
        before = self._steps[:-1] if self._steps and isinstance(self._steps[-1], Sorted) else self._steps
        return self._with((*before, Sorted(column, descending)))

    def limit(self, n: int) -> Self:
        """Return a view of the first *n* rows; all if there are fewer.

        Raises:
            InvalidInput: *n* is no integer of at least 0.

        Examples:
            >>> [row["image_filename"] for row in ds.view.sort_by("width", descending=True).limit(1)]
            ['garden.jpg']
        """
        return self._then(Window(None, check_count("n", n)))

    def sample(self, n: int, *, seed: int = 0) -> Self:
        """Return a view of *n* random rows, in the order of the view; all if there are fewer.

        The sample is the same for the same seed on every machine: the hash of the seed and of the file's path within
        its source decides, and the number of the frame or the bounding box.

        Raises:
            InvalidInput: *n* or the seed is no integer of at least 0.

        Examples:
            >>> [row["image_filename"] for row in ds.view.sample(3, seed=1)]
            ['cat-5.jpg', 'garden.jpg', 'night.jpg']
        """
        check_integer("seed", seed, minimum=0)
        return self._then(Sampled(check_count("n", n), int(seed)))

    def split(self, parts: Mapping[str, float], *, seed: int = 0, stratify: str | None = None) -> dict[str, Self]:
        """Return a view for each part, by name. No row is in two parts, and each row is in one.

        Near-duplicates and frames of one video are in the same part, and objects are in the part of their image, so
        sizes can differ from the shares. The parts are the same for the same seed on every machine.

        Args:
            parts: the share of each part, 1 together: ``{"train": 0.8, "val": 0.2}``.
            seed: another seed returns other parts.
            stratify: ``labels`` gives each part its share of the images with the same labels, too.

        Raises:
            InvalidInput: the parts are no such mapping, the seed is no integer of at least 0, or *stratify* is neither
                ``labels`` nor None.

        Examples:
            >>> parts = ds.view.split({"train": 0.8, "val": 0.2}, stratify="labels")
            >>> parts["train"].count(), parts["val"].count()
            (26, 7)
        """
        check_integer("seed", seed, minimum=0)
        shares = checked_shares(parts, stratify)
        return {
            name: self._then(Part(tuple(shares.values()), number, int(seed), stratify is not None))
            for number, name in enumerate(shares)
        }

    def select(self, ids: Sequence[str]) -> Self:
        """Return a view of the rows with some ids, in the order of the ids. Repeated ids count once.

        Args:
            ids: ids of media, or of objects in a view of objects. What is deleted later leaves the view.

        Raises:
            InvalidInput: *ids* is no sequence of texts.
            NotFound: an id is not in the view; the message names it.

        Examples:
            >>> cats = ds.where(vql.labels("cat"))
            >>> cats.select([ds.media_id("cat-2.jpg")]).count()
            1
            >>> cats.select([ds.media_id("dog-2.jpg")])
            Traceback (most recent call last):
                ...
            framedex.errors.NotFound: no media '...' in this view
        """
        if isinstance(ids, str) or not isinstance(ids, Sequence) or not all(isinstance(each, str) for each in ids):
            raise InvalidInput(f"ids must be a sequence of ids, such as view.ids, not {ids!r:.60}")
        # Ids are ASCII; other text may not be valid in a table.
        distinct = list(dict.fromkeys(ids))
        odd = [each for each in distinct if not each.isascii()]
        view = self._then(Picked(pa.array([] if odd else distinct, pa.string())))
        media = self._media()
        if odd or view._selection(media).count() < len(distinct):
            raise NotFound(f"no {self._noun} {odd[0] if odd else view._missing(distinct)!r} in this view")
        return view

    def _missing(self, ids: list[str]) -> str:
        selection = self._selection(self._media())
        present = set(selection.media.values_at(selection.row_ids(), "media_id").to_pylist())
        return next((each for each in ids if each not in present), ids[0])

    def _slice(self, key: slice) -> Self:
        start, stop, step = (None if each is None else as_index(each) for each in (key.start, key.stop, key.step))
        if step == 0:
            raise InvalidInput("the step of a slice must not be 0")
        return self._then(Window(start, stop, step))


def as_index(value: Any) -> int:
    """Return a position as an integer, also of NumPy.

    Raises:
        InvalidInput: it is none.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidInput(f"rows are given by integers or slices of them, not {value!r}") from None
