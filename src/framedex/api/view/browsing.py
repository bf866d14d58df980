"""Methods that show the contents of a view: clusters, issues, duplicate groups, thumbnails."""

from collections.abc import Sequence
from typing import Any, Self, TypedDict

from framedex.api.histogram import Histogram
from framedex.api.issue_table import IssueTable
from framedex.api.record_list import RecordList, VideoCopies
from framedex.api.result_pages import SHOWN_SIDE, DuplicateGroups, ExplorePage
from framedex.api.view.training import Training
from framedex.browse import issues as issue_search
from framedex.browse.duplicates import duplicates, exact_duplicates, near_images
from framedex.browse.explore import check_arguments, check_entity_type, count_clusters, explore
from framedex.browse.histograms import value_histogram
from framedex.browse.label_counts import label_counts
from framedex.browse.similar_videos import similar_videos
from framedex.core.checks import check_flag
from framedex.errors import InvalidInput
from framedex.images.thumbnails import read_thumbnails
from framedex.operations.context import media_uris
from framedex.operations.empty_results import warn_if_empty
from framedex.operations.searches import explore_elements, explore_ranking
from framedex.operations.video_copies import video_copies
from framedex.records import ClusterCounts, EntityType, IssueSummary, LabelCount
from framedex.render.progress import progress_bar
from framedex.search.conditions import explained
from framedex.storage.objects import is_empty_object_view
from framedex.vql import parse


class ExploreSearch(TypedDict, total=False):
    """Keyword-only arguments of :meth:`View.explore`."""

    caption: str | None
    textual_similarity_threshold: float | None
    labels: Sequence[str] | str | None
    tags: Sequence[str] | str | None
    anchor_media_id: str | None
    anchor_type: str | None


