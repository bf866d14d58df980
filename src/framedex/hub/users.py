"""User accounts: creation, changes, deletion, sessions and roles, each with its rules."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

from framedex.access import Action, Actor, RealmRole, Role, UserSubject
from framedex.core.checks import check_integer
from framedex.core.naming import check_line, check_name
from framedex.errors import Conflict, Error, InvalidInput
from framedex.hub import memberships
from framedex.hub.actors import present_actor
from framedex.hub.context import HubContext
from framedex.hub.passwords import check_password
from framedex.hub.providers import IdentityProvider, NewAccount, compensated
from framedex.hub.sessions import IDLE
from framedex.hub.tenants import checked_role
from framedex.records import User, UserSession
from framedex.storage.service_db import accounts, audit, homes, sessions, tenants
from framedex.storage.service_db.database import DEFAULT_ID
from framedex.storage.service_db.deletions import (
    UserDeletion,
    begin_user_deletion,
    begun_user_deletions,
    end_user_deletion,
)

_SHORTEST_NAME = 3
_LAST_ADMIN = "The last admin cannot be deleted"


class Users:
    """The user accounts of a hub.

    Who changes an account needs at least its role in each of its tenants: who sets a password may do what the user may.

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
            username: 3 to 255 characters without blanks; unique, whatever the case, and nobody's e-mail address.
            password: at least 8 characters.
            first_name: up to 255 characters.
            last_name: up to 255 characters.
            email: unique, and nobody's username; None for none.
            enabled: whether the user may log in.
            role: in the tenant.
            tenant_id: the tenant.

        Raises:
            Forbidden: the actor may not manage users, or has a lower role in the tenant.
            InvalidInput: a value is invalid, the name or the address is taken, or a disabled user would be an admin.
            NotFound: the tenant does not exist.
            Conflict: the identity provider gave the account of another user; nothing was stored.
            Error: the identity provider did not create the account; nothing was stored.
        """
        role = checked_role(role)
        subject = UserSubject({tenant_id: role})
        self._context.require(actor, Action.USERS_WRITE, subject, target=username)
        check_username(username)
        for kind, name in (("first name", first_name), ("last name", last_name)):
            if name is not None:
                check_line(f"a {kind}", name)
        if email is not None:
            check_email(email)
        password_hash = self._context.passwords.hash(password)
        with self._context.database.read() as connection:
            tenants.find_tenant(connection, tenant_id)
            accounts.check_free(connection, username, email)
        account = NewAccount(username, password, first_name, last_name, email, enabled)
        with compensated() as steps:
            identity = self._provider.create(account)
            if identity is not None:
                self._check_new(identity)
                steps.append(partial(self._provider.delete, identity))
            with self._context.change(actor, Action.USERS_WRITE, subject) as connection:
                tenants.find_tenant(connection, tenant_id)
                user_id = _insert(connection, account, None if identity is not None else password_hash)
                if identity is not None:
                    accounts.put_identity(connection, self._provider.issuer, identity, user_id)
                memberships.join(connection, tenant_id, user_id, role, is_single=self._context.is_single)
                audit.insert_entry(connection, actor.user_id, "users.create", target=user_id)
                return accounts.read_user(connection, user_id)

    def _check_new(self, identity: str) -> None:
        """Check that an account that a provider has created is not that of another user, which must not be deleted."""
        with self._context.database.read() as connection:
            if accounts.user_of_identity(connection, self._provider.issuer, identity) is not None:
                raise Conflict(f"the identity provider gave a new user the account {identity!r} of another one")

    def create_first_admin(self, password: str, username: str = "admin") -> User | None:
        """Create the first user of a new service, an admin of the default tenant; do nothing if there are users.

        Args:
            password: at least 8 characters; it is not temporary.
            username: the name of the user.

        Returns:
            The user; None if there are users already.

        Raises:
            InvalidInput: the name or the password is invalid.
        """
        check_username(username)
        if self.count():
            return None
        account, password_hash = NewAccount(username, password), self._context.passwords.hash(password)
        with self._context.database.write() as connection:
            if accounts.count_users(connection):  # another process was faster
                return None
            user_id = _insert(connection, account, password_hash)
            memberships.join(connection, DEFAULT_ID, user_id, Role.ADMIN, is_single=self._context.is_single)
            audit.insert_entry(connection, None, "users.create_first_admin", target=user_id)
            return accounts.read_user(connection, user_id)

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

    def find(self, actor: Actor, name: str) -> User:
        """Return the user with an e-mail address, a username or an id.

        Raises:
            Forbidden: the actor may not view users.
            NotFound: there is no such user.
        """
        self._context.require(actor, Action.USERS_READ)
        with self._context.database.read() as connection:
            row = accounts.user_addressed(connection, name)
            return accounts.read_user(connection, name if row is None else row.id)

    def change(self, actor: Actor, user_id: str, *, username: str | None = None, enabled: bool | None = None) -> User:
        """Rename a user, or let the user log in or not any more; return the user.

        A user who is disabled is logged out, and API keys stop at once.

        Raises:
            Forbidden: the actor may not manage users, or has a lower role than the user in a tenant.
            NotFound: there is no such user.
            InvalidInput: nothing is to change, the name is invalid or taken, or it is the actor or the last admin who
                would be disabled.
        """
        is_end = enabled is False and user_id != actor.user_id
        self._require(actor, user_id, unless_last="The last admin cannot be disabled" if is_end else None)
        if username is None and enabled is None:
            raise InvalidInput("give a username or enabled: there is nothing to change")
        if username is not None:
            check_username(username)
        if enabled is False:
            _check_not_self(actor, user_id, "You cannot disable your own account")
        with self._context.database.read() as connection:
            former, identity = self._account(connection, user_id)
            self._check_change(connection, user_id, username, enabled)
        with compensated() as steps:
            if identity is not None and username is not None:
                self._provider.rename(identity, username)
                steps.append(partial(self._provider.rename, identity, former.username))
            if identity is not None and enabled is not None:
                self._provider.enable(identity, enabled=enabled)
                steps.append(partial(self._provider.enable, identity, enabled=former.enabled))
            with self._changing(actor, user_id) as connection:
                accounts.find_user(connection, user_id)
                self._check_change(connection, user_id, username, enabled)
                if username is not None:
                    accounts.rename_user(connection, user_id, username)
                if enabled is not None:
                    accounts.update_user(connection, user_id, enabled=enabled)
                if enabled is False:
                    accounts.end_sessions(connection, [user_id])
                audit.insert_entry(connection, actor.user_id, "users.change", target=user_id)
                return accounts.read_user(connection, user_id)

    def _account(self, connection: Any, user_id: str) -> tuple[Any, str | None]:
        """Return the row of a user, and the id of the account at the provider; None without one."""
        row = accounts.find_user(connection, user_id)
        return row, accounts.identity_of(connection, self._provider.issuer, user_id)

    def _check_change(self, connection: Any, user_id: str, username: str | None, enabled: bool | None) -> None:
        if username is not None:
            accounts.check_free(connection, username, user_id=user_id)
        if enabled is False:
            _check_not_last_admin(connection, user_id, "The last admin cannot be disabled")

    def delete(self, actor: Actor, user_id: str) -> None:
        """Delete a user; the datasets of the user go to the acting admin, or else to the admin of their tenant.

        Texts like ``created_by`` in records of what the user made stay.

        Raises:
            Forbidden: the actor may not manage users, or has a lower role than the user in a tenant.
            NotFound: there is no such user.
            InvalidInput: it is the actor's own account, or the last admin.
        """
        self._require(actor, user_id, unless_last=None if user_id == actor.user_id else _LAST_ADMIN)
        with self._context.database.read() as connection:
            _, identity = self._account(connection, user_id)
        if identity is None:
            with self._changing(actor, user_id) as connection:
                self._check_deletion(connection, actor, user_id)
                _delete(connection, user_id, actor.user_id)
            return
        self._delete_identity(actor, user_id, identity)
        with self._changing(actor, user_id) as connection:
            if end_user_deletion(connection, user_id) is not None:  # else another process has finished it
                self._check_deletion(connection, actor, user_id)
                _delete(connection, user_id, actor.user_id)

    def finish_deletions(self) -> None:
        """Finish deletions of users with an account at the provider whose processes were killed in between.

        One that would leave no admin is taken back. If the provider cannot be reached, the next call tries again.
        """
        with self._context.database.read() as connection:
            begun = begun_user_deletions(connection)
        for each in begun:
            self._finish_deletion(each)

    def _finish_deletion(self, deletion: UserDeletion) -> None:
        user_id = deletion.user_id
        try:
            with self._context.database.read() as connection:
                _, identity = self._account(connection, user_id)
                _check_not_last_admin(connection, user_id, _LAST_ADMIN)
        except Error:  # there is no such user any more, or it is the last admin
            self._keep(user_id)
            return
        with suppress(Error):
            if identity is not None:
                self._provider.delete(identity)
            with self._context.database.write() as connection:
                _check_not_last_admin(connection, user_id, _LAST_ADMIN)
                if end_user_deletion(connection, user_id) is not None:
                    _delete(connection, user_id, deletion.actor_id)

    def _check_deletion(self, connection: Any, actor: Actor, user_id: str) -> None:
        accounts.find_user(connection, user_id)
        _check_not_self(actor, user_id, "You cannot delete your own account")
        _check_not_last_admin(connection, user_id, _LAST_ADMIN)

    def _delete_identity(self, actor: Actor, user_id: str, identity: str) -> None:
        """Delete the account of a user at the provider.

        A deletion cannot be taken back. So the user is disabled first, and the deletion noted: if the process is killed
        after it, :meth:`finish_deletions` deletes the user.
        """
        with self._changing(actor, user_id) as connection:
            self._check_deletion(connection, actor, user_id)
            was_enabled = accounts.find_user(connection, user_id).enabled
            begin_user_deletion(connection, user_id, actor.user_id, was_enabled=was_enabled)
            accounts.update_user(connection, user_id, enabled=False)
        try:
            self._provider.delete(identity)
        except BaseException:
            self._keep(user_id)
            raise

    def _keep(self, user_id: str) -> None:
        """Take a deletion back that has begun; the user may log in as before."""
        with self._context.database.write() as connection:
            if (begun := end_user_deletion(connection, user_id)) is not None:
                accounts.update_user(connection, user_id, enabled=begun.was_enabled)

    def reset_password(self, actor: Actor, user_id: str, password: str) -> None:
        """Set a temporary password, which the user must change at the next log-in; all sessions of the user end.

        Raises:
            Forbidden: the actor may not manage users, or has a lower role than the user in a tenant.
            NotFound: there is no such user.
            InvalidInput: the password is too short or too long, or the account is one of an identity provider.
        """
        self._require(actor, user_id)
        check_password(password)
        with self._context.database.read() as connection:
            user, identity = self._account(connection, user_id)
        values: dict[str, Any] = {}
        if identity is not None:
            self._provider.set_password(identity, password)
        elif user.password_hash is None:
            raise InvalidInput("The account of an identity provider has no password here")
        else:
            values = {"password_hash": self._context.passwords.hash(password), "password_temporary": True}
        with self._changing(actor, user_id) as connection:
            accounts.find_user(connection, user_id)
            if values:
                accounts.update_user(connection, user_id, **values)
            accounts.end_sessions(connection, [user_id])
            audit.insert_entry(connection, actor.user_id, "users.reset_password", target=user_id)

    def log_out(self, actor: Actor, user_id: str) -> None:
        """End all sessions of a user; API keys stay.

        Raises:
            Forbidden: the actor may not manage users, or has a lower role than the user in a tenant.
            NotFound: there is no such user.
        """
        self._require(actor, user_id)
        with self._context.database.read() as connection:
            _, identity = self._account(connection, user_id)
        if identity is not None:
            self._provider.log_out(identity)
        with self._changing(actor, user_id) as connection:
            accounts.find_user(connection, user_id)
            accounts.end_sessions(connection, [user_id])
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

        Another user whose roles change is logged out.

        Raises:
            Forbidden: the actor may not manage users, or has a lower role than the user in a tenant.
            NotFound: there is no such user.
            InvalidInput: the roles are no list, or the actor would lose the right to manage users.
        """
        self._require(actor, user_id)
        if isinstance(roles, str):
            raise InvalidInput(f"roles are a list of names, not {roles!r}")
        known = {role for role in RealmRole if role in roles}
        if user_id == actor.user_id and RealmRole.MANAGE_USERS not in known:
            raise InvalidInput("You cannot remove your own administration roles")
        with self._changing(actor, user_id) as connection:
            accounts.find_user(connection, user_id)
            if accounts.realm_roles(connection, user_id) != known:
                accounts.set_realm_roles(connection, user_id, known)
                if user_id != actor.user_id:
                    accounts.end_sessions(connection, [user_id])
            audit.insert_entry(connection, actor.user_id, "users.set_roles", target=user_id)
            return accounts.read_user(connection, user_id)

    def _require(self, actor: Actor, user_id: str, *, unless_last: str | None = None) -> None:
        """Check that an actor may change a user; a refusal is noted in the audit.

        Args:
            actor: who does it.
            user_id: the user.
            unless_last: what to say, to all who manage users, if it is the last admin; None if that does not matter.
        """
        self._context.require(actor, Action.USERS_WRITE, target=user_id)
        with self._context.database.read() as connection:
            present_actor(connection, actor)
            if unless_last is not None:
                _check_not_last_admin(connection, user_id, unless_last)
            subject = _subject(connection, user_id)
        self._context.require(actor, Action.USERS_WRITE, subject, target=user_id)

    def _changing(self, actor: Actor, user_id: str) -> AbstractContextManager[Any]:
        """Return the context of a transaction in which an actor still may change a user."""
        subject = partial(_subject, user_id=user_id)
        return self._context.change(actor, Action.USERS_WRITE, subject, target=user_id)

    def count(self) -> int:
        """Return the number of user accounts."""
        with self._context.database.read() as connection:
            return accounts.count_users(connection)


