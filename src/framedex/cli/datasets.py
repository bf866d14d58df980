"""Commands that create, extend, list and delete datasets."""

import shlex
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import framedex
from framedex.cli.options import (
    NAMESPACE,
    JsonOption,
    NameArgument,
    WorkspaceOption,
    YesOption,
    confirm,
    existing_folder,
    open_workspace,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from framedex.records import DatasetRecord

BoxesOption = Annotated[
    list[Path] | None,
    typer.Option(help="Bounding boxes: a COCO file, a table, or a folder of VOC or YOLO files. Repeatable."),
]
InterpolateOption = Annotated[
    bool, typer.Option("--interpolate", help="Read boxes between key frames of tracks of CVAT, too.")
]
ClassFoldersOption = Annotated[
    bool | None,
    typer.Option(
        "--class-folders/--no-class-folders",
        help="Whether folders are classes, as train/cat/1.jpg; by default where nothing else can be meant.",
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Begin also where the search of neighbours will take hours.")
]
_SHOWN_EXAMPLES = 5


def create(
    name: Annotated[str, typer.Argument(help="Name of the new dataset.")],
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, an archive, an image, a list (.txt, .csv, .tsv, .parquet), Parquet with images or "
            "embeddings, or s3://…"
        ),
    ],
    encoder: Annotated[str, typer.Option(help="Name of the encoder, or auto.")] = "auto",
    frames_per_second: Annotated[float, typer.Option(help="Video frames to keep for each second.")] = 1.0,
    scene_changes: Annotated[
        bool, typer.Option("--scene-changes", help="Also keep the first frame of each scene.")
    ] = False,
    display_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Values shown black and white in images of more than 8 bits; by default those of each."),
    ] = None,
    boxes: BoxesOption = None,
    class_folders: ClassFoldersOption = None,
    interpolate: InterpolateOption = False,
    force: ForceOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a dataset from the images and videos in SOURCE."""
    with open_workspace(workspace, create=True) as ws:
        start = time.perf_counter()
        dataset = ws.create_dataset(
            name,
            source,
            encoder=encoder,
            frames_per_second=frames_per_second,
            scene_changes=scene_changes,
            display_range=display_range,
            boxes=boxes or None,
            class_folders=class_folders,
            interpolate=interpolate,
            force=force,
        )
        seconds = time.perf_counter() - start
        if as_json:
            print_json({**dataset.info.model_dump(mode="json"), **_left_out(dataset)})
            return
        info, config = dataset.info, dataset.embedding_config
        say(f"{info.display_name}: {counted(dataset.count(), _kind(info))}{_objects(dataset)} in {seconds:.1f} s")
        say(f"encoder {config.encoder} ({config.reason})")
        _say_faults(dataset, _faults(dataset))
        _say_left_out(dataset)


def _objects(dataset: "framedex.Dataset") -> str:
    """Return the number of objects in words; empty for a dataset without objects."""
    return f", {counted(count, 'objects')}" if (count := dataset.objects.count()) else ""


def _left_out(dataset: "framedex.Dataset") -> dict[str, Any]:
    return {
        "n_objects": dataset.objects.count(),
        "problems": list(dataset.problems),
        "layout": dataset.layout,
    }


def _faults(dataset: "framedex.Dataset") -> Counter[str]:
    """Return the numbers of files that are not decoded, or not wholly, by issue type."""
    from framedex import vql
    from framedex.issue_types import FAULTS

    return Counter({each.name: dataset.where(vql.issues(each.name)).count() for each in FAULTS.values()})


def _n_missing(dataset: "framedex.Dataset") -> int:
    from framedex import vql

    return dataset.where(vql.missing()).count()


def _say_faults(dataset: "framedex.Dataset", counts: Counter[str]) -> None:
    for name, count in counts.items():
        if count > 0:
            command = f"framedex issues {shlex.quote(dataset.name)} --type {name}"
            say(f"{count:,} of them {'is' if count == 1 else 'are'} {name.replace('_', ' ')}; `{command}` says why")


def _say_left_out(dataset: "framedex.Dataset") -> None:
    from framedex.jobs.ingest.gone_files import GONE_FILES

    for line in dataset.layout:
        say(line)
    for problem in dataset.problems:
        if problem.reason == GONE_FILES:
            command = f"framedex sync {shlex.quote(dataset.name)}"
            gone = counted(problem.count, "files of it", "are")
            say(f"{gone} gone; `{command}` shows them, and marks or removes them")
        else:
            say(f"skipped: {problem.count:,} {problem.reason}")
        for example in problem.examples[:_SHOWN_EXAMPLES]:
            say(f"  {example}")


def _kind(info: "DatasetRecord") -> str:
    """Return the plural noun for the media of a dataset."""
    return "images and frames" if info.n_videos else "images"


def add(
    name: NameArgument,
    source: Annotated[
        str | None,
        typer.Argument(
            help="A folder, an archive, an image, a list (.txt, .csv, .tsv, .parquet), or Parquet with images or "
            "embeddings."
        ),
    ] = None,
    archive: Annotated[Path | None, typer.Option(help="Instead of SOURCE: a .zip, .tar or .tar.gz file.")] = None,
    s3: Annotated[str | None, typer.Option(help="Instead of SOURCE: s3://bucket/…, a folder or a manifest.")] = None,
    role: Annotated[str | None, typer.Option(help="ARN of the role to assume for S3.")] = None,
    external_id: Annotated[str | None, typer.Option(help="External id that the role requires.")] = None,
    settle: Annotated[bool, typer.Option("--reindex", help="Rebuild the index afterwards.")] = False,
    class_folders: ClassFoldersOption = None,
    interpolate: InterpolateOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add images and videos to a dataset; files that it already has are skipped."""
    if sum(each is not None for each in (source, archive, s3)) != 1:
        raise InvalidInput("give exactly one source: SOURCE, --archive or --s3")
    with open_workspace(workspace) as ws:
        start = time.perf_counter()
        dataset = ws.dataset(name)
        before, faults = dataset.count(), _faults(dataset)
        dataset.add_media(
            source,
            archive=archive,
            s3_uri=s3,
            assume_role=role,
            external_id=external_id,
            auto_reindex=settle,
            class_folders=class_folders,
            interpolate=interpolate,
        )
        seconds = time.perf_counter() - start
        info = dataset.info
        count = dataset.count()
        added = count - before
        if as_json:
            print_json({**info.model_dump(mode="json"), "added": added, **_left_out(dataset)})
            return
        say(f"{info.display_name}: {counted(added, _kind(info))} added in {seconds:.1f} s, {count:,} in all")
        _say_faults(dataset, _faults(dataset) - faults)
        _say_left_out(dataset)
        if info.status_new == "PARTIAL INDEX":
            state = "added to existing clusters" if added else "the index is partial"
            say(f"{state}; run `framedex reindex` to rebuild the index")


