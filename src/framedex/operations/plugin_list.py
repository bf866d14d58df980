"""List of the installed plugins of all registries."""

from typing import Any

from framedex.annotations.formats import ANNOTATION_PLUGINS
from framedex.encoders.registry import ENCODER_PLUGINS
from framedex.enrichers.detectors import DETECTOR_PLUGINS
from framedex.export.formats import EXPORT_PLUGINS
from framedex.issue_types.registry import ISSUE_PLUGINS
from framedex.plugins import Contributions, Plugin

_REGISTRIES: tuple[Contributions[Any], ...] = (
    ENCODER_PLUGINS,
    DETECTOR_PLUGINS,
    ISSUE_PLUGINS,
    EXPORT_PLUGINS,
    ANNOTATION_PLUGINS,
)


def list_plugins() -> list[Plugin]:
    """Return the plugins of other packages, by group and name, including rejected ones; see docs/plugins.md.

    All plugins are loaded for that.

    Examples:
        >>> [(each.group, each.name) for each in framedex.list_plugins()]
        []
    """
    return [plugin for registry in _REGISTRIES for plugin in registry.plugins()]
