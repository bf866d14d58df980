"""A plain model of a hub's people: dictionaries and the written rules, without the hub's code.

The permissions are those of the table in ``tests.access.test_rules``. Each method ``refuse_…`` returns the kinds of the
errors of which one is expected; none if the change is allowed, which the method without that prefix then makes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from framedex import Conflict, Error, Forbidden, InvalidInput, NotFound
from framedex.access import Action, Answer, RealmRole, Role, Via
from tests.access.test_rules import CELLS

Kinds = set[type[Error]]
TABLE = {(action, column): answer for action, column, answer in CELLS}
REALM = {str(role) for role in RealmRole}
IDLE, ABSOLUTE, NOTED = timedelta(hours=8), timedelta(days=7), timedelta(seconds=60)


@dataclass
class Login:
    """A session of the model."""

    start: datetime
    access: datetime
    is_ended: bool = False

    def is_live(self, now: datetime) -> bool:
        """Return whether the session has not ended."""
        return not self.is_ended and now - self.access < IDLE and now - self.start < ABSOLUTE


@dataclass
class Account:
    """A user of the model. ``roles`` are in the order in which the user joined the tenants."""

    name: str
    email: str | None
    password: str
    enabled: bool = True
    is_temporary: bool = False
    realm: set[str] = field(default_factory=set)
    roles: dict[str, Role] = field(default_factory=dict)
    logins: dict[str, Login] = field(default_factory=dict)
    key: str | None = None
    secret: str = ""

    @property
    def address(self) -> str:
        """The name of the user in records."""
        return self.email or self.name


@dataclass
class Saved:
    """A saved view of the model: of all media, or of those with a label. ``creator`` is None for the operator."""

    name: str
    label: str | None
    creator: str | None
    alerting: bool = True
    total: int = 0

    def count(self, labels: str) -> int:
        """Return the number of results in a batch of media, of each of which there is the label."""
        return len(labels) if self.label is None else labels.count(self.label)


@dataclass
class Owned:
    """A dataset of the model: its tenant, its owner, and the roles that users were granted.

    ``media`` is their number, 0 for a draft; ``views`` are in the order in which they were saved.
    """

    name: str
    tenant: str
    owner: str | None
    grants: dict[str, Role] = field(default_factory=dict)
    media: int = 0
    views: dict[str, Saved] = field(default_factory=dict)


@dataclass(frozen=True)
class Heard:
    """A notification of the model."""

    dataset: str | None
    view: str
    count: int


@dataclass(frozen=True)
class Acting:
    """A user who acts, and the way; the operator has no id."""

    user: str | None = None
    via: Via = Via.FILES


class People:
    """The people of a hub.

    Attributes:
        is_single: whether a tenant has one admin.
        now: the present time.
        users: accounts by id.
        tenants: the members of each tenant by its id, in the order in which they joined.
        datasets: datasets by id.
        lost: datasets that the library deleted, about which the hub still stores something.
        heard: the notifications of each user who has heard of something, oldest first; None for the local user.
    """

    def __init__(self, now: datetime, tenant: str, *, is_single: bool) -> None:
        self.is_single, self.now = is_single, now
        self.users: dict[str, Account] = {}
        self.tenants: dict[str, list[str]] = {tenant: []}
        self.datasets: dict[str, Owned] = {}
        self.lost: set[str] = set()
        self.heard: dict[str | None, list[Heard]] = {}

    # Permissions

    def answer(self, acting: Acting, action: Action, about: str | None = None) -> Answer:
        """Return whether someone may do something with a dataset, a tenant or users."""
        if acting.user is None:
            return Answer.YES
        user = self.users[acting.user]
        if user.is_temporary and action not in (Action.OWN_ACCOUNT, Action.OWN_PASSWORD):
            return Answer.NO
        if action in (Action.USERS_READ, Action.USERS_WRITE):
            enough = {"manage-users"} if action is Action.USERS_WRITE else {"manage-users", "view-users"}
            return Answer.YES if enough & user.realm else Answer.NO
        if action.startswith("own"):
            is_browser = acting.via is Via.SESSION or action is Action.OWN_ACCOUNT
            return Answer.YES if is_browser else Answer.NO
        found = {TABLE[action, column] for column in self._columns(acting.user, about or "")}
        return next(each for each in (Answer.YES, Answer.NO, Answer.HIDDEN) if each in found)

    def _columns(self, user_id: str, about: str) -> list[str]:
        dataset = self.datasets.get(about)
        role = self.users[user_id].roles.get(about if dataset is None else dataset.tenant)
        columns = [] if role is None else [str(role)]
        if dataset is not None:
            columns += ["owner"] if dataset.owner == user_id else []
            columns += [f"granted {dataset.grants[user_id]}"] if user_id in dataset.grants else []
        return columns or ["none"]

    def refuse(self, acting: Acting, action: Action, about: str | None = None) -> Kinds:
        """Return the kind of the refusal of an action."""
        kinds: dict[Answer, Kinds] = {Answer.YES: set(), Answer.NO: {Forbidden}, Answer.HIDDEN: {NotFound}}
        return kinds[self.answer(acting, action, about)]

    def refuse_dataset(self, acting: Acting, action: Action, dataset_id: str) -> Kinds:
        """Return the kind of the refusal of an action with a dataset, which may not exist."""
        if dataset_id not in self.datasets:
            return {NotFound}
        return self.refuse(acting, action, dataset_id)

    # Users

    def taken(self, name: str, user_id: str = "") -> bool:
        """Return whether another user has a name, as the name or the address, whatever the case."""
        others = (user for each, user in self.users.items() if each != user_id)
        return any(name.casefold() in (user.name.casefold(), (user.email or "").casefold()) for user in others)

    def named(self, name: str) -> str | None:
        """Return the id of the user with a name."""
        found = (each for each, user in self.users.items() if user.name.casefold() == name.casefold())
        return next(found, None)

    def addressed(self, address: str) -> str | None:
        """Return the id of the user with an e-mail address, or else with that name."""
        key = address.casefold()
        found = (each for each, user in self.users.items() if (user.email or "").casefold() == key)
        return next(found, self.named(address))

    def admins(self, tenant: str) -> list[str]:
        """Return the admins of a tenant, in the order in which they joined."""
        return [each for each in self.tenants.get(tenant, []) if self.users[each].roles[tenant] is Role.ADMIN]

    def is_last_admin(self, user_id: str, tenant: str) -> bool:
        """Return whether no other admin of a tenant can log in."""
        return not any(self.users[each].enabled for each in self.admins(tenant) if each != user_id)

    def _administers_alone(self, user_id: str) -> bool:
        roles = self.users[user_id].roles.items()
        return any(role is Role.ADMIN and self.is_last_admin(user_id, tenant) for tenant, role in roles)

    def refuse_user(
        self, acting: Acting, name: str, email: str | None, role: Role, tenant: str, *, enabled: bool
    ) -> Kinds:
        """A name is taken once; a disabled user is no admin; the tenant exists."""
        kinds = self.refuse(acting, Action.USERS_WRITE)
        if kinds or self.is_above(acting, {tenant: role}):
            return kinds or {Forbidden}
        kinds |= {InvalidInput} if self.taken(name) or (email is not None and self.taken(email)) else set()
        kinds |= {NotFound} if tenant not in self.tenants else set()
        return kinds | ({InvalidInput} if role is Role.ADMIN and not enabled else set())

    def add_user(self, user_id: str, account: Account, tenant: str, role: Role) -> None:
        """Add a user who joins a tenant."""
        self.users[user_id] = account
        self.join(user_id, tenant, role)

    def refuse_change(self, acting: Acting, user_id: str, *, name: str | None, enabled: bool | None) -> Kinds:
        """Something is to change; nobody disables the own account, or the last admin; a name is taken once."""
        kinds = self.refuse(acting, Action.USERS_WRITE)
        if kinds:
            return kinds
        if (enabled is False and user_id == acting.user) or (name is None and enabled is None):
            kinds = kinds | {InvalidInput}
        if user_id not in self.users:
            return kinds | {NotFound}
        is_taken = name is not None and self.taken(name, user_id)
        is_needed = enabled is False and self._administers_alone(user_id)
        kinds = kinds | ({InvalidInput} if is_taken or is_needed else set())
        return kinds | ({Forbidden} if self.is_above(acting, self.users[user_id].roles) else set())

    def change(self, user_id: str, *, name: str | None, enabled: bool | None) -> None:
        """Rename, enable or disable a user; who is disabled is logged out."""
        user = self.users[user_id]
        user.name = user.name if name is None else name
        user.enabled = user.enabled if enabled is None else enabled
        if enabled is False:
            self.end_logins(user_id)

    def refuse_deletion(self, acting: Acting, user_id: str) -> Kinds:
        """Nobody deletes the own account, or the last admin."""
        kinds = self.refuse_target(acting, user_id)
        may = not self.refuse(acting, Action.USERS_WRITE) and user_id in self.users
        is_needed = may and (user_id == acting.user or self._administers_alone(user_id))
        return kinds | ({InvalidInput} if is_needed else set())

    def refuse_target(self, acting: Acting, user_id: str) -> Kinds:
        """Return the kind of the refusal of a change of a user, who may not exist."""
        kinds = self.refuse(acting, Action.USERS_WRITE)
        if kinds or user_id not in self.users:
            return kinds or {NotFound}
        return {Forbidden} if self.is_above(acting, self.users[user_id].roles) else set()

    def is_above(self, acting: Acting, roles: Mapping[str, Role]) -> bool:
        """Return whether an account with some roles may do in a tenant what who acts may not."""
        if acting.user is None:
            return False
        order, own = list(Role), self.users[acting.user].roles
        return any(tenant not in own or order.index(own[tenant]) < order.index(role) for tenant, role in roles.items())

    def delete(self, acting: Acting, user_id: str) -> None:
        """Delete a user, whose datasets go to the acting admin, or else to the admin of their tenant."""
        for tenant, members in self.tenants.items():
            self._transfer(acting, user_id, tenant)
            if user_id in members:
                members.remove(user_id)
        for dataset in self.datasets.values():
            dataset.grants.pop(user_id, None)
        self.heard.pop(user_id, None)
        del self.users[user_id]

    def _transfer(self, acting: Acting, user_id: str, tenant: str) -> None:
        admins = [each for each in self.admins(tenant) if each != user_id]
        owner = acting.user if acting.user in admins else next(iter(admins), None)
        for dataset in self.datasets.values():
            if dataset.tenant == tenant and dataset.owner == user_id:
                dataset.owner = owner

    def end_logins(self, *user_ids: str) -> None:
        """End the sessions of users."""
        for user_id in user_ids:
            for login in self.users[user_id].logins.values():
                login.is_ended = True

    def refuse_roles(self, acting: Acting, user_id: str, roles: set[str]) -> Kinds:
        """Nobody takes the right to manage users from the own account."""
        kinds = self.refuse_target(acting, user_id)
        is_own = user_id == acting.user and "manage-users" not in roles
        return kinds or ({InvalidInput} if is_own else set())

    def set_roles(self, acting: Acting, user_id: str, roles: set[str]) -> None:
        """Replace the roles of a user that hold in all tenants; unknown ones are left out. It logs others out."""
        user = self.users[user_id]
        if user.realm != roles & REALM:
            user.realm = roles & REALM
            if user_id != acting.user:
                self.end_logins(user_id)

    # Tenants

    def refuse_role(self, acting: Acting, user_id: str, role: Role, tenant: str) -> Kinds:
        """Nobody changes the own role; a tenant keeps an admin who can log in."""
        kinds = self.refuse(acting, Action.TENANT_EDIT_ROLES, tenant)
        if kinds:
            return kinds
        if user_id == acting.user:
            return {InvalidInput}
        if tenant not in self.tenants or user_id not in self.tenants[tenant]:
            return {NotFound}
        is_demoted = self.users[user_id].roles[tenant] is Role.ADMIN and role is not Role.ADMIN
        is_needed = is_demoted and self.is_last_admin(user_id, tenant)
        cannot = role is Role.ADMIN and not self.users[user_id].enabled
        return {InvalidInput} if is_needed or cannot else set()

    def set_role(self, acting: Acting, user_id: str, role: Role, tenant: str) -> None:
        """Set the role of a member, with all that follows from it."""
        user, former = self.users[user_id], self.users[user_id].roles[tenant]
        if role is Role.ADMIN and self.is_single:
            for other in self.admins(tenant):
                if other != user_id:
                    self._demote(other, tenant, Role.EDITOR)
        if former is Role.ADMIN and role is not Role.ADMIN:
            self._demote(user_id, tenant, role)
        elif former is not role:
            user.roles[tenant] = role
        if role is Role.ADMIN and former is not Role.ADMIN:
            user.realm = set(REALM)
            self.end_logins(user_id)
        if role is Role.VIEWER:
            for dataset in self.datasets.values():
                if dataset.tenant == tenant and user_id in dataset.grants:
                    dataset.grants[user_id] = Role.VIEWER
            self._transfer(acting, user_id, tenant)

    def _demote(self, user_id: str, tenant: str, role: Role) -> None:
        user = self.users[user_id]
        user.roles[tenant] = role
        if Role.ADMIN not in user.roles.values():
            user.realm = set()
        self.end_logins(user_id)

    def refuse_member(self, user_id: str | None, role: Role, tenant: str) -> Kinds:
        """A user joins a tenant once, and not as an admin who cannot log in."""
        if tenant not in self.tenants or user_id is None:
            return {NotFound}
        is_wrong = user_id in self.tenants[tenant] or (role is Role.ADMIN and not self.users[user_id].enabled)
        return {InvalidInput} if is_wrong else set()

    def join(self, user_id: str, tenant: str, role: Role) -> None:
        """Make a user a member of a tenant."""
        self.tenants[tenant].append(user_id)
        self.users[user_id].roles[tenant] = Role.VIEWER
        if role is not Role.VIEWER:
            self.set_role(Acting(), user_id, role, tenant)

    # Datasets

    def refuse_dataset_of(self, acting: Acting, name: str, tenant: str) -> Kinds:
        """Editors create datasets, whose names are unique in a tenant."""
        kinds = self.refuse(acting, Action.TENANT_CREATE_DATASET, tenant)
        if kinds or tenant not in self.tenants:
            return kinds or {NotFound}
        return (
            {Conflict} if any((name, tenant) == (each.name, each.tenant) for each in self.datasets.values()) else set()
        )

    def refuse_share(self, acting: Acting, dataset_id: str, user_id: str | None, role: Role) -> Kinds:
        """A dataset is shared with a viewer or an editor who exists and is not its owner."""
        kinds = self.refuse_dataset(acting, Action.DATASET_SHARE, dataset_id)
        if kinds:
            return kinds
        kinds |= {InvalidInput} if role is Role.ADMIN else set()
        kinds |= {NotFound} if user_id is None else set()
        is_owner = user_id is not None and self.datasets[dataset_id].owner == user_id
        return kinds | ({InvalidInput} if is_owner else set())

    def refuse_unshare(self, acting: Acting, dataset_id: str, user_id: str | None) -> Kinds:
        """What was shared can be taken back; the owner stays."""
        kinds = self.refuse_dataset(acting, Action.DATASET_SHARE, dataset_id)
        if kinds:
            return kinds
        dataset = self.datasets[dataset_id]
        if user_id is not None and dataset.owner == user_id:
            return {InvalidInput}
        return set() if user_id in dataset.grants else {NotFound}

    def members(self, dataset_id: str) -> list[tuple[str, str]]:
        """Return the owner of a dataset, then with whom it is shared."""
        dataset = self.datasets[dataset_id]
        shared = [
            (self.users[each].address, str(role)) for each, role in dataset.grants.items() if each != dataset.owner
        ]
        return [*([(self.users[dataset.owner].address, "owner")] if dataset.owner else []), *sorted(shared)]

    # Saved views

    def refuse_view(self, acting: Acting, dataset_id: str, name: str) -> Kinds:
        """Editors save views of a dataset with media, under names that are unique whatever the case."""
        kinds = self.refuse_dataset(acting, Action.VIEW_CREATE, dataset_id)
        if kinds:
            return kinds
        dataset = self.datasets[dataset_id]
        is_taken = any(name.casefold() == each.name.casefold() for each in dataset.views.values())
        return {Conflict} if is_taken or not dataset.media else set()

    def refuse_view_change(self, acting: Acting, action: Action, dataset_id: str, view_id: str) -> Kinds:
        """Editors change views, and who saved a view may delete it while the dataset is not hidden."""
        kinds = self.refuse_dataset(acting, action, dataset_id)
        view = None if dataset_id not in self.datasets else self.datasets[dataset_id].views.get(view_id)
        is_own = view is not None and view.creator is not None and view.creator == acting.user
        if is_own and action is Action.VIEW_DELETE:
            kinds = self.refuse_dataset(acting, Action.DATASET_VIEW, dataset_id)
        return kinds or ({NotFound} if view is None else set())

    def add_batch(self, dataset_id: str, labels: str) -> None:
        """Add media with labels to a dataset: its views count them, and those with alerts are heard of."""
        dataset = self.datasets[dataset_id]
        dataset.media += len(labels)
        for view in dataset.views.values():
            count = view.count(labels)
            view.total += count
            for user_id in self._recipients(dataset_id, view) if count and view.alerting else ():
                self.heard.setdefault(user_id, []).append(Heard(dataset_id, view.name, count))

    def _recipients(self, dataset_id: str, view: Saved) -> list[str | None]:
        """Return the owner, or else the admins, those with a grant and who saved the view, if they may view it."""
        dataset = self.datasets[dataset_id]
        owners = self.admins(dataset.tenant) if dataset.owner is None else [dataset.owner]
        candidates = {*owners, *dataset.grants, *([] if view.creator is None else [view.creator])}
        able = [each for each in candidates if each in self.users and self.users[each].enabled]
        return [None, *(each for each in able if self._columns(each, dataset_id) != ["none"])]

    def heard_by(self, acting: Acting) -> list[Heard]:
        """Return the notifications that someone sees: those of datasets that are not hidden."""
        seen = {each for each in self.datasets if not self.refuse(acting, Action.DATASET_VIEW, each)}
        return [each for each in self.heard.get(acting.user, []) if each.dataset in seen]

    # Sessions

    def tokens(self, *, live: bool) -> Iterator[tuple[str, str]]:
        """Return the tokens of the sessions that have ended or not, each with its user."""
        for user_id, user in self.users.items():
            for token, login in user.logins.items():
                if login.is_live(self.now) is live:
                    yield token, user_id

    def use(self, user_id: str, token: str) -> None:
        """Note the use of a session, at most once a minute."""
        login = self.users[user_id].logins[token]
        login.access = self.now if self.now - login.access > NOTED else login.access