class Browsing(Training):
    """Methods that show contents. They take the rows of a view as a set: its order matters after a search only."""

    def explain(self) -> str:
        """Return the SQL statement that selects the media, the values of its parameters, and the columns that it reads.

        Raises:
            InvalidFilter: the filter cannot be applied to the dataset.

        Examples:
            >>> print(ds.where(vql.labels("cat")).explain())
            SELECT _rowid FROM media
            WHERE ((len(list_filter(labels, lambda value: list_contains($1::VARCHAR[], value))) > 0) IS TRUE)
            $1 = ['cat']
            columns read: labels
        """
        return explained(self._condition(self._media()))

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
    ) -> ExplorePage[Self]:
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
                (:meth:`Dataset.upload`), verified copies of it first.
            anchor_type: ``MEDIA`` or ``UPLOAD``; by default detected from the id.

        Raises:
            InvalidInput: an argument is out of range, or two arguments exclude each other.
            InvalidFilter: the filter is invalid.
            NotFound: the anchor does not exist.

        Examples:
            >>> page = ds.where(~vql.issues("corrupted")).explore(level=2, labels=["dog"])
            >>> [(each.name, each.n_images) for each in page.clusters]
            [('dog 100 %', 6), ('dog 100 %', 1)]
        """
        entity_type = self.entity_type if entity_type is None else entity_type
        check_arguments(entity_type, level, page_number)
        elements = explore_elements(labels, tags)
        view = self._of(entity_type)
        view = view if vql is None and not elements else view.where([*parse(vql), *elements])
        media = view._media()
        selection = view._selection(media)
        condition = selection.condition()
        ranking = explore_ranking(
            self._context,
            media,
            condition,
            caption=caption,
            textual_similarity_threshold=textual_similarity_threshold,
            anchor_media_id=anchor_media_id,
            anchor_type=anchor_type,
        )
        ranking = view._order(selection) if ranking is None else ranking
        result = explore(
            media,
            condition if ranking is None else ranking.condition(),
            entity_type=entity_type,
            level=level,
            page_number=page_number,
            uris=media_uris(self._context, media),
            ranking=ranking,
            language=self._context.settings.language,
        )
        notes = warn_if_empty(result.total_pages, self._context, media, view._steps)
        return ExplorePage.of(result.model_copy(update={"notes": notes}), view)

    def count_clusters(
        self, entity_type: str | None = None, level: int = 0, vql: Sequence[Any] | None = None
    ) -> ClusterCounts:
        """Return the number of clusters that :meth:`explore` shows on all pages, and of the media in them.

        The arguments and errors are those of :meth:`explore`.

        Examples:
            >>> ds.view.count_clusters(level=2)
            ClusterCounts(n_clusters=7, n_media=33)
        """
        entity_type = self.entity_type if entity_type is None else entity_type
        check_arguments(entity_type, level, 0)
        view = self._of(entity_type)
        view = view if vql is None else view.where(vql)
        media = view._media()
        return count_clusters(media, view._condition(media), entity_type=entity_type, level=level)

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> IssueTable:
        """Return a row for each issue of each media item, grouped by issue type, worst first.

        The columns are ``media_id, file_name, path, issue_type, value, threshold, percentile, confidence, reason,
        suggested_label``. ``path`` is relative to the source, and ``file_name`` is its last part. ``percentile`` is the
        rank of the value among all media of the dataset, not only those of the view: 0 is the best, 100 the worst;
        equal values share their mean rank. ``threshold`` is the current limit of the issue type
        (:meth:`Dataset.set_limits`). ``notes`` of the table has warnings about issue types whose issues are
        uncertain, such as ``mislabels`` where few labels agree with those of the nearest images.

        Args:
            issue_type: return only this issue type.
            limit: the maximum number of rows for each issue type.

        Raises:
            InvalidInput: the issue type does not exist.

        Examples:
            >>> ds.view.issues()
            <IssueTable: corrupted 1, dark 1, duplicates 4, mislabels 1, outliers 4>
        """
        media = self._media()
        kinds = None if issue_type is None else [issue_type]
        table = issue_search.issues(media, self._condition(media), kinds=kinds, limit=limit)
        notes = issue_search.issue_notes(media)
        return IssueTable(table, [note for name, note in notes.items() if issue_type in (None, name)], self.thumbnails)

    def labels(self) -> list[LabelCount]:
        """Return the labels, with the number of items that have each: the most frequent first, then by name.

        Examples:
            >>> ds.where(vql.issues("mislabels")).labels()
            [LabelCount(name='cat', count=1)]
        """
        media = self._media()
        return RecordList(label_counts(media, self._condition(media)))

    def issue_summaries(self) -> list[IssueSummary]:
        """Return the count and the threshold of each issue type.

        Examples:
            >>> [(each.issue_type, each.count) for each in ds.view.issue_summaries() if each.count]
            [('corrupted', 1), ('dark', 1), ('duplicates', 4), ('mislabels', 1), ('outliers', 4)]
        """
        media = self._media()
        return RecordList(issue_search.issue_summaries(media, self._condition(media)))

    def histogram(self, issue_type: str, *, bins: int | Sequence[float] = 20) -> Histogram:
        """Return the histogram of the values of an issue type, with its limit. A notebook displays it as a plot.

        Args:
            issue_type: the issue type, as ``blur``.
            bins: the number of bins of equal width between the least and the greatest value, 1 to 1,000; or their
                edges, ascending.

        Raises:
            InvalidInput: the issue type is unknown or has no value, or the bins are neither a number nor edges.

        Examples:
            >>> ds.view.histogram("dark", bins=[0, 0.3, 1])
            <framedex.Histogram of 'dark': 32 values in 2 bins, limit 0.32, issue below>
        """
        media = self._media()
        return Histogram.of(value_histogram(media, self._condition(media), issue_type, bins=bins))

    def duplicates(
        self,
        similarity: float = 0.96,
        *,
        exact: bool = False,
        near: bool = False,
        limit: int | None = None,
        entity_type: str | None = None,
        within_videos: bool = False,
        of: str | None = None,
    ) -> DuplicateGroups[Self]:
        """Return groups of near-duplicates, equal files or near images, largest first, each with the member to keep.

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
            near: return groups of near images: images that are alike, but not all copies of each other, as a burst,
                frames of several videos, or renders of one scene. *similarity* is then ignored. The copies of these
                images are members, too. Which image stays is a matter of taste: intact, the best of its copies, the
                largest, the sharpest.
            limit: the maximum number of groups.
            entity_type: ``IMAGES`` (images and video frames); ``VIDEOS``; or ``OBJECTS``: the view's filter applies to
                objects. By default the view's entity type.
            within_videos: also group frames of one video with each other; otherwise they are no copies.
            of: the id of a media item: only the group that contains it, with those of its members that are in the view.

        Raises:
            InvalidInput: the similarity or the limit is out of range, the entity type does not exist, or *of* is used
                with *exact*, *within_videos* or ``VIDEOS``, or *near* with any of these.
            NotFound: there is no media item *of*.

        Examples:
            >>> [group.file_names for group in ds.view.duplicates(exact=True)]
            [['cat-1-copy.jpg', 'cat-1.jpg']]
        """
        check_flag("within_videos", within_videos)
        check_flag("near", near)
        entity_type = self.entity_type if entity_type is None else entity_type
        check_entity_type(entity_type)
        if near and (exact or within_videos or entity_type == EntityType.VIDEOS):
            raise InvalidInput("near returns groups of images; it excludes exact, within_videos and VIDEOS")
        if of is not None and (exact or within_videos or entity_type == EntityType.VIDEOS):
            raise InvalidInput("of is the id of an image or object; it excludes exact, within_videos and VIDEOS")
        view = self._of(entity_type)
        media = view._media()
        condition = view._condition(media)
        if entity_type == EntityType.VIDEOS:
            groups = similar_videos(media, condition, similarity=similarity, exact=exact, limit=limit)
        elif exact:
            groups = exact_duplicates(media, condition, limit=limit)
        elif near:
            groups = near_images(media, condition, limit=limit, of=of)
        else:
            groups = duplicates(
                media, condition, similarity=similarity, limit=limit, within_videos=within_videos, of=of
            )
        return DuplicateGroups(groups, view, of_videos=entity_type == EntityType.VIDEOS)

    def video_copies(self, min_seconds: float = 3.0, *, limit: int | None = None) -> VideoCopies:
        """Return the parts of videos that are also parts of other ones, with start and end in both, longest first.

        A part is found if it was encoded again, resized, cropped, mirrored, framed, partly covered, or shown at another
        speed, from 0.4 to 2.5. Frames of different videos that may be copies, and lie on one line of time, are
        candidates. The videos are then read again around that line: their frames are laid over each other as those of
        copies of images, and what moves must move alike. So one room on two days, black frames and a title card that
        stands still are no copies, and neither is a part without any motion, but in equal files.

        On made videos half of the starts and ends were right within 0.13 s, and 95 % within 1.3 s. A part needs two
        sampled frames or so with similar ones in the other video: at one frame a second parts of 3 s are found, also
        where the frames of both videos lie half a second apart, and at a lower rate only longer ones. Each frame is
        compared with the twelve most similar ones in other videos, so of fifty copies not all pairs are found, but each
        copy with some others. The result is kept for the state of the dataset.

        Args:
            min_seconds: the length of the shortest part in seconds, in the video in which it lasts longer; 1 to 86,400.
            limit: the maximum number of parts.

        Returns:
            a record for each part of two videos; several for a compilation. Of a view, only videos with a frame in it
            are compared. ``n_unread`` and ``n_left`` are the numbers of pairs that were not compared.

        Raises:
            InvalidInput: an argument is out of range; or the dataset has no copy descriptors.
            Conflict: the dataset has no index yet.

        Examples:
            >>> ds.view.video_copies()
            []
        """
        view = self._of(EntityType.IMAGES)
        media = view._media()
        with progress_bar("Parts of videos", late=True) as progress:
            show = progress or (lambda _stage, _share: None)
            condition = view._condition(media)
            found = video_copies(self._context, media, condition, min_seconds=min_seconds, limit=limit, progress=show)
        return VideoCopies(*found)

    def thumbnails(self, media_ids: Sequence[str], *, size: int = SHOWN_SIDE) -> list[bytes | None]:
        """Return JPEGs whose longer side has at most *size* pixels; None for images that cannot be decoded.

        Examples:
            >>> jpegs = ds.view.thumbnails(ds.where(vql.labels("cat")).media_ids())
            >>> len(jpegs), None in jpegs
            (9, False)
        """
        media, settings = self._media(), self._context.settings
        if is_empty_object_view(media):
            return [None] * len(media_ids)
        folder, keep = self._thumbnails(media), not self._context.catalog.read_only
        return read_thumbnails(media, media_ids, settings, folder=folder, keep=keep, size=size)
