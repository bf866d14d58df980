"""Contributions of other packages, found by their entry points; see docs/plugins.md.

Nothing is looked for before a registry is asked for the first time. A contribution that cannot be used is left out and
named in the log; it never stops what asked for it.
"""

import logging
import sys
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from framedex import forks
from framedex.errors import InvalidInput
from framedex.records import Record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

_LOG = logging.getLogger("framedex")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=_Named)


class PluginStatus(StrEnum):
    """Whether a contribution can be used."""

    LOADED = "loaded"
    LEFT_OUT = "left out"


class Plugin(Record):
    """A contribution of another package: an entry point of one of the groups in docs/plugins.md.

    ``distribution`` and ``version`` are those of the package that was installed, and empty where its metadata lacks
    them. ``error`` says why the contribution was left out, and is None where it was loaded.
    """

    name: str
    group: str
    distribution: str
    version: str
    status: PluginStatus
    error: str | None


class Contributions(Generic[Row]):
    """The rows that other packages contribute to one registry, loaded when they are first asked for.

    Safe to share between threads.

    Args:
        group: of the entry points.
        kind: the class of a row, with a ``name`` that must be that of its entry point.
        taken: returns the names that contributions cannot have.
        check: raises an :class:`~framedex.Error` for a row that does not fit those before it, which it is given.
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
        """Return the contributed rows by name, in the order of their names."""
        with self._lock:
            if not self._loaded:
                self._loaded = True  # first, as a package that is imported may ask for what it contributes to
                self._load()
            return self._rows

    def plugins(self) -> list[Plugin]:
        """Return what was found, whether it was loaded or left out."""
        with self._lock:
            self.rows()
            return list(self._plugins)

    def _load(self) -> None:
        found = _installed(tuple(sys.path), self.group)
        for entry in sorted(found, key=lambda entry: (entry.name, _distribution(entry), entry.value)):
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
        """Take the row of an entry point; return why that cannot be, None if it was done."""
        try:
            row = entry.load()
            self._rows[entry.name] = self._checked(entry, row)
        except (Exception, SystemExit) as error:  # whatever the other package does
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
    """Return the entry points of a group of all packages on the module search path."""
    from importlib.metadata import entry_points  # reads all packages, so it loads late

    return entry_points(group=group)


def _distribution(entry: "EntryPoint") -> tuple[str, str]:
    """Return the name and the version of the package that has an entry point."""
    if entry.dist is None:
        return "", ""
    return entry.dist.metadata["Name"] or "", entry.dist.metadata["Version"] or ""
