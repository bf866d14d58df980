"""The logs of a server: lines of JSON on the standard error, at most one a second of each kind."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_PERIOD_S = 1.0
_MOST_KINDS = 1000


class LimitedHandler(logging.StreamHandler[Any]):
    """A handler that writes at most one record a second of each kind, and how many it left out.

    Records of a kind come from one logger at one level with one text before its values are put in, and one class of
    exception. Lines of requests are all written: they have the attribute ``is_request``.

    Args:
        clock: returns a time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(sys.stderr)
        self._clock = clock
        self._last: dict[tuple[object, ...], float] = {}
        self._left_out: dict[tuple[object, ...], tuple[logging.LogRecord, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it."""
        now = self._clock()
        self._write_left_out(now)
        if getattr(record, "is_request", False):
            super().emit(record)
            return
        kind = _kind_of(record)
        if now - self._last.get(kind, now - _PERIOD_S) < _PERIOD_S:
            _, n = self._left_out.get(kind, (record, 0))
            self._left_out[kind] = record, n + 1
            return
        self._note(kind, now)
        super().emit(record)

    def close(self) -> None:
        """Write what was left out, and end."""
        with self.lock or threading.RLock():
            self._write_left_out(float("inf"))
        super().close()

    def _write_left_out(self, now: float) -> None:
        for kind in [each for each in self._left_out if now - self._last.get(each, 0.0) >= _PERIOD_S]:
            record, n = self._left_out.pop(kind)
            self._note(kind, now)
            record.fields = {**getattr(record, "fields", {}), "more_of_this_kind": n - 1}
            super().emit(record)

    def _note(self, kind: tuple[object, ...], now: float) -> None:
        if len(self._last) >= _MOST_KINDS:
            self._last = {each: at for each, at in self._last.items() if now - at < _PERIOD_S}
        self._last[kind] = now


def _kind_of(record: logging.LogRecord) -> tuple[object, ...]:
    error = record.exc_info[0] if record.exc_info else None
    return record.name, record.levelno, str(record.msg), error


class JsonFormatter(logging.Formatter):
    """A formatter of log records as one line of JSON each."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON: time, level, logger, message, and further fields."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if hasattr(record, "request_id"):
            line["request_id"] = record.request_id
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up_logs(level: str | None) -> None:
    """Write the logs of the service and of all libraries as lines of JSON to the standard error.

    Args:
        level: where the settings, applied when the workspace was opened, name none; None for INFO.
    """
    handler = LimitedHandler()
    handler.setFormatter(JsonFormatter())
    logging.getLogger().handlers[:] = [handler]
    logging.captureWarnings(True)
    sys.excepthook = _log_exception
    threading.excepthook = lambda found: _log_exception(found.exc_type, found.exc_value, found.exc_traceback)
    for name in ("framedex", "uvicorn", "asyncio", "py.warnings"):
        each = logging.getLogger(name)
        each.handlers[:] = [handler]
        each.propagate = False
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    if logging.getLogger("framedex").level == logging.NOTSET:
        logging.getLogger("framedex").setLevel(level or logging.INFO)


def _log_exception(kind: type[BaseException], error: BaseException | None, trace: Any) -> None:
    """Write an exception that nothing has caught."""
    if issubclass(kind, (KeyboardInterrupt, SystemExit)):
        sys.__excepthook__(kind, error or kind(), trace)
        return
    logging.getLogger("framedex.service").error("an error was not caught", exc_info=(kind, error or kind(), trace))
