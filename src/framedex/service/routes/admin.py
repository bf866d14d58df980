"""Administration of the service: settings that change while it runs, and the audit."""

from typing import Annotated
from uuid import UUID

from fastapi import Query

from framedex.access import Action
from framedex.hub.admin_settings import setting_key
from framedex.records import AuditPage
from framedex.service.actions import needs, routes
from framedex.service.deployment import fixed_settings, without_settings
from framedex.service.models_people import SettingChange, SettingValue, SettingValues
from framedex.service.parameters import CurrentActor, Service

router = routes("admin", prefix="/api/v1/admin")

_Text = Annotated[str | None, Query(max_length=200)]


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


@router.get("/audit")
@needs(Action.ADMIN_SETTINGS)
def get_audit(
    service: Service,
    actor: CurrentActor,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    user_id: _Text = None,
    action: _Text = None,
    dataset_id: UUID | None = None,
    since: _Text = None,
    until: _Text = None,
) -> AuditPage:
    """Return who did what in the last 90 days, the newest first.

    ``action`` is the beginning of an action's name; times are ISO 8601, UTC without a zone.
    """
    dataset = None if dataset_id is None else str(dataset_id)
    return service.hub.trail.page(
        actor, limit=limit, offset=offset, user_id=user_id, action=action, dataset_id=dataset, since=since, until=until
    )
