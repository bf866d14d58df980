"""Files of equal content: the key of a content, and what chooses between two files of equal content."""

from framedex.analysis.keeping import MemberFiles
from framedex.browse.explore import file_name
from framedex.core.arrays import RowIds
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX
from framedex.storage.objects import is_empty_object_view


def exact_key(media: Media) -> tuple[str, tuple[str, ...]]:
    """Return an SQL expression that is equal for media of equal content, and the columns that it reads.

    It is the hash of the file. For frames, it is the hash of the video followed by the frame number; for objects, the
    key of the media item followed by the box.
    """
    key = "content_hash"
    columns: tuple[str, ...] = ("content_hash",)
    if media.has_videos:
        numbered = "content_hash || encode('#' || frame_number)"
        key = f"CASE WHEN frame_number IS NULL THEN content_hash ELSE {numbered} END"
        columns = (*columns, "frame_number")
    if media.parents is None or is_empty_object_view(media):
        return key, columns
    return f"({key}) || encode('@' || concat_ws(' ', {', '.join(BOX)}))", (*columns, *BOX)


def read_files(media: Media, row_ids: RowIds) -> MemberFiles:
    """Return the contents and the lengths of the file names of some rows.

    Args:
        media: the media.
        row_ids: uint64, shape (N,).
    """
    columns = exact_key(media)[1]
    rows = media.take(row_ids.tolist(), ["path", *columns])
    names = [file_name(path) for path in rows["path"].to_pylist()]
    contents = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    return MemberFiles.of(names, [None if each[0] is None else each for each in contents])
