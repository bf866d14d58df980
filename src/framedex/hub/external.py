"""Accounts of people whom an identity provider knows: what a verified identity means for users, roles and sessions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from framedex.access import Actor, RealmRole, Role, Via
from framedex.core.naming import MAX_NAME
from framedex.errors import Forbidden, InvalidInput, NotAuthenticated
from framedex.hub import memberships
from framedex.hub.actors import actor_of_row
from framedex.hub.context import HubContext
from framedex.hub.sessions import NewSession, begin_session, check_address, count_failure
from framedex.hub.users import check_email
from framedex.storage.service_db import accounts, audit, sessions, single_uses, tenants
from framedex.storage.service_db.database import DEFAULT_ID

_DISABLED, _INVALID = "Account is disabled", "Invalid or expired token"
_SHORTEST_NAME, _LONGEST_NAME = 3, 240


@dataclass(frozen=True)
class VerifiedIdentity:
    """A person whom an identity provider has identified, as it says; the caller has verified that it says so.

    Attributes:
        issuer: the provider.
        subject: the id of the person there, which never changes and is never given to another.
        username: the name that the person goes by there; None if there is none.
        email: the e-mail address; None if there is none.
        email_verified: whether the provider has verified that the address is the person's.
        first_name: the first name; None if there is none.
        last_name: the last name; None if there is none.
        roles: the names of the roles that the provider gives the person.
        session: the id of the session at the provider; None if it gives none.
    """

    issuer: str
    subject: str
    username: str | None = None
    email: str | None = None
    email_verified: bool = False
    first_name: str | None = None
    last_name: str | None = None
    roles: frozenset[str] = frozenset()
    session: str | None = None


@dataclass(frozen=True)
class ExternalRules:
    """Rules for people whom an identity provider knows.

    Attributes:
        default_role: the role of new users in the default tenant: viewer or editor.
        link_by_email: whether the first log-in opens the present account with a verified e-mail address.
        trust_roles: whether each log-in replaces the roles that hold in all tenants by those of the provider.
    """

    default_role: Role = Role.VIEWER
    link_by_email: bool = False
    trust_roles: bool = False


class ExternalAccounts:
    """The accounts of a hub that belong to people whom identity providers know.

    An account belongs to the issuer and the subject of an identity, and to nothing else: names and addresses change,
    and may be given to other people.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def log_in(
        self,
        identity: VerifiedIdentity,
        rules: ExternalRules,
        *,
        ip: str = "",
        user_agent: str = "",
        may_be_first: bool = False,
    ) -> NewSession:
        """Begin a session of the user with an identity, who is created at the first log-in.

        A new user has the username of the identity, up to its first ``@``; if that is taken, a number follows. The
        e-mail address counts only if the provider verified it, and is left out if somebody else has it.

        Args:
            identity: the identity.
            rules: what it means.
            ip: the address of the client.
            user_agent: the name of the client's program.
            may_be_first: whether the person becomes the admin if there are no users yet.

        Raises:
            Forbidden: the account is disabled.
            InvalidInput: the rules would make a new user an admin.
        """
        if rules.default_role is Role.ADMIN:
            raise InvalidInput("new users are viewers or editors; an admin makes somebody else an admin")
        with self._context.database.write() as connection:
            user_id = self._find(connection, identity, rules)
            if user_id is None:
                role = Role.ADMIN if may_be_first and not accounts.count_users(connection) else rules.default_role
                user_id = self._create(connection, identity, role)
            user = accounts.find_user(connection, user_id)
            if user.enabled:
                self._update(connection, user, identity, rules)
                audit.insert_entry(connection, user_id, "log_in", ip=ip)
                return begin_session(
                    self._context,
                    connection,
                    accounts.find_user(connection, user_id),
                    ip=ip,
                    user_agent=user_agent,
                    provider_session=identity.session or "",
                )
            audit.insert_entry(connection, None, "log_in", target=user_id, ip=ip, outcome="refused")
        raise Forbidden(_DISABLED)

    def _find(self, connection: Any, identity: VerifiedIdentity, rules: ExternalRules) -> str | None:
        """Return the id of the user with an identity, or of the one whose account it opens; None for a new user."""
        user_id = accounts.user_of_identity(connection, identity.issuer, identity.subject)
        email = _verified_email(identity)
        if user_id is not None or not rules.link_by_email or email is None:
            return user_id
        row = accounts.user_with_email(connection, email)
        # An address may be given to another person: who has an identity of this provider already keeps it.
        if row is None or accounts.identity_of(connection, identity.issuer, row.id) is not None:
            return None
        accounts.put_identity(connection, identity.issuer, identity.subject, row.id)
        audit.insert_entry(connection, row.id, "users.link", target=identity.subject)
        return str(row.id)

    def _create(self, connection: Any, identity: VerifiedIdentity, role: Role) -> str:
        email = _verified_email(identity)
        user_id = accounts.insert_user(
            connection,
            _free_name(connection, identity),
            password_hash=None,
            first_name=_name(identity.first_name),
            last_name=_name(identity.last_name),
            email=email if email is not None and _is_free(connection, email) else None,
        )
        accounts.put_identity(connection, identity.issuer, identity.subject, user_id)
        memberships.join(connection, DEFAULT_ID, user_id, role, is_single=self._context.is_single)
        audit.insert_entry(connection, None, "users.create", target=user_id)
        return user_id

    def _update(self, connection: Any, user: Any, identity: VerifiedIdentity, rules: ExternalRules) -> None:
        """Take over what the provider says now: names and the address of accounts that it made, and roles."""
        if user.password_hash is None:
            names = {"first_name": _name(identity.first_name), "last_name": _name(identity.last_name)}
            values: dict[str, Any] = {key: name for key, name in names.items() if name is not None}
            if values:
                accounts.update_user(connection, user.id, **values)
            email = _verified_email(identity)
            if email is not None and email != user.email and _is_free(connection, email, user_id=user.id):
                accounts.set_email(connection, user.id, email)
        if rules.trust_roles:
            self._set_roles(connection, user.id, identity)

    def _set_roles(self, connection: Any, user_id: str, identity: VerifiedIdentity) -> None:
        """Replace the roles that hold in all tenants; the last admin of a tenant keeps them."""
        roles = {role for role in RealmRole if role in identity.roles}
        present = accounts.realm_roles(connection, user_id)
        if present == roles or (not present <= roles and _is_last_admin(connection, user_id)):
            return
        accounts.set_realm_roles(connection, user_id, roles)
        accounts.end_sessions(connection, [user_id])
        audit.insert_entry(connection, user_id, "users.set_roles", target=user_id)

    def actor(self, issuer: str, subject: str) -> Actor:
        """Return the actor of an identity whose access token was verified; it has logged in before.

        Raises:
            NotAuthenticated: nobody has this identity, or the account is disabled.
        """
        with self._context.database.read() as connection:
            user_id = accounts.user_of_identity(connection, issuer, subject)
            row = None if user_id is None else accounts.enabled_user(connection, user_id)
            if row is None:
                raise NotAuthenticated(_INVALID)
            return actor_of_row(connection, row, Via.TOKEN)

    def end_sessions(
        self,
        issuer: str,
        *,
        subject: str | None = None,
        session: str | None = None,
        once: tuple[bytes, datetime] | None = None,
    ) -> int:
        """End sessions that began at an identity provider, and return their number.

        Args:
            issuer: the provider.
            subject: the person there; None for whoever has the session.
            session: the one session there; None for all of the person.
            once: the hash and the time of what may ask for it once, as for :meth:`use_once`; noted only if the
                sessions end.

        Raises:
            InvalidInput: neither a person nor a session is named, or it was asked for before.
        """
        if not session and subject is None:
            raise InvalidInput("name the person or the session at the identity provider")
        with self._context.database.write() as connection:
            if once is not None and not single_uses.use(connection, *once):
                raise InvalidInput("the logout token was used before")
            if subject is not None:
                user_id = accounts.user_of_identity(connection, issuer, subject)
                users = [] if user_id is None else [user_id]
            else:
                users = accounts.users_of_provider_session(connection, issuer, session or "")
            number = sessions.delete_provider_sessions(connection, users, session or None)
            for each in users if number else ():
                audit.insert_entry(connection, each, "log_out")
            return number

    def use_once(self, value_hash: bytes, expires_at: datetime) -> bool:
        """Note the use of a value; return whether it was the first.

        Args:
            value_hash: a hash of the value, 32 bytes.
            expires_at: the time, in UTC, after which the value is refused for its age.
        """
        with self._context.database.write() as connection:
            return single_uses.use(connection, value_hash, expires_at)

    def check_attempts(self, ip: str) -> None:
        """Check that an address has not had too many failed log-ins; see :meth:`count_failure`.

        Raises:
            TooManyAttempts: it had 50 within an hour.
        """
        check_address(self._context, ip)

    def count_failure(self, ip: str) -> None:
        """Count a failed log-in of an address, together with its wrong passwords."""
        count_failure(self._context, ip)

    def sweep(self) -> None:
        """Delete values whose first use need not be known any more."""
        with self._context.database.write() as connection:
            single_uses.delete_expired(connection, self._context.clock())


