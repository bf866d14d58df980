"""Contributions of other packages (plugins), which entry points declare; see docs/plugins.md.

A registry loads its contributions on the first request. A contribution that cannot be used is left out with a warning
in the log; it never stops the request.
"""

import logging
import sys
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from framedex.core import forks
from framedex.errors import InvalidInput
from framedex.records import Record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

_LOG = logging.getLogger(__name__)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=_Named)


class PluginStatus(StrEnum):
    """The state of a contribution: loaded or left out."""

    LOADED = "loaded"
    LEFT_OUT = "left out"


class Plugin(Record):
    """A contribution of another package: an entry point in one of the groups of docs/plugins.md.

    ``distribution`` and ``version`` are those of the installed package; they are empty if its metadata lacks them.
    ``error`` is the reason why the contribution was left out, or None if it was loaded.
    """

    name: str
    group: str
    distribution: str
    version: str
    status: PluginStatus
    error: str | None


class Contributions(Generic[Row]):
    """The rows that other packages contribute to one registry. They are loaded on the first request.

    It is safe to share between threads.

    Args:
        group: the group of the entry points.
        kind: the class of a row. A row has a ``name``, which must be the name of its entry point.
        taken: returns the names that contributions cannot have.
        check: called with a row and the rows loaded before it; raises an :class:`~framedex.Error` if they conflict.
    """

    def __init__(
        self,
        group: str,
        kind: type[Row],
        *,
        taken: Callable[[], Collection[str]] = tuple,
        check: Callable[[Row, Mapping[str, Row]], None] | None = None,
    ) -> None:
        self.group = group
        self._kind, self._taken, self._check = kind, taken, check
        self._rows: dict[str, Row] = {}
        self._plugins: list[Plugin] = []
        self._loaded = False
        self._lock = forks.RLock()

    def rows(self) -> Mapping[str, Row]:
        """Return the contributed rows by name, sorted by name."""
        with self._lock:
            if not self._loaded:
                self._loaded = True  # set first, because an imported plugin may call this registry
                self._load()
            return self._rows

    def plugins(self) -> list[Plugin]:
        """Return all contributions, loaded and left out."""
        with self._lock:
            self.rows()
            return list(self._plugins)

    def _load(self) -> None:
        entries = _installed(tuple(sys.path), self.group)
        for entry in sorted(entries, key=lambda entry: (entry.name, _distribution(entry), entry.value)):
            error = self._add(entry)
            status = PluginStatus.LOADED if error is None else PluginStatus.LEFT_OUT
            distribution, version = _distribution(entry)
            plugin = Plugin(
                name=entry.name,
                group=self.group,
                distribution=distribution,
                version=version,
                status=status,
                error=error,
            )
            self._plugins.append(plugin)
            if error is not None:
                source = " ".join(filter(None, (distribution, version))) or "an unnamed package"
                _LOG.warning("the plugin %r of %s (%s) was left out: %s", entry.name, source, self.group, error)

    def _add(self, entry: "EntryPoint") -> str | None:
        """Add the row of an entry point; return the reason if it cannot be used, otherwise None."""
        try:
            row = entry.load()
            self._rows[entry.name] = self._checked(entry, row)
        except (Exception, SystemExit) as error:  # a plugin may raise anything
            said = str(error).partition("\n")[0]
            return said if isinstance(error, InvalidInput) else f"{type(error).__name__}: {said}"
        return None

    def _checked(self, entry: "EntryPoint", row: object) -> Row:
        if not isinstance(row, self._kind):
            expected = f"{self._kind.__module__}.{self._kind.__qualname__}"
            raise InvalidInput(f"{entry.value} is of the type {type(row).__name__}, not {expected}")
        if row.name != entry.name:
            raise InvalidInput(f"{entry.value} has the name {row.name!r}, not that of its entry point")
        if row.name in self._taken():
            raise InvalidInput(f"the name {row.name!r} is taken by Framedex itself")
        if row.name in self._rows:
            raise InvalidInput(f"the name {row.name!r} is taken by another plugin")
        if self._check is not None:
            self._check(row, self._rows)
        return row


@lru_cache(maxsize=16)
def _installed(_path: tuple[str, ...], group: str) -> "EntryPoints":
    """Return the entry points of a group, of all packages on the module search path."""
    from importlib.metadata import entry_points  # it reads all packages, so it is imported late

    return entry_points(group=group)


def _distribution(entry: "EntryPoint") -> tuple[str, str]:
    """Return the name and the version of the package with an entry point."""
    if entry.dist is None:
        return "", ""
    return entry.dist.metadata["Name"] or "", entry.dist.metadata["Version"] or ""
