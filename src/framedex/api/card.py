"""The card of a dataset: what is in it, as Markdown for a repository."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.view import View
from framedex.core.counts import counted
from framedex.records import DatasetRecord, EmbeddingConfig, IssueSummary, LabelCount
from framedex.render.sizes import bytes_text

_MOST_ROWS = 50  # of a table of names
_LICENCES = ("license", "licence")
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_LARGEST = "10M<n<100M"
_SPECIAL = re.compile(r"^[#+=-]|[\\`*_\[\]<>|~$&]")
_LICENCE_ID = re.compile(r"[a-z0-9][a-z0-9.-]*")
_COLUMNS = ("image_filename", "file_size_bytes", "width", "height", "video_id")


class DatasetCard(str):
    """The card of a dataset as Markdown, which a notebook displays: ``Path("README.md").write_text(ds.card())``."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        # Front matter is for repositories.
        return self.partition("\n---\n")[2]


def card_of(record: DatasetRecord, config: EmbeddingConfig, view: View, fields: Sequence[str]) -> DatasetCard:
    """Return the card of a dataset.

    Args:
        record: the record of the dataset.
        config: the configuration of its index.
        view: all media, in one state.
        fields: the names of the custom fields.
    """
    rows = view.to_arrow(_COLUMNS)
    licence = next((each for each in fields if each.lower() in _LICENCES), None)
    licences, unknown = ([], 0) if licence is None else _counted_licences(view.to_arrow([licence])[licence])
    parts = [
        _front_matter(record, [] if unknown else licences),
        f"# {_text(record.display_name)}",
        _text(record.description),
        _contents(record, rows),
        _sizes(rows),
        _labels("Labels", "images", view.labels(), len(rows)),
        _labels("Labels of objects", "objects", view.objects.labels(), view.objects.count()),
        _issues(view.issue_summaries(), len(rows)),
        _copies(view, len(rows)),
        _licences(licences, unknown, len(rows)),
        f"Counted by Framedex in state `{view._media().generation.id}` of {_day(record)}; similarities by the encoder "
        f"{_text(config.encoder)}.",
    ]
    return DatasetCard("\n\n".join(each for each in parts if each) + "\n")


def _front_matter(record: DatasetRecord, licences: Sequence[tuple[str, int]]) -> str:
    """Return the metadata that repositories of datasets read."""
    size = next((name for limit, name in _SIZES if record.n_images < limit), _LARGEST)
    kinds = ["image", *(["video"] if record.n_videos else [])]
    lines = ["---", "size_categories:", f"- {size}", "tags:", *(f"- {each}" for each in kinds)]
    if len(licences) == 1 and _LICENCE_ID.fullmatch(licences[0][0]):
        lines.append(f"license: {licences[0][0]}")
    return "\n".join([*lines, "---"])


def _contents(record: DatasetRecord, rows: pa.Table) -> str:
    frames = len(rows) - rows["video_id"].null_count
    names = rows["image_filename"].filter(pc.is_null(rows["video_id"]))
    kinds = _counts(pa.array(_suffixes(names), pa.string()))
    files = [
        ("Images", f"{len(rows) - frames:,}"),
        ("Videos", f"{record.n_videos:,}" if record.n_videos else ""),
        ("Frames of videos", f"{frames:,}" if frames else ""),
        ("Objects", f"{record.n_objects:,}" if record.n_objects else ""),
        ("Files", ", ".join(f"{count:,} {_text(kind)}" for kind, count in kinds)),
        ("Size of the images", bytes_text(pc.sum(rows["file_size_bytes"]).as_py() or 0)),
    ]
    return _table(("", ""), (each for each in files if each[1]))


def _suffixes(names: pa.ChunkedArray) -> Iterator[str]:
    for chunk in names.chunks:
        yield from (PurePosixPath(each).suffix[1:].lower() or "without suffix" for each in chunk.to_pylist())


def _sizes(rows: pa.Table) -> str:
    known = rows.filter(pc.greater(pc.fill_null(rows["width"], 0), 0))
    if not len(known):
        return ""
    width, height = (np.asarray(known[name].combine_chunks(), np.float64) for name in ("width", "height"))
    values = [
        (name, np.percentile(each, [0, 25, 50, 75, 100])) for name, each in (("Width", width), ("Height", height))
    ]
    head = ("Pixels", "smallest", "a quarter is below", "median", "a quarter is above", "largest")
    return "## Sizes\n\n" + _table(head, ((name, *(f"{each:,.0f}" for each in found)) for name, found in values))


def _labels(title: str, noun: str, labels: Sequence[LabelCount], total: int) -> str:
    if not labels:
        return ""
    rows = [(_text(each.name), f"{each.count:,}", _share(each.count, total)) for each in labels[:_MOST_ROWS]]
    more = (
        f"\n\n{counted(len(labels) - _MOST_ROWS, 'further labels', 'are')} rarer." if len(labels) > _MOST_ROWS else ""
    )
    return f"## {title}\n\n" + _table(("Label", noun, "share"), rows) + more


def _issues(summaries: Sequence[IssueSummary], total: int) -> str:
    rows = [
        (_text(each.issue_type), f"{each.count:,}", _share(each.count, total), each.meaning)
        for each in summaries
        if each.count
    ]
    notes = "".join(f"\n\n{_text(each.note)}" for each in summaries if each.note)
    if not rows:
        return "## Issues\n\nNone was found." + notes
    return "## Issues\n\n" + _table(("Issue", "images", "share", "measured by"), rows) + notes


def _copies(view: View, total: int) -> str:
    found = []
    for name, groups in (("equal files", view.duplicates(exact=True)), ("near-duplicates", view.duplicates())):
        members = sum(len(group.media_ids) for group in groups)
        if members:
            more = members - len(groups)
            found.append((name, f"{len(groups):,}", f"{members:,}", f"{more:,}", _share(more, total)))
    if not found:
        return "## Copies\n\nNone was found."
    return "## Copies\n\n" + _table(("", "groups", "images in them", "copies", "share of all"), found)


def _counted_licences(values: pa.ChunkedArray) -> tuple[list[tuple[str, int]], int]:
    """Return the licences with their numbers of images, and the number of images without one."""
    if not pa.types.is_list(values.type):
        return _counts(values), values.null_count
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    return _counts(pc.list_flatten(values)), pc.sum(pc.equal(lengths, 0)).as_py() or 0


def _licences(licences: Sequence[tuple[str, int]], unknown: int, total: int) -> str:
    if not licences:
        return "## Licence\n\nNot known to Framedex: a custom field `license` would say it for each image."
    rows = [(_text(name), f"{count:,}", _share(count, total)) for name, count in licences[:_MOST_ROWS]]
    return "## Licence\n\n" + _table(
        ("Licence", "images", "share"),
        [*rows, *([("unknown", f"{unknown:,}", _share(unknown, total))] if unknown else [])],
    )


def _counts(values: pa.Array | pa.ChunkedArray) -> list[tuple[str, int]]:
    """Return the distinct values that are not null with their numbers, the most frequent first, then by name."""
    found = pc.value_counts(values.drop_null()).to_pylist()
    return sorted(((str(each["values"]), each["counts"]) for each in found), key=lambda each: (-each[1], each[0]))


def _day(record: DatasetRecord) -> str:
    return f"{record.updated_at or record.created_at:%Y-%m-%d}"


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(value.split()))
