"""Sizes in words."""

import pytest

from framedex.render.sizes import bytes_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KB"),
        (1_500_000, "1.4 MB"),
        (2**30, "1.0 GB"),
        (5 * 2**50, "5,120.0 TB"),
    ],
)
def test_bytes_text(size: int, text: str) -> None:
    """A size has the largest unit that is not larger than the size."""
    assert bytes_text(size) == text
