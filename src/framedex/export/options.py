"""Options of an export that only some formats have."""

from dataclasses import dataclass

from framedex.export.splits import SplitRequest


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        split: the parts into which the images are divided; None for no parts.
        confidences: whether YOLO lines have the confidence of their box as their last number.
        outlines: whether YOLO lines are outlines instead of boxes.
        keypoints: whether YOLO lines have the key points of their box.
        strip_metadata: whether image files are written without what they say about the image beside its pixels.
        media_url: the URL of a media item with ``{media_id}`` in the place of its id, in the place of locations on this
            machine; None for these.
    """

    split: SplitRequest | None = None
    confidences: bool = False
    outlines: bool = False
    keypoints: bool = False
    strip_metadata: bool = False
    media_url: str | None = None


NO_OPTIONS = ExportOptions()
