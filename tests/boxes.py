"""Makes boxes for tests."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from framedex.annotations.boxes import Box
from framedex.export.formats import FORMATS

SHARED = Path(__file__).parents[2] / "shared" / "data" / "annotated"
OF_IMAGES = ("imagefolder", "huggingface", "huggingface_parquet", "webdataset")
"""Export formats that consist of images, for the loaders of other libraries."""
ANNOTATION_EXPORTS = [name for name in FORMATS if name not in ("json", "parquet", "masks", *OF_IMAGES)]
"""Export formats from which a dataset can be created again, with its labels, captions and boxes."""
SIZES = {f"images/{name}.jpg": size for name, size in (("a", (640, 427)), ("c/d", (1000, 7001)), ("ü <b>", (3, 1)))}

_names = st.sampled_from(["cat", "traffic light", "<b>&amp;", "ünder \N{PILE OF POO}", "a,b", '"', "1"])
_lengths = st.floats(1e-9, 1e7) | st.integers(1, 5000).map(float)
_starts = st.floats(-1e7, 1e7) | st.integers(0, 5000).map(float) | st.just(1e-12)


def box(
    name: str = "a.jpg", x: float = 1, y: float = 2, width: float = 3, height: float = 4, label: str = "cat"
) -> Box:
    """Return a box."""
    return Box(name, x, y, width, height, label)


def boxes(
    source: str, *, ids: bool = False, confidences: bool = True, within: bool = False
) -> st.SearchStrategy[list[Box]]:
    """Return boxes of the images in :data:`SIZES`, those of an image one after the other.

    *within* leaves out numbers that no image has, such as negative ones and those above 5,000.
    """
    starts = st.floats(0, 5000) | st.integers(0, 5000).map(float) if within else _starts
    lengths = st.floats(1e-6, 5000) | st.integers(1, 5000).map(float) if within else _lengths
    made = st.builds(
        Box,
        name=st.sampled_from(sorted(SIZES)),
        x=starts,
        y=starts,
        width=lengths,
        height=lengths,
        label=_names,
        confidence=st.none() | st.floats(0, 1) if confidences else st.none(),
        original_id=st.integers(-5, 10**12).map(str) | st.sampled_from(["x", "01", "1.5", ""]) if ids else st.none(),
        source=st.just(source),
    )
    return st.lists(made, max_size=8).map(lambda found: sorted(found, key=lambda box: box.name))


def flagged(found: Iterable[Box], *flags: str) -> list[Box]:
    """Return the boxes with flags set on every second of them."""
    made = list(found)
    return [
        replace(
            box,
            **dict.fromkeys(flags, place % 2 == 1),  # type: ignore[arg-type]  # flags alone are true or false
        )
        for place, box in enumerate(made)
    ]
