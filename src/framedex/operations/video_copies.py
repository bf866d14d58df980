"""Parts of videos that are also parts of other ones, in an open dataset."""

import hashlib
from dataclasses import replace

from framedex.browse.explore import file_name
from framedex.browse.issues import check_limit
from framedex.core.checks import is_number
from framedex.core.progress import Progress
from framedex.errors import InvalidInput
from framedex.jobs.video_copies import FoundPart, FoundParts, find_video_parts
from framedex.operations.context import Context, check_indexed
from framedex.operations.starting import load_job_context
from framedex.records import VideoCopy
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media

_LEAST_S, _MOST_S = 1.0, 86_400.0


def video_copies(
    context: Context,
    media: Media,
    condition: Condition,
    *,
    min_seconds: float,
    limit: int | None,
    progress: Progress,
) -> tuple[list[VideoCopy], int, int]:
    """Return the parts that videos with media that meet a condition share; see :meth:`framedex.View.video_copies`.

    The result of a state is kept, so that it is found once for all pages.

    Returns:
        The parts, and how many pairs of videos were not compared, because a file cannot be read or no budget was left.
    """
    check_limit(limit)
    if not is_number(min_seconds) or not _LEAST_S <= min_seconds <= _MOST_S:
        raise InvalidInput(f"min_seconds must be a number from {_LEAST_S:g} to {_MOST_S:,.0f}, not {min_seconds!r}")
    check_indexed(context, media)
    if not media.has_videos:
        return [], 0, 0
    allowed = _allowed(media, condition)
    digest = hashlib.blake2b("".join(sorted(allowed or ())).encode(), digest_size=16).hexdigest()
    key = "video copies", media.generation.id, allowed is None, digest, float(min_seconds)
    found: FoundParts | None = context.selections.get(key)
    if found is None:
        job = replace(load_job_context(context, media.dataset_id), head=media.generation)
        found = find_video_parts(job, media, allowed, min_seconds=float(min_seconds), progress=progress)
        if not found.n_unread:
            context.selections.put(key, found, weight=found.nbytes)
    return [_record(found, each) for each in found.parts[:limit]], found.n_unread, found.n_left


def _allowed(media: Media, condition: Condition) -> frozenset[str] | None:
    """Return the ids of the videos with media that meet a condition; None for all."""
    if condition == EVERYTHING:
        return None
    rows = media.query("SELECT DISTINCT video_id FROM chosen", condition, ["video_id"])
    return frozenset(filter(None, rows["video_id"].to_pylist()))


def _record(found: FoundParts, each: FoundPart) -> VideoCopy:
    video, other, part = found.videos[each.video], found.videos[each.other], each.part
    length, other_length = part.end - part.start, part.other_end - part.other_start
    return VideoCopy(
        video_id=video["video_id"],
        other_id=other["video_id"],
        file_name=file_name(video["path"]),
        other_file_name=file_name(other["path"]),
        path=video["path"],
        other_path=other["path"],
        start_s=round(part.start, 3),
        end_s=round(part.end, 3),
        other_start_s=round(part.other_start, 3),
        other_end_s=round(part.other_end, 3),
        speed=round(length / other_length, 3),
        similarity=round(min(max(part.similarity, 0.0), 1.0), 4),
        share=min(1.0, length / max(float(video["duration_s"] or 0.0), length)),
        other_share=min(1.0, other_length / max(float(other["duration_s"] or 0.0), other_length)),
        mirrored=part.is_mirrored,
    )
