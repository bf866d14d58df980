"""Human-readable sizes."""

from framedex.core.counts import counted

_UNITS = ((40, "TB"), (30, "GB"), (20, "MB"), (10, "KB"))


def bytes_text(size: int) -> str:
    """Return a number of bytes as text, for example ``48.3 MB``; one KB is 1,024 bytes."""
    for power, unit in _UNITS:
        if size >= 2**power:
            return f"{size / 2**power:,.1f} {unit}"
    return counted(size, "bytes")
