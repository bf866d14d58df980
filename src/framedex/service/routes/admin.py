"""Administration of the service: settings that change while it runs."""

from typing import Annotated

from fastapi import Query

from framedex.access import Action
from framedex.hub.admin_settings import setting_key
from framedex.service.actions import needs, routes
from framedex.service.deployment import fixed_settings, without_settings
from framedex.service.models_people import SettingChange, SettingValue, SettingValues
from framedex.service.parameters import CurrentActor, Service

router = routes("admin", prefix="/api/v1/admin")


@router.get("/settings")
@needs(Action.ADMIN_SETTINGS, unless=without_settings, invalid_status=400)
def get_admin_settings(
    service: Service, actor: CurrentActor, key: Annotated[str | None, Query(max_length=200)] = None
) -> SettingValue | SettingValues:
    """Return the value of a setting, or without a key those of all that administrators see."""
    fixed = fixed_settings(service)
    if key is None:
        return SettingValues(settings={**service.hub.admin_settings.values(actor), **fixed})
    value = fixed.get(setting_key(key))
    return SettingValue(value=service.hub.admin_settings.get(actor, key) if value is None else value)


@router.post("/settings")
@needs(Action.ADMIN_SETTINGS, unless=without_settings, invalid_status=400)
def post_admin_setting(service: Service, actor: CurrentActor, body: SettingChange) -> SettingValue:
    """Change a setting at once, and for later starts of the service."""
    return SettingValue(value=service.hub.admin_settings.change(actor, body.key, body.value))
