"""Settings from environment variables (``FRAMEDEX_…``) or from code."""

from framedex.settings.live import CHANGEABLE, ChangeableSettings, LiveSettings, checked_change
from framedex.settings.model import (
    NO_STEMS,
    Settings,
    available_cpus,
    check_language,
    check_log_level,
    languages,
    load_settings,
    user_path,
)

__all__ = [
    "CHANGEABLE",
    "NO_STEMS",
    "ChangeableSettings",
    "LiveSettings",
    "Settings",
    "available_cpus",
    "check_language",
    "check_log_level",
    "checked_change",
    "languages",
    "load_settings",
    "user_path",
]
