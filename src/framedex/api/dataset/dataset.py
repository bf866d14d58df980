"""The public class of a dataset."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.api.dataset.edits import DatasetEdits
from framedex.api.dataset.enrichment import DatasetEnrichment
from framedex.api.dataset.evaluation import DatasetEvaluation
from framedex.api.dataset.exports import DatasetExports
from framedex.api.dataset.files import DatasetFiles
from framedex.api.dataset.label_issues import DatasetLabelIssues
from framedex.api.dataset.lookups import DatasetLookups
from framedex.api.dataset.maps import DatasetMaps
from framedex.api.dataset.presentations import DatasetPresentations
from framedex.api.dataset.searches import DatasetSearches
from framedex.api.dataset.sources import DatasetSources
from framedex.api.dataset.suggestions import DatasetSuggestions
from framedex.api.dataset.training import DatasetTraining
from framedex.api.dataset.uploads import DatasetUploads
from framedex.api.dataset.views import DatasetViews
from framedex.api.histogram import Histogram
from framedex.api.issue_table import IssueTable
from framedex.api.record_list import RecordList
from framedex.api.result_pages import DuplicateGroups, ExplorePage
from framedex.api.view import ExploreSearch, View
from framedex.cleanup.plan import CleanupPlan, plan_cleanup
from framedex.core.checks import check_flag
from framedex.core.counts import counted
from framedex.errors import Conflict, InvalidInput, NotFound
from framedex.jobs.add import reindex
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.content import AdditionRequest, check_brings_embeddings, check_thresholds
from framedex.operations import enrichment, snapshots
from framedex.operations.additions import check_allowed, start_addition, start_objects
from framedex.operations.context import Context, open_media, read_embedding_config
from framedex.operations.decisions import decide_not_duplicates, duplicate_decisions, withdraw_decision
from framedex.operations.merging import start_merge
from framedex.operations.names import Operation
from framedex.operations.starting import SETTLED, delete_if_stopped, start, wait_for
from framedex.operations.states import PRESENT
from framedex.records import (
    DatasetRecord,
    DatasetStatus,
    DuplicateDecision,
    DuplicateGroup,
    EmbeddingConfig,
    Problem,
    Snapshot,
    TaskRecord,
    TaskType,
)
from framedex.render import html
from framedex.storage import datasets, task_rows
from framedex.storage.task_rows import TaskQuery
from framedex.tasks import Commit, Task, TaskProgress
from framedex.vql import cluster

if TYPE_CHECKING:
    import pandas as pd


class Dataset(
    DatasetEdits,
    DatasetEnrichment,
    DatasetEvaluation,
    DatasetExports,
    DatasetLabelIssues,
    DatasetSearches,
    DatasetSuggestions,
    DatasetSources,
    DatasetUploads,
    DatasetLookups,
    DatasetMaps,
    DatasetPresentations,
    DatasetTraining,
    DatasetViews,
    DatasetFiles,
):
    """A dataset of a workspace. Reading methods use the last committed state and never block.

    Attributes:
        id: the dataset's UUID.
        task: the last task that this object started, if any.

    Examples:
        >>> ds = ws.dataset("pets")
        >>> ds.where([{"labels": {"op": "is", "value": "cat"}}]).count()
        9
        >>> ds.similar("new/cat-9.jpg", limit=3)
        <framedex.RankedView of dataset 'pets': 3 media>
    """

    def __init__(self, context: Context, dataset_id: str, task: Task | None = None) -> None:
        self._context, self.id, self.task = context, dataset_id, task

    def with_uris(self, make: Callable[[str, str], str]) -> "Dataset":
        """Return the dataset as one whose results have the URIs of a server in the place of this machine's files.

        In previews and media items, ``original_uri`` is the path within the source then.

        Args:
            make: returns a URI, given a media id and ``file``, ``thumbnail`` or ``video``.

        Raises:
            InvalidInput: *make* is no function.

        Examples:
            >>> served = ds.with_uris(lambda media_id, kind: f"https://images.example.com/{kind}/{media_id}")
            >>> served.media_item(ds.media_id("cat-1.jpg")).media_uri
            'https://images.example.com/file/...'
        """
        if not callable(make):
            raise InvalidInput(f"make must be a function that returns a URI for (media_id, file), not {make!r}")
        return Dataset(replace(self._context, make_uri=make), self.id, self.task)

    @property
    def info(self) -> DatasetRecord:
        """The dataset's record: status, progress and counts.

        Examples:
            >>> ds.info.n_images, ds.info.n_objects, ds.info.owned_by
            (31, 9, 'ann@example.org')
        """
        with self._context.catalog.read() as connection:
            return datasets.find_dataset(connection, self.id)

    @property
    def name(self) -> str:
        """The dataset's name.

        Examples:
            >>> ds.name
            'pets'
        """
        return self.info.display_name

    @property
    def embedding_config(self) -> EmbeddingConfig:
        """The encoder, the embedding dimension and the cluster thresholds of the index.

        Raises:
            NotIndexed: the dataset has no index yet.

        Examples:
            >>> ds.embedding_config.encoder, ds.embedding_config.dimension
            ('gist', 610)
        """
        return read_embedding_config(self._context, self.id)

    @property
    def skipped(self) -> dict[str, int]:
        """The counts of :attr:`problems` by reason.

        Examples:
            >>> ds.skipped
            {'other files (.txt)': 1}
        """
        return dict(open_media(self._context, self.id).generation.summary.skipped)

    @property
    def problems(self) -> list[Problem]:
        """The inputs that the last addition left out or could not use as they are: counts by reason, with examples.

        Examples:
            >>> task = ds.add_objects("bad_boxes.csv")
            >>> for each in ds.problems:
            ...     print(each.count, each.reason, each.examples)
            1 parts of annotations that cannot be used as they are ["a box of 'bird-1.jpg': x 30, y 20, width -5,
              height 60: the corners are swapped: width and height must be above 0"]
        """
        summary = open_media(self._context, self.id).generation.summary
        return RecordList(
            Problem(reason=reason, count=count, examples=summary.examples.get(reason, []))
            for reason, count in summary.skipped.items()
        )

    @property
    def layout(self) -> list[str]:
        """The parts of the last source that were recognised, such as annotation files, and those that were not.

        A sentence for each; columns that are left out have one, too.

        Examples:
            >>> ds.layout
            ['read: image_annotations.csv, object_annotations.csv']
        """
        return list(open_media(self._context, self.id).generation.summary.layout)

    @property
    def last_task(self) -> TaskRecord | None:
        """The dataset's newest task, started by any process; None if it has no task.

        Examples:
            >>> print(ds.last_task.task_type, ds.last_task.status)
            MAP COMPLETED
        """
        with self._context.catalog.read() as connection:
            records = task_rows.list_tasks(connection, TaskQuery({"dataset_id": self.id}), limit=1)
        return records[0] if records else None

    @property
    def running_task(self) -> TaskType | None:
        """The type of the task that changes the dataset, or enriches it, at present; None if no task does.

        Examples:
            >>> print(ws.dataset("more").running_task)
            DATASET_CREATION
            >>> running.abort().status
            <TaskStatus.ABORTED: 'ABORTED'>
        """
        with self._context.catalog.read() as connection:
            running = task_rows.running(connection, self.id)
        return None if running is None else TaskType(running)

    def where(self, vql: Sequence[Any]) -> View:
        """Return the media that pass a VQL filter, as in ``[{"labels": {"op": "is", "value": "dog"}}]``.

        Args:
            vql: a list of elements, its JSON text, or an expression: ``framedex.vql.labels("dog")``.

        Raises:
            InvalidFilter: the filter is invalid.

        Examples:
            >>> ds.where([{"labels": {"op": "is", "value": "dog"}}]).count()
            7
            >>> ds.where(vql.labels("dog") & ~vql.issues("mislabels")).count()
            7
        """
        return self._view().where(vql)

    @property
    def view(self) -> View:
        """All media as a view.

        Examples:
            >>> ds.view
            <framedex.View of dataset 'pets': 33 media>
        """
        return self._view()

    def select(self, ids: Sequence[str]) -> View:
        """Return a view of the media with some ids, in the order of the ids; see :meth:`View.select`.

        Raises:
            InvalidInput: *ids* is no sequence of texts.
            NotFound: an id is not in the dataset; the message names it.

        Examples:
            >>> chosen = ds.select([ds.media_id("dog-2.jpg"), ds.media_id("cat-1.jpg")])
            >>> [row["image_filename"] for row in chosen]
            ['dog-2.jpg', 'cat-1.jpg']
        """
        return self._view().select(ids)

    def cluster(self, cluster_id: str) -> View:
        """Return the members of a cluster as a view: of media, of objects, or of the frames of a video.

        Raises:
            NotFound: the cluster does not exist, or no longer.

        Examples:
            >>> largest = ds.explore(level=2).clusters[0]
            >>> ds.cluster(largest.cluster_id).labels()
            [LabelCount(name='cat', count=8)]
        """
        for view in (self._view(), self.objects):
            members = view.where(cluster(str(cluster_id)))
            if members.count():
                return members
        raise NotFound(f"no cluster {cluster_id!r} in this dataset")

    @property
    def objects(self) -> View:
        """The objects in the media, as a view in which each object is a media item; empty without objects.

        Examples:
            >>> ds.objects.where(vql.labels("cat")).count()
            5
        """
        return View(self._context, self.id, objects=True)

    def explore(
        self,
        entity_type: str = "IMAGES",
        level: int = 0,
        page_number: int = 0,
        vql: Sequence[Any] | None = None,
        **search: Unpack[ExploreSearch],
    ) -> ExplorePage[View]:
        """Return a page of 100 clusters; see :meth:`View.explore` for all parameters.

        Examples:
            >>> [(each.name, each.n_images) for each in ds.explore(level=2).clusters][:3]
            [('cat 80 %', 10), ('dog 67 %, cat 11 %', 9), ('bird 100 %', 8)]
        """
        return self._view().explore(entity_type, level, page_number, vql, **search)

    def count(self) -> int:
        """Return the number of media.

        Examples:
            >>> ds.count()
            33
        """
        return self._view().count()

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each media item; see :meth:`View.to_arrow`.

        Examples:
            >>> ds.to_arrow(["path", "width", "labels"]).to_pylist()[:2]
            [{'path': 'bird-1.jpg', 'width': 160, 'labels': ['bird']}, {'path': 'bird-2.jpg', 'width': 160,
              'labels': ['bird']}]
        """
        return self._view().to_arrow(columns)

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return a row for each media item; see :meth:`View.to_pandas`.

        Examples:
            >>> ds.to_pandas(["path", "width", "labels"]).head(2)
                     path  width  labels
            0  bird-1.jpg  160.0  [bird]
            1  bird-2.jpg  160.0  [bird]
        """
        return self._view().to_pandas(columns)

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> IssueTable:
        """Return a row for each issue, worst first; see :meth:`View.issues`.

        Examples:
            >>> ds.issues("dark").to_arrow()["path"].to_pylist()
            ['night.jpg']
        """
        return self._view().issues(issue_type, limit=limit)

    def histogram(self, issue_type: str, *, bins: int | Sequence[float] = 20) -> Histogram:
        """Return the histogram of the values of an issue type; see :meth:`View.histogram`.

        Examples:
            >>> ds.histogram("dark", bins=4).counts
            [1, 0, 0, 31]
        """
        return self._view().histogram(issue_type, bins=bins)

    def duplicates(
        self,
        similarity: float = 0.96,
        *,
        exact: bool = False,
        near: bool = False,
        limit: int | None = None,
        entity_type: str = "IMAGES",
        within_videos: bool = False,
        of: str | None = None,
    ) -> DuplicateGroups[View]:
        """Return groups of near-duplicates, equal files or near images, largest first; see :meth:`View.duplicates`.

        Examples:
            >>> groups = ds.duplicates()
            >>> [[row["image_filename"] for row in groups.members(group)] for group in groups]
            [['cat-1-copy.jpg', 'cat-1.jpg'], ['garden-small.jpg', 'garden.jpg']]
        """
        return self._view().duplicates(
            similarity,
            exact=exact,
            near=near,
            limit=limit,
            entity_type=entity_type,
            within_videos=within_videos,
            of=of,
        )

    def add_media(
        self,
        path: Any = None,
        *,
        files: Sequence[Any] | None = None,
        archive: str | os.PathLike[str] | None = None,
        s3_uri: str | None = None,
        assume_role: str | None = None,
        external_id: str | None = None,
        auto_reindex: bool = False,
        wait: bool = True,
        class_folders: bool | None = None,
        interpolate: bool = False,
    ) -> Task:
        """Add images and videos. They join existing clusters and duplicate groups, or form new ones.

        Clusters and groups are approximate until :meth:`reindex`. Exactly one source is needed. Media that the dataset
        already has (the same file below the same folder, the same URI, or content that was uploaded before)
        are skipped and counted. A changed file of a folder or a bucket replaces its media item, which the task and the
        journal say (:meth:`journal_values`). An upload replaces nothing: other content of a name that is taken is
        another image, called ``name-2.jpg``. All other media, and all ids, stay the same.

        Args:
            path: a source as in :meth:`Workspace.create_dataset`: a folder, an archive, an image, a video, a list or a
                table of paths, or a pattern; or a table with ``uri`` and ``embedding``, if the dataset was created from
                such a table.
            files: a list of paths, ``(name, bytes)`` pairs, or binary files with a ``name``. Files given by path stay
                where they are; other contents are stored in the workspace.
            archive: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file, whose images are stored in the workspace.
                Annotations are read as in a folder.
            s3_uri: a folder in a bucket, ``s3://bucket/folder``, or a manifest in a bucket (``.txt``, ``.csv``,
                ``.parquet``) with URIs or relative paths. The images stay in the bucket.
            assume_role: ARN of the role for reading from the bucket, now and later.
            external_id: the external id that the trust policy of the role requires; None for no id.
            auto_reindex: reindex the dataset afterwards.
            wait: return when the task is done, showing progress; else return as soon as all uploads are stored.
            class_folders: whether the names of folders are labels, see :meth:`Workspace.create_dataset`.
            interpolate: read the boxes between the key frames of tracks, see :meth:`Workspace.create_dataset`.

        Returns:
            the task, type MEDIA_ADDITION. Afterwards the dataset's status is PARTIAL INDEX, or READY with
            *auto_reindex*.

        Raises:
            InvalidInput: no source or several sources are given, or the source has nothing that can be added.
            NotIndexed: the dataset has no index.
            Conflict: another task is running.
            Forbidden: the settings do not allow additions.
            Unavailable: the bucket cannot be reached, or its objects cannot be listed.
            WorkspaceError: an upload cannot be written, or the workspace was opened read-only.

        Examples:
            >>> ds.add_media("new")
            <framedex.Task MEDIA_ADDITION COMPLETED: ...>
            >>> ds
            <framedex.Dataset 'pets': 34 images, 1 video, PARTIAL INDEX>
        """
        check_allowed(self._context)
        check_flag("class_folders", class_folders, optional=True)
        check_flag("interpolate", interpolate)
        request = AdditionRequest(path, files, archive, s3_uri, assume_role, external_id, class_folders, interpolate)
        self.task = start_addition(self._context, self.id, request, auto_reindex=auto_reindex, show_progress=wait)
        if wait:
            wait_for(self.task, f"add_media {self.name!r}")
        return self.task

    def add_objects(self, boxes: Any, *, interpolate: bool = False, wait: bool = True) -> Task:
        """Add objects (labelled bounding boxes) from annotation files.

        The crop of each bounding box is measured, encoded and indexed like an image. Boxes that the dataset already has
        are skipped. Afterwards :attr:`problems` has the unusable boxes.

        Args:
            boxes: a COCO file (``.json``), a table (``.csv``, ``.parquet`` with ``filename, col_x, row_y, width,
                height, label``), a folder of Pascal VOC or YOLO files, or a list of these. Images are named by their
                paths within the dataset's source folder, or by bare file names.
            interpolate: read the boxes between the key frames of tracks, see :meth:`Workspace.create_dataset`.
            wait: return when the task is done, showing progress; else at once.

        Returns:
            the task, type MEDIA_ADDITION. If the dataset had objects before, its status is PARTIAL INDEX afterwards.

        Raises:
            InvalidInput: *boxes* is no source of bounding boxes, or the dataset was created from embeddings.
            NotIndexed: the dataset has no index.
            Conflict: another task is running.

        Examples:
            >>> task = ds.add_objects("more_boxes.csv")
            >>> ds.objects.where(vql.labels("bird")).count()
            1
        """
        check_flag("interpolate", interpolate)
        self.task = start_objects(self._context, self.id, boxes, interpolate=interpolate)
        if wait:
            wait_for(self.task, f"add_objects {self.name!r}")
        return self.task

    def reindex(
        self,
        *,
        thresholds: Sequence[float] | None = None,
        measure_images: bool = False,
        force: bool = False,
        wait: bool = True,
    ) -> Task:
        """Rebuild the index: neighbours, clusters, duplicate groups and scores.

        Clusters and groups that keep most of their members keep their ids.

        Args:
            thresholds: five ascending cosine distances for cluster levels 0 to 4; by default the present ones. With new
                thresholds a READY dataset can be reindexed, too.
            measure_images: read the images of a table of embeddings, as far as their uris lead to files, and measure
                their size and quality and find copies as of other datasets. A READY dataset can be reindexed with it,
                too. Images that cannot be read keep their rows as they are.
            force: begin also where the search of neighbours will take longer than the limit of the settings.
            wait: return when the task is done, showing progress; else at once.

        Raises:
            Conflict: the dataset's status is not PARTIAL INDEX, or another task is running.
            InvalidInput: the thresholds do not ascend, or *measure_images* is set and the images were read before.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> task = ds.add_media("new")
            >>> ds.reindex()
            <framedex.Task REINDEX COMPLETED: ...>
            >>> ds
            <framedex.Dataset 'pets': 34 images, 1 video, READY>
        """
        check_flag("force", force)
        cuts = None if thresholds is None else check_thresholds(thresholds)
        if measure_images:
            check_brings_embeddings(self.embedding_config)
        return self._start(
            TaskType.REINDEX,
            lambda job, progress: reindex(
                job.forced() if force else job, progress=progress, measure_images=measure_images
            ),
            Operation.REINDEX,
            wait=wait,
            allowed=(DatasetStatus.PARTIAL_INDEX,) if cuts is None and not measure_images else SETTLED,
            status_shown=DatasetStatus.INDEXING,
            thresholds=cuts,
            config={
                "operation": Operation.REINDEX,
                "thresholds": cuts,
                "measure_images": measure_images,
                "force": force,
            },
        )

    def _start(
        self,
        task_type: TaskType,
        job: Callable[[JobContext, TaskProgress], Commit],
        operation: Operation,
        *,
        wait: bool,
        **options: Any,
    ) -> Task:
        self.task = start(self._context, self.id, task_type, job, operation=operation, **options)
        if wait:
            wait_for(self.task, f"{operation} {self.name!r}")
        return self.task

    def clone(self, snapshot: Snapshot | str = PRESENT, *, wait: bool = True) -> "Dataset":
        """Create a dataset that equals the present state, or a snapshot, named ``… (cloned)``.

        The two share files but are independent. The journal, saved views, upload transactions and the description are
        not copied.

        Args:
            snapshot: by default ``head``, the present state at the time of the call; or a snapshot's record, id or
                unique name, or ``current`` for the one that was taken or restored last.
            wait: return when the task is done; else at once, with the task as ``dataset.task``.

        Raises:
            NotFound: the snapshot does not exist.
            Conflict: the dataset's status does not allow clones.
            NotIndexed: the creation of the dataset failed.
            Error: the task failed; only its record remains.

        Examples:
            >>> ds.clone()
            <framedex.Dataset 'pets (cloned)': 31 images, 1 video, READY>
            >>> ds.clone("first look")
            <framedex.Dataset 'pets (cloned 2)': 31 images, 1 video, READY>
        """
        new_id, task = snapshots.start_clone(self._context, self.id, snapshot)
        if wait:
            with delete_if_stopped(self._context, new_id, task.id):
                wait_for(task, Operation.CLONE)
        return Dataset(self._context, new_id, task)

    def merge(self, other: "Dataset", name: str, *, wait: bool = True) -> "Dataset":
        """Create a dataset with the media of this dataset and of another one, without reading their files.

        Rows, embeddings, copy descriptors, labels, captions, boxes, tags, custom fields, class lists, uploads, the
        basket and decisions of both are in it. The two datasets do not change; files of this one are shared.

        An item that both have, at the same location with the same content, is there once: with its values in this
        dataset, the labels, captions and fields of the other one where it has none, and the tags and boxes of both. Of
        a file that changed between the two, the row of this dataset stays. Media keep the ids of this dataset; those of
        the other one get the ids that they would get if they were added to this one, so adding their folders again adds
        nothing. The order is that of this dataset, then of the other one.

        The index is a new one. Copies between the two are found by their descriptors; the status is PARTIAL INDEX until
        :meth:`reindex` also compares them by keypoints, and chooses the copies to keep, for which it reads files.

        Args:
            other: a dataset of the same workspace, with embeddings of the same encoder. Embeddings that tables brought
                count as those of one encoder if they have as many values.
            name: of the new dataset, as for :meth:`Workspace.create_dataset`.
            wait: return when the task is done, showing progress; else at once, with the task as ``dataset.task``.

        Raises:
            InvalidInput: the name cannot be used; *other* is no other dataset of this workspace; the encoders differ;
                or custom fields of one name have different types.
            Conflict: the name is taken, or the status of one of the datasets does not allow it.
            Error: the task failed; only its record remains.

        Examples:
            >>> ds.merge(ws.dataset("new"), "all pets")
            <framedex.Dataset 'all pets': 34 images, 1 video, PARTIAL INDEX>
        """
        if not isinstance(other, Dataset) or other._context.layout.root != self._context.layout.root:
            raise InvalidInput(f"other must be a dataset of the same workspace, not {other!r:.80}")
        new_id, task = start_merge(self._context, self.id, other.id, name)
        if wait:
            with delete_if_stopped(self._context, new_id, task.id):
                wait_for(task, f"Merging into {name!r}")
        return Dataset(self._context, new_id, task)

    def enrich(self, models: Mapping[str, str], *, wait: bool = True) -> "Dataset":
        """Create a copy of the dataset, named ``… (enriched)``, with the results of models.

        The source dataset does not change; it is READ ONLY while the task runs. The two datasets share files, and the
        copy adds columns. ``MULTIMODEL_IMAGE_ENCODING`` encodes all images again and rebuilds the index from the new
        embeddings. ``IMAGE_TAGGING`` adds labels to the existing ones. An image that cannot be read gets no embedding,
        or no new labels.

        Args:
            models: model ids by enrichment type, as returned by :meth:`list_models`.
            wait: return when the task is done, showing progress; else at once, with the task as ``dataset.task``.

        Raises:
            InvalidInput: a type does not exist, or a model has another type or is not Active.
            NotFound: a model does not exist.
            Conflict: the dataset is not READY, another task is running, or a model depends on a type that was not
                applied.
            Unavailable: none of the images can be read.
            Error: the task failed; only its record remains.

        Examples:
            >>> enriched = ds.enrich({"IMAGE_TAGGING": "colours"})
            >>> enriched.name, [each.name for each in enriched.labels()]
            ('pets (enriched)', ['cat', 'red', 'bird', 'dog', 'blue', 'green'])
        """
        new_id, task = enrichment.start_enrichment(self._context, self.id, models)
        if wait:
            with delete_if_stopped(self._context, new_id, task.id):
                wait_for(task, f"enrich {self.name!r}")
        return Dataset(self._context, new_id, task)

    def not_duplicates(self, media_ids: Sequence[str] | DuplicateGroup) -> DuplicateDecision:
        """Record the decision that media are not duplicates of one another.

        No two of them are in the same near-duplicate group again, at any level, also after additions and reindexing.
        The groups change at once.

        Args:
            media_ids: two or more media ids; or a group of :meth:`duplicates`, for all of its members.

        Raises:
            InvalidInput: there are fewer than two different ids.
            NotFound: one is not in the dataset.
            Conflict: a task is running.

        Examples:
            >>> decision = ds.not_duplicates([ds.media_id("garden.jpg"), ds.media_id("garden-small.jpg")])
            >>> len(ds.duplicates())
            1
        """
        ids = media_ids.media_ids if isinstance(media_ids, DuplicateGroup) else media_ids
        return decide_not_duplicates(self._context, self.id, ids)

    def duplicate_decisions(self) -> list[DuplicateDecision]:
        """Return the decisions made by :meth:`not_duplicates`, oldest first.

        Examples:
            >>> decision = ds.not_duplicates(ds.duplicates()[0])
            >>> [(len(each.media_ids), each.decided_by) for each in ds.duplicate_decisions()]
            [(2, 'ann@example.org')]
        """
        return RecordList(duplicate_decisions(self._context, self.id))

    def withdraw_decision(self, decision_id: str) -> None:
        """Withdraw a decision about duplicates or labels; the groups or issues change at once.

        Raises:
            NotFound: the decision does not exist.
            Conflict: a task is running.

        Examples:
            >>> decision = ds.not_duplicates(ds.duplicates()[0])
            >>> ds.withdraw_decision(decision.decision_id)
            >>> ds.duplicate_decisions()
            []
        """
        withdraw_decision(self._context, self.id, decision_id)

    def plan_cleanup(
        self,
        *,
        duplicates: float | str | None = None,
        issues: Sequence[str] | Mapping[str, float] = (),
        keep: str = "best",
        basket: bool = False,
        unsure: bool = False,
        within_videos: bool = False,
        where: Sequence[Any] | None = None,
    ) -> CleanupPlan:
        """Return a plan of media to remove, for review (:meth:`CleanupPlan.page`) and execution (``plan.apply()``).

        Media with one of the issues are removed, and with *basket* those in the basket. Each group of duplicates keeps
        one member, the best one without these issues and outside the basket. Decisions of people come first: media of
        :meth:`keep` stay, and :meth:`not_duplicates` are no group. Groups of which it is not sure which member is the
        original (``is_sure`` of :meth:`duplicates`) lose none: the summary counts them.

        No plan removes the last copy of an image. Where the rules and the basket name all members of a group (of
        near-duplicates at the lowest similarity, or of equal files), the best member stays. What stays in place of
        copies that a plan removed stays in later plans, too, until :meth:`unkeep`. To delete it by name, use
        :meth:`delete_media`.

        Args:
            duplicates: the minimum similarity of near-duplicates, 0.96 to 1, rounded up to the next of the eight
                levels; ``exact`` for files with equal content; ``near`` for all images that are alike, near images
                and copies, of which one of each group stays (``near`` of :meth:`duplicates`); None to ignore them.
            issues: names of issue types, each with the dataset's threshold; or minimum confidences, 0 to 1, by name.
            keep: the member of a group that stays: ``best``, as in :meth:`duplicates`; ``first`` in the order of
                ingestion; the ``oldest`` file; the ``largest`` image. Of equal files of one age, the one with the
                shortest name stays, unless the rule is ``first``.
            basket: whether the media in the basket are removed, too.
            unsure: whether duplicates are removed where it is not sure which one is the original, too.
            within_videos: whether frames of one video are duplicates of each other, too. One frame stays of those of
                which any two are alike by their descriptors; a small thing that comes or goes may not count, less so
                at a higher similarity. It goes with a similarity.
            where: a VQL filter: only media that pass it are removed, or kept in place of others.

        Raises:
            InvalidInput: an argument cannot be used, or nothing is named that could be removed.
            InvalidFilter: the filter is invalid.
            Conflict: the dataset is PARTIAL INDEX and must be reindexed first, or it has no committed state yet; or a
                tag of an older version of the program has the reserved name ``basket``.

        Examples:
            >>> plan = ds.plan_cleanup(duplicates=0.96, issues=["dark"])
            >>> plan.words
            '3 media to remove: 1 dark, 2 duplicates; ... KB of files; 2 kept in their place'
        """
        return plan_cleanup(
            self._context,
            self.id,
            duplicates=duplicates,
            issues=issues,
            keep=keep,
            basket=basket,
            unsure=unsure,
            within_videos=within_videos,
            where=where,
        )

    def embeddings(self) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the ids and the embeddings (float32, shape (N, D), unit length) of all media with an embedding.

        Examples:
            >>> ids, vectors = ds.embeddings()
            >>> len(ids), vectors.shape
            (32, (32, 610))
        """
        return self._view().embeddings()

    def __repr__(self) -> str:
        info = self.info
        videos = f", {counted(info.n_videos, 'videos')}" if info.n_videos else ""
        images = counted(info.n_images, "images")
        return f"<framedex.Dataset {info.display_name!r}: {images}{videos}, {info.status_new}>"

    def _repr_html_(self) -> str:
        info = self.info
        videos = f" · {counted(info.n_videos, 'videos')}" if info.n_videos else ""
        images = counted(info.n_images, "images")
        head = html.heading(info.display_name, 2) + html.note(f"{images}{videos} · {info.status_new}")
        try:
            summaries = self._view().issue_summaries()
        except Conflict:
            return html.block(head)
        bars = html.bars((summary.issue_type, summary.count) for summary in summaries if summary.count)
        return html.block(head, bars) + self._view()._repr_html_()

    def _view(self) -> View:
        return View(self._context, self.id)