def add_objects(
    name: NameArgument,
    boxes: Annotated[
        list[Path],
        typer.Argument(help="COCO files, tables (.csv, .parquet), or folders of Pascal VOC or YOLO files."),
    ],
    interpolate: InterpolateOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add bounding boxes to the images of a dataset; boxes that it already has are skipped."""
    with open_workspace(workspace) as ws:
        start = time.perf_counter()
        dataset = ws.dataset(name)
        before = dataset.objects.count()
        dataset.add_objects(boxes, interpolate=interpolate)
        seconds = time.perf_counter() - start
        count = dataset.objects.count()
        if as_json:
            added = {"added": count - before, **_left_out(dataset)}
            print_json({**dataset.info.model_dump(mode="json"), **added})
            return
        say(f"{dataset.name}: {counted(count - before, 'objects')} added in {seconds:.1f} s, {count:,} in all")
        _say_left_out(dataset)


def merge(
    name: NameArgument,
    other: Annotated[str, typer.Argument(help="Name or id of the other dataset.")],
    new_name: Annotated[str, typer.Argument(help="Name of the new dataset.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new dataset with the images of two datasets, without reading the files again."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name).merge(ws.dataset(other), new_name)
        info, skipped = dataset.info, _left_out(dataset)
        if as_json:
            print_json({"dataset": info, "skipped": skipped})
            return
        say(f"dataset {info.display_name} ({info.id}): {_kind(info)}")
        _say_left_out(dataset)


def reindex(
    name: NameArgument,
    threshold: Annotated[
        list[float] | None,
        typer.Option(help="Cosine distance of a cluster level. Give five values, ascending, for levels 0 to 4."),
    ] = None,
    measure_images: Annotated[
        bool, typer.Option("--measure-images", help="Read the images of a table of embeddings, and measure them.")
    ] = False,
    force: ForceOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild clusters, duplicate groups and scores, after additions or with other thresholds."""
    with open_workspace(workspace) as ws:
        start = time.perf_counter()
        dataset = ws.dataset(name)
        task = dataset.reindex(thresholds=threshold or None, measure_images=measure_images, force=force)
        seconds = time.perf_counter() - start
        info, config = dataset.info, dataset.embedding_config
        if as_json:
            print_json({**info.model_dump(mode="json"), "embedding_config": config.model_dump(mode="json")})
            return
        say(f"{info.display_name}: {counted(dataset.count(), _kind(info))} indexed in {seconds:.1f} s")
        _, _, unread = task.record.status_message.partition("; ")
        if unread:
            say(unread)


def ls(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the datasets of the workspace, newest first."""
    from framedex.storage.listing import list_workspace

    records = list_workspace(existing_folder(workspace), NAMESPACE.get())
    if as_json:
        print_json(records)
        return
    rows = [
        (r.display_name, r.status_new, r.n_images, r.n_objects, f"{r.created_at:%Y-%m-%d %H:%M}", r.id) for r in records
    ]
    print_table(("name", "status", "images", "objects", "created (UTC)", "id"), rows)


def show(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show the size, encoder and issue counts of a dataset."""
    from framedex.records import DatasetStatus

    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        info = dataset.info
        if (last := dataset.last_task) is not None and info.status_new is DatasetStatus.ERROR:
            raise Conflict(
                f"dataset {info.display_name!r} is {info.status_new}: {last.error_message}; "
                f"`framedex retry {last.task_id}` runs the task again"
            )
        if info.status_new is DatasetStatus.DRAFT:
            _show_draft(dataset, as_json=as_json)
            return
        config = dataset.embedding_config
        summaries = dataset.where([]).issue_summaries()
        n_missing = _n_missing(dataset)
        if as_json:
            print_json(
                {
                    **info.model_dump(mode="json"),
                    "embedding_config": config.model_dump(mode="json"),
                    "n_objects": dataset.objects.count(),
                    "issues": [summary.model_dump(mode="json") for summary in summaries],
                    "problems": [problem.model_dump(mode="json") for problem in dataset.problems],
                    "n_missing": n_missing,
                }
            )
            return
        images = counted(info.n_images, "images")
        say(f"{info.display_name}: {images}{_objects(dataset)}, {info.status_new}, id {info.id}")
        say(f"encoder {config.encoder}, {counted(config.dimension, 'values')}, cluster thresholds {config.thresholds}")
        if n_missing:
            say(f"{counted(n_missing, 'images', 'are')} marked as missing, as their files were gone at the last sync")
        rows = [
            (s.issue_type, s.count, "" if s.threshold is None else f"{s.threshold:.3g}", s.meaning) for s in summaries
        ]
        print_table(("issue", "count", "threshold", "measured value"), rows)
        for note in (s.note for s in summaries if s.note):
            say(note)


def _show_draft(dataset: "framedex.Dataset", *, as_json: bool) -> None:
    info, uploads = dataset.info, dataset.uploads()
    if as_json:
        print_json({**info.model_dump(mode="json"), "uploads": [each.model_dump(mode="json") for each in uploads]})
        return
    say(f"{info.display_name}: {info.status_new}, id {info.id}")
    for each in uploads:
        say(f"transaction {each.id} is {each.state} and holds {counted(each.n_files, 'files')}")
    say(f"`framedex upload {info.display_name} FILES` makes a dataset of it; --to goes on with an open transaction")


def rm(
    name: NameArgument,
    yes: YesOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Delete a dataset; its source files are not touched."""
    with open_workspace(workspace) as ws:
        record = ws.dataset(name).info
        images = counted(record.n_images, "images")
        confirm(f"Delete {record.display_name!r} with {images}, its tags, fields and snapshots?", yes=yes)
        ws.delete_dataset(record.id)
        say(f"deleted {record.display_name}")
