"""The report of a dataset: one self-contained HTML page with issues, near-duplicates and clusters."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

from framedex.api.issue_table import IssueTable
from framedex.api.result_pages import MemberSource, cluster_cards, duplicate_card
from framedex.core.checks import has_lone_surrogate
from framedex.core.counts import counted
from framedex.core.empty import warn_empty
from framedex.core.progress import Progress
from framedex.errors import InvalidInput
from framedex.issue_types import by_gravity
from framedex.records import DatasetRecord, DuplicateGroup, EmbeddingConfig, IssueSummary
from framedex.render import html

_ISSUE_MEDIA = 12
_GROUPS = 24
_CLUSTERS = 16
_BOXED_IMAGES, _MOST_BOXES = 8, 2000
_OBJECT_GROUPS = 8  # duplicate groups, and clusters, of objects
_SIDE = 160


class ReportSource(MemberSource, Protocol):
    """A view that a report shows: of a folder or of a service."""

    def count(self) -> int:
        """Return the number of rows."""

    def issue_summaries(self) -> list[IssueSummary]:
        """Return the count and the threshold of each issue type."""

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> IssueTable:
        """Return the issues."""

    def duplicates(self, *, limit: int | None = None) -> Any:
        """Return near-duplicate groups."""

    def explore(self, *, level: int = 0) -> Any:
        """Return the first page of clusters."""

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield a dictionary for each row."""

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table with the rows."""


def report_html(
    dataset: DatasetRecord,
    config: EmbeddingConfig | None,
    view: ReportSource,
    *,
    objects: ReportSource | None,
    level: int,
    extra: str = "",
    progress: Callable[[str, float], None] | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        dataset: the record of the dataset.
        config: the config of its index; None if it is not known.
        view: the media on the page.
        objects: the objects in these media; the page has a section about them if there are any.
        level: the cluster level, 0 to 4.
        extra: HTML for the top of the page.
        progress: called with the current section and the fraction that is done, 0 to 1.

    Raises:
        InvalidInput: *extra* is no text that can be stored.
    """
    if not isinstance(extra, str) or has_lone_surrogate(extra):
        raise InvalidInput(f"extra must be HTML as valid Unicode, without lone surrogates, not {extra!r:.60}")
    if not view.count():
        warn_empty("the report is empty: nothing was selected")
    progress = progress or (lambda _stage, _share: None)
    summaries = by_gravity(view.issue_summaries())
    found = [each for each in summaries if each.count]
    groups = view.duplicates(limit=_GROUPS)
    n_objects = 0 if objects is None else objects.count()
    return html.page(
        f"Framedex report: {dataset.display_name}",
        html.heading(dataset.display_name, 1),
        html.note(
            f"{counted(view.count(), 'images')} · {dataset.status_new}"
            + ("" if config is None else f" · encoder {config.encoder} ({counted(config.dimension, 'values')})")
        ),
        extra,
        html.contents(_contents(found, len(groups), level, n_objects)),
        html.heading("Issues", anchor="issues"),
        html.bars((summary.issue_type, summary.count) for summary in found),
        *(html.note(summary.note) for summary in summaries if summary.note),
        *_not_found(summaries),
        *_issues(view, found, progress),
        *_duplicates(view, groups, progress),
        *_clusters(view, level, progress),
        *(_objects(view, objects, n_objects, level, progress) if objects is not None and n_objects else ()),
    )


def _contents(found: Sequence[IssueSummary], n_groups: int, level: int, n_objects: int) -> Iterator[tuple[str, str]]:
    """Yield the anchors of the sections with their words."""
    for summary in found:
        yield f"issue-{summary.issue_type}", f"{summary.issue_type}: {summary.count:,}"
    groups = f"{n_groups:,} or more groups" if n_groups == _GROUPS else counted(n_groups, "groups")
    yield "near-duplicates", f"Near-duplicates: {groups if n_groups else 'none'}"
    yield "clusters", f"Clusters at level {level}"
    if n_objects:
        yield "objects", f"Objects: {n_objects:,}"


def _not_found(summaries: Sequence[IssueSummary]) -> Iterator[str]:
    """Yield the issue types without an image, folded, with what they mean."""
    absent = [each for each in summaries if not each.count]
    if absent:
        names = ", ".join(each.issue_type for each in absent)
        yield html.folded(f"Not found: {names}", *(html.note(f"{each.issue_type}: {each.meaning}") for each in absent))


