"""Records of source folders: where the files of datasets are, and whether they are still there."""

from enum import StrEnum

from framedex.records.base import Record
from framedex.records.edits import FieldType


class SourceState(Record):
    """A source folder of a dataset, and whether it can be found.

    ``source`` is the folder, or the URI of a folder; ``n_media`` counts the media below it. ``fault`` says in words why
    nothing below it can be found; None for a folder that answers.
    """

    dataset_id: str
    dataset_name: str
    source: str
    n_media: int
    fault: str | None


class Problem(Record):
    """The files, annotations or rows that the last addition to a dataset left out for one reason.

    ``reason`` is a plural noun such as "other files", ``count`` their number. ``examples`` has the first twenty, each a
    path or a sentence with the place, the value and what would be right; for some reasons there are none.
    """

    reason: str
    count: int
    examples: list[str]


class ColumnUse(StrEnum):
    """Uses of a column of a source in a dataset."""

    PATH = "path"
    LABELS = "labels"
    CAPTION = "caption"
    TAGS = "tags"
    BOXES = "boxes"
    FIELD = "field"
    NOTHING = "nothing"


class PreviewColumn(Record):
    """A column of a source: its name, the type of its values, and what it becomes.

    ``type`` is the type of the custom field that the first rows would make; ``reason`` says why it becomes nothing.
    """

    name: str
    type: FieldType
    becomes: ColumnUse
    reason: str | None = None


class SourcePreview(Record):
    """The reading of a source by :meth:`framedex.Workspace.preview`, from its beginning.

    ``kind`` is ``list``, ``boxes`` (a table of bounding boxes), ``folder``, ``archive``, ``file``, ``pattern``,
    ``table`` or ``images`` (in memory), ``vectors`` (a table with embeddings) or ``s3``. Of a list that is text,
    ``encoding``, ``delimiter`` and ``has_header`` say how it is read. ``rows`` has the first ten rows, cells as
    texts in the order of ``columns``; of a source without columns, a path each. ``files`` counts the paths among
    the first hundred rows, ``found`` those at which there is a file, and ``missing`` has the first others, as they
    were understood; of a bucket and of images in memory nothing is looked for. ``layout`` has the sentences of
    :attr:`framedex.Dataset.layout`, and ``problems`` what is left out of these rows.
    """

    source: str
    kind: str
    encoding: str | None = None
    delimiter: str | None = None
    has_header: bool | None = None
    columns: list[PreviewColumn]
    rows: list[list[str]]
    files: int
    found: int | None
    missing: list[str]
    layout: list[str]
    problems: list[Problem]


class LostSource(Record):
    """A source folder of a dataset, or a folder in it, of which no file can be found.

    ``source`` is the folder, or the URI of a folder; ``files`` counts the images and videos that the dataset has of it;
    ``reason`` says in words why they cannot be found.
    """

    dataset_id: str
    dataset_name: str
    source: str
    files: int
    reason: str


class MissingFile(Record):
    """A file of a dataset that is gone or cannot be read now.

    ``media_id`` is the id of the image, or that of the first frame of a video. ``file_path`` is where it was, and
    ``reason`` what is wrong. ``is_gone`` is False for a file that may still be there, as one without read permission.
    """

    media_id: str
    file_path: str
    reason: str
    is_gone: bool


class SyncResult(Record):
    """The outcome of :meth:`framedex.Dataset.sync`: what was found, and whether it was applied.

    ``new`` counts files that are in the folders of the dataset and not in the dataset, ``changed`` those with other
    content, ``moved`` those that are at another place now, ``missing`` those that are gone, and ``back`` those that
    were marked as missing and are there again. ``removed`` counts media that were removed from the dataset.
    ``examples`` has, for each of these, the paths of up to 100 files. ``unreadable`` counts files that cannot be read
    now, by reason. ``lost`` has the sources, and the folders in them, of which no file can be found; their files do not
    count as missing.
    ``notes`` are sentences about what was not looked at. ``task_id`` is the last task that was started; without
    waiting, what is left is done by another call after it.
    """

    is_applied: bool
    new: int
    changed: int
    moved: int
    missing: int
    back: int
    removed: int
    unreadable: dict[str, int]
    lost: list[LostSource]
    examples: dict[str, list[str]]
    notes: list[str]
    task_id: str | None = None


class RelocatedRoot(Record):
    """A source folder of a dataset that a relocation moves.

    ``before`` and ``after`` are the folders, or the URIs of folders. ``files`` counts the images and videos below it,
    ``missing`` those that are not at the new place, ``unreadable`` those that are there and cannot be read, and
    ``compared`` those whose content was compared with what was indexed. ``different`` counts files of another size or
    content. ``examples`` has up to 20 lines with the name of a file and what is wrong with it.
    """

    dataset_id: str
    dataset_name: str
    before: str
    after: str
    files: int
    missing: int
    unreadable: int
    compared: int
    different: int
    examples: list[str]


class Relocation(Record):
    """The outcome of :meth:`framedex.Workspace.relocate`.

    ``is_done`` tells whether the folders were relocated; a check alone, and one with an ``obstacle``, changes nothing.
    ``obstacle`` says what keeps the relocation from being done, and how to go on; None if nothing does. ``notes`` are
    sentences about what a relocation does not move.
    """

    before: str
    after: str
    is_done: bool
    roots: list[RelocatedRoot]
    obstacle: str | None
    notes: list[str]
