"""A view: a lazy selection of a dataset's media, or of the objects in them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from framedex.api.histogram import Histogram
from framedex.api.issue_table import IssueTable
from framedex.api.result_pages import SHOWN_SIDE, DuplicateGroups, ExplorePage
from framedex.browse import issues as issue_search
from framedex.browse.duplicates import duplicates, exact_duplicates
from framedex.browse.explore import check_arguments, check_entity_type, explore, file_name
from framedex.browse.histograms import value_histogram
from framedex.browse.label_counts import label_counts
from framedex.browse.similar_videos import similar_videos
from framedex.core.checks import check_flag
from framedex.errors import InvalidInput, MissingDependency
from framedex.export.columns import export_batches, table_schema
from framedex.export.options import ExportOptions
from framedex.images.thumbnails import read_thumbnails, thumbnail_uri
from framedex.operations import exports as exporting
from framedex.operations.context import Context, open_entities
from framedex.operations.searches import condition_for, explore_elements, explore_ranking, order_of
from framedex.records import EntityType, IssueSummary, LabelCount
from framedex.render import html
from framedex.search.conditions import explained
from framedex.search.ranking import Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.tasks import ExportTask
from framedex.vql import Filter, parse

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 24


class ExploreSearch(TypedDict, total=False):
    """Keyword-only arguments of :meth:`View.explore`."""

    caption: str | None
    textual_similarity_threshold: float | None
    labels: Sequence[str] | str | None
    tags: Sequence[str] | str | None
    anchor_media_id: str | None
    anchor_type: str | None


class View(exporting.Exportable):
    """The media of a dataset that pass a filter, or the objects in them.

    A view is lazy: each method reads the dataset's current state when it is called. A view never changes;
    :meth:`where` returns a narrower one. In a view of objects (:attr:`framedex.Dataset.objects`) each object is a media
    item: its id is a ``media_id``, its image is the crop of its bounding box, and filters apply to the object. The view
    is empty if the dataset has no objects.
    """

    def __init__(self, context: Context, dataset_id: str, vql: Filter = (), *, objects: bool = False) -> None:
        self._context, self._dataset_id, self._filter = context, dataset_id, vql
        self._objects = objects

    @property
    def entity_type(self) -> EntityType:
        """The entity type: ``IMAGES`` (images and video frames) or ``OBJECTS``."""
        return EntityType.OBJECTS if self._objects else EntityType.IMAGES

    def where(self, vql: Sequence[Any]) -> "View":
        """Return a view of the media that also pass another filter.

        Args:
            vql: a list of elements, the same as JSON text, or an expression of :mod:`framedex.vql`.

        Raises:
            InvalidFilter: the filter is invalid; the message has the JSON path of the wrong element.
        """
        return self._narrowed(parse([*self._filter, *parse(vql)]), objects=self._objects)

    def count(self) -> int:
        """Return the number of media."""
        media = self._media()
        return media.count(self._condition(media))

    def explain(self) -> str:
        """Return the SQL statement that selects the media, the values of its parameters, and the columns that it reads.

        Raises:
            InvalidFilter: the filter cannot be applied to the dataset.
        """
        return explained(self._condition(self._media()))

    def media_ids(self) -> list[str]:
        """Return the ids of the media, in the order of ingestion."""
        ids: list[str] = self.to_arrow(columns=["media_id"])["media_id"].to_pylist()
        return ids

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each media item, in the order of ingestion.

        Args:
            columns: names of the columns, in order. By default ``media_id, image_filename, file_path,
                file_size_bytes, width, height, uniqueness_score, cluster_id, caption, labels, tags, issues``, the video
                columns ``media_type, video_id, video_name, frame_number, frame_timestamp``, and ``cluster_0`` (finest)
                to ``cluster_4``. Objects also have ``parent_id`` (the id of the image that contains the object),
                ``label``, ``confidence`` (null if unknown), ``source`` and ``bbox`` (x, y, width, height in pixels of
                that image). The value of each issue type is a column with the name of the type (``blur``, ``dark``,
                ``outliers``, …; float32, null where it could not be measured), except where a column or a custom field
                has that name. On request only: ``file_name`` and ``path`` (relative to the source), as in
                :meth:`issues`; ``embedding`` (float32 lists of unit length); and, for media, custom fields by name.

        Raises:
            InvalidInput: a column does not exist.
        """
        media = self._media()
        schema = table_schema(media, columns)
        blocks = list(export_batches(media, self._condition(media), schema))
        return pa.concat_tables([schema.empty_table(), *blocks])

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401 - only to raise a clear error if it is missing
        except ImportError:
            raise MissingDependency("to_pandas needs pandas: pip install 'framedex[notebook]'") from None
        frame: pd.DataFrame = self.to_arrow(columns).to_pandas()
        return frame

    def explore(
        self,
        entity_type: str | None = None,
        level: int = 0,
        page_number: int = 0,
        vql: Sequence[Any] | None = None,
        *,
        caption: str | None = None,
        textual_similarity_threshold: float | None = None,
        labels: Sequence[str] | str | None = None,
        tags: Sequence[str] | str | None = None,
        anchor_media_id: str | None = None,
        anchor_type: str | None = None,
    ) -> ExplorePage:
        """Return a page of 100 clusters.

        Clusters are sorted by size, largest first. With a caption, an anchor or a search in the filter they are sorted
        by the relevance of their best member instead. A cluster contains only media that pass the view's filter, *vql*
        and the search; its previews are the best of these.

        Args:
            entity_type: ``IMAGES``; ``VIDEOS``: each cluster is a video, with the video's id; or ``OBJECTS``: all
                filters, including the view's, apply to objects. By default the view's entity type.
            level: the cluster level, 0 (finest) to 4; ignored for videos.
            page_number: from 0.
            vql: an additional filter.
            caption: a text query. The search is semantic if the dataset's encoder encodes text, or if a text encoder is
                set and the dataset has captions. Otherwise it is a keyword search of captions, labels and file names.
            textual_similarity_threshold: a cosine distance from 0 to 1; only media with a smaller distance to the
                caption remain.
            labels: only media with at least one of these labels: a list, its JSON text, or bare as ``[dog,puppy]``.
            tags: the same for tags, by id or name; ``untagged`` selects media without tags.
            anchor_media_id: sort by similarity to a media item, an object, or an uploaded image
                (:meth:`Dataset.upload`).
            anchor_type: ``MEDIA`` or ``UPLOAD``; by default detected from the id.

        Raises:
            InvalidInput: an argument is out of range, or two arguments exclude each other.
            InvalidFilter: the filter is invalid.
            NotFound: the anchor does not exist.
        """
        entity_type = self.entity_type if entity_type is None else entity_type
        check_arguments(entity_type, level, page_number)
        elements = explore_elements(labels, tags)
        view = self._of(entity_type)
        view = view if vql is None and not elements else view.where([*parse(vql), *elements])
        media = view._media()
        folder = view._thumbnails(media)
        condition = view._condition(media)
        ranking = explore_ranking(
            self._context,
            media,
            condition,
            caption=caption,
            textual_similarity_threshold=textual_similarity_threshold,
            anchor_media_id=anchor_media_id,
            anchor_type=anchor_type,
        )
        ranking = view._order(media, condition) if ranking is None else ranking
        result = explore(
            media,
            condition if ranking is None else ranking.condition(),
            entity_type=entity_type,
            level=level,
            page_number=page_number,
            thumbnail_uri=lambda media_id: thumbnail_uri(folder, media_id),
            ranking=ranking,
        )
        return ExplorePage.of(result, view)

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
        view = self if vql is None else self.where(vql)
        choose = exporting.make_selector(
            view._condition, entity_type=entity_type, filtered=vql is not None, media_selection=media_selection
        )
        return exporting.start_export(
            self._context,
            self._dataset_id,
            path,
            choose,
            entity_type=entity_type,
            format=format,
            include_images=include_images,
            options=options,
        )

    def _selector_of(self, vql: Any) -> exporting.Selector:
        """Return the function that selects the media of the dataset that pass a filter."""
        return View(self._context, self._dataset_id).where(vql)._condition

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> IssueTable:
        """Return a row for each issue of each media item, grouped by issue type, worst first.

        The columns are ``media_id, file_name, path, issue_type, value, threshold, percentile, confidence, reason,
        suggested_label``. ``path`` is relative to the source, and ``file_name`` is its last part. ``percentile`` is the
        rank of the value among all media of the dataset, not only those of the view: 0 is the best, 100 the worst;
        equal values share their mean rank. ``threshold`` is the current limit of the issue type
        (:meth:`Dataset.set_limits`). ``notes`` of the table has the reasons for issue types that are not listed,
        such as ``mislabels`` where the nearest images say too little about labels.

        Args:
            issue_type: return only this issue type.
            limit: the maximum number of rows for each issue type.

        Raises:
            InvalidInput: the issue type does not exist.
        """
        media = self._media()
        kinds = None if issue_type is None else [issue_type]
        table = issue_search.issues(media, self._condition(media), kinds=kinds, limit=limit)
        notes = issue_search.issue_notes(media)
        return IssueTable(table, [note for name, note in notes.items() if issue_type in (None, name)])

    def labels(self) -> list[LabelCount]:
        """Return the labels, with the number of items that have each: the most frequent first, then by name."""
        media = self._media()
        return label_counts(media, self._condition(media))

    def issue_summaries(self) -> list[IssueSummary]:
        """Return the count and the threshold of each issue type."""
        media = self._media()
        return issue_search.issue_summaries(media, self._condition(media))

    def histogram(self, issue_type: str, *, bins: int | Sequence[float] = 20) -> Histogram:
        """Return the histogram of the values of an issue type, with its limit. A notebook displays it as a plot.

        Args:
            issue_type: the issue type, as ``blur``.
            bins: the number of bins of equal width between the least and the greatest value, 1 to 1,000; or their
                edges, ascending.

        Raises:
            InvalidInput: the issue type is unknown or has no value, or the bins are neither a number nor edges.
        """
        media = self._media()
        return Histogram.of(value_histogram(media, self._condition(media), issue_type, bins=bins))

    def duplicates(
        self,
        similarity: float = 0.96,
        *,
        exact: bool = False,
        limit: int | None = None,
        entity_type: str | None = None,
        within_videos: bool = False,
    ) -> DuplicateGroups:
        """Return groups of near-duplicates or of equal files, largest first, each with the best member to keep.

        Images are compared by a copy descriptor, whatever the encoder of the dataset, so a level means the same for
        each. At the lowest level, 0.96, groups also have the copies that keypoints show: cropped, framed, turned,
        mirrored, part of a screenshot. Level 1.0 is equal pixels. Rows of a table of vectors are compared by these.

        For ``VIDEOS`` the members are whole videos, and ``media_ids`` are video ids. Each frame of the video with fewer
        frames is compared with its most similar frame of the other video; the similarity of the two videos is the mean.
        So a clip is similar to the video from which it was cut. The best video to keep has the most pixels; ties are
        broken by duration, then by the order of ingestion. Any similarity can be used, without levels.

        Args:
            similarity: the minimum cosine similarity, 0.96 to 1, rounded up to the next of the levels 0.96, 0.97, 0.98,
                0.985, 0.99, 0.995, 0.999 and 1.0. For videos, any number from 0 to 1.
            exact: return groups of files with equal content, including broken files, or groups of equal bounding boxes
                in such files. *similarity* is then ignored.
            limit: the maximum number of groups.
            entity_type: ``IMAGES`` (images and video frames); ``VIDEOS``; or ``OBJECTS``: the view's filter applies to
                objects. By default the view's entity type.
            within_videos: also group frames of one video with each other; otherwise they are no copies.

        Raises:
            InvalidInput: the similarity or the limit is out of range, or the entity type does not exist.
        """
        check_flag("within_videos", within_videos)
        entity_type = self.entity_type if entity_type is None else entity_type
        check_entity_type(entity_type)
        view = self._of(entity_type)
        media = view._media()
        condition = view._condition(media)
        if entity_type == EntityType.VIDEOS:
            groups = similar_videos(media, condition, similarity=similarity, exact=exact, limit=limit)
        elif exact:
            groups = exact_duplicates(media, condition, limit=limit)
        else:
            groups = duplicates(media, condition, similarity=similarity, limit=limit, within_videos=within_videos)
        return DuplicateGroups(groups, view)

    def thumbnails(self, media_ids: Sequence[str], *, size: int = SHOWN_SIDE) -> list[bytes | None]:
        """Return JPEGs whose longer side has at most *size* pixels; None for images that cannot be decoded."""
        media, settings = self._media(), self._context.settings
        if is_empty_object_view(media):
            return [None] * len(media_ids)
        folder, keep = self._thumbnails(media), not self._context.catalog.read_only
        return read_thumbnails(media, media_ids, settings, folder=folder, keep=keep, size=size)

    def chooser(self, dataset_id: str) -> Callable[[Media], Any]:
        """Return a function that returns the condition for the view's media in a given state of the dataset.

        Raises:
            InvalidInput: the view belongs to another dataset, or is a view of objects.
        """
        check_media(self)
        if dataset_id != self._dataset_id:
            raise InvalidInput(f"the selection must be a view of the same dataset, not of dataset {self._dataset_id}")
        return self._condition

    def __repr__(self) -> str:
        return f"<framedex.{type(self).__name__} of dataset {self._dataset_id}: {self.count()} {self._noun}>"

    def _repr_html_(self) -> str:
        shown = self._head(SHOWN)
        return html.block(
            html.heading(f"{self.count():,} {self._noun}", 3),
            html.row(
                html.figure(jpeg, file_name(row["image_filename"]), ", ".join(row["labels"]))
                for row, jpeg in zip(shown, self.thumbnails([row["media_id"] for row in shown]), strict=True)
            ),
        )

    def _head(self, count: int) -> list[dict[str, Any]]:
        media = self._media()
        schema = table_schema(media, ["media_id", "image_filename", "labels"])
        rows = media.row_ids(self._condition(media))[:count]
        return [row for block in export_batches(media, rows, schema) for row in block.to_pylist()]

    @property
    def _noun(self) -> str:
        return "objects" if self._objects else "media"

    def _of(self, entity_type: str) -> "View":
        """Return the view with the same filter for an entity type."""
        objects = entity_type == EntityType.OBJECTS
        return self if objects == self._objects else self._narrowed(self._filter, objects=objects)

    def _narrowed(self, vql: Filter, *, objects: bool) -> "View":
        """Return a view with another filter, of media or of objects."""
        return View(self._context, self._dataset_id, vql, objects=objects)

    def _media(self) -> Media:
        """Open the current state of the media, or of the objects in them."""
        return open_entities(self._context, self._dataset_id, objects=self._objects)

    def _thumbnails(self, media: Media) -> Path:
        return self._context.layout.thumbnails(media.dataset_id)

    def _condition(self, media: Media) -> Condition:
        return condition_for(self._context, media, self._filter)

    def _order(self, media: Media, condition: Condition) -> Ranking | None:
        """Return the ranking of the media that meet the condition; None if they are in the order of ingestion."""
        return order_of(self._context, media, self._filter, condition)


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
    if view._objects:
        raise InvalidInput(
            "the selection must be a view of media, and this is a view of objects; "
            "ds.where(vql.objects(…)) selects the media that contain such objects"
        )
