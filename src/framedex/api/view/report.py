"""The report of a dataset: one self-contained HTML page with issues, near-duplicates and clusters."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from framedex.api.result_pages import cluster_cards, duplicate_card
from framedex.api.view.browsing import Browsing
from framedex.core.checks import has_lone_surrogate
from framedex.core.progress import Progress
from framedex.errors import InvalidInput
from framedex.records import DatasetRecord, EmbeddingConfig, IssueSummary
from framedex.render import html

_ISSUE_MEDIA = 12
_GROUPS = 24
_CLUSTERS = 16
_OBJECT_GROUPS = 8  # duplicate groups, and clusters, of objects
_SIDE = 160


def report_html(
    dataset: DatasetRecord,
    config: EmbeddingConfig,
    view: Browsing,
    *,
    objects: Browsing | None,
    level: int,
    extra: str = "",
    progress: Callable[[str, float], None] | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        dataset: the record of the dataset.
        config: the config of its index.
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
    progress = progress or (lambda _stage, _share: None)
    summaries = view.issue_summaries()
    return html.page(
        f"Framedex report: {dataset.display_name}",
        html.heading(dataset.display_name, 1),
        html.note(
            f"{view.count():,} images · {dataset.status_new} · encoder {config.encoder} ({config.dimension} values)"
        ),
        extra,
        html.heading("Issues"),
        html.bars((summary.issue_type, summary.count) for summary in summaries),
        *(html.note(summary.note) for summary in summaries if summary.note),
        *_issues(view, [summary for summary in summaries if summary.count], progress),
        *_duplicates(view, progress),
        *_clusters(view, level, progress),
        *(() if objects is None else _objects(objects, level, progress)),
    )


def _issues(view: Browsing, summaries: Sequence[IssueSummary], progress: Progress) -> Iterator[str]:
    for number, summary in enumerate(summaries):
        progress(summary.issue_type, 0.4 * number / len(summaries))
        yield from _issue(view, summary)


def _issue(view: Browsing, summary: IssueSummary) -> Iterator[str]:
    rows = view.issues(summary.issue_type, limit=_ISSUE_MEDIA).to_pylist()
    limit = "" if summary.threshold is None else f", threshold {summary.threshold:.3g}"
    yield html.heading(f"{summary.issue_type}: {summary.count:,}", 3)
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


def _duplicates(view: Browsing, progress: Progress) -> Iterator[str]:
    groups = view.duplicates(limit=_GROUPS)
    yield html.heading("Near-duplicates")
    yield html.note("groups of images with a similarity of 0.96 or more, largest first" if groups else "none found")
    for number, group in enumerate(groups):
        progress("near-duplicates", 0.4 + 0.4 * number / len(groups))
        yield duplicate_card(group, view)


def _clusters(view: Browsing, level: int, progress: Progress) -> Iterator[str]:
    progress("clusters", 0.8)
    page = view.explore(level=level)
    yield html.heading(f"Clusters at level {level}")
    yield html.note("level 0 is the finest, 4 the coarsest; largest first")
    yield from cluster_cards(page.clusters[:_CLUSTERS], view)


def _objects(view: Browsing, level: int, progress: Progress) -> Iterator[str]:
    """Yield the section about objects: their number, their issues, and the largest groups and clusters."""
    count = view.count()
    if not count:
        return
    progress("objects", 0.9)
    yield html.heading("Objects")
    yield html.note(f"{count:,} objects; the largest groups of near-duplicates and clusters come first")
    summaries = view.issue_summaries()
    yield html.bars((summary.issue_type, summary.count) for summary in summaries if summary.count)
    yield from (html.note(summary.note) for summary in summaries if summary.note)
    yield from (duplicate_card(group, view) for group in view.duplicates(limit=_OBJECT_GROUPS))
    yield html.heading(f"Clusters of objects at level {level}", 3)
    yield from cluster_cards(view.explore(level=level).clusters[:_OBJECT_GROUPS], view)
