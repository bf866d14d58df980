"""Records of parts of videos."""

from framedex.records.base import Record


class Scene(Record):
    """A scene of a video: the frames from one cut to the next.

    ``start_s`` is the presentation time of its first frame, and ``end_s`` that of the first frame of the next scene, or
    the end of the video, in seconds from the start of the file. ``n_frames`` counts all frames of the scene, and
    ``media_ids`` has those that are media of the dataset, in order.
    """

    start_s: float
    end_s: float
    n_frames: int
    media_ids: list[str]
