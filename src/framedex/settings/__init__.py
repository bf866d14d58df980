"""Settings from environment variables (``FRAMEDEX_…``) or from code."""

from framedex.settings.live import CHANGEABLE, ChangeableSettings, LiveSettings, checked_change
from framedex.settings.model import (
    NO_STEMS,
    PROCESSES,
    RAY,
    THREADS,
    Settings,
    available_cpus,
    check_executor,
    check_language,
    is_ray,
    languages,
    load_settings,
    user_path,
)

__all__ = [
    "CHANGEABLE",
    "NO_STEMS",
    "PROCESSES",
    "RAY",
    "THREADS",
    "ChangeableSettings",
    "LiveSettings",
    "Settings",
    "available_cpus",
    "check_executor",
    "check_language",
    "checked_change",
    "is_ray",
    "languages",
    "load_settings",
    "user_path",
]
