"""The class Basket."""

from collections.abc import Sequence

from framedex.api.view.view import View
from framedex.operations.basket import change_basket
from framedex.operations.edits import Selection, as_selection


class Basket(View):
    """The media that are in the basket of a dataset, as a view.

    The basket is a set of media that you put aside, for example while you look for images to export. It is stored with
    the dataset, and is part of snapshots and clones. ``ds.plan_cleanup(basket=True)`` removes what is in it. It is no
    tag: :meth:`framedex.Dataset.tags` and exports do not show it. In filters its name is the reserved tag ``basket``.

    A filter of the basket (``ds.basket.where(…)``) is a part of it.

    Examples:
        >>> ds.basket.add(ds.where(vql.labels("cat")))
        >>> ds.basket
        <framedex.Basket of dataset 'pets': 9 media>
    """

    def add(self, selection: View | str | Sequence[str], *, keep: str | None = None) -> None:
        """Put media into the basket; those that are in it already stay.

        Args:
            selection: a view of this dataset, a media id, or a sequence of media ids.
            keep: the id of a media item that you keep in their place, as by :meth:`framedex.Dataset.keep`, in the same
                step. The media of the selection are keepers no longer.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: the selection is invalid, or has the media item to keep.
            Conflict: a task is running.

        Examples:
            >>> ds.basket.add(ds.media_id("cat-1.jpg"))
            >>> ds.basket.count()
            1
        """
        change_basket(self._context, self._dataset_id, self._selected(selection), inside=True, keep=keep)

    def remove(self, selection: View | str | Sequence[str]) -> None:
        """Take media out of the basket; media that are not in it are left alone. Arguments as of :meth:`add`.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: the selection is invalid.
            Conflict: a task is running.

        Examples:
            >>> ds.basket.add(ds.where(vql.labels("cat")))
            >>> ds.basket.remove(ds.media_id("cat-1.jpg"))
            >>> ds.basket.count()
            8
        """
        change_basket(self._context, self._dataset_id, self._selected(selection), inside=False)

    def clear(self) -> None:
        """Take the media of this view out of the basket: all of them, or those of a part (``ds.basket.where(…)``).

        Raises:
            Conflict: a task is running.

        Examples:
            >>> ds.basket.add(ds.where(vql.labels(["cat", "dog"])))
            >>> ds.basket.where(vql.labels("dog")).clear()
            >>> ds.basket.labels()
            [LabelCount(name='cat', count=9)]
        """
        self.remove(self)

    def _selected(self, selection: View | str | Sequence[str]) -> Selection:
        return selection._chooser(self._dataset_id) if isinstance(selection, View) else as_selection(selection)
