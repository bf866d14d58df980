"""The classes View, RankedView and DiverseView."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, SupportsIndex, overload

import numpy as np
import pyarrow as pa

from framedex.analysis.coverage import MOST_CHOSEN
from framedex.api.apps import app_of
from framedex.api.overlap import Overlap
from framedex.api.result_pages import shown_name
from framedex.api.view.browsing import Browsing
from framedex.api.view.overlap import overlap_of
from framedex.api.view.reading import SCORES
from framedex.api.view.report import report_html
from framedex.browse.diverse_rows import DiverseRows, find_diverse_rows
from framedex.core.checks import check_fraction, check_integer, is_number
from framedex.errors import InvalidInput
from framedex.export.files import whole_file
from framedex.export.options import ExportOptions
from framedex.operations import edits as editing
from framedex.operations import exports as exporting
from framedex.operations.context import read_embedding_config
from framedex.operations.pinned_rows import PinnedRows
from framedex.operations.searches import open_searcher, query_image, text_query, vector_query
from framedex.operations.steps import Contained, Searched, Steps
from framedex.records import EntityType, Tag
from framedex.render import html
from framedex.render.progress import progress_bar
from framedex.search.queries import Query
from framedex.search.query_images import Box, QueryImage
from framedex.settings import user_path
from framedex.storage import datasets
from framedex.storage.media import Media
from framedex.tasks import ExportTask

SHOWN = 24


class View(Browsing, exporting.Exportable):
    """The media of a dataset that pass a filter, or the objects in them, in an order.

    A view is lazy: each method reads the dataset's current state when it is called. A view never changes; methods as
    :meth:`where`, :meth:`sort_by`, :meth:`limit` and slices return another one. Each applies to the rows that are left,
    in their order. In a view of objects (:attr:`framedex.Dataset.objects`) each object is a media item: its id is a
    ``media_id``, its image is the crop of its bounding box, and filters apply to the object. The view is empty if the
    dataset has no objects.

    Examples:
        >>> cats = ds.where(vql.labels("cat")).sort_by("file_name")
        >>> len(cats), cats[0]["image_filename"]
        (9, 'cat-1.jpg')
        >>> [row["image_filename"] for row in cats[-2:]]
        ['cat-8.jpg', 'dog-8.jpg']
    """

    @overload
    def __getitem__(self, key: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: SupportsIndex | slice) -> dict[str, Any] | Self:
        """Return a row by its position as a dictionary, or the view of a slice; negative positions as for lists.

        Raises:
            InvalidInput: the key is neither an integer nor a slice of integers.
            OutOfRange: there is no such row.
        """
        return self._slice(key) if isinstance(key, slice) else self._row(key)

    @property
    def objects(self) -> "View":
        """The objects in the media of the view, in row order; the view itself if it is of objects.

        Examples:
            >>> ds.where(vql.file_name("is", "cat-1.jpg")).objects.count()
            2
        """
        if self._objects:
            return self
        steps = (Contained(self._steps),) if self._steps else ()
        return View(self._context, self._dataset_id, steps, objects=True)

    def search(
        self, text: str, limit: int | None = 100, *, by: str = "auto", diversity: float = 0.0, relevance: float = 0.0
    ) -> "RankedView":
        """Return the rows of the view that match a text, best first; see :meth:`framedex.Dataset.search`.

        Examples:
            >>> [row["image_filename"] for row in ds.where(vql.labels("dog")).search("fence OR bed")]
            ['dog-6.jpg', 'dog-7.jpg']
        """
        with progress_bar("Indexing", late=True) as progress:
            searcher = open_searcher(self._context, self._media(), progress)
            query = text_query(searcher, text, by)
            query.run(searcher, None, 1, 0.0)  # errors are raised here, and indices built
        return self._ranked(query, limit, diversity, relevance)

    def similar(
        self,
        query: Any,
        limit: int | None = 100,
        *,
        max_distance: float | None = None,
        bounding_box: Box | None = None,
        diversity: float = 0.0,
        relevance: float = 0.0,
        n_candidates: int | None = None,
    ) -> "RankedView":
        """Return the rows of the view most similar to an image, best first; see :meth:`framedex.Dataset.similar`.

        Examples:
            >>> dogs = ds.where(vql.labels("dog"))
            >>> [row["image_filename"] for row in dogs.similar("new/dog-9.jpg", limit=2)]
            ['dog-6.jpg', 'dog-7.jpg']
        """
        with progress_bar("Indexing", late=True) as progress:
            searcher = open_searcher(self._context, self._media(), progress)
            image = query_image(self._context, searcher, query, box=bounding_box, with_copies=not diversity)
            vector = vector_query(image, max_distance, n_candidates)
            searcher.index  # noqa: B018 - built here, where its progress is shown
        return self._ranked(vector, limit, diversity, relevance, None if diversity else image)

    def _ranked(
        self, query: Query, limit: int | None, diversity: float, relevance: float, image: QueryImage | None = None
    ) -> "RankedView":
        check_integer("limit", limit, minimum=0, optional=True)
        check_fraction("diversity", diversity)
        check_fraction("relevance", relevance)
        if diversity and limit is None:
            raise InvalidInput("diversity needs a limit: without one, all media are returned anyway")
        step = Searched(query, limit, float(diversity), float(relevance), image)
        return RankedView(self._context, self._dataset_id, (*self._steps, step), objects=self._objects)

    def diverse(self, n: int, *, seed: int = 0) -> "DiverseView":
        """Return *n* rows that cover the view best: each row of the view has a similar one among them.

        The sum of the similarities of all rows to the most similar chosen one is made as large as possible (greedy
        facility location, see :mod:`framedex.analysis.coverage`). So common kinds of images come first, each once, and
        a single odd image comes late, unlike with farthest-point sampling. Of a large view the rows are chosen among a
        random sample, of 10,000 to 20,000 rows; what they cover is measured on all rows.

        Args:
            n: the number of rows, up to 10,000; all with an embedding if there are fewer.
            seed: another seed draws another sample.

        Returns:
            A view of the rows, which also says what they cover.

        Raises:
            InvalidInput: *n* is no integer from 0 to 10,000, or the seed no integer of at least 0.

        Examples:
            >>> ds.view.diverse(5)
            <framedex.DiverseView of dataset 'pets': 5 media>
        """
        check_integer("n", n, minimum=0, maximum=MOST_CHOSEN)
        check_integer("seed", seed, minimum=0)
        media = self._media()
        rows = self._selection(media).row_ids()
        with progress_bar("Choosing rows", late=True) as progress:
            found = find_diverse_rows(
                media, rows, int(n), seed=int(seed), progress=partial(progress, "similarities") if progress else _quiet
            )
        return _diverse_view(self, media, found, len(rows))

    def overlap(self, other: Any, similarity: float = 0.96, *, exact: bool = False) -> "Overlap[View]":
        """Return the copies of the view's media among those of another view, of this dataset or another one.

        Copies are those of :meth:`framedex.Dataset.duplicates`: files with equal content, near-duplicates by the copy
        descriptor, which is the same for all encoders, and crops, frames, mirrored and turned images that keypoints
        confirm. Within a dataset they are the members of its near-duplicate groups; so decisions that media are no
        duplicates hold. Between datasets they are found by the same search, in which ``FRAMEDEX_COPY_BUDGET_MS`` limits
        the processor time for keypoints. Memory grows with the number of media, not of pairs.

        Args:
            other: a view, or a dataset, which stands for all its media.
            similarity: minimum cosine similarity, 0.96 to 1, rounded up to the next of the eight levels.
            exact: only files with equal content.

        Raises:
            InvalidInput: *other* is no view of media, or has the same media; the similarity is out of range; or the
                views are of two datasets of which one has no copy descriptors, and *exact* is false.
            Conflict: a dataset has no index yet.

        Examples:
            >>> ds.where(vql.labels("cat")).overlap(ds.where(~vql.labels("cat")))
            <framedex.Overlap of 'pets': 1 media item has copies there: 1 pair with 1 media item>
        """
        there = other if isinstance(other, View) else getattr(other, "view", None)
        if not isinstance(there, View):
            raise InvalidInput(f"other must be a dataset or a view of media, not {other!r:.80}")
        for each in (self, there):
            check_media(each)
        return overlap_of(self, there, similarity=similarity, exact=exact)

    def tag(self, tag: str) -> Tag:
        """Tag the media of the view, and return the tag; see :meth:`framedex.Dataset.tag`.

        Examples:
            >>> ds.where(vql.labels("bird")).tag("flies").count
            8
        """
        return editing.tag(self._context, self._dataset_id, self._chooser(self._dataset_id), tag)

    def untag(self, tag: str) -> Tag:
        """Remove a tag from the media of the view, and return it; see :meth:`framedex.Dataset.untag`.

        Examples:
            >>> ds.where(vql.file_name("is", "cat-1.jpg")).untag("reviewed").count
            2
        """
        return editing.untag(self._context, self._dataset_id, self._chooser(self._dataset_id), tag)

    def _chooser(self, dataset_id: str) -> Callable[[Media], Any]:
        """Return a function that returns the condition for the view's media in a given state of the dataset.

        Raises:
            InvalidInput: the view belongs to another dataset, or is a view of objects.
        """
        check_media(self)
        if dataset_id != self._dataset_id:
            raise InvalidInput(f"the selection must be a view of the same dataset, not of dataset {self._dataset_id}")
        return self._condition

    def report(self, path: str | os.PathLike[str], *, level: int = 3, extra: str = "") -> Path:
        """Write one self-contained HTML page with issues, near-duplicates, clusters and objects; return its path.

        Args:
            path: the file.
            level: the cluster level of the page, 0 to 4.
            extra: HTML for the top of the page.

        Raises:
            InvalidInput: the file cannot be written, or *extra* is no valid text.
            NotIndexed: the dataset has no index yet.

        Examples:
            >>> ds.where(vql.issues("duplicates")).report("copies.html").name
            'copies.html'
        """
        target = user_path(path)
        with self._context.catalog.read() as connection:
            info = datasets.find_dataset(connection, self._dataset_id)
        config = read_embedding_config(self._context, self._dataset_id)
        objects = None if self._objects else self.objects
        with progress_bar("Reporting") as progress:
            content = report_html(info, config, self, objects=objects, level=level, extra=extra, progress=progress)
        with whole_file(target) as file:
            file.write(content.encode())
        return target

    def app(self, height: int = 600, *, mode: str = "widget") -> Any:
        """Return the web app for a notebook, open at the view's filter, search and order.

        The app is a widget whose server is the kernel: it needs no port, works in JupyterLab, VS Code, JupyterHub and
        behind proxies, and asks no other host for anything. While a cell runs, its requests may wait for the end. It
        acts on this open workspace as its user. A view that is a sample, a slice or the result of a search by image is
        shown by its ids, in the order of the dataset.

        Args:
            height: in CSS pixels, 1 to 10,000.
            mode: ``widget``; or ``server`` where messages of widgets are blocked: a server in a thread, at a free port
                of this machine that needs no log-in, is shown in a frame, for a kernel on the machine of the browser.

        Returns:
            a widget with ``selection`` (a view of the selected media), ``selected``, ``vql`` and ``url``, which can
            also be set, and ``close()``; or, with a server, an object with ``url`` and ``close()``.

        Raises:
            InvalidInput: an argument is wrong, or the view has too many rows to be shown by ids.
            MissingDependency: the extra ``notebook`` is not installed.
            NotFound: the dataset was deleted.
            Unavailable: the app was not built, or the server does not start.

        Examples:
            >>> app = ds.where(vql.labels("cat")).app()
            >>> app.vql
            [{'labels': {'op': 'is', 'value': 'cat'}}]
            >>> app.close()
        """
        return app_of(self, height=height, mode=mode)

    def count_export(
        self,
        media_selection: Sequence[Any] | None = None,
        *,
        entity_type: str | None = None,
        vql: Sequence[Any] | None = None,
    ) -> int:
        """Return the number of media, or of objects, that :meth:`export` would select, without exporting them.

        The arguments and errors are those of :meth:`export`.

        Examples:
            >>> cats = ds.where(vql.labels("cat"))
            >>> cats.count_export(), cats.count_export(entity_type="OBJECTS")
            (9, 5)
        """
        entity_type = self.entity_type if entity_type is None else entity_type
        return exporting.count_export(
            self._context,
            self._dataset_id,
            self._export_selector(media_selection, entity_type, vql),
            entity_type=entity_type,
        )

    def _export_selector(
        self, media_selection: Sequence[Any] | None, entity_type: str, vql: Sequence[Any] | None
    ) -> exporting.Selector:
        view = self if vql is None else self.where(vql)
        return exporting.make_selector(
            view._condition, entity_type=entity_type, filtered=vql is not None, media_selection=media_selection
        )

    def _export(
        self,
        path: str | os.PathLike[str],
        format: str,  # noqa: A002 - the interface's word
        include_images: bool,
        media_selection: Sequence[Any] | None,
        entity_type: str | None,
        vql: Sequence[Any] | None,
        options: ExportOptions,
    ) -> ExportTask:
        """Start an export."""
        entity_type = self.entity_type if entity_type is None else entity_type
        choose = self._export_selector(media_selection, entity_type, vql)
        return exporting.start_export(
            self._context,
            self._dataset_id,
            path,
            choose,
            entity_type=entity_type,
            format=format,
            include_images=include_images,
            options=options,
            steps=(self if vql is None else self.where(vql))._steps if media_selection is None else (),
        )

    def _selector_of(self, vql: Any) -> exporting.Selector:
        """Return the function that selects the media of the dataset that pass a filter, or those of a view."""
        if isinstance(vql, View):
            check_media(vql)
            if vql._dataset_id != self._dataset_id:
                raise InvalidInput("a part of a split is a view of the dataset that is exported, not of another one")
            return vql._condition
        return View(self._context, self._dataset_id).where(vql)._condition

    def __repr__(self) -> str:
        with self._context.catalog.read() as connection:
            name = datasets.find_dataset(connection, self._dataset_id).display_name
        count = self._selection(self._media()).count()
        return f"<framedex.{type(self).__name__} of dataset {name!r}: {count} {self._noun}>"

    def _repr_html_(self) -> str:
        shown = list(self.limit(SHOWN).rows(["media_id", "file_name", "frame_timestamp", "labels"]))
        return html.block(
            html.heading(f"{self.count():,} {self._noun}", 3),
            html.row(
                html.figure(jpeg, shown_name(row["file_name"], row["frame_timestamp"]), ", ".join(row["labels"]))
                for row, jpeg in zip(shown, self.thumbnails([row["media_id"] for row in shown]), strict=True)
            ),
        )


class RankedView(View):
    """The results of a search, best first. The search runs when a method first needs it.

    A ranked view has all methods of a view. :meth:`where` filters before the ranking, so that the limit applies to the
    media that pass the filter.

    Examples:
        >>> found = ds.search("dog", limit=5).where(vql.tags("untagged"))
        >>> found
        <framedex.RankedView of dataset 'pets': 5 media>
        >>> found[0]["relevance_score_type"]
        'bm25'
    """

    def _repr_html_(self) -> str:
        columns = ["media_id", "file_name", "frame_timestamp", *SCORES.names]
        rows = list(self.limit(SHOWN).rows(columns))
        if not rows:
            return html.block(html.note("nothing here matches"))
        jpegs = self.thumbnails([row["media_id"] for row in rows])
        return html.block(
            html.row(
                html.figure(jpeg, shown_name(row["file_name"], row["frame_timestamp"]), *_captions(row))
                for row, jpeg in zip(rows, jpegs, strict=True)
            )
        )


class DiverseView(View):
    """Rows that cover a view best, in the order in which they add most: any beginning is a good choice of that size.

    It is a view of these rows. Each other row of the view that they were chosen from is *covered* by the most similar
    one of them. The choice stays as it is while the dataset changes; rows that are deleted leave it.

    Attributes:
        n_covered: the number of rows that they were chosen from, themselves included.
        n_without_embedding: the number of rows of the view without an embedding, which are not covered.

    Examples:
        >>> chosen = ds.view.diverse(4)
        >>> chosen.n_covered, chosen.n_without_embedding
        (32, 1)
        >>> [row["image_filename"] for row in chosen]
        ['garden.jpg', 'cat-1-copy.jpg', 'bird-6.jpg', 'dog-8.jpg']
    """

    n_covered: int
    n_without_embedding: int
    _state: Media
    _found: DiverseRows

    def _with(self, steps: Steps) -> View:  # type: ignore[override]
        return View(self._context, self._dataset_id, steps, objects=self._objects)

    @property
    def mean_similarity(self) -> float:
        """The mean cosine similarity of the covered rows to the row that covers them, -1 to 1; NaN without rows.

        Examples:
            >>> round(ds.view.diverse(4).mean_similarity, 1)
            0.9
        """
        values = self._found.covered.similarity
        return float(values.mean(dtype=np.float64)) if len(values) else float("nan")

    def share_covered(self, similarity: float) -> float:
        """Return the share of the covered rows that are at least so similar to the row that covers them, 0 to 1.

        Args:
            similarity: a cosine similarity, -1 to 1.

        Raises:
            InvalidInput: it is no such number.

        Examples:
            >>> ds.view.diverse(4).share_covered(0.5)
            1.0
        """
        if not is_number(similarity) or not -1 <= similarity <= 1:
            raise InvalidInput(f"similarity must be a number from -1 to 1, not {similarity!r}")
        values = self._found.covered.similarity
        return float((values >= np.float32(similarity)).mean()) if len(values) else 0.0

    def coverage(self) -> pa.Table:
        """Return what each chosen row covers, in the order of the view.

        Returns:
            A table: ``media_id``; ``n_covered``, the number of rows that it covers, itself included;
            ``mean_similarity`` and ``lowest_similarity`` of these to it, NaN where another equal row covers them.

        Examples:
            >>> ds.view.diverse(4).coverage()["n_covered"].to_pylist()
            [2, 10, 8, 12]
        """
        count, covered = len(self._found.chosen), self._found.covered
        numbers = np.bincount(covered.by, minlength=count)
        lowest = np.full(count, np.nan, np.float32)
        np.fmin.at(lowest, covered.by, covered.similarity)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(covered.by, weights=covered.similarity, minlength=count) / numbers
        ids = self._state.values_at(self._found.chosen, "media_id") if count else pa.array([], pa.string())
        return pa.table(
            {
                "media_id": ids,
                "n_covered": pa.array(numbers.astype(np.int64)),
                "mean_similarity": pa.array(mean.astype(np.float32)),
                "lowest_similarity": pa.array(lowest),
            }
        )

    def least_covered(self, n: int = 100) -> View:
        """Return the rows that are least similar to the row that covers them, the least similar first.

        Args:
            n: the maximum number of rows.

        Raises:
            InvalidInput: *n* is no integer of at least 0.

        Examples:
            >>> [row["image_filename"] for row in ds.view.diverse(4).least_covered(2)]
            ['clips/walk_frame_000010.jpg', 'clips/walk_frame_000000.jpg']
        """
        order = np.argsort(self._found.covered.similarity, kind="stable")
        rows = self._found.rows[order]
        name = f"{self._steps[0].key} least"
        return View(
            self._context, self._dataset_id, (PinnedRows(self._state, rows, name),), objects=self._objects
        ).limit(n)


def _diverse_view(view: View, state: Media, found: DiverseRows, n_rows: int) -> DiverseView:
    """Return the view of rows that were found in a state of a view with some number of rows."""
    digest = hashlib.blake2b(found.chosen.tobytes(), digest_size=16).hexdigest()
    step = PinnedRows(state, found.chosen, f"diverse {state.generation.id} {digest}")
    out = DiverseView(view._context, view._dataset_id, (step,), objects=view._objects)
    out._state, out._found = state, found
    out.n_covered, out.n_without_embedding = len(found.rows), n_rows - len(found.rows)
    return out


def _captions(row: dict[str, Any]) -> tuple[str, ...]:
    kind = row["relevance_score_type"].replace("_", " ").replace("bm25", "BM25")
    scores = f"{kind} {row['relevance_score']:.3f}", f"relevance {row['relevance']:.2f}"
    return scores if row["copy"] is None else (f"copy: {row['copy']}", *scores)


def _quiet(_share: float) -> None:
    """Show no progress."""


def selected_ids(selection: "View | str | Sequence[str]") -> list[str]:
    """Return the distinct media ids of a selection: a view, one id, or several ids.

    Raises:
        InvalidInput: the selection is of another type, or a view of objects.
    """
    if isinstance(selection, View):
        check_media(selection)
        return selection.media_ids()
    ids = [selection] if isinstance(selection, str) else selection
    if not isinstance(ids, Sequence) or not all(isinstance(each, str) for each in ids):
        raise InvalidInput(f"a selection of media must be a view, an id or a list of ids, not {selection!r}")
    return list(dict.fromkeys(ids))


def check_media(view: View) -> None:
    """Check that a view is of media, not of objects.

    Raises:
        InvalidInput: it is a view of objects.
    """
    if view.entity_type == EntityType.OBJECTS:
        raise InvalidInput(
            "the selection must be a view of media, and this is a view of objects; "
            "ds.where(vql.objects(…)) selects the media that contain such objects"
        )
