"""Look-ups of :class:`framedex.Dataset`: its state, its labels, the copies of one item, the item at a location."""

import os
from typing import Any

from framedex.api.overlap import Overlap
from framedex.api.record_list import VideoCopies
from framedex.api.view import View
from framedex.browse.copies_of import copies_of
from framedex.browse.locations import media_id_at
from framedex.operations.context import Context, open_media
from framedex.operations.copy_searches import copies_of_image, is_item
from framedex.records import Copy, LabelCount, StoredTable
from framedex.search.query_images import Box
from framedex.storage import datasets
from framedex.storage.table_versions import Table


class DatasetLookups:
    """Labels, copies and locations of a dataset's media."""

    _context: Context
    id: str

    @property
    def namespace(self) -> str:
        """The namespace of the dataset, within which its name is unique; empty for the default namespace.

        Examples:
            >>> ws.in_namespace("team a").create_draft("inbox").namespace
            'team a'
        """
        with self._context.catalog.read() as connection:
            return datasets.namespace_of(connection, self.id)

    @property
    def generation(self) -> str:
        """The id of the present state, which each change replaces.

        Raises:
            Conflict: the dataset has nothing to show yet.

        Examples:
            >>> before = ds.generation
            >>> ds.set_limits(blur=0.5)
            >>> ds.compare(before)
            <framedex.StateComparison: 13 newly flagged>
        """
        return open_media(self._context, self.id, early=True).generation.id

    @property
    def stored_tables(self) -> dict[str, StoredTable]:
        """The tables of the present state by name, for other programs that read Lance.

        ``media`` has a row for each image or frame, ``objects`` for each bounding box, ``videos`` for each video. The
        version stays readable for ten minutes after another state has replaced it, and as long as a snapshot has
        it. Nothing but Framedex may write into the folder.

        Raises:
            Conflict: the dataset has nothing to show yet.

        Examples:
            >>> from pathlib import Path
            >>> Path(ds.stored_tables["media"].path).name
            'media.lance'
        """
        media = open_media(self._context, self.id)
        found = {}
        for name, version in media.generation.tables.items():
            path = self._context.layout.table(self.id, name)
            has_edits = bool(Table(path, version).overlay.columns)
            found[name] = StoredTable(name=name, path=str(path), version=version, has_edits=has_edits)
        return found

    def labels(self) -> list[LabelCount]:
        """Return the labels of the media with their counts; see :meth:`View.labels`.

        ``dataset.objects.labels()`` returns those of the objects.

        Examples:
            >>> ds.labels()
            [LabelCount(name='cat', count=9),
             LabelCount(name='bird', count=8),
             LabelCount(name='dog', count=7)]
        """
        return View(self._context, self.id).labels()

    def copies_of(self, query: Any, similarity: float = 0.96, *, bounding_box: Box | None = None) -> list[Copy]:
        """Return the copies of an image in the dataset, and its originals.

        For an item of the dataset they are the near-duplicates: the other members of its group. For any other image, or
        a part of one, they are searched: images that are alike by their copy descriptors, and those of which it may be
        a part, are laid over it, as at indexing. Only copies that are shown are returned. The dataset does not change.

        Args:
            query: the id of a media item or an object, a path, the bytes of a file, a uint8 array of shape (H, W, 3) or
                a Pillow image.
            similarity: the minimum similarity, 0.96 to 1, rounded up to the next of the eight levels of
                :meth:`duplicates`.
            bounding_box: the part of the image whose copies are searched, as in :meth:`similar`.

        Returns:
            the copies, the most similar first, with what was done to them, as :meth:`duplicates` says it; empty for an
            image without copies.

        Raises:
            NotFound: the dataset has no such item.
            InvalidInput: an argument is out of range; or the dataset has no copy descriptors.
            CannotDecode: the file cannot be read, or is not an image.

        Examples:
            >>> copy = ds.copies_of(ds.media_id("garden.jpg"))[0]
            >>> copy.path, copy.reason, copy.keep
            ('garden-small.jpg', 'resized to 50%', False)
            >>> sorted(copy.path for copy in ds.copies_of(ds.media_id("garden.jpg"), bounding_box=(20, 20, 300, 200)))
            ['garden-small.jpg', 'garden.jpg']
        """
        if bounding_box is None and is_item(query):
            return copies_of(open_media(self._context, self.id), query, similarity=similarity)
        return copies_of_image(self._context, self.id, query, similarity=similarity, box=bounding_box)

    def video_copies(self, min_seconds: float = 3.0, *, limit: int | None = None) -> VideoCopies:
        """Return the parts of videos that are also parts of other ones; see :meth:`View.video_copies`.

        Examples:
            >>> ds.video_copies(min_seconds=5)
            []
        """
        return View(self._context, self.id).video_copies(min_seconds, limit=limit)

    def overlap(self, other: Any, similarity: float = 0.96, *, exact: bool = False) -> Overlap[View]:
        """Return the copies of the dataset's media in another dataset or view; see :meth:`framedex.View.overlap`.

        Args:
            other: a dataset, or a view of any dataset.
            similarity: minimum cosine similarity, 0.96 to 1, rounded up to the next of the eight levels.
            exact: only files with equal content.

        Raises:
            InvalidInput: *other* is no dataset or view of media, or has the same media; the similarity is out of range;
                or one of two datasets has no copy descriptors, and *exact* is false.
            Conflict: a dataset has no index yet.

        Examples:
            >>> ds.overlap(ws.dataset("new"))
            <framedex.Overlap of 'pets' and 'new': 1 media item has copies there: 1 pair with 1 media item>
        """
        return View(self._context, self.id).overlap(other, similarity, exact=exact)

    def media_id(self, location: str | os.PathLike[str]) -> str:
        """Return the id of the media item at a location.

        Args:
            location: the path within the source, as in the column ``path``; an absolute path, or one relative to the
                working directory; or the URI of a file or an object, as in the field ``original_uri`` of previews. If
                several items match, the one that was added first counts; a video stands for its first frame.

        Raises:
            NotFound: the dataset has no media item there.

        Examples:
            >>> cat = ds.media_id("cat-1.jpg")
            >>> ds.media_item(cat).labels
            ['cat']
            >>> ds.media_id("cat.jpg")
            Traceback (most recent call last):
                ...
            framedex.errors.NotFound: no media at 'cat.jpg' in this dataset
        """
        return media_id_at(open_media(self._context, self.id, early=True), location)
