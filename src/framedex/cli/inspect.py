"""Commands that show a dataset or write it to files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from framedex.cli.options import (
    EntityOption,
    JsonOption,
    LimitOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    count_header,
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say, short_number
from framedex.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from framedex import Dataset, Histogram
    from framedex.api.record_list import VideoCopies
    from framedex.records import DuplicateGroup

_BAR = 40  # characters of the longest bar of a histogram


def explore(
    name: NameArgument,
    threshold: Annotated[int, typer.Option(help="Cluster level, 0 (finest) to 4 (coarsest).")] = 0,
    page: Annotated[int, typer.Option(help="Number of the page of 100 clusters, from 0.")] = 0,
    entity_type: EntityOption = "IMAGES",
    vql: VqlOption = None,
    caption: Annotated[str | None, typer.Option(help="Sort by similarity to a text.")] = None,
    anchor: Annotated[
        str | None, typer.Option(help="Sort by similarity to an image: its id, or the id of an upload.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Only images with any of these labels: cat,dog or a JSON array.")
    ] = None,
    tags: Annotated[
        str | None, typer.Option(help="Only images with any of these tags; `untagged` for images without a tag.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a page of clusters, the largest or the best match first."""
    with open_workspace(workspace) as ws:
        result = (
            ws.dataset(name)
            .where([])
            .explore(
                entity_type,
                threshold,
                page,
                parse_vql(vql),
                caption=caption,
                anchor_media_id=anchor,
                labels=labels,
                tags=tags,
            )
        )
        if as_json:
            print_json(result)
            return
        rows = [
            (
                int(c.size_display_value),
                c.name or "",
                ", ".join(p.file_name for p in c.previews[:3]),
                c.cluster_id,
            )
            for c in result.clusters
        ]
        print_table((count_header(entity_type), "name", "examples", "cluster"), rows)


