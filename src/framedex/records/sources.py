"""Records of source folders: where the files of datasets are, and whether they are still there."""

from framedex.records.base import Record


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
