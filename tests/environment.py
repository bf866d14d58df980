"""The environment of this process, and its folder, for tests that change them."""

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

Environment = MutableMapping[str, str]


@contextmanager
def restored() -> Iterator[Environment]:
    """Give ``os.environ`` to a block; at its end it is as before."""
    before = dict(os.environ)
    try:
        yield os.environ
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})
