"""A view: a lazy selection of a dataset's media, or of the objects in them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from framedex.api.result_pages import SHOWN_SIDE, DuplicateGroups, ExplorePage
from framedex.browse import issues as issue_search
from framedex.browse.duplicates import duplicates, exact_duplicates
from framedex.browse.explore import check_arguments, check_entity_type, explore, file_name
from framedex.browse.similar_videos import similar_videos
from framedex.errors import InvalidInput, MissingDependency
from framedex.export.columns import export_batches, table_schema
from framedex.images.thumbnails import read_thumbnails, thumbnail_uri
from framedex.operations import exports as exporting
from framedex.operations.context import Context, open_entities
from framedex.operations.searches import condition_for, explore_elements, explore_ranking, order_of
from framedex.records import EntityType, IssueSummary
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
    """Arguments of :meth:`View.explore` that are given by name."""

    caption: str | None
    image_caption: str | None
    textual_similarity_threshold: float | None
    labels: Sequence[str] | str | None
    tags: Sequence[str] | str | None
    anchor_media_id: str | None
    anchor_type: str | None


class View(exporting.Exportable):
    """The media of a dataset that a filter leaves, or objects in them. Nothing is read before a method asks for it.

    Each call looks at the dataset's present state. A view never changes; :meth:`where` returns a narrower one. In one
    of objects (:attr:`framedex.Dataset.objects`) each object is a media item: its id is a ``media_id``, its picture is
    what is in its box, and filters are about it. A dataset without objects has an empty one.
    """

    def __init__(self, context: Context, dataset_id: str, vql: Filter = (), *, objects: bool = False) -> None:
        self._context, self._dataset_id, self._filter = context, dataset_id, vql
        self._objects = objects

    @property
    def entity_type(self) -> EntityType:
        """What the view is of: ``IMAGES``, frames of videos too, or ``OBJECTS``."""
        return EntityType.OBJECTS if self._objects else EntityType.IMAGES

    def where(self, vql: Sequence[Any]) -> "View":
        """Return the part of the view that also passes another filter.

        Args:
            vql: a list of elements, the same as JSON text, or an expression of :mod:`framedex.vql`.

        Raises:
            InvalidFilter: the filter cannot be understood; the error has the JSON path of the part that is wrong.
        """
        return self._narrowed(parse([*self._filter, *parse(vql)]), objects=self._objects)

    def count(self) -> int:
        """Return the number of media."""
        media = self._media()
        return media.count(self._condition(media))

    def explain(self) -> str:
        """Return how the media are selected: the SQL statement, the values of its parameters, the columns it reads.

        Raises:
            InvalidFilter: the filter does not suit the dataset.
        """
        return explained(self._condition(self._media()))

    def media_ids(self) -> list[str]:
        """Return the ids of the media, in the order of ingestion."""
        ids: list[str] = self.to_arrow(columns=["media_id"])["media_id"].to_pylist()
        return ids

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each media item, in the order of ingestion.

        Args:
            columns: names of columns, in the wanted order; None for ``media_id, image_filename, file_path,
                file_size_bytes, width, height, uniqueness_score, cluster_id, caption, labels, tags, issues``, those of
                videos (``media_type, video_id, video_name, frame_number, frame_timestamp``) and ``cluster_0`` (finest)
                to ``cluster_4``; of objects also ``parent_id`` (the media item that it is in), ``label``,
                ``confidence`` (null where none is known), ``source`` and ``bbox`` (x, y, width and height in pixels of
                that item).
                ``embedding`` (float32 lists of unit length) comes on request, and of media custom fields by name.

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
            import pandas  # noqa: F401 - only to say clearly that it is missing
        except ImportError:
            raise MissingDependency("to_pandas needs pandas: pip install 'framedex[notebook]'") from None
        frame: pd.DataFrame = self.to_arrow(columns).to_pandas()
        return frame

    def explore(
        self,
        entity_type: str | None = None,
        threshold: int = 0,
        page_number: int = 0,
        vql: Sequence[Any] | None = None,
        *,
        caption: str | None = None,
        image_caption: str | None = None,
        textual_similarity_threshold: float | None = None,
        labels: Sequence[str] | str | None = None,
        tags: Sequence[str] | str | None = None,
        anchor_media_id: str | None = None,
        anchor_type: str | None = None,
    ) -> ExplorePage:
        """Return a page of 100 clusters of the media, in the form of the interface.

        Clusters come largest first; with a caption, an anchor or a search in the filter, the one with the best member
        first. A cluster holds
        only what the view, the filters and the search leave, and its previews are the best of that.

        Args:
            entity_type: ``IMAGES``; ``VIDEOS``, where each cluster is a video and its id that of the video; or
                ``OBJECTS``: then all filters, those of the view too, are about objects. By default what the view is of.
            threshold: clustering level, 0 (finest) to 4; says nothing about videos.
            page_number: from 0.
            vql: a further filter.
            caption: a text that is looked for: by its meaning where the dataset's encoder knows texts, or a text
                encoder is set and there are captions; else by its words, in captions, labels and file names.
            image_caption: the same; the older name.
            textual_similarity_threshold: 0 to 1; only media are kept whose distance to the caption is below.
            labels: only media that have any of these: a list, also as JSON, or bare as ``[dog,puppy]``.
            tags: likewise of tags, by id or name; ``untagged`` stands for having none.
            anchor_media_id: order by likeness to a media item, to an object, or to a picture that
                :meth:`Dataset.upload` was given.
            anchor_type: ``MEDIA`` or ``UPLOAD``; by default whichever it is.

        Raises:
            InvalidInput: an argument is outside of its range, or two do not go together.
            InvalidFilter: the filter cannot be understood.
            NotFound: there is no such anchor.
        """
        if caption is not None and image_caption is not None and caption != image_caption:
            raise InvalidInput("caption and image_caption are two names of one parameter; they differ")
        entity_type = self.entity_type if entity_type is None else entity_type
        check_arguments(entity_type, threshold, page_number)
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
            caption=image_caption if caption is None else caption,
            textual_similarity_threshold=textual_similarity_threshold,
            anchor_media_id=anchor_media_id,
            anchor_type=anchor_type,
        )
        ranking = view._order(media, condition) if ranking is None else ranking
        result = explore(
            media,
            condition if ranking is None else ranking.condition(),
            entity_type=entity_type,
            threshold=threshold,
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
        )

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> pa.Table:
        """Return a row for each issue of each media item, by issue and then worst first.

        The columns are ``media_id, file_name, path, issue_type, value, threshold, percentile, confidence, reason,
        suggested_label``. ``percentile`` is where the value stands among those of the whole dataset, whatever the view
        leaves: 0 is the best, 100 the worst in the direction of the issue; equal values share their middle rank.

        Args:
            issue_type: only this one.
            limit: at most so many of each, the worst.

        Raises:
            InvalidInput: there is no issue of that name.
        """
        media = self._media()
        kinds = None if issue_type is None else [issue_type]
        return issue_search.issues(media, self._condition(media), kinds=kinds, limit=limit)

    def issue_summaries(self) -> list[IssueSummary]:
        """Return how often each issue was found, and the limit that it was held against."""
        media = self._media()
        return issue_search.issue_summaries(media, self._condition(media))

    def duplicates(
        self,
        threshold: float = 0.96,
        *,
        exact: bool = False,
        limit: int | None = None,
        entity_type: str | None = None,
    ) -> DuplicateGroups:
        """Return groups of near-duplicates or of equal files, largest first, each with the member that is best to keep.

        Of videos the members are whole videos, with their ids as ``media_ids``. Two are as alike as the frames of the
        one with fewer frames are, on average, to the most similar ones of the other; so a part of a video is like the
        whole. Best to keep is the largest (pixels), of these the longest, of these the first. Threshold and similarity
        are what was asked for and found, without levels.

        Args:
            threshold: least cosine similarity, 0.96 to 1; the next stricter one of 0.96, 0.97, 0.98, 0.985, 0.99,
                0.995, 0.999 and 1.0 is used. Of videos any from 0 to 1.
            exact: instead, groups of files with equal content, broken ones too, or of equal boxes in such; the
                threshold then says nothing.
            limit: at most so many groups.
            entity_type: ``IMAGES``, frames of videos too; ``VIDEOS``; or ``OBJECTS``: then the filter of the view is
                about objects. By default what the view is of.

        Raises:
            InvalidInput: the threshold is outside of its range, the limit is no count, or there is no such type.
        """
        entity_type = self.entity_type if entity_type is None else entity_type
        check_entity_type(entity_type)
        view = self._of(entity_type)
        media = view._media()
        condition = view._condition(media)
        if entity_type == EntityType.VIDEOS:
            found = similar_videos(media, condition, threshold=threshold, exact=exact, limit=limit)
        elif exact:
            found = exact_duplicates(media, condition, limit=limit)
        else:
            found = duplicates(media, condition, threshold=threshold, limit=limit)
        return DuplicateGroups(found, view)

    def thumbnails(self, media_ids: Sequence[str], *, size: int = SHOWN_SIDE) -> list[bytes | None]:
        """Return JPEGs whose longer side has at most *size* pixels; None for pictures that cannot be shown."""
        media, settings = self._media(), self._context.settings
        if is_empty_object_view(media):
            return [None] * len(media_ids)
        folder, keep = self._thumbnails(media), not self._context.catalog.read_only
        return read_thumbnails(media, media_ids, settings, folder=folder, keep=keep, size=size)

    def chooser(self, dataset_id: str) -> Callable[[Media], Any]:
        """Return what says which media of a dataset's state are in the view, for an edit of that state.

        Raises:
            InvalidInput: the view is of another dataset, or of objects.
        """
        check_media(self)
        if dataset_id != self._dataset_id:
            raise InvalidInput(f"a selection is a view of the same dataset; this is one of {self._dataset_id}")
        return self._condition

    def __repr__(self) -> str:
        return f"<framedex.{type(self).__name__} of dataset {self._dataset_id}: {self.count()} {self._noun}>"

    def _repr_html_(self) -> str:
        shown = self._head(SHOWN)
        return html.block(
            html.heading(f"{self.count():,} {self._noun}", 3),
            html.row(
                html.picture(jpeg, file_name(row["image_filename"]), ", ".join(row["labels"]))
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
        """Return what the same filter leaves of entities of a type."""
        objects = entity_type == EntityType.OBJECTS
        return self if objects == self._objects else self._narrowed(self._filter, objects=objects)

    def _narrowed(self, vql: Filter, *, objects: bool) -> "View":
        """Return such a view with another filter, of media or of objects."""
        return View(self._context, self._dataset_id, vql, objects=objects)

    def _media(self) -> Media:
        """Return what the view is of: media, or the objects in them."""
        return open_entities(self._context, self._dataset_id, objects=self._objects)

    def _thumbnails(self, media: Media) -> Path:
        return self._context.layout.thumbnails(media.dataset_id)

    def _condition(self, media: Media) -> Condition:
        return condition_for(self._context, media, self._filter)

    def _order(self, media: Media, condition: Condition) -> Ranking | None:
        """Return the media, which meet the condition, the best first; None where there is no order but of ingestion."""
        return order_of(self._context, media, self._filter, condition)


def selected_ids(selection: "View | str | Sequence[str]") -> list[str]:
    """Return the media ids of a selection: those of a view as it is now, one id, or several, each once.

    Raises:
        InvalidInput: it is nothing of that, or a view of objects.
    """
    if isinstance(selection, View):
        check_media(selection)
        return selection.media_ids()
    ids = [selection] if isinstance(selection, str) else selection
    if not isinstance(ids, Sequence) or not all(isinstance(each, str) for each in ids):
        raise InvalidInput(f"media are chosen by a view, an id or a list of ids, not {selection!r}")
    return list(dict.fromkeys(ids))


def check_media(view: View) -> None:
    """Check that a view is of media, not of objects.

    Raises:
        InvalidInput: it is of objects.
    """
    if view._objects:
        raise InvalidInput(
            "media are chosen by a view of media, and this is one of objects; "
            "ds.where(vql.objects(…)) has the media that hold some"
        )