def duplicates(
    name: NameArgument,
    threshold: Annotated[float, typer.Option(help="Minimum similarity, 0.96 to 1.0; for videos 0 to 1.")] = 0.96,
    exact: Annotated[bool, typer.Option("--exact", help="Show files with identical content instead.")] = False,
    near: Annotated[bool, typer.Option("--near", help="Show images that are alike, but no copies, instead.")] = False,
    entity_type: EntityOption = "IMAGES",
    within_videos: Annotated[
        bool, typer.Option("--within-videos", help="Also group frames of one video with each other.")
    ] = False,
    parts: Annotated[
        bool, typer.Option("--parts", help="Show parts of videos that are also parts of other ones; with VIDEOS.")
    ] = False,
    min_seconds: Annotated[float, typer.Option(help="With --parts: length of the shortest part in seconds.")] = 3.0,
    of: Annotated[
        str | None, typer.Option(help="Only the copies of one image: its id, path or URI, or the path of any file.")
    ] = None,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show groups of near-duplicates, largest first, with the best image to keep; or the copies of one image."""
    with open_workspace(workspace) as ws:
        if of is not None:
            if exact or near or within_videos or parts or entity_type != "IMAGES":
                raise InvalidInput(
                    "--of shows near-duplicates of an image; give no --exact, --near, --within-videos, --parts and type"
                )
            _print_copies(ws.dataset(name), of, threshold, limit, as_json=as_json)
            return
        most = limit or (None if as_json else 100)
        if parts:
            if exact or near or within_videos or entity_type != "VIDEOS":
                raise InvalidInput("--parts shows parts of videos: give --entity-type VIDEOS, and no other kind")
            _print_parts(ws.dataset(name).video_copies(min_seconds, limit=most), as_json=as_json)
            return
        groups = ws.dataset(name).duplicates(
            threshold, exact=exact, near=near, limit=most, entity_type=entity_type, within_videos=within_videos
        )
        if as_json:
            print_json(groups)
            return
        if near and not groups:
            say("no near images: no images are alike without being copies of each other")
            return
        print_table(
            (count_header(entity_type), "similarity", "best to keep", "reason", "others"), map(_duplicates_row, groups)
        )


def _print_copies(dataset: "Dataset", of: str, threshold: float, limit: int | None, *, as_json: bool) -> None:
    from framedex.core.ids import is_id

    try:
        copies = dataset.copies_of(of if is_id(of) else dataset.media_id(of), threshold)[:limit]
    except NotFound:
        if is_id(of):
            raise
        if not Path(of).is_file():
            raise NotFound(f"neither a media item of {dataset.name!r} nor a file has the name {of!r}") from None
        copies = dataset.copies_of(Path(of), threshold)[:limit]
    if as_json:
        print_json(copies)
        return
    rows = [
        (each.path, "" if each.similarity is None else f"{each.similarity:.4f}", each.reason, each.media_id)
        for each in copies
    ]
    print_table(("copy", "similarity", "reason", "id"), rows)


def scenes(
    name: NameArgument,
    video: Annotated[str, typer.Argument(help="Id of a frame, or path or URI of the video.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the scenes of a video, with their times in seconds."""
    from framedex.core.ids import is_id

    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        found = dataset.scenes(video if is_id(video) else dataset.media_id(video))
        if as_json:
            print_json(found)
            return
        rows = [(f"{each.start_s:.2f}", f"{each.end_s:.2f}", each.n_frames, len(each.media_ids)) for each in found]
        print_table(("from (s)", "to (s)", "frames", "in the dataset"), rows)


def _print_parts(copies: "VideoCopies", *, as_json: bool) -> None:
    if as_json:
        print_json(copies)
        return
    rows = [
        (
            each.path,
            f"{each.start_s:.1f} – {each.end_s:.1f}",
            each.other_path,
            f"{each.other_start_s:.1f} – {each.other_end_s:.1f}",
            f"{each.speed:.2f}",
            f"{each.similarity:.3f}",
        )
        for each in copies
    ]
    print_table(("video", "seconds", "other video", "seconds", "speed", "similarity"), rows)
    if copies.not_compared:
        say(copies.not_compared)


def _duplicates_row(group: "DuplicateGroup") -> tuple[Any, ...]:
    keep = group.media_ids.index(group.keep)
    places = [place for place in range(len(group.paths)) if place != keep]
    others = ", ".join(_with_reason(group, place) for place in places[:8])
    return len(group.media_ids), f"{group.similarity:.4f}", group.paths[keep], group.keep_reason, others


def _with_reason(group: "DuplicateGroup", place: int) -> str:
    return f"{group.paths[place]} ({group.reasons[place]})" if group.reasons else group.paths[place]


def issues(
    name: NameArgument,
    issue_type: Annotated[str | None, typer.Option("--type", help="Show only this issue type.")] = None,
    objects: Annotated[bool, typer.Option("--objects", help="Show issues of objects instead of images.")] = False,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the issues of images, the worst of each type first."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        view = dataset.objects if objects else dataset.where([])
        table = view.issues(issue_type, limit=limit or (None if as_json else 20))
        found = table.to_pylist()
        if as_json:
            print_json(found)
            return
        rows = [
            (
                row["issue_type"],
                row["path"],
                short_number(row["value"]),
                short_number(row["threshold"]),
                "" if row["percentile"] is None else f"{row['percentile']:.1f}",
                f"{row['confidence']:.2f}",
                row["reason"] or (row["suggested_label"] and f"suggested label: {row['suggested_label']}") or "",
            )
            for row in found
        ]
        print_table(("issue", "file", "value", "limit", "percentile", "confidence", "reason"), rows)
        for note in table.notes:
            say(note)


def histogram(
    name: NameArgument,
    issue_type: Annotated[str, typer.Argument(metavar="ISSUE", help="Issue type, as blur.")],
    bins: Annotated[int, typer.Option(help="Number of bins, 1 to 1000.")] = 20,
    objects: Annotated[bool, typer.Option("--objects", help="Count objects instead of images.")] = False,
    vql: VqlOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the values of an issue type as bars, with its limit."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        view = dataset.objects if objects else dataset.where([])
        result = view.where(parse_vql(vql) or []).histogram(issue_type, bins=bins)
        if as_json:
            print_json(result)
            return
        say(f"{result.issue_type}: {result.meaning}")
        rows = list(zip(result.edges, result.edges[1:], result.counts, strict=False))
        most = max(1, *result.counts)
        print_table(
            ("from", "to", "objects" if objects else "images", ""),
            [
                (short_number(start), short_number(end), count, _bar(count, most) + _limit_mark(result, start, end))
                for start, end, count in rows
            ],
        )
        say(" · ".join([result.limit_words or "no limit", f"{result.missing:,} without a value"]))


def _bar(count: int, most: int) -> str:
    return "█" * (max(1, round(_BAR * count / most)) if count else 0)


def _limit_mark(result: "Histogram", start: float, end: float) -> str:
    """Return a mark in the bin with the limit."""
    is_last = end == result.edges[-1]
    within = result.limit is not None and (start <= result.limit < end or (is_last and result.limit == end))
    return " ◀ limit" if within else ""


def export(
    name: NameArgument,
    out: Annotated[Path, typer.Argument(help="ZIP file to write, or a .json or .parquet file of that format.")],
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="json, parquet, coco, csv, yolo, voc, imagefolder, huggingface, huggingface_parquet, webdataset, or "
            "the format of a plugin.",
        ),
    ] = "json",
    include_images: Annotated[bool, typer.Option("--include-images", help="Add the image files to the ZIP.")] = False,
    objects: Annotated[
        bool, typer.Option("--objects", help="Export objects with their images; filters then apply to objects.")
    ] = False,
    split: Annotated[
        str | None,
        typer.Option("--split", help="Divide the images, as train=0.8,val=0.2; not for json, parquet and csv."),
    ] = None,
    confidences: Annotated[bool, typer.Option("--confidences", help="In yolo, add confidences to the lines.")] = False,
    outlines: Annotated[bool, typer.Option("--outlines", help="In yolo, write outlines instead of boxes.")] = False,
    keypoints: Annotated[bool, typer.Option("--keypoints", help="In yolo, add key points to the boxes.")] = False,
    strip_metadata: Annotated[
        bool, typer.Option("--strip-metadata", help="Leave Exif, GPS and comments out of the image files.")
    ] = False,
    vql: VqlOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a dataset to a ZIP file: all metadata, labels and boxes, or images in folders, tables or tar files."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        view = dataset.objects if objects else dataset.where([])
        result = view.where(parse_vql(vql) or []).export(
            out,
            file_format,
            include_images,
            entity_type="OBJECTS" if objects else "IMAGES",
            split=None if split is None else _shares(split),
            confidences=confidences,
            outlines=outlines,
            keypoints=keypoints,
            strip_metadata=strip_metadata,
        )
        if as_json:
            print_json(result)
            return
        say(f"{result.path}: {result.message}")
        if result.missing_images:
            say(f"first unreadable image: {result.missing_images[0]}")


def _shares(text: str) -> dict[str, float]:
    """Return the parts of a split, written as ``train=0.8,val=0.2``.

    Raises:
        InvalidInput: the text is not of that form.
    """
    shares: dict[str, float] = {}
    for each in text.split(","):
        name, _, share = (part.strip() for part in each.partition("="))
        try:
            number = float(share)
        except ValueError:
            raise InvalidInput(f"--split must be names with shares, as train=0.8,val=0.2, not {text!r}") from None
        if name in shares:
            raise InvalidInput(f"--split names {name!r} twice: {text!r}")
        shares[name] = number
    return shares


def card(
    name: NameArgument,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Markdown file to write.")] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Print the card of a dataset as Markdown for a repository: counts, sizes, labels, issues, copies, licences."""
    with open_workspace(workspace) as ws:
        text = ws.dataset(name).card()
    if output is None:
        for line in text.splitlines():
            say(line)
        return
    from framedex.export.files import whole_file

    with whole_file(output) as file:
        file.write(text.encode())
    say(f"wrote {output}")


def report(
    name: NameArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path("report.html"),
    level: Annotated[int, typer.Option(min=0, max=4, help="Cluster level to show.")] = 3,
    workspace: WorkspaceOption = None,
) -> None:
    """Write a report as one HTML page: issues, near-duplicates, clusters, objects."""
    with open_workspace(workspace) as ws:
        say(f"wrote {ws.dataset(name).report(output, level=level)}")
