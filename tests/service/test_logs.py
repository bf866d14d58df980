"""The logs of a server: JSON, and one line a second of each kind."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from framedex.service.logs import JsonFormatter, LimitedHandler


class Log:
    """A logger whose lines are read, and whose time the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.handler = LimitedHandler(lambda: self.now)
        self.stream = io.StringIO()
        self.handler.setStream(self.stream)
        self.handler.setFormatter(JsonFormatter())
        self.logger = logging.Logger("test")
        self.logger.addHandler(self.handler)

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines since the last call."""
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    """A log."""
    made = Log()
    yield made
    made.handler.close()


def test_lines__of_one_kind(log: Log) -> None:
    """Of a kind one line a second is written; those that are left out are counted with the next one."""
    for number in range(1000):
        log.logger.error("number %d", number)
    log.logger.error("another")
    assert [line["message"] for line in log.lines()] == ["number 0", "another"]
    log.now = 1.5
    log.logger.info("later")
    assert [(line["message"], line.get("more_of_this_kind")) for line in log.lines()] == [
        ("number 999", 998),
        ("later", None),
    ]


def test_lines__of_requests(log: Log) -> None:
    """Each request has its line."""
    for _ in range(3):
        log.logger.info("GET %s", "/", extra={"is_request": True})
    assert len(log.lines()) == 3


def test_lines__of_several_errors(log: Log) -> None:
    """Errors of other classes are other kinds."""
    for error in (ValueError("a"), KeyError("b"), ValueError("c")):
        log.logger.error("failed", exc_info=error)
    assert [line["exception"].splitlines()[-1] for line in log.lines()] == ["ValueError: a", "KeyError: 'b'"]
    log.handler.close()
    assert [line["exception"].splitlines()[-1] for line in log.lines()] == ["ValueError: c"]