def _issues(view: ReportSource, summaries: Sequence[IssueSummary], progress: Progress) -> Iterator[str]:
    for number, summary in enumerate(summaries):
        progress(summary.issue_type, 0.4 * number / len(summaries))
        yield from _issue(view, summary)


def _issue(view: ReportSource, summary: IssueSummary) -> Iterator[str]:
    rows = view.issues(summary.issue_type, limit=_ISSUE_MEDIA).to_pylist()
    limit = "" if summary.threshold is None else f", threshold {summary.threshold:.3g}"
    yield html.heading(f"{summary.issue_type}: {summary.count:,}", 3, anchor=f"issue-{summary.issue_type}")
    yield html.note(f"{summary.meaning}{limit}; worst first")
    jpegs = view.thumbnails([row["media_id"] for row in rows], size=_SIDE)
    yield html.row(html.figure(jpeg, row["file_name"], *_lines(row)) for row, jpeg in zip(rows, jpegs, strict=True))


def _lines(row: dict[str, Any]) -> Iterator[str]:
    """Yield the lines below the image of an issue."""
    if row["reason"] is not None:
        yield str(row["reason"])
    if row["value"] is not None:
        yield f"{row['value']:.3g} (confidence {row['confidence']:.2f})"
    if row["percentile"] is not None:
        yield f"percentile {row['percentile']:.1f}"
    if row["suggested_label"] is not None:
        yield f"suggested label: {row['suggested_label']}"


def _duplicates(view: ReportSource, groups: Sequence[DuplicateGroup], progress: Progress) -> Iterator[str]:
    yield html.heading("Near-duplicates", anchor="near-duplicates")
    yield html.note("groups of images with a similarity of 0.96 or more, largest first" if groups else "none found")
    for number, group in enumerate(groups):
        progress("near-duplicates", 0.4 + 0.4 * number / len(groups))
        yield duplicate_card(group, view)


def _clusters(view: ReportSource, level: int, progress: Progress) -> Iterator[str]:
    progress("clusters", 0.8)
    page = view.explore(level=level)
    yield html.heading(f"Clusters at level {level}", anchor="clusters")
    yield html.note("level 0 is the finest, 4 the coarsest; largest first")
    yield from cluster_cards(page.clusters[:_CLUSTERS], view)


def _objects(
    view: ReportSource, objects: ReportSource, n_objects: int, level: int, progress: Progress
) -> Iterator[str]:
    """Yield the section about objects: images with their boxes, issues, and the largest groups and clusters."""
    progress("objects", 0.9)
    yield html.heading("Objects", anchor="objects")
    yield html.note(f"{counted(n_objects, 'objects')}; the largest groups of near-duplicates and clusters come first")
    yield html.row(_images_with_boxes(view, objects))
    summaries = by_gravity(objects.issue_summaries())
    yield html.bars((summary.issue_type, summary.count) for summary in summaries if summary.count)
    yield from (html.note(summary.note) for summary in summaries if summary.note)
    yield from (duplicate_card(group, objects) for group in objects.duplicates(limit=_OBJECT_GROUPS))
    yield html.heading(f"Clusters of objects at level {level}", 3)
    yield from cluster_cards(objects.explore(level=level).clusters[:_OBJECT_GROUPS], objects)


def _images_with_boxes(view: ReportSource, objects: ReportSource) -> Iterator[str]:
    """Yield the first images that contain objects, with their boxes drawn."""
    boxes: dict[str, list[tuple[str, html.Rectangle]]] = {}
    for row in islice(objects.rows(["parent_id", "label", "confidence", "bbox"]), _MOST_BOXES):
        if row["parent_id"] not in boxes and len(boxes) == _BOXED_IMAGES:
            break
        confidence = "" if row["confidence"] is None else f" {row['confidence']:.2f}"
        x, y, width, height = row["bbox"]
        box = html.Rectangle(x, y, width, height, f"{row['label']}{confidence}")
        boxes.setdefault(row["parent_id"], []).append((row["label"], box))
    shown = view.select(list(boxes)).to_arrow(["media_id", "image_filename", "width", "height"]).to_pylist()
    jpegs = view.thumbnails(list(boxes), size=2 * _SIDE)
    for row, jpeg in zip(shown, jpegs, strict=True):
        labels = Counter(label for label, _ in boxes[row["media_id"]])
        drawn = [box for _, box in boxes[row["media_id"]]]
        words = ", ".join(f"{count} {label}" if count > 1 else label for label, count in labels.most_common(6))
        name = row["image_filename"].rpartition("/")[2]
        yield html.figure_with_boxes(jpeg, row["width"] or 1, row["height"] or 1, drawn, name, words)
