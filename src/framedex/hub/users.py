"""User accounts: creation, changes, deletion, sessions and roles, each with its rules."""

from collections.abc import Sequence
from typing import Any

from framedex.access import Action, Actor, RealmRole, Role
from framedex.core.checks import check_integer
from framedex.core.naming import check_name
from framedex.errors import InvalidInput
from framedex.hub import memberships
from framedex.hub.context import HubContext
from framedex.hub.passwords import check_password
from framedex.hub.providers import IdentityProvider
from framedex.hub.sessions import IDLE
from framedex.records import User, UserSession
from framedex.storage.service_db import accounts, audit, homes, sessions, tenants
from framedex.storage.service_db.database import DEFAULT_ID

_SHORTEST_NAME = 3
_LAST_ADMIN = "The last admin cannot be deleted"


class Users:
    """The user accounts of a hub.

    Args:
        context: the open parts of the hub.
        provider: where accounts live beside the database.
    """

    def __init__(self, context: HubContext, provider: IdentityProvider) -> None:
        self._context, self._provider = context, provider

    def create(
        self,
        actor: Actor,
        username: str,
        password: str,
        *,
        first_name: str | None = None,
        last_name: str | None = None,
        email: str | None = None,
        enabled: bool = True,
        role: Role = Role.VIEWER,
        tenant_id: str = DEFAULT_ID,
    ) -> User:
        """Create a user who is a member of a tenant, all or nothing, and return the user.

        A new admin demotes the other admins to editors in single-workspace mode.

        Args:
            actor: who does it.
            username: 3 to 255 characters without blanks; unique, whatever the case.
            password: at least 8 characters.
            first_name: up to 255 characters.
            last_name: up to 255 characters.
            email: unique; None for none.
            enabled: whether the user may log in.
            role: in the tenant.
            tenant_id: the tenant.

        Raises:
            Forbidden: the actor may not manage users.
            InvalidInput: a value is invalid, or the name or the address is taken.
            NotFound: the tenant does not exist.
        """
        self._context.require(actor, Action.USERS_WRITE, target=username)
        check_username(username)
        for kind, name in (("first name", first_name), ("last name", last_name), ("e-mail address", email)):
            if name is not None:
                check_name(kind, name)
        password_hash = self._context.passwords.hash(password)
        role = _role(role)
        identity = self._provider.create(username, password)
        try:
            with self._context.database.write() as connection:
                tenants.find_tenant(connection, tenant_id)
                user_id = accounts.insert_user(
                    connection,
                    username,
                    password_hash=password_hash,
                    first_name=first_name,
                    last_name=last_name,
                    email=email,
                    enabled=enabled,
                )
                memberships.join(connection, tenant_id, user_id, role, is_single=self._context.is_single)
                audit.insert_entry(connection, actor.user_id, "users.create", target=user_id)
                return accounts.read_user(connection, user_id)
        except BaseException:
            self._provider.delete(identity)
            raise

    def page(self, actor: Actor, *, search: str = "", limit: int = 100, offset: int = 0) -> tuple[list[User], int]:
        """Return a page of the users, by username, and the number of all matches.

        Args:
            actor: who asks.
            search: text within the username, the first or the last name, whatever the case.
            limit: of the page, 1 to 1,000.
            offset: of the page.

        Raises:
            Forbidden: the actor may not view users.
            InvalidInput: the limit or the offset is out of range.
        """
        self._context.require(actor, Action.USERS_READ)
        check_integer("limit", limit, minimum=1, maximum=1000)
        check_integer("offset", offset, minimum=0)
        with self._context.database.read() as connection:
            return accounts.list_users(connection, search=search, limit=limit, offset=offset)

    def get(self, actor: Actor, user_id: str) -> User:
        """Return a user.

        Raises:
            Forbidden: the actor may not view users.
            NotFound: there is no such user.
        """
        self._context.require(actor, Action.USERS_READ)
        with self._context.database.read() as connection:
            return accounts.read_user(connection, user_id)

    def change(self, actor: Actor, user_id: str, *, username: str | None = None, enabled: bool | None = None) -> User:
        """Rename a user, or let the user log in or not any more; return the user.

        A user who is disabled is logged out, and API keys stop at once.

        Raises:
            Forbidden: the actor may not manage users.
            NotFound: there is no such user.
            InvalidInput: nothing is to change, the name is invalid or taken, or the actor would be locked out.
        """
        self._context.require(actor, Action.USERS_WRITE, target=user_id)
        if username is None and enabled is None:
            raise InvalidInput("give a username or enabled: there is nothing to change")
        with self._context.database.write() as connection:
            accounts.find_user(connection, user_id)
            if username is not None:
                check_username(username)
                accounts.rename_user(connection, user_id, username)
                self._provider.rename(None, username)
            if enabled is not None:
                if not enabled:
                    _check_not_self(actor, user_id, "You cannot disable your own account")
                    accounts.end_sessions(connection, [user_id])
                accounts.update_user(connection, user_id, enabled=enabled)
                self._provider.enable(None, enabled=enabled)
            audit.insert_entry(connection, actor.user_id, "users.change", target=user_id)
            return accounts.read_user(connection, user_id)

    def delete(self, actor: Actor, user_id: str) -> None:
        """Delete a user; the datasets of the user go to the acting admin, or else to the admin of their tenant.

        Texts like ``created_by`` in records of what the user made stay.

        Raises:
            Forbidden: the actor may not manage users.
            NotFound: there is no such user.
            InvalidInput: it is the actor's own account, or the last admin.
        """
        self._context.require(actor, Action.USERS_WRITE, target=user_id)
        with self._context.database.write() as connection:
            accounts.find_user(connection, user_id)
            _check_not_self(actor, user_id, "You cannot delete your own account")
            for tenant_id, role in tenants.roles_of(connection, user_id).items():
                if role is Role.ADMIN:
                    memberships.check_other_admin(connection, tenant_id, user_id, _LAST_ADMIN)
            for tenant in tenants.list_tenants(connection):
                owner = self._next_owner(connection, actor, tenant.id, user_id)
                homes.transfer_datasets(connection, user_id, owner, tenant_id=tenant.id)
            self._provider.delete(None)
            accounts.delete_user(connection, user_id)
            audit.insert_entry(connection, actor.user_id, "users.delete", target=user_id)

    def _next_owner(self, connection: Any, actor: Actor, tenant_id: str, former_id: str) -> str | None:
        admins = [each for each in tenants.admins_of(connection, tenant_id) if each != former_id]
        return actor.user_id if actor.user_id in admins else next(iter(admins), None)

    def reset_password(self, actor: Actor, user_id: str, password: str) -> None:
        """Set a temporary password, which the user must change at the next log-in; all sessions of the user end.

        Raises:
            Forbidden: the actor may not manage users.
            NotFound: there is no such user.
            InvalidInput: the password is too short or too long, or the account is one of an identity provider.
        """
        self._context.require(actor, Action.USERS_WRITE, target=user_id)
        check_password(password)
        with self._context.database.read() as connection:
            if accounts.find_user(connection, user_id).password_hash is None:
                raise InvalidInput("The account of an identity provider has no password here")
        password_hash = self._context.passwords.hash(password)
        with self._context.database.write() as connection:
            accounts.find_user(connection, user_id)
            accounts.update_user(connection, user_id, password_hash=password_hash, password_temporary=True)
            accounts.end_sessions(connection, [user_id])
            self._provider.set_password(None, password)
            audit.insert_entry(connection, actor.user_id, "users.reset_password", target=user_id)

    def log_out(self, actor: Actor, user_id: str) -> None:
        """End all sessions of a user; API keys stay.

        Raises:
            Forbidden: the actor may not manage users.
            NotFound: there is no such user.
        """
        self._context.require(actor, Action.USERS_WRITE, target=user_id)
        with self._context.database.write() as connection:
            accounts.find_user(connection, user_id)
            accounts.end_sessions(connection, [user_id])
            self._provider.log_out(None)
            audit.insert_entry(connection, actor.user_id, "users.log_out", target=user_id)

    def sessions(self, actor: Actor, user_id: str) -> Sequence[UserSession]:
        """Return the sessions of a user that have not ended, the newest first.

        Raises:
            Forbidden: the actor may not view users.
            NotFound: there is no such user.
        """
        self._context.require(actor, Action.USERS_READ)
        now = self._context.clock()
        with self._context.database.read() as connection:
            accounts.find_user(connection, user_id)
            return sessions.list_sessions(connection, user_id, now=now, idle_since=now - IDLE)

    def set_roles(self, actor: Actor, user_id: str, roles: Sequence[str]) -> User:
        """Replace the roles of a user that hold in all tenants; unknown ones are ignored. Return the user.

        Raises:
            Forbidden: the actor may not manage users.
            NotFound: there is no such user.
            InvalidInput: the actor would lose the right to manage users.
        """
        self._context.require(actor, Action.USERS_WRITE, target=user_id)
        known = {role for role in RealmRole if role in roles}
        if user_id == actor.user_id and RealmRole.MANAGE_USERS not in known:
            raise InvalidInput("You cannot remove your own administration roles")
        with self._context.database.write() as connection:
            accounts.find_user(connection, user_id)
            accounts.set_realm_roles(connection, user_id, known)
            audit.insert_entry(connection, actor.user_id, "users.set_roles", target=user_id)
            return accounts.read_user(connection, user_id)

    def count(self) -> int:
        """Return the number of user accounts."""
        with self._context.database.read() as connection:
            return accounts.count_users(connection)


def check_username(username: str) -> None:
    """Check the name of a user.

    Raises:
        InvalidInput: the name has fewer than 3 or more than 255 characters, or blanks, or is not printable.
    """
    check_name("user", username)
    if len(username) < _SHORTEST_NAME or any(character.isspace() for character in username):
        raise InvalidInput(f"a username has {_SHORTEST_NAME} to 255 characters and no blanks; this is {username!r}")


def _role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInput(f"a role is one of {', '.join(Role)}, not {role!r}") from None


def _check_not_self(actor: Actor, user_id: str, message: str) -> None:
    if actor.user_id == user_id:
        raise InvalidInput(message)
