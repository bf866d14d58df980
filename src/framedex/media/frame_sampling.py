"""Which frames of a video are kept: so many a second, and those that scenes begin with."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from framedex.errors import InvalidInput
from framedex.media.scenes import SceneChanges
from framedex.media.video import Video

MOST_FRAMES_PER_SECOND = 1000.0
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Sampling:
    """Which frames of videos are kept.

    Attributes:
        frames_per_second: of presentation time, above 0 and up to 1000: of each period the first frame. Where a video
            has fewer frames, all.
        scene_changes: also the first frame of each scene; then all frames are converted, which takes longer.

    Raises:
        InvalidInput: the rate is outside of its range.
    """

    frames_per_second: float = 1.0
    scene_changes: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        rate, scenes = self.frames_per_second, self.scene_changes
        known = isinstance(rate, int | float) and not isinstance(rate, bool)
        if not known or not 0 < rate <= MOST_FRAMES_PER_SECOND:
            raise InvalidInput(
                f"frames_per_second must be a number above 0, up to {MOST_FRAMES_PER_SECOND:g}, not {rate!r}"
            )
        if not isinstance(scenes, bool):
            raise InvalidInput(f"scene_changes must be True or False, not {scenes!r}")


EVERY_SECOND = Sampling()


def kept_frames(
    video: Video, sampling: Sampling, *, progress: Callable[[float], None] = lambda _time_s: None
) -> Iterator[int]:
    """Go through a video, and yield the number of each frame that is kept while it is the present one.

    Args:
        video: at its beginning.
        sampling: which frames.
        progress: called with the presentation time of each frame, kept or not; raises to stop.
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
