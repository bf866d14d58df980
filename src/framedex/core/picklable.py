"""Errors that are sent to another process."""

import pickle


def picklable(error: BaseException, otherwise: BaseException) -> BaseException:
    """Return an error, or another one if it cannot be pickled or not be read again."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # classes of others may raise anything
        return otherwise
    return error
