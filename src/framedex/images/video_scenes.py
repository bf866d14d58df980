"""The scenes of a video of a dataset, which are found by decoding it."""

import numpy as np

from framedex.core.progress import Progress
from framedex.errors import InvalidInput, NotFound
from framedex.images.reading import check_media_id
from framedex.media.files import Reader
from framedex.media.row_images import open_video
from framedex.media.scenes import SceneChanges
from framedex.records import Scene
from framedex.settings import Settings
from framedex.storage.condition import Condition
from framedex.storage.media import Media

_SAME_S = 1e-6  # times of frames differ by more; a stored one was once rounded


def video_scenes(media: Media, media_id: str, settings: Settings, progress: Progress | None) -> list[Scene]:
    """Return the scenes of the video of a frame, in order; see :meth:`framedex.Dataset.scenes`."""
    check_media_id(media_id)
    row = media.find(media_id, sorted({*media.location, "video_id"}))
    if row["video_id"] is None:
        raise InvalidInput(f"{media.shown_path(row)!r} is not part of a video, so it has no scenes")
    location = media.location_of(row)
    if location is None:
        raise NotFound(f"{row['path']!r} is neither a local file nor an object in a bucket")
    starts, counts, changes, end_s = list[float](), list[int](), SceneChanges(), 0.0
    reader = Reader(settings, media.role_of(row))
    with open_video(location, reader, settings, threads=settings.threads) as video:
        while video.advance():
            if changes.begins(video.pixels(), video.time_s) or not starts:
                starts.append(video.time_s)
                counts.append(0)
            counts[-1] += 1
            end_s = video.time_s + (1 / video.fps if video.fps else 0.0)
            if progress is not None and video.duration_s:
                progress("frames", min(video.time_s / video.duration_s, 1.0))
    members = _members(media, row["video_id"], starts)
    edges = zip(starts, [*starts[1:], end_s], strict=True)
    return [
        Scene(start_s=start, end_s=end, n_frames=count, media_ids=ids)
        for (start, end), count, ids in zip(edges, counts, members, strict=True)
    ]


def _members(media: Media, video_id: str, starts: list[float]) -> list[list[str]]:
    """Return the ids of the frames of a video in each of its scenes, in order."""
    columns = ["media_id", "frame_time_s"]
    of_video = Condition("frame_time_s IS NOT NULL", (), frozenset({"frame_time_s"})).with_equal("video_id", video_id)
    frames = media.query(f"SELECT {', '.join(columns)} FROM chosen ORDER BY frame_time_s", of_video, columns)
    scene = np.searchsorted(np.array(starts), frames["frame_time_s"].to_numpy() + _SAME_S, side="right") - 1
    members: list[list[str]] = [[] for _ in starts]
    for number, frame in zip(np.maximum(scene, 0).tolist(), frames["media_id"].to_pylist(), strict=True):
        if members:
            members[number].append(frame)
    return members
