"""Sampling of video frames: at a rate, and at scene changes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from framedex.core.checks import check_flag, is_number
from framedex.errors import InvalidInput
from framedex.media.scenes import SceneChanges
from framedex.media.video import Video

MAX_FRAMES_PER_SECOND = 1000.0
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Sampling:
    """Rules for sampling the frames of videos.

    Attributes:
        frames_per_second: the number of frames for each second of presentation time, above 0, up to 1000. The first
            frame of each period is sampled. If a video has fewer frames, all are sampled.
        scene_changes: also sample the first frame of each scene. All frames are then decoded, which takes longer.

    Raises:
        InvalidInput: the rate is out of range.
    """

    frames_per_second: float = 1.0
    scene_changes: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        rate = self.frames_per_second
        if not is_number(rate) or not 0 < rate <= MAX_FRAMES_PER_SECOND:
            raise InvalidInput(
                f"frames_per_second must be a number above 0, up to {MAX_FRAMES_PER_SECOND:g}, not {rate!r}"
            )
        check_flag("scene_changes", self.scene_changes)


EVERY_SECOND = Sampling()


def kept_frames(
    video: Video, sampling: Sampling, *, progress: Callable[[float], None] = lambda _time_s: None
) -> Iterator[int]:
    """Advance through a video and yield the number of each sampled frame while it is the current frame.

    Args:
        video: the video, at its beginning.
        sampling: the rules.
        progress: called with the presentation time of each frame, sampled or not; may raise to stop.
    """
    scenes = SceneChanges() if sampling.scene_changes else None
    period = -1
    while video.advance():
        progress(video.time_s)
        now = math.floor(video.time_s * sampling.frames_per_second + _ROUNDING)
        begins = scenes is not None and scenes.begins(video.pixels(), video.time_s)
        if now > period or begins:
            period = max(now, period)
            yield video.number
