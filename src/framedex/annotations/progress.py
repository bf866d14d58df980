"""Progress of the stages of writing."""

from framedex.core.progress import ShareProgress


def part(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    """Return a progress function for one stage, which covers the fraction from *start* to *end* of the whole."""
    return lambda share: progress(start + (end - start) * share)