def _is_last_admin(connection: Any, user_id: str) -> bool:
    """Return whether a user is the only admin of a tenant who can log in."""
    own = [tenant for tenant, role in tenants.roles_of(connection, user_id).items() if role is Role.ADMIN]
    return any(not set(tenants.admins_of(connection, tenant, enabled=True)) - {user_id} for tenant in own)


def _verified_email(identity: VerifiedIdentity) -> str | None:
    """Return the e-mail address of an identity; None if the provider did not verify it, or it is no address."""
    if not identity.email_verified or identity.email is None:
        return None
    try:
        check_email(identity.email)
    except InvalidInput:
        return None
    return identity.email


def _name(text: str | None) -> str | None:
    """Return a first or last name that can be stored; None for none."""
    clean = "".join(each for each in text or "" if each.isprintable()).strip()
    return clean[:MAX_NAME] or None


def _is_free(connection: Any, name: str, *, user_id: str = "") -> bool:
    try:
        accounts.check_free(connection, name, user_id=user_id)
    except InvalidInput:
        return False
    return True


def _free_name(connection: Any, identity: VerifiedIdentity) -> str:
    """Return the username of a new user."""
    return next(name for name in _names(identity) if _is_free(connection, name))


def _names(identity: VerifiedIdentity) -> Iterator[str]:
    """Yield usernames for an identity, the best first.

    What looks like an e-mail address is none until the provider has verified it, so only the part before the ``@``
    counts: datasets are shared with names and addresses.
    """
    full = identity.username or _verified_email(identity) or ""
    local = full.partition("@")[0]
    name = re.sub(r"\s", "", "".join(each for each in local if each.isprintable()))[:_LONGEST_NAME]
    if len(name) < _SHORTEST_NAME:
        name = f"user-{name}" if name else "user"
    yield name
    yield from (f"{name}-{number}" for number in count(2))
