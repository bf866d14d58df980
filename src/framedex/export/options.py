"""Options of an export that only some formats have."""

from dataclasses import dataclass

from framedex.export.splits import SplitRequest


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        split: the parts into which the images are divided; None for no parts.
        confidences: whether YOLO lines have the confidence of their box as a sixth number.
        outlines: whether YOLO lines are outlines instead of boxes.
    """

    split: SplitRequest | None = None
    confidences: bool = False
    outlines: bool = False


NO_OPTIONS = ExportOptions()
