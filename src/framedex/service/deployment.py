"""Deployments that do not serve some routes: hosted ones, and those without log-ins."""

from framedex.service.settings import RunMode
from framedex.service.state import ServiceState

_NO_MANAGEMENT = "User management is not enabled"
_NO_SETTINGS = "Admin settings are available on self-hosted deployments only"


def without_management(state: ServiceState) -> str | None:
    """Return why there is no management of users; None if there is."""
    is_served = state.settings.run_mode is RunMode.ONPREM and not state.auth_off
    return None if is_served else _NO_MANAGEMENT


def without_settings(state: ServiceState) -> str | None:
    """Return why administrators cannot change settings; None if they can."""
    return None if state.settings.run_mode is RunMode.ONPREM else _NO_SETTINGS


def fixed_settings(state: ServiceState) -> dict[str, str]:
    """Return the settings that administrators see and only the environment changes, as text by key."""
    return {"RUN_MODE": str(state.settings.run_mode), "DISABLE_AUTH": str(state.auth_off).lower()}
