"""Records of near-duplicates."""

from datetime import datetime

from pydantic import Field

from framedex.records.base import Record

DUPLICATE_LEVELS = (0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0)


class MemberFacts(Record):
    """Facts of a member of a duplicate group that tell the original from its copies; None where they are not known.

    ``width`` and ``height`` are in pixels. ``detail_pixels`` is the number of pixels that have detail: fewer than the
    area if the image was enlarged, or has borders; ``added_pixels`` is the number of the others, among them borders and
    other content beside the image. ``quality`` is that of the coarsest compression that the image went through, 1 to
    100 on the scale of libjpeg; None also without one. ``recompressed`` says whether that was an earlier compression
    than that of the file. ``clipped`` is the share of 8×8 blocks with black or white at which values were cut off.
    ``cropped`` says whether it shows a part of another member only, ``colour`` whether it has colours, not a mere tint,
    ``metadata`` whether the file has Exif or other data about the image. ``modified_at`` is the time of the last change
    of the file.
    """

    width: int | None = None
    height: int | None = None
    detail_pixels: int | None = None
    added_pixels: int | None = None
    quality: int | None = None
    recompressed: bool | None = None
    clipped: float | None = None
    cropped: bool | None = None
    colour: bool | None = None
    metadata: bool | None = None
    size_bytes: int | None = None
    modified_at: datetime | None = None


class DuplicateGroup(Record):
    """Images that are near-duplicates of each other at one of the eight levels.

    ``similarity`` is the highest cosine similarity of a member to any other image of the dataset, in [-1, 1]. Without a
    filter, that other image is a member, too. ``paths`` are relative to the source; ``file_names`` are their last
    parts. Groups of equal files have the same fields; their threshold, similarity and confidence are 1.

    ``keep`` is the id of the member that is best to keep, and ``keep_reason`` says why in one sentence: it names the
    criterion that decided, and among how many, if others had left out some. The criteria, in order: intact, the source
    (others were made from it by turning, resizing, another exposure or saving again), the most detail (enlargement,
    borders and other images beside it do not count), not blurred, not cropped, in colour, the fewest added pixels, the
    source of the most copies, the least difference from the other copies, the finest quantisation, the nearest to
    another copy, the most colour detail, metadata, the nearest to the other copies, one compression only; then the most
    pixels, the highest acutance, the most bytes per pixel, the oldest time of the
    last change (UTC), the first in the order of ingestion. Of files that are equal to that one, the one with the
    shortest name is kept, then the first. Each criterion keeps all members that are as good as the best one: within a
    third of the detail, 1 % of the pixels, 0.02 of acutance, 2 % of the bytes per pixel, and 2 s. Unknown values lose
    to known ones. In a filtered group, ``keep`` is the best of the members that the filter leaves.
    ``is_sure`` says whether the comparison of the members shows that this one is the original: all others were made
    from it, or have what only a copy has, and it was made from none of them. Groups that were not compared, and equal
    files, have no original, so any member will do.
    ``confidence``, in [0, 1], is the lowest similarity of a member to the image most similar to it.

    ``reasons`` says of each member how it is a copy of the one to keep: same file, same pixels, resized, recompressed
    or edited, cropped, framed, shown on a part of a larger image, mirrored, turned; of near images also that it is
    alike, but no copy. ``facts`` has the facts of each member; it is empty for equal files and videos.
    """

    group_id: str
    threshold: float
    similarity: float
    media_ids: list[str]
    file_names: list[str]
    paths: list[str]
    keep: str
    keep_reason: str
    is_sure: bool = True
    confidence: float
    reasons: list[str] = Field(default_factory=list)
    facts: list[MemberFacts] = Field(default_factory=list)


class Copy(Record):
    """An image that is a copy of another one, or its original.

    For an item of the dataset, these are the other members of its near-duplicate group: ``similarity`` is the cosine
    similarity of the two images' descriptors, in [-1, 1]; None if one of them has none. ``keep`` says whether this
    image is the best of the group, and ``reason`` how it is a copy of the best one, as in :class:`DuplicateGroup`.

    For any other image, they are the verified copies: ``similarity`` is that of verified copies, 0.96 to 1, and
    ``reason`` what was done to the copy. ``original`` says which one the original is: ``dataset``, ``query``, or None
    where that is unknown. ``share`` is the part of the copy that is not beside other content, ``covered`` the share of
    what both show over which something was laid, and ``residual`` the mean difference of grey levels elsewhere.

    ``path`` is relative to the source.
    """

    media_id: str
    file_name: str
    path: str
    similarity: float | None
    reason: str
    keep: bool
    original: str | None = None
    share: float | None = None
    covered: float | None = None
    residual: float | None = None


class VideoCopy(Record):
    """A part of one video that is also a part of another one.

    ``start_s`` to ``end_s`` is the part of the video ``video_id``, ``other_start_s`` to ``other_end_s`` that of the
    video ``other_id``, in seconds. ``share`` and ``other_share`` are the parts of the lengths of both that this is, in
    (0, 1]. ``speed`` is that of the other video: 2.0 if it shows in one second what the first one shows in two.
    ``similarity`` is the mean correlation of the structure of their frames, laid over each other, in [0, 1]; 1 for
    equal files. ``mirrored`` says whether one of them is mirrored. Which one is the original is not known. ``path`` and
    ``other_path`` are relative to the source; the file names are their last parts.
    """

    video_id: str
    other_id: str
    file_name: str
    other_file_name: str
    path: str
    other_path: str
    start_s: float
    end_s: float
    other_start_s: float
    other_end_s: float
    speed: float
    similarity: float
    share: float
    other_share: float
    mirrored: bool = False


class DuplicateDecision(Record):
    """A user's decision that the listed media are not duplicates of one another."""

    decision_id: str
    media_ids: list[str]
    decided_by: str
    decided_at: datetime
