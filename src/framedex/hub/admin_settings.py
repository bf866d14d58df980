"""Settings that administrators change while the service runs; they are stored and hold after a restart, too."""

import logging
from typing import Any

from framedex.access import Action, Actor, TenantSubject
from framedex.core import forks
from framedex.errors import InvalidInput
from framedex.hub.actors import own_id
from framedex.hub.context import HubContext
from framedex.settings import CHANGEABLE, checked_change
from framedex.storage.service_db import audit, setting_rows
from framedex.storage.service_db.database import DEFAULT_ID

OF_ENVIRONMENT = ("RUN_MODE", "DISABLE_AUTH")
"""The settings that administrators see and only the environment changes."""
SERVICE = TenantSubject(DEFAULT_ID)
"""The subject of what concerns the whole service: the default tenant, whose admins manage it."""


class AdminSettings:
    """The settings of a hub that change while it is open: :data:`framedex.settings.CHANGEABLE`, in capitals.

    A stored value takes precedence over the environment. A value that another process stores holds here from the next
    :meth:`refresh` on.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context, self._lock = context, forks.Lock()
        self.refresh()

    def values(self, actor: Actor) -> dict[str, str]:
        """Return the present values as text, by key.

        Raises:
            Forbidden: the actor is no admin of the default tenant.
        """
        self._context.require(actor, Action.ADMIN_SETTINGS, SERVICE)
        return {name.upper(): self._text(name) for name in CHANGEABLE}

    def get(self, actor: Actor, key: str) -> str:
        """Return the present value of a setting as text.

        Raises:
            Forbidden: the actor is no admin of the default tenant.
            InvalidInput: there is no such setting.
        """
        values = self.values(actor)
        if (name := setting_key(key)) not in values:
            raise InvalidInput(f"Unknown setting {key!r:.80}")
        return values[name]

    def change(self, actor: Actor, key: str, value: Any) -> str:
        """Change a setting at once, store its value, and return it as text.

        Args:
            actor: who does it.
            key: the name of the setting, in any case, with hyphens or underscores.
            value: the value, or its text.

        Raises:
            Forbidden: the actor is no admin of the default tenant.
            InvalidInput: there is no such setting, only the environment changes it, or the value does not fit.
        """
        self._context.require(actor, Action.ADMIN_SETTINGS, SERVICE, target=key[:80])
        if (name := setting_key(key)) in OF_ENVIRONMENT:
            raise InvalidInput(f"{name} can be changed by environment only")
        if name.lower() not in CHANGEABLE:
            raise InvalidInput(f"Unknown setting {key!r:.80}")
        if value is None:
            raise InvalidInput(f"the setting {name} needs a value")
        text = _as_text(checked_change(name.lower(), value))
        with self._lock:
            with self._context.change(actor, Action.ADMIN_SETTINGS, SERVICE) as connection:
                setting_rows.put_setting(connection, name, text, own_id(actor))
                audit.insert_entry(connection, actor.user_id, "settings.change", target=f"{name}={text}")
            self._apply({name: text})
        return text

    def refresh(self) -> None:
        """Let the stored values hold; one that this version does not accept is left out, with a warning in the log."""
        with self._lock:
            with self._context.database.read() as connection:
                stored = setting_rows.stored_settings(connection)
            self._apply(stored)

    def _apply(self, stored: dict[str, str]) -> None:
        for name, text in stored.items():
            try:
                value = checked_change(name.lower(), text)
            except InvalidInput as error:
                logging.getLogger("framedex.hub").warning("a stored setting is ignored: %s", error)
                continue
            if getattr(self._context.workspace.settings, name.lower()) != value:
                self._context.workspace.change_settings(**{name.lower(): value})

    def _text(self, name: str) -> str:
        value = getattr(self._context.workspace.settings, name)
        if value is None:  # the level of a program that has set none itself
            return logging.getLevelName(logging.getLogger("framedex").getEffectiveLevel())
        return _as_text(value)


def setting_key(key: str) -> str:
    """Return the name of a setting: in capitals, with underscores."""
    return key.strip().replace("-", "_").upper()


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
