"""Any sequence of changes, beside a plain model: users, roles, shares, datasets, saved views, sessions and keys.

Two hubs of one workspace take the steps in turn, as two processes do, so nothing that one of them remembers counts.
"""

import shutil
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ParamSpec, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from framedex import Error, InvalidInput, NotFound, Workspace, vql
from framedex.access import Action, Actor, RealmRole, Role, Via
from framedex.core.ids import new_id
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.api.test_dataset__saved_views import ROWS, labelled
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS
from tests.hub.people import OPERATOR, PASSWORD, Clock
from tests.hub.plain_people import Account, Acting, Heard, Kinds, Login, Owned, People, Saved
from tests.laws import examples, law_folder

_Value = TypeVar("_Value")
_Given = ParamSpec("_Given")
OTHER_PASSWORD = "battery staple"
VIEWS = ("all", "ALL", "new ones", "a")
FIRST = "ababababaa"
NAMES = ("ann", "bob", "cleo", "ann@example.org")
_numbers = st.sampled_from(range(462))
_names = st.sampled_from(NAMES)
_emails = st.sampled_from([None, "ann@example.org", "bob@example.org"])
_roles = st.sampled_from(list(Role))
_passwords = st.sampled_from([PASSWORD, PASSWORD, OTHER_PASSWORD])
_labels = st.text("ab", min_size=1, max_size=3)
_realm = st.sets(st.sampled_from([*map(str, RealmRole), "unknown"]))


def pick(values: Sequence[_Value], number: int, other: _Value) -> _Value:
    """Return one of some values, or rarely another one."""
    return values[number % len(values)] if values and number % 11 != 10 else other


def number_of(values: Sequence[_Value], value: _Value) -> int:
    """Return a number by which `pick` returns a value."""
    return next(n for n in count(values.index(value), len(values)) if n % 11 != 10)


@cache
def template() -> TemporaryDirectory[str]:
    """Return a folder with the workspace with which each life begins: it has a dataset with media."""
    folder = TemporaryDirectory(prefix="framedex-people-")
    with Workspace(Path(folder.name) / "ws", settings=SETTINGS) as workspace:
        workspace.create_dataset("photos", labelled(0, FIRST), thresholds=THRESHOLDS)
    return folder


