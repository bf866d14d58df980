"""Views of a dataset of a service: lazy selections, read as results."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.coverage import MOST_CHOSEN
from framedex.api.data_frames import as_pandas
from framedex.api.histogram import Histogram
from framedex.api.ids import Ids
from framedex.api.issue_table import IssueTable
from framedex.api.overlap import Overlap
from framedex.api.record_list import RecordList, VideoCopies
from framedex.api.result_pages import SHOWN_SIDE, DuplicateGroups, ExplorePage
from framedex.client import calls
from framedex.client.actions import MOST_IDS, act, pixels_of_box, tag_named, upload_query
from framedex.client.connection import Connection
from framedex.client.overlaps import read_overlap
from framedex.client.parts import OpenedResults, ViewParts, dataset_record
from framedex.client.reports import write_report
from framedex.client.training import ClientTraining
from framedex.client.work import ClientExport, request_export
from framedex.core.checks import check_integer
from framedex.core.counts import counted
from framedex.core.empty import warn_empty_result
from framedex.errors import CannotDecode, Gone, InvalidInput, NotFound, OutOfRange
from framedex.export.splits import checked_shares
from framedex.records import (
    Cluster,
    DuplicateGroup,
    EntityType,
    ExploreResult,
    ExportRecord,
    IssueSummary,
    LabelCount,
    Tag,
    ValueHistogram,
    VideoCopy,
)
from framedex.search.query_images import is_file
from framedex.vql import parse, to_json

if TYPE_CHECKING:
    import pandas as pd

_COVERAGE = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("n_covered", pa.int64()),
        pa.field("mean_similarity", pa.float32()),
        pa.field("lowest_similarity", pa.float32()),
    ]
)
_PAGE_ROWS = 50_000
_SHOWN = 24
_SIZES = (128, 256, 512)


class ClientReading(ClientTraining):
    """Methods that a view and a dataset of a service share."""

    def __init__(
        self, connection: Connection, dataset_id: str, selection: ViewParts | None = None, *, objects: bool = False
    ) -> None:
        self._connection, self._dataset_id, self._objects = connection, dataset_id, objects
        self._selection = selection or ViewParts()

    @property
    def entity_type(self) -> EntityType:
        """The entity type: ``IMAGES`` (images and video frames) or ``OBJECTS``."""
        return EntityType.OBJECTS if self._objects else EntityType.IMAGES

    def _made(self, selection: ViewParts, *, objects: bool | None = None) -> "ClientView":
        return ClientView(
            self._connection, self._dataset_id, selection, objects=self._objects if objects is None else objects
        )

    def _with(self, **changes: Any) -> "ClientView":
        return self._made(replace(self._selection, **changes))

    def where(self, vql: Sequence[Any]) -> "ClientView":
        """Return a view of the rows that also pass a filter; see :meth:`framedex.View.where`.

        Raises:
            InvalidFilter: the filter is invalid.
        """
        elements = to_json(parse(vql))
        view = self._settled()
        return view._with(vql=(*view._selection.vql, *elements))

    def sort_by(self, column: str, *, descending: bool = False) -> "ClientView":
        """Return the view sorted by a column; see :meth:`framedex.View.sort_by`."""
        return self._settled()._with(sort=(column, bool(descending)))

    def search(
        self, text: str, limit: int | None = 100, *, by: str = "auto", diversity: float = 0.0, relevance: float = 0.0
    ) -> "ClientView":
        """Return the rows of the view that match a text, best first; see :meth:`framedex.Dataset.search`."""
        search = {"text": text, "limit": limit, "by": by, "diversity": diversity, "relevance": relevance}
        return self._searched(search, None)

    def similar(
        self,
        query: Any,
        limit: int | None = 100,
        *,
        max_distance: float | None = None,
        bounding_box: Any = None,
        diversity: float = 0.0,
        relevance: float = 0.0,
    ) -> "ClientView":
        """Return the rows of the view most similar to an image, best first; see :meth:`framedex.Dataset.similar`.

        Args:
            query: the id of a media item or an object; or an image, which is sent: a path, the bytes of a file, an
                array or a Pillow image.
            limit: the maximum number of results; None for all.
            max_distance: as there.
            bounding_box: as there.
            diversity: as there.
            relevance: as there.
        """
        box = None if bounding_box is None else pixels_of_box(bounding_box)
        if not isinstance(query, str) or is_file(query):
            query, box = upload_query(self._connection, self._dataset_id, query, box), None
        search = {
            "similar": query, "limit": limit, "max_distance": max_distance, "diversity": diversity,
            "relevance": relevance,
        }  # fmt: skip
        return self._searched(search, box)

    def _searched(self, search: Mapping[str, Any], region: tuple[float, float, float, float] | None) -> "ClientView":
        view = self._settled() if self._selection.search is None else self._inner()
        return view._with(search=tuple(search.items()), region=region, sort=None)

    def overlap(self, other: Any, similarity: float = 0.96, *, exact: bool = False) -> "Overlap[ClientView]":
        """Return the copies of the view's media among those of another view; see :meth:`framedex.View.overlap`.

        Args:
            other: a dataset or a view of the same service.
            similarity: minimum cosine similarity, 0.96 to 1, rounded up to the next of the eight levels.
            exact: only files with equal content.

        Raises:
            InvalidInput: as there.
            Conflict: a dataset has no index yet.
        """
        if not isinstance(other, ClientReading) or other._connection is not self._connection:
            raise InvalidInput(f"other must be a dataset or a view of the same service, not {other!r:.80}")
        return read_overlap(
            self._connection,
            (self._dataset_id, other._dataset_id),
            (self.rid, other.rid),
            (self._made, other._made),
            similarity=similarity,
            exact=exact,
        )

    def diverse(self, n: int, *, seed: int = 0) -> "ClientDiverseView":
        """Return *n* rows that cover the view best; see :meth:`framedex.View.diverse`.

        Args:
            n: the number of rows, up to 10,000.
            seed: another seed draws another sample.

        Raises:
            InvalidInput: *n* is no integer from 0 to 10,000, or the seed no integer of at least 0.
        """
        check_integer("n", n, minimum=0, maximum=MOST_CHOSEN)
        check_integer("seed", seed, minimum=0)
        query = {"n": int(n), "seed": int(seed), "rid": self.rid}
        body = self._connection.json(calls.DIVERSE, query=query, dataset_id=self._dataset_id)
        return ClientDiverseView.of(self._made(ViewParts()), body)

    def sample(self, n: int, *, seed: int = 0) -> "ClientView":
        """Return a view of *n* random rows, in the order of the view; see :meth:`framedex.View.sample`."""
        check_integer("n", n, minimum=0)
        check_integer("seed", seed, minimum=0)
        return self._settled()._with(sample=(int(n), int(seed)))

    def split(
        self, parts: Mapping[str, float], *, seed: int = 0, stratify: str | None = None
    ) -> "dict[str, ClientView]":
        """Return a view for each part, by name; see :meth:`framedex.View.split`.

        Raises:
            InvalidInput: as there.
        """
        check_integer("seed", seed, minimum=0)
        shares = checked_shares(parts, stratify)
        whole = self._settled()
        return {name: whole._with(part=(name, tuple(shares.items()), int(seed), stratify)) for name in shares}

    def limit(self, n: int) -> "ClientView":
        """Return a view of the first *n* rows; all if there are fewer."""
        check_integer("n", n, minimum=0)
        return self._window(0, n)

    def select(self, ids: Sequence[str]) -> "ClientView":
        """Return a view of the rows with some ids, up to 10,000, in the order of the ids.

        Raises:
            InvalidInput: *ids* is no sequence of texts, or there are more.
            NotFound: an id is not in the view.
        """
        if isinstance(ids, str) or not isinstance(ids, Sequence) or not all(isinstance(each, str) for each in ids):
            raise InvalidInput(f"ids must be a sequence of ids, such as view.ids, not {ids!r:.60}")
        distinct = tuple(dict.fromkeys(ids))
        if len(distinct) > MOST_IDS:
            raise InvalidInput(f"up to {MOST_IDS:,} ids can be selected at a time, not {len(distinct):,}")
        view = self._made(ViewParts()) if self._selection == ViewParts() else self._inner()
        view = view._with(ids=distinct)
        view._open()
        return view

    @overload
    def __getitem__(self, key: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> "ClientView": ...
    def __getitem__(self, key: SupportsIndex | slice) -> "dict[str, Any] | ClientView":
        """Return a row by its position as a dictionary, or the view of a slice; negative positions as for lists.

        Raises:
            InvalidInput: the key is neither an integer nor a slice of integers with step 1.
            OutOfRange: there is no such row.
        """
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise InvalidInput("slices of views of a service have the step 1")
            start, stop = key.start or 0, key.stop
            if start < 0 or (stop is not None and stop < 0):
                start, stop, _ = key.indices(self.count())
            return self._window(start, stop)
        count = self.count()
        position = range(count)[key] if -count <= int(key) < count else None
        if position is None:
            raise OutOfRange(f"no row {int(key)} in a view of {counted(count, 'rows')}")
        return self._window(position, position + 1).first()[0]

    def _window(self, start: int, stop: int | None) -> "ClientView":
        if self._selection.sample is not None or self._selection.part is not None:
            return self._inner()._window(start, stop)
        own = self._selection
        first = own.start + start
        ends = [each for each in (own.stop, None if stop is None else own.start + stop) if each is not None]
        return self._with(start=first, stop=max(min(ends), first) if ends else None)

    def _settled(self) -> "ClientView":
        """Return the view so that a filter, a search or an order can be added."""
        return self._made(self._selection) if self._selection.is_whole else self._inner()

    def _inner(self) -> "ClientView":
        """Return the view as one that another begins with."""
        return self._made(ViewParts(within=(self._selection, self.entity_type)))

    def _open(self) -> OpenedResults:
        """Open the results of the view."""
        body = self._selection.body(self.entity_type, window=False)
        info = self._connection.json(calls.RESULTS, body=body, dataset_id=self._dataset_id)
        count = info["count"]
        warn_empty_result(info.get("notes", []))
        stop = count if self._selection.stop is None else min(self._selection.stop, count)
        return OpenedResults(info["rid"], info["generation"], min(self._selection.start, stop), stop)

    @property
    def rid(self) -> str:
        """The id of the results of the view in the service, in the current state."""
        return self._settled()._open().rid

    def count(self) -> int:
        """Return the number of rows."""
        results = self._open()
        return results.stop - results.start

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows; see :meth:`rows`."""
        return self.rows()

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield a dictionary for each row, in order; see :meth:`framedex.View.rows`."""
        for table in self._tables(columns):
            yield from table.to_pylist()

    def first(self, n: int = 1) -> list[dict[str, Any]]:
        """Return the first *n* rows as dictionaries; all if there are fewer."""
        return list(self.limit(n).rows())

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table with the rows of the view, in order; see :meth:`framedex.View.to_arrow`.

        ``file_path`` is the path within the source: folders of the server are not shown.
        """
        if isinstance(columns, str):
            raise InvalidInput(f"columns must be a list of names, as [{columns!r}], not the text {columns!r}")
        try:
            return pa.concat_tables(self._tables(columns))
        except Gone:  # the dataset has changed, and its former state was freed meanwhile
            return pa.concat_tables(self._tables(columns))

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.
        """
        return as_pandas(self.to_arrow(columns))

    def _tables(self, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        results = self._open()
        for start in range(results.start, max(results.stop, results.start + 1), _PAGE_ROWS):
            limit = min(results.stop - start, _PAGE_ROWS)
            query = {"offset": start, "limit": max(limit, 1), "columns": None if columns is None else list(columns)}
            table = self._connection.table(calls.ROWS, query=query, dataset_id=self._dataset_id, rid=results.rid)
            yield table.slice(0, max(limit, 0))

    @property
    def ids(self) -> Ids:
        """The ids of the rows, in order."""
        return Ids(self.to_arrow(["media_id"])["media_id"].combine_chunks())

    def media_ids(self) -> list[str]:
        """Return the ids of the rows as a list, in order."""
        return list(self.ids)

    def embeddings(self) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the ids and the embeddings of the rows that have one; see :meth:`framedex.View.embeddings`."""
        query = {"rid": self.rid}
        table = self._connection.table(calls.EMBEDDINGS, query=query, dataset_id=self._dataset_id)
        vectors = table["embedding"].combine_chunks()
        matrix = vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(table), vectors.type.list_size)
        return table["id"].to_pylist(), np.asarray(matrix, np.float32)

    def labels(self) -> list[LabelCount]:
        """Return the labels with their numbers of rows, the most frequent first."""
        rid, found = self.rid, RecordList[LabelCount]()
        while True:
            query = {"rid": rid, "offset": len(found), "limit": 1000}
            page = self._connection.json(calls.LABELS, query=query, dataset_id=self._dataset_id)
            found += [LabelCount.model_validate(each) for each in page["labels"]]
            if len(found) >= page["total"] or not page["labels"]:
                return found

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> IssueTable:
        """Return a row for each issue of each row, worst first; see :meth:`framedex.View.issues`."""
        check_integer("limit", limit, minimum=0, optional=True)
        query = {"rid": self.rid, "issue": issue_type, "limit": limit and max(limit, 1)}
        table = self._connection.table(calls.ISSUES, query=query, dataset_id=self._dataset_id)
        query = {"rid": query["rid"], "issue": issue_type, "limit": 1}
        notes = self._connection.json(calls.ISSUES, query=query, dataset_id=self._dataset_id)["notes"]
        return IssueTable(table.slice(0, 0) if limit == 0 else table, notes, self.thumbnails)

    def issue_summaries(self) -> list[IssueSummary]:
        """Return the count and the threshold of each issue type."""
        body = self._connection.json(calls.ISSUES, query={"rid": self.rid}, dataset_id=self._dataset_id)
        return RecordList(IssueSummary.model_validate(each) for each in body["summaries"])

    def histogram(self, issue_type: str, *, bins: int = 20) -> Histogram:
        """Return the histogram of the values of an issue type; see :meth:`framedex.View.histogram`."""
        query = {"column": issue_type, "bins": bins, "rid": self.rid}
        (body,) = self._connection.json(calls.QUALITY, query=query, dataset_id=self._dataset_id)["histograms"]
        return Histogram.of(ValueHistogram.model_validate(body))

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
    ) -> "DuplicateGroups[ClientView]":
        """Return groups of near-duplicates, equal files or near images; see :meth:`framedex.View.duplicates`.

        Groups of videos are those of the whole dataset.
        """
        kind = EntityType(self.entity_type if entity_type is None else entity_type)
        if kind is EntityType.VIDEOS and self._selection != ViewParts():
            raise InvalidInput("groups of videos are those of the whole dataset: ask the dataset for them")
        query = {
            "similarity": similarity, "exact": exact, "near": near, "within_videos": within_videos,
            "entity_type": str(kind), "of": of, "rid": None if kind is EntityType.VIDEOS else self.rid,
        }  # fmt: skip
        groups: list[DuplicateGroup] = []
        has_more = limit is None or limit > 0
        while has_more and (limit is None or len(groups) < limit):
            page = self._connection.json(
                calls.DUPLICATES,
                query={**query, "offset": len(groups), "limit": min(500, 500 if limit is None else limit)},
                dataset_id=self._dataset_id,
            )
            groups += [DuplicateGroup.model_validate(each) for each in page["groups"]]
            has_more = page["has_more"]
        return DuplicateGroups(groups[:limit], self._made(self._selection), of_videos=kind is EntityType.VIDEOS)

    def video_copies(self, min_seconds: float = 3.0, *, limit: int | None = None) -> VideoCopies:
        """Return the parts of videos that are also parts of other ones; see :meth:`framedex.View.video_copies`."""
        found, has_more, page = list[VideoCopy](), limit is None or limit > 0, {"n_unread": 0, "n_left": 0}
        rid = None if self._selection == ViewParts() else self.rid
        while has_more and (limit is None or len(found) < limit):
            query = {"min_seconds": min_seconds, "rid": rid, "offset": len(found), "limit": 500}
            page = self._connection.json(calls.VIDEO_COPIES, query=query, dataset_id=self._dataset_id)
            found += [VideoCopy.model_validate(each) for each in page["parts"]]
            has_more = page["has_more"]
        return VideoCopies(found[:limit], page["n_unread"], page["n_left"])

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
    ) -> "ExplorePage[ClientView]":
        """Return a page of 100 clusters; see :meth:`framedex.View.explore`. URIs are those of the service."""
        own = self._selection
        if own != ViewParts(vql=own.vql):
            raise InvalidInput("explore takes filters: begin with the dataset, or with where")
        elements = [*own.vql, *to_json(parse(vql))]
        query = {
            "entity_type": entity_type or str(self.entity_type), "threshold": level, "page_number": page_number,
            "vql": json.dumps(elements) if elements else None, "caption": caption,
            "textual_similarity_threshold": textual_similarity_threshold, "labels": _list(labels),
            "tags": _list(tags), "anchor_media_id": anchor_media_id, "anchor_type": anchor_type,
        }  # fmt: skip
        body = self._connection.json(calls.EXPLORE, query=query, dataset_id=self._dataset_id)
        known = {name: body[name] for name in ExploreResult.model_fields if name in body}
        known["clusters"] = [{name: each[name] for name in Cluster.model_fields} for each in body["clusters"]]
        view = self._of(entity_type or self.entity_type)
        result = ExploreResult.model_validate(known)
        warn_empty_result(result.notes)
        return ExplorePage.of(result, view.where(elements[len(own.vql) :]))

    def _of(self, entity_type: str) -> "ClientView":
        return self._made(self._selection, objects=entity_type == EntityType.OBJECTS)

    def thumbnails(self, media_ids: Sequence[str], *, size: int = SHOWN_SIDE) -> list[bytes | None]:
        """Return JPEGs of media, from 128 to 512 pixels wide; None for images that cannot be decoded."""
        chosen = next((each for each in _SIZES if each >= size), _SIZES[-1])
        return [self._thumbnail(each, chosen) for each in media_ids]

    def _thumbnail(self, media_id: str, size: int) -> bytes | None:
        try:
            answer = self._connection.send(
                calls.THUMBNAIL, query={"size": size}, dataset_id=self._dataset_id, media_id=media_id
            )
        except (CannotDecode, NotFound):
            return None
        return bytes(answer.content)

    def report(self, path: str | os.PathLike[str], *, level: int = 3, extra: str = "") -> Path:
        """Write one self-contained HTML page with issues, near-duplicates, clusters and objects; return its path.

        See :meth:`framedex.View.report`. The page of a view has no section about objects, that of a dataset has one.

        Args:
            path: the file.
            level: as there.
            extra: as there.

        Raises:
            InvalidInput: the file cannot be written, *extra* is no valid text, or the view is limited or searched.
            Conflict: the dataset has no index yet.
        """
        dataset = dataset_record(self._connection.json(calls.DATASET, dataset_id=self._dataset_id))
        view, objects = self._made(self._selection), self._made(ViewParts(), objects=True)
        has_objects = self._selection == ViewParts() and not self._objects
        return write_report(dataset, view, objects if has_objects else None, path, level=level, extra=extra)

    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "json",  # noqa: A002 - the interface's word
        include_images: bool = False,
        media_selection: Sequence[Any] | None = None,
        wait: bool = True,
        *,
        entity_type: str | None = None,
        vql: Sequence[Any] | None = None,
    ) -> ExportRecord | ClientExport:
        """Write the media to a ZIP file; see :meth:`framedex.View.export`.

        A view that is searched, sorted or limited is exported by its ids, up to 100,000.

        Args:
            path: the file.
            format: the name of a format.
            include_images: also put the image files into it.
            media_selection: only these, as there.
            wait: return the record when the file is there; else the export at once.
            entity_type: as there.
            vql: a further filter.

        Raises:
            InvalidInput: an argument cannot be used.
            Conflict: the dataset is not ready for exports.
            Forbidden: the user may not export it.
            TaskFailed: the export failed.
        """
        if vql is not None and media_selection is not None:
            raise InvalidInput("give either vql or media_selection")
        view = self._made(self._selection) if vql is None else self.where(vql)
        options = {"export_format": format, "include_images": include_images, "file_name": Path(path).name}
        export_id = request_export(
            self._connection,
            self._dataset_id,
            view._selection,
            options,
            entity_type=entity_type or self.entity_type,
            media_selection=media_selection,
            ids=lambda limit: view.limit(limit).media_ids(),
        )
        export = ClientExport(self._connection, self._dataset_id, export_id, Path(path))
        return export.wait() if wait else export


