"""Progress of writing, divided into stages."""

from framedex.progress import ShareProgress


def part(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    """Return a function for the fraction of one stage, which takes the whole from *start* to *end*."""
    return lambda share: progress(start + (end - start) * share)
