"""The door to the app of notebooks, which stands above this layer, as it needs the service."""

from pkgutil import resolve_name
from typing import Any

_OPEN = "framedex.notebook:open_app"


def app_of(view: Any, *, height: int, mode: str, shows_findings: bool = False) -> Any:
    """Return the app that shows a view; see :meth:`framedex.View.app`."""
    return resolve_name(_OPEN)(view, height=height, mode=mode, shows_findings=shows_findings)