def _subject(connection: Any, user_id: str) -> UserSubject:
    return UserSubject(tenants.roles_of(connection, user_id))


def check_username(username: str) -> None:
    """Check the name of a user.

    Raises:
        InvalidInput: the name has fewer than 3 or more than 255 characters, or blanks, or is not printable.
    """
    check_name("user", username)
    if len(username) < _SHORTEST_NAME or any(character.isspace() for character in username):
        raise InvalidInput(f"a username has {_SHORTEST_NAME} to 255 characters and no blanks; this is {username!r}")


def check_email(email: str) -> None:
    """Check an e-mail address: a name and a domain, without blanks.

    Raises:
        InvalidInput: it is no e-mail address.
    """
    check_line("an e-mail address", email)
    name, _, domain = email.rpartition("@")
    if not name or not domain or any(character.isspace() for character in email):
        raise InvalidInput(f"{email!r} is no e-mail address")


def _insert(connection: Any, account: NewAccount, password_hash: str | None) -> str:
    return accounts.insert_user(
        connection,
        account.username,
        password_hash=password_hash,
        first_name=account.first_name,
        last_name=account.last_name,
        email=account.email,
        enabled=account.enabled,
    )


def _delete(connection: Any, user_id: str, actor_id: str | None) -> None:
    """Delete a user here; the datasets of the user go to the acting admin, or else to the admin of their tenant."""
    for tenant in tenants.list_tenants(connection):
        owner = memberships.next_owner(connection, actor_id, tenant.id, user_id)
        homes.transfer_datasets(connection, user_id, owner, tenant_id=tenant.id)
    accounts.delete_user(connection, user_id)
    audit.insert_entry(connection, actor_id, "users.delete", target=user_id)


def _check_not_last_admin(connection: Any, user_id: str, message: str) -> None:
    for tenant_id, role in tenants.roles_of(connection, user_id).items():
        if role is Role.ADMIN:
            memberships.check_other_admin(connection, tenant_id, user_id, message)


def _check_not_self(actor: Actor, user_id: str, message: str) -> None:
    if actor.user_id == user_id:
        raise InvalidInput(message)