class Life(RuleBasedStateMachine):
    """Two hubs of a workspace, and a model of what they should hold."""

    is_single = True

    def __init__(self) -> None:
        super().__init__()
        self.home = law_folder("people")
        self.clock, self.numbers = Clock(), count()
        shutil.copytree(Path(template().name) / "ws", self.home / "ws")
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.hubs = [Hub(self.workspace, is_multi=not self.is_single, clock=self.clock) for _ in range(2)]
        self.model = People(self.clock.time, DEFAULT_ID, is_single=self.is_single)

    @property
    def hub(self) -> Hub:
        """The hub that takes the next step."""
        return self.hubs[next(self.numbers) % 2]

    def attempt(
        self, kinds: Kinds, call: Callable[_Given, _Value], *given: _Given.args, **named: _Given.kwargs
    ) -> _Value | None:
        """Call the hub; return None if it refuses, which it must do with one of the kinds, and with these alone."""
        if not kinds:
            return call(*given, **named)
        with pytest.raises(Error) as error:
            call(*given, **named)
        assert type(error.value) in kinds
        return None

    def actor(self, who: int) -> tuple[Acting, Actor]:
        """Return someone who acts now: with a session or a key, or the operator."""
        model, hub, ways = self.model, self.hub, self.ways()
        if not ways or who % 3 == 2:
            return Acting(), OPERATOR
        secret, user_id, via = ways[who // 3 % len(ways)]
        if via is Via.TOKEN:
            return Acting(user_id, via), hub.credentials.actor(secret)
        model.use(user_id, secret)
        return Acting(user_id, via), hub.sessions.actor(secret)

    def ways(self) -> list[tuple[str, str, Via]]:
        """Return how users can act now: with a session or a key, whose user it is, and which of both it is."""
        model = self.model
        ways = [(token, user, Via.SESSION) for token, user in model.tokens(live=True)]
        return ways + [(user.key, each, Via.TOKEN) for each, user in model.users.items() if user.key and user.enabled]

    def logged_in(self, user_id: str) -> int | None:
        """Have a user log in; return the number by which the user acts with a session, None if that is refused."""
        user = self.model.users[user_id]
        if not user.enabled or user.is_temporary:
            return None
        self.log_in(number_of(self.addresses(), user.name), user.password)
        return next(3 * at for at, (_, each, via) in enumerate(self.ways()) if (each, via) == (user_id, Via.SESSION))

    def ip(self) -> str:
        """Return an IP address that no other attempt has."""
        number = next(self.numbers)
        return f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"

    def user(self, number: int) -> str:
        """Return the id of a user, or rarely of none."""
        return pick(list(self.model.users), number, new_id())

    def tenant_of(self, user_id: str, number: int) -> str:
        """Return the id of a tenant, mostly of one of which a user is a member."""
        user = self.model.users.get(user_id)
        return self.tenant(number // 4) if user is None or number % 4 == 3 else pick(list(user.roles), number, "none")

    def dataset(self, number: int) -> str:
        """Return the id of a dataset, or rarely of none."""
        return pick(list(self.model.datasets), number, new_id())

    def address(self, number: int) -> str:
        """Return the e-mail address or the name of a user in capitals, or rarely of none."""
        return pick(self.addresses(), number, "nobody")

    def addresses(self) -> list[str]:
        """Return the e-mail addresses of all users in capitals, and their names."""
        users = list(self.model.users.values())
        return [user.address.upper() for user in users] + [user.name for user in users]

    def tenant(self, number: int) -> str:
        """Return the id of a tenant, or rarely of none."""
        return pick(list(self.model.tenants), number, new_id())

    @initialize()
    def begin(self) -> None:
        """There are two tenants, an admin, an editor and a viewer, who are logged in, and shared datasets."""
        self.model.tenants[self.hub.tenants.create(OPERATOR, "second").id] = []
        for number, name in enumerate(("zoe", "yves", "xaver", "will")):
            role = (Role.ADMIN, Role.EDITOR, Role.VIEWER, Role.ADMIN)[number]
            self.create(2, name, f"{name}@example.org", role, number // 3, True)
            if name == "will" and not self.is_single:
                self.add_member(3, Role.ADMIN, 0)
            self.log_in(2 * number + 1, PASSWORD)
        for name, who, tenant in (("pets", 3, 0), ("birds", 9, 1)):
            self.create_dataset(who, name, tenant)
        self.share(2, 0, 2, Role.EDITOR)
        self.share(2, 1, 0, Role.EDITOR)
        photos, owner = self.workspace.dataset("photos").id, list(self.model.users)[1]
        self.hub.datasets.adopt(photos, DEFAULT_ID, owner)
        self.model.datasets[photos] = Owned("photos", DEFAULT_ID, owner, media=len(FIRST))
        self.save_view(2, 0, "all", None)

    @rule(who=_numbers, name=_names, email=_emails, role=_roles, tenant=_numbers, enabled=st.booleans())
    def create(self, who: int, name: str, email: str | None, role: Role, tenant: int, enabled: bool) -> None:
        """Create a user."""
        acting, actor = self.actor(who)
        tenant_id = self.tenant(tenant)
        kinds = self.model.refuse_user(acting, name, email, role, tenant_id, enabled=enabled)
        made = self.attempt(
            kinds,
            self.hub.users.create,
            actor,
            name,
            PASSWORD,
            email=email,
            enabled=enabled,
            role=role,
            tenant_id=tenant_id,
        )
        if made is not None:
            self.model.add_user(made.id, Account(name, email, PASSWORD, enabled), tenant_id, role)

    @rule(who=_numbers, user=_numbers, name=st.none() | _names, enabled=st.none() | st.booleans())
    def change(self, who: int, user: int, name: str | None, enabled: bool | None) -> None:
        """Rename, enable or disable a user."""
        acting, actor = self.actor(who)
        user_id = self.user(user)
        kinds = self.model.refuse_change(acting, user_id, name=name, enabled=enabled)
        if self.attempt(kinds, self.hub.users.change, actor, user_id, username=name, enabled=enabled) is not None:
            self.model.change(user_id, name=name, enabled=enabled)

    @rule(who=_numbers, user=_numbers)
    def delete(self, who: int, user: int) -> None:
        """Delete a user."""
        acting, actor = self.actor(who)
        user_id = self.user(user)
        kinds = self.model.refuse_deletion(acting, user_id)
        self.attempt(kinds, self.hub.users.delete, actor, user_id)
        if not kinds:
            self.model.delete(acting, user_id)

    @rule(who=_numbers, user=_numbers, password=_passwords)
    def reset_password(self, who: int, user: int, password: str) -> None:
        """Give a user a temporary password."""
        acting, actor = self.actor(who)
        user_id = self.user(user)
        kinds = self.model.refuse_target(acting, user_id)
        self.attempt(kinds, self.hub.users.reset_password, actor, user_id, password)
        if not kinds:
            account = self.model.users[user_id]
            account.password, account.is_temporary = password, True
            self.model.end_logins(user_id)

    @rule(who=_numbers, user=_numbers)
    def end_sessions(self, who: int, user: int) -> None:
        """End the sessions of a user."""
        acting, actor = self.actor(who)
        user_id = self.user(user)
        kinds = self.model.refuse_target(acting, user_id)
        self.attempt(kinds, self.hub.users.log_out, actor, user_id)
        if not kinds:
            self.model.end_logins(user_id)

    @rule(who=_numbers, user=_numbers, roles=_realm)
    def set_realm_roles(self, who: int, user: int, roles: set[str]) -> None:
        """Replace the roles of a user that hold in all tenants."""
        acting, actor = self.actor(who)
        user_id = self.user(user)
        kinds = self.model.refuse_roles(acting, user_id, roles)
        if self.attempt(kinds, self.hub.users.set_roles, actor, user_id, sorted(roles)) is not None:
            self.model.set_roles(acting, user_id, roles)

    @rule(who=_numbers, user=_numbers, role=_roles, tenant=_numbers)
    def set_role(self, who: int, user: int, role: Role, tenant: int) -> None:
        """Set the role of a member."""
        acting, actor = self.actor(who)
        user_id = self.user(user)
        tenant_id = self.tenant_of(user_id, tenant)
        kinds = self.model.refuse_role(acting, user_id, role, tenant_id)
        member = self.attempt(kinds, self.hub.tenants.set_role, actor, user_id, role, tenant_id=tenant_id)
        if member is not None:
            assert member.role == role
            self.model.set_role(acting, user_id, role, tenant_id)

    @rule(user=_numbers, role=_roles, tenant=_numbers)
    def add_member(self, user: int, role: Role, tenant: int) -> None:
        """Make a user a member of a tenant."""
        name, tenant_id = self.address(user), self.tenant(tenant)
        user_id = self.model.addressed(name)
        kinds = self.model.refuse_member(user_id, role, tenant_id)
        self.attempt(kinds, self.hub.tenants.add_member, OPERATOR, tenant_id, name, role)
        if not kinds and user_id is not None:
            self.model.join(user_id, tenant_id, role)

    @rule(who=_numbers, name=st.sampled_from(["pets", "birds"]), tenant=_numbers)
    def create_dataset(self, who: int, name: str, tenant: int) -> None:
        """Create a dataset without media."""
        acting, actor = self.actor(who)
        tenant_id = self.tenant(tenant)
        kinds = self.model.refuse_dataset_of(acting, name, tenant_id)
        made = self.attempt(kinds, self.hub.datasets.create, actor, name, tenant_id=tenant_id)
        if made is not None:
            self.model.datasets[made.id] = Owned(name, tenant_id, acting.user)

    @rule(who=_numbers, dataset=_numbers)
    def delete_dataset(self, who: int, dataset: int) -> None:
        """Delete a dataset."""
        acting, actor = self.actor(who)
        dataset_id = self.dataset(dataset)
        kinds = self.model.refuse_dataset(acting, Action.DATASET_DELETE, dataset_id)
        self.attempt(kinds, self.hub.datasets.delete, actor, dataset_id)
        if not kinds:
            del self.model.datasets[dataset_id]

    @rule(dataset=_numbers)
    def lose_dataset(self, dataset: int) -> None:
        """The library deletes a dataset, behind the hub."""
        if self.model.datasets:
            dataset_id = pick(list(self.model.datasets), dataset, next(iter(self.model.datasets)))
            self.workspace.delete_dataset(dataset_id)
            del self.model.datasets[dataset_id]
            self.model.lost.add(dataset_id)

    @rule(who=_numbers, dataset=_numbers, user=_numbers, role=_roles)
    def share(self, who: int, dataset: int, user: int, role: Role) -> None:
        """Share a dataset."""
        acting, actor = self.actor(who)
        address = self.address(user)
        dataset_id, user_id = self.dataset(dataset), self.model.addressed(address)
        kinds = self.model.refuse_share(acting, dataset_id, user_id, role)
        self.attempt(kinds, self.hub.datasets.share, actor, dataset_id, address, role)
        if not kinds and user_id is not None:
            self.model.datasets[dataset_id].grants[user_id] = role

    @rule(who=_numbers, dataset=_numbers, user=_numbers)
    def unshare(self, who: int, dataset: int, user: int) -> None:
        """Take a share back."""
        acting, actor = self.actor(who)
        address = self.address(user)
        dataset_id, user_id = self.dataset(dataset), self.model.addressed(address)
        kinds = self.model.refuse_unshare(acting, dataset_id, user_id)
        self.attempt(kinds, self.hub.datasets.unshare, actor, dataset_id, address)
        if not kinds and user_id is not None:
            del self.model.datasets[dataset_id].grants[user_id]

    def with_media(self, number: int) -> str:
        """Return the id of a dataset, mostly of one with media."""
        found = [each for each, dataset in self.model.datasets.items() if dataset.media]
        return self.dataset(number // 4) if number % 4 == 3 or not found else found[number % len(found)]

    def view(self, dataset_id: str, number: int) -> str:
        """Return the id of a saved view of a dataset, or rarely of none."""
        dataset = self.model.datasets.get(dataset_id)
        return pick([] if dataset is None else list(dataset.views), number, new_id())

    @rule(who=_numbers, dataset=_numbers, name=st.sampled_from(VIEWS), label=st.sampled_from([None, "a", "b"]))
    def save_view(self, who: int, dataset: int, name: str, label: str | None) -> None:
        """Save a view."""
        acting, actor = self.actor(who)
        dataset_id = self.with_media(dataset)
        kinds = self.model.refuse_view(acting, dataset_id, name)
        wanted = None if label is None else vql.labels(label)
        view = self.attempt(kinds, self.hub.views.create, actor, dataset_id, name, vql=wanted)
        if view is not None:
            self.model.datasets[dataset_id].views[view.id] = Saved(name, label, acting.user)

    @rule(who=_numbers, dataset=_numbers, view=_numbers, enabled=st.booleans())
    def set_alerting(self, who: int, dataset: int, view: int, enabled: bool) -> None:
        """Turn the alerts of a saved view on or off."""
        acting, actor = self.actor(who)
        dataset_id = self.with_media(dataset)
        view_id = self.view(dataset_id, view)
        kinds = self.model.refuse_view_change(acting, Action.VIEW_ALERTING, dataset_id, view_id)
        is_on = self.attempt(kinds, self.hub.views.set_alerting, actor, dataset_id, view_id, enabled=enabled)
        if is_on is not None:
            assert is_on is enabled
            self.model.datasets[dataset_id].views[view_id].alerting = enabled

    @rule(who=_numbers, dataset=_numbers, view=_numbers)
    def delete_view(self, who: int, dataset: int, view: int) -> None:
        """Delete a saved view; what users heard of it stays."""
        acting, actor = self.actor(who)
        dataset_id = self.with_media(dataset)
        view_id = self.view(dataset_id, view)
        kinds = self.model.refuse_view_change(acting, Action.VIEW_DELETE, dataset_id, view_id)
        self.attempt(kinds, self.hub.views.delete, actor, dataset_id, view_id)
        if not kinds:
            del self.model.datasets[dataset_id].views[view_id]

    @rule(labels=_labels)
    def add_batch(self, labels: str) -> None:
        """Media are added, which saved views count and users hear of."""
        for dataset_id, dataset in self.model.datasets.items():
            if dataset.media and dataset.media + len(labels) <= len(ROWS):
                alerting = [each for each in dataset.views.values() if each.alerting and each.count(labels)]
                self.workspace.dataset(dataset_id).add_media(labelled(dataset.media, labels))
                self.model.add_batch(dataset_id, labels)
                assert self.hub.notifications.deliver() == len(alerting)

    @rule(number=_numbers, password=_passwords)
    def log_in(self, number: int, password: str) -> None:
        """Begin a session. Each attempt is from an IP address of its own, so that none has to wait."""
        name = self.address(number)
        user_id = self.model.named(name)
        user = None if user_id is None else self.model.users[user_id]
        kinds: Kinds = {NotAuthenticated}
        if user is not None and user.enabled and user.password == password:
            kinds = set()
        session = self.attempt(kinds, self.hub.sessions.log_in, name, password, ip=self.ip())
        if session is not None and user is not None:
            assert (session.user_id, session.must_change_password) == (user_id, user.is_temporary)
            user.logins[session.token] = Login(self.clock.time, self.clock.time)

    @rule(number=_numbers)
    def log_out(self, number: int) -> None:
        """End a session, or one that has ended."""
        live = number % 3 > 0
        tokens = list(self.model.tokens(live=live))
        token, user_id = pick(tokens, number, ("no token", ""))
        kinds: Kinds = set() if user_id and live else {NotAuthenticated}
        self.attempt(kinds, self.hub.sessions.log_out, token)
        if not kinds:
            del self.model.users[user_id].logins[token]

    @rule(who=_numbers, current=_passwords, password=_passwords)
    def change_password(self, who: int, current: str, password: str) -> None:
        """Change the own password."""
        acting, actor = self.actor(who)
        if acting.user is None:
            return
        user, kinds = self.model.users[acting.user], self.model.refuse(acting, Action.OWN_PASSWORD)
        if not kinds and (current != user.password or current == password):
            kinds = {InvalidInput}
        session = self.attempt(kinds, self.hub.sessions.change_password, actor, current, password, ip=self.ip())
        if session is not None:
            self.model.end_logins(acting.user)
            user.password, user.is_temporary = password, False
            user.logins[session.token] = Login(self.clock.time, self.clock.time)

    @rule(who=_numbers, rotate=st.booleans())
    def get_key(self, who: int, rotate: bool) -> None:
        """Get the own API key, with its secret if it is new."""
        acting, actor = self.actor(who)
        if acting.user is None:
            return
        user, hub = self.model.users[acting.user], self.hub
        kinds = self.model.refuse(acting, Action.OWN_CREDENTIALS)
        key = self.attempt(kinds, hub.credentials.rotate if rotate else hub.credentials.get, actor)
        if key is not None:
            assert user.key in (None, key.api_key)
            assert bool(key.api_secret) is (rotate or user.key is None)
            assert key.api_secret != user.secret
            user.key, user.secret = key.api_key, key.api_secret or user.secret

    @rule(who=_numbers)
    def revoke_key(self, who: int) -> None:
        """Revoke the own API key."""
        acting, actor = self.actor(who)
        if acting.user is None:
            return
        user, kinds = self.model.users[acting.user], self.model.refuse(acting, Action.OWN_CREDENTIALS)
        self.attempt(kinds or ({NotFound} if user.key is None else set()), self.hub.credentials.revoke, actor)
        user.key = user.key if kinds else None

    @rule(hours=st.sampled_from([0.01, 1, 5, 9, 170]))
    def wait(self, hours: float) -> None:
        """Time goes by."""
        self.clock.move(hours=hours)
        self.model.now = self.clock.time

    # What single steps seldom do one after the other

    @rule(dataset=_numbers, who=_numbers)
    def demote_who_may_edit(self, dataset: int, who: int) -> None:
        """Let the members of a tenant edit a dataset, and make them viewers there."""
        dataset_id = self.dataset(dataset)
        if (owned := self.model.datasets.get(dataset_id)) is None:
            return
        for user_id in list(self.model.tenants[owned.tenant]):
            account, number = self.model.users[user_id], number_of(list(self.model.users), user_id)
            roles = list(account.roles)
            tenant = next(n for n in count(roles.index(owned.tenant), len(roles)) if n % 11 != 10 and n % 4 != 3)
            self.set_role(2, number, Role.EDITOR, tenant)
            self.share(2, dataset, number_of(self.addresses(), account.address.upper()), Role.EDITOR)
            self.look(who, Action.DATASET_EDIT)
            self.set_role(2, number, Role.VIEWER, tenant)

    @rule(user=_numbers)
    def disable_who_has_a_key(self, user: int) -> None:
        """Give a user a key, and disable the user."""
        user_id = self.user(user)
        if user_id in self.model.users and (who := self.logged_in(user_id)) is not None:
            self.get_key(who, False)
            self.change(2, number_of(list(self.model.users), user_id), None, False)

    @rule(user=_numbers, dataset=_numbers, role=_roles)
    def take_back_what_was_seen(self, user: int, dataset: int, role: Role) -> None:
        """Share a dataset with a user who looks at it by both hubs, take the share back, and have the user look."""
        user_id = self.user(user)
        if user_id in self.model.users and (who := self.logged_in(user_id)) is not None:
            place = number_of(self.addresses(), self.model.users[user_id].address.upper())
            self.share(2, dataset, place, role)
            for _ in self.hubs:
                self.look(who, Action.DATASET_EDIT)
            self.unshare(2, dataset, place)
            for _ in self.hubs:
                self.look(who, Action.DATASET_EDIT)

    @rule(user=_numbers)
    def stay(self, user: int) -> None:
        """A session that is used each few hours does not end."""
        user_id = self.user(user)
        if user_id in self.model.users:
            for _ in range(3):
                if (who := self.logged_in(user_id)) is not None:
                    self.wait(5)
                    self.look(who, Action.DATASET_VIEW)

    @rule(who=_numbers, dataset=_numbers)
    def save_equal_names(self, who: int, dataset: int) -> None:
        """Save a view, and one whose name differs in the case."""
        for name in ("all", "ALL"):
            self.save_view(who, dataset, name, None)

    @rule()
    def sweep(self) -> None:
        """Delete what is not needed any more."""
        dead = list(self.model.tokens(live=False))
        assert self.hub.datasets.sweep() == len(self.model.lost)
        assert self.hub.sessions.sweep() == len(dead)
        self.hub.sweep()
        self.model.lost.clear()
        for token, user_id in dead:
            del self.model.users[user_id].logins[token]

    @rule()
    def reopen(self) -> None:
        """Close both hubs and the workspace, and open them again."""
        self._close()
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.hubs = [Hub(self.workspace, is_multi=not self.is_single, clock=self.clock) for _ in range(2)]

    @rule(who=_numbers, action=st.sampled_from([each for each in Action if each.startswith("dataset")]))
    def look(self, who: int, action: Action) -> None:
        """Someone sees what the model says, and may do with each dataset what it says."""
        acting, actor = self.actor(who)
        hub, model = self.hub, self.model
        is_closed = acting.user is not None and model.users[acting.user].is_temporary
        for dataset_id in [*model.datasets, new_id()]:
            kinds = model.refuse_dataset(acting, action, dataset_id)
            self.attempt(kinds, hub.datasets.open, actor, dataset_id, action)
        if is_closed:
            return
        seen = {each for each in model.datasets if not model.refuse(acting, Action.DATASET_VIEW, each)}
        assert {each.id: each.owned_by for each in hub.datasets.visible(actor)}.keys() == seen
        for dataset_id in seen:
            assert [(e.email, e.role) for e in hub.datasets.members(actor, dataset_id)] == model.members(dataset_id)
            views = {each.id: each for each in hub.views.of_dataset(actor, dataset_id)}
            assert [*views] == [*reversed(model.datasets[dataset_id].views)]
            for view_id, saved in model.datasets[dataset_id].views.items():
                view = views[view_id]
                assert (view.name, view.creator_id, view.alerting_enabled, view.total_results) == (
                    saved.name, saved.creator, saved.alerting, saved.total,
                )  # fmt: skip
                assert hub.views.trend(actor, dataset_id, view_id).total_results == saved.total
        for dataset_id in {*model.datasets, new_id()} - seen:
            self.attempt({NotFound}, hub.views.of_dataset, actor, dataset_id)
        page = hub.notifications.search(actor, limit=100)
        found = [Heard(e.dataset_id, e.metadata.view_name, e.metadata.result_count) for e in page.notifications]
        heard = sorted(model.heard_by(acting), key=repr)
        assert (page.total, sorted(found, key=repr)) == (len(heard), heard)
        own = model.tenants if acting.user is None else model.users[acting.user].roles
        assert {each.id for each in hub.tenants.visible(actor)} == set(own)
        for tenant_id in [*model.tenants, new_id()]:
            kinds = model.refuse(acting, Action.TENANT_VIEW, tenant_id)
            kinds = kinds or (set() if tenant_id in model.tenants else {NotFound})
            self.attempt(kinds, hub.tenants.members, actor, tenant_id)
        self.attempt(model.refuse(acting, Action.USERS_READ), hub.users.page, actor)

    @invariant()
    def is_as_the_model(self) -> None:
        """Accounts, members, owners, grants, sessions and keys are those of the model."""
        model, hub = self.model, self.hub
        users = {each.id: (each.username, each.enabled, set(each.roles)) for each in hub.users.page(OPERATOR)[0]}
        assert users == {each: (user.name, user.enabled, user.realm) for each, user in model.users.items()}
        for tenant_id, members in model.tenants.items():
            roles = {each.user_id: each.role for each in hub.tenants.members(OPERATOR, tenant_id)}
            assert roles == {each: model.users[each].roles[tenant_id] for each in members}
            admins = [each for each, role in roles.items() if role == Role.ADMIN]
            assert not self.is_single or len(admins) <= 1
            assert tenant_id != DEFAULT_ID or any(model.users[each].enabled for each in admins)
        with hub._database.read() as connection:
            homes = connection.exec_driver_sql("SELECT dataset_id, tenant_id, owner_id FROM dataset_homes").all()
            grants = connection.exec_driver_sql("SELECT dataset_id, user_id, role FROM grants").all()
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        assert {row[0]: tuple(row[1:]) for row in homes if row[0] not in model.lost} == {
            each: (dataset.tenant, dataset.owner) for each, dataset in model.datasets.items()
        }
        assert all(
            model.users[owner].roles.get(tenant) not in (None, Role.VIEWER)
            for each, tenant, owner in homes
            if owner and each not in model.lost
        )
        assert {tuple(row) for row in grants if row[0] not in model.lost} == {
            (each, user_id, role)
            for each, dataset in model.datasets.items()
            for user_id, role in dataset.grants.items()
        }
        for token, _ in model.tokens(live=False):
            with pytest.raises(NotAuthenticated):
                hub.sessions.actor(token)
        for user in model.users.values():
            if user.key is not None and user.enabled:
                assert hub.credentials.secret_of(user.key) == user.secret
            elif user.key is not None:
                with pytest.raises(NotAuthenticated):
                    hub.credentials.actor(user.key)

    def _close(self) -> None:
        for hub in self.hubs:
            hub.close()
        self.workspace.close()

    def teardown(self) -> None:
        self._close()
        shutil.rmtree(self.home)


class LifeOfMany(Life):
    """The same with several admins in a tenant."""

    is_single = False


Life.TestCase.settings = examples(20, stateful_step_count=50)
LifeOfMany.TestCase.settings = examples(22, stateful_step_count=50)
test_hub__any_people = pytest.mark.slow(Life.TestCase)
test_hub__any_people_of_many = pytest.mark.slow(LifeOfMany.TestCase)
