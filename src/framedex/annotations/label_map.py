"""The list of classes beside Pascal VOC files and masks: a line ``name:red,green,blue::`` for each class.

CVAT and datumaro refuse Pascal VOC files without it whose classes are others than those of VOC (docs.cvat.ai).
"""

from collections.abc import Sequence

LABEL_MAP = "labelmap.txt"
"""The name of the file."""


def label_map(labels: Sequence[str]) -> bytes:
    """Return the content of the file for some classes, in their order."""
    lines = ["# label:color_rgb:parts:actions", "background:0,0,0::"]
    for number, label in enumerate(labels, 1):
        lines.append(f"{' '.join(label.split())}:{','.join(map(str, class_colour(number)))}::")
    return "".join(f"{line}\n" for line in lines).encode()


def class_colour(number: int) -> tuple[int, int, int]:
    """Return the colour of a number: its binary digits, three at a time, from the highest of each channel (VOC)."""
    channels = [0, 0, 0]
    for place in range(8):
        for channel in range(3):
            channels[channel] |= (number >> (3 * place + channel) & 1) << (7 - place)
    return channels[0], channels[1], channels[2]