class ClientView(ClientReading):
    """The media of a dataset of a service that pass a filter, or the objects in them; see :class:`framedex.View`.

    A view is lazy: each method asks the service for its rows in the current state.
    """

    @property
    def objects(self) -> "ClientView":
        """The objects in the media of the view, in row order; the view itself if it is of objects."""
        if self._objects:
            return self
        return self._made(ViewParts(within=(self._selection, self.entity_type)), objects=True)

    def tag(self, tag: str) -> Tag:
        """Tag the media of the view, and return the tag; see :meth:`framedex.View.tag`."""
        act(self._connection, self._dataset_id, "tag", self, tag=tag)
        return tag_named(self._connection, self._dataset_id, tag)

    def untag(self, tag: str) -> Tag:
        """Remove a tag from the media of the view, and return it; see :meth:`framedex.View.untag`."""
        act(self._connection, self._dataset_id, "untag", self, tag=tag)
        return tag_named(self._connection, self._dataset_id, tag)

    def __repr__(self) -> str:
        return f"<framedex.ClientView of dataset {self._dataset_id}: {counted(self.count(), 'rows')}>"


class ClientDiverseView(ClientView):
    """Rows that cover a view of a service best, in the order in which they add most; see :class:`framedex.DiverseView`.

    Attributes:
        n_covered: the number of rows that they were chosen from, themselves included.
        n_without_embedding: the number of rows of the view without an embedding, which are not covered.
        mean_similarity: the mean cosine similarity of the covered rows to the row that covers them; NaN without rows.
    """

    n_covered: int
    n_without_embedding: int
    mean_similarity: float
    _rows: list[dict[str, Any]]

    @classmethod
    def of(cls, view: ClientView, body: Mapping[str, Any]) -> "ClientDiverseView":
        """Return the view of the rows of an answer, of the same entities as another view of the dataset."""
        ids = tuple(row["media_id"] for row in body["rows"])
        out = cls(view._connection, view._dataset_id, ViewParts(ids=ids), objects=view._objects)
        out.n_covered, out.n_without_embedding = body["n_covered"], body["n_without_embedding"]
        out.mean_similarity = float("nan") if body["mean_similarity"] is None else body["mean_similarity"]
        out._rows = body["rows"]
        return out

    def coverage(self) -> pa.Table:
        """Return what each chosen row covers; see :meth:`framedex.DiverseView.coverage`."""
        numbers = {each.name: [row[each.name] for row in self._rows] for each in _COVERAGE}
        table = pa.table(numbers, schema=_COVERAGE)
        for place, name in enumerate(_COVERAGE.names[2:], start=2):
            table = table.set_column(place, _COVERAGE.field(name), pc.fill_null(table[name], float("nan")))
        return table


def _list(value: Sequence[str] | str | None) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(list(value))
