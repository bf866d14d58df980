"""Tenants and organizations: members, their roles, and what follows from a change of a role."""

import pytest

from framedex import Conflict, Dataset, Forbidden, InvalidInput, NotFound, Workspace
from framedex.access import ANONYMOUS, RealmRole, Role, local_actor
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.hub.people import OPERATOR, PASSWORD, add_user, log_in, roles


def drafts(hub: Hub, workspace: Workspace, owner_id: str, count: int, tenant_id: str = DEFAULT_ID) -> list[Dataset]:
    """Return drafts that a user owns."""
    made = [workspace.create_draft(f"{owner_id[:8]}-{number}") for number in range(count)]
    for dataset in made:
        hub.datasets.adopt(dataset.id, tenant_id, owner_id)
    return made


def test_promote__there_is_one_admin(hub: Hub) -> None:
    """A promotion makes the former admin an editor; both are logged out, and all realm roles change hands."""
    ann, bob = add_user(hub, "ann", "admin"), add_user(hub, "bob")
    tokens = [hub.sessions.log_in(name, PASSWORD).token for name in ("ann", "bob")]
    member = hub.tenants.set_role(hub.sessions.actor(tokens[0]), bob.id, Role.ADMIN)
    assert (member.username, member.role) == ("bob", "admin")
    assert roles(hub) == {"ann": "editor", "bob": "admin"}
    assert hub.users.get(OPERATOR, ann.id).roles == []
    assert hub.users.get(OPERATOR, bob.id).roles == [str(role) for role in RealmRole]
    for token in tokens:
        with pytest.raises(NotAuthenticated):
            hub.sessions.actor(token)


def test_promote__with_many_tenants(multi: Hub) -> None:
    """With many tenants a promotion leaves the other admins and their sessions alone, and a tenant keeps one admin."""
    ann, bob = add_user(multi, "ann", "admin"), add_user(multi, "bob")
    actor = log_in(multi, "ann")
    multi.tenants.set_role(actor, bob.id, Role.ADMIN)
    assert roles(multi) == {"ann": "admin", "bob": "admin"}
    multi.tenants.set_role(actor, bob.id, Role.VIEWER)
    assert multi.users.get(OPERATOR, bob.id).roles == []
    with pytest.raises(InvalidInput, match="last admin of a workspace cannot be demoted; promote another user first"):
        multi.tenants.set_role(OPERATOR, ann.id, Role.EDITOR)
    assert roles(multi) == {"ann": "admin", "bob": "viewer"}


def test_promote__settles_a_tenant_that_has_two(workspace: Workspace, multi: Hub) -> None:
    """If a service with many admins goes on in single-workspace mode, the next promotion leaves one."""
    users = [add_user(multi, name, "admin") for name in ("ann", "bob", "cleo")]
    with Hub(workspace) as single:
        single.tenants.set_role(OPERATOR, users[1].id, Role.ADMIN)
        assert roles(single) == {"ann": "editor", "bob": "admin", "cleo": "editor"}


def test_promote__a_disabled_user(hub: Hub) -> None:
    """A user who cannot log in does not become the admin."""
    add_user(hub, "ann", "admin")
    bob = add_user(hub, "bob")
    hub.users.change(OPERATOR, bob.id, enabled=False)
    with pytest.raises(InvalidInput, match="disabled user cannot become an admin"):
        hub.tenants.set_role(OPERATOR, bob.id, Role.ADMIN)
    assert roles(hub) == {"ann": "admin", "bob": "viewer"}


def test_promote__realm_roles_of_an_admin_elsewhere(multi: Hub) -> None:
    """Who stays the admin of another tenant keeps the realm roles."""
    other = multi.tenants.create(OPERATOR, "birds")
    ann = add_user(multi, "ann", "admin")
    add_user(multi, "bob", "admin")
    multi.tenants.add_member(OPERATOR, other.id, "ann", Role.ADMIN)
    multi.tenants.set_role(OPERATOR, ann.id, Role.VIEWER)
    assert multi.users.get(OPERATOR, ann.id).roles == [str(role) for role in RealmRole]


def test_demote__to_viewer_gives_datasets_to_the_admin(hub: Hub, workspace: Workspace) -> None:
    """A viewer owns nothing and edits nothing: datasets go to the acting admin, and grants become those of viewers."""
    ann, bob = add_user(hub, "ann", "admin"), add_user(hub, "bob", "editor")
    own, granted, from_library = drafts(hub, workspace, bob.id, 3)
    hub.datasets.adopt(granted.id, DEFAULT_ID, ann.id)
    hub.datasets.share(OPERATOR, granted.id, "bob", Role.EDITOR)
    (extra,) = drafts(hub, workspace, ann.id, 1)
    hub.datasets.share(OPERATOR, extra.id, "bob", Role.VIEWER)
    session = hub.sessions.log_in("bob", PASSWORD)
    hub.tenants.set_role(log_in(hub, "ann"), bob.id, Role.VIEWER)
    assert [(each.email, each.role) for each in hub.datasets.members(OPERATOR, own.id)] == [("ann", "owner")]
    assert [(each.email, each.role) for each in hub.datasets.members(OPERATOR, granted.id)] == [
        ("ann", "owner"), ("bob", "viewer"),
    ]  # fmt: skip
    assert [each.role for each in hub.datasets.members(OPERATOR, from_library.id)] == ["owner"]
    assert hub.sessions.actor(session.token).roles == {DEFAULT_ID: Role.VIEWER}  # no admin, so still logged in


def test_demote__by_the_operator(multi: Hub, workspace: Workspace) -> None:
    """The operator owns nothing: the datasets of an admin who becomes a viewer go to another admin of the tenant.

    The former admin is logged out, without the roles of admins.
    """
    ann = add_user(multi, "ann", "admin")
    add_user(multi, "bob", "admin")
    (dataset,) = drafts(multi, workspace, ann.id, 1)
    session = multi.sessions.log_in("ann", PASSWORD)
    multi.tenants.set_role(OPERATOR, ann.id, Role.VIEWER)
    with pytest.raises(NotAuthenticated):
        multi.sessions.actor(session.token)
    assert log_in(multi, "ann").realm_roles == frozenset()
    assert [each.email for each in multi.datasets.members(OPERATOR, dataset.id)] == ["bob"]


def test_demote__in_one_tenant_of_two(multi: Hub, workspace: Workspace) -> None:
    """Datasets and grants in other tenants stay as they are."""
    other = multi.tenants.create(OPERATOR, "birds")
    add_user(multi, "ann", "admin")
    bob = add_user(multi, "bob", "editor")
    multi.tenants.add_member(OPERATOR, other.id, "bob", Role.EDITOR)
    here, there, shared = drafts(multi, workspace, bob.id, 3)
    multi.datasets.adopt(there.id, other.id, bob.id)
    multi.datasets.adopt(shared.id, other.id, None)
    multi.datasets.share(OPERATOR, shared.id, "bob", Role.EDITOR)
    multi.tenants.set_role(OPERATOR, bob.id, Role.VIEWER)
    assert [each.email for each in multi.datasets.members(OPERATOR, here.id)] == ["ann"]
    assert [each.email for each in multi.datasets.members(OPERATOR, there.id)] == ["bob"]
    assert [each.role for each in multi.datasets.members(OPERATOR, shared.id)] == ["editor"]


def test_delete__gives_datasets_to_admins(multi: Hub, workspace: Workspace) -> None:
    """The datasets of a deleted user go to the acting admin; in a tenant that is not theirs, to its admin."""
    other = multi.tenants.create(OPERATOR, "birds")
    add_user(multi, "zoe", "admin")
    add_user(multi, "ann", "admin")
    add_user(multi, "cleo", "admin", tenant_id=other.id)
    bob = add_user(multi, "bob", "editor")
    here, there = drafts(multi, workspace, bob.id, 2)
    multi.datasets.adopt(there.id, other.id, bob.id)
    multi.users.delete(log_in(multi, "ann"), bob.id)
    assert [each.email for each in multi.datasets.members(OPERATOR, here.id)] == ["ann"]
    assert [each.email for each in multi.datasets.members(OPERATOR, there.id)] == ["cleo"]


def test_set_role__who_may(hub: Hub) -> None:
    """Roles are changed by the admin of the tenant, not the own one, and not while authentication is off."""
    ann, bob = add_user(hub, "ann", "admin"), add_user(hub, "bob", "editor")
    with pytest.raises(InvalidInput, match="You cannot change your own role"):
        hub.tenants.set_role(log_in(hub, "ann"), ann.id, Role.VIEWER)
    with pytest.raises(Forbidden, match="Only administrators"):
        hub.tenants.set_role(log_in(hub, "bob"), ann.id, Role.VIEWER)
    with pytest.raises(Forbidden, match="User management is not enabled"):
        hub.tenants.set_role(local_actor("me"), bob.id, Role.VIEWER)
    with pytest.raises(NotAuthenticated):
        hub.tenants.set_role(ANONYMOUS, bob.id, Role.VIEWER)
    with pytest.raises(NotFound, match="Member not found"):
        hub.tenants.set_role(OPERATOR, "nobody", Role.VIEWER)
    with pytest.raises(InvalidInput, match="not 'owner'"):
        hub.tenants.set_role(OPERATOR, bob.id, "owner")  # type: ignore[arg-type] # that is the point
    assert roles(hub) == {"ann": "admin", "bob": "editor"}


def test_set_role__by_an_admin_who_was_demoted_meanwhile(hub: Hub) -> None:
    """Rights count when the change is made, not when the actor was read."""
    add_user(hub, "ann", "admin")
    former, bob, cleo = log_in(hub, "ann"), add_user(hub, "bob"), add_user(hub, "cleo")
    hub.tenants.set_role(OPERATOR, bob.id, Role.ADMIN)
    with pytest.raises(Forbidden):
        hub.tenants.set_role(former, cleo.id, Role.ADMIN)
    assert roles(hub)["bob"] == "admin"


@pytest.mark.parametrize("role", ["admin", Role.ADMIN])
def test_add_member__as_admin(hub: Hub, role: str) -> None:
    """A member who joins as admin takes the place of the admin, whether the role is a member of Role or its text."""
    other = hub.tenants.create(OPERATOR, "birds")
    add_user(hub, "ann", "admin", tenant_id=other.id)
    add_user(hub, "bob", email="bob@example.org")
    assert hub.tenants.add_member(OPERATOR, other.id, "BOB@example.org", role).role == "admin"  # type: ignore[arg-type] # as text, too
    assert roles(hub, other.id) == {"ann": "editor", "bob": "admin"}


def test_add_member__refusals(hub: Hub) -> None:
    """Members are added by the operator, once, with a role that exists."""
    other = hub.tenants.create(OPERATOR, "birds")
    add_user(hub, "ann", "admin")
    with pytest.raises(InvalidInput, match="not 'owner'"):
        hub.tenants.add_member(OPERATOR, other.id, "ann", "owner")  # type: ignore[arg-type] # that is the point
    with pytest.raises(NotFound, match="no user 'bob'"):
        hub.tenants.add_member(OPERATOR, other.id, "bob")
    with pytest.raises(NotFound, match="Workspace not found"):
        hub.tenants.add_member(OPERATOR, "nowhere", "ann")
    with pytest.raises(Forbidden):
        hub.tenants.add_member(log_in(hub, "ann"), other.id, "ann")
    hub.tenants.add_member(OPERATOR, other.id, "ann")
    with pytest.raises(InvalidInput, match="member of this workspace already"):
        hub.tenants.add_member(OPERATOR, other.id, "ann")
    assert hub.tenants.primary(log_in(hub, "ann")) == DEFAULT_ID


def test_visible__those_of_the_actor(multi: Hub) -> None:
    """Users see the tenants and organizations that they belong to; nobody learns of others, and strangers of none."""
    birds = multi.tenants.create_organization(OPERATOR, "Birds")
    owls = multi.tenants.create(OPERATOR, "owls", organization_id=birds.id)
    add_user(multi, "ann", "editor")
    add_user(multi, "bob", "admin", tenant_id=owls.id)
    ann, bob = log_in(multi, "ann"), log_in(multi, "bob")
    assert [each.id for each in multi.tenants.visible(ann)] == [DEFAULT_ID]
    assert [each.id for each in multi.tenants.visible(bob)] == [owls.id]
    assert multi.tenants.visible(bob, organization_id=DEFAULT_ID) == []
    assert [each.id for each in multi.tenants.visible(OPERATOR)] == [DEFAULT_ID, owls.id]
    assert [each.name for each in multi.tenants.organizations(bob)] == ["Birds"]
    for call in (lambda: multi.tenants.get(ann, owls.id), lambda: multi.tenants.members(ann, owls.id)):
        with pytest.raises(NotFound, match="Workspace not found"):
            call()
    for nobody in (lambda: multi.tenants.visible(ANONYMOUS), lambda: multi.tenants.organizations(ANONYMOUS)):
        with pytest.raises(NotAuthenticated):
            nobody()
    permissions = multi.tenants.get(ann).permissions
    assert permissions is not None
    assert permissions.model_dump() == {
        "can_view": True, "can_manage_members": False, "can_edit_roles": False, "can_create_dataset": True,
    }  # fmt: skip


def test_create__names_are_unique(multi: Hub) -> None:
    """An organization has a tenant of a name once, and only the operator creates either."""
    multi.tenants.create(OPERATOR, "owls")
    with pytest.raises(Conflict, match="'owls' exists already in this organization"):
        multi.tenants.create(OPERATOR, "owls")
    birds = multi.tenants.create_organization(OPERATOR, "Birds")
    multi.tenants.create(OPERATOR, "owls", organization_id=birds.id)
    with pytest.raises(Conflict, match="'Birds' exists already"):
        multi.tenants.create_organization(OPERATOR, "Birds")
    with pytest.raises(NotFound, match="Organization not found"):
        multi.tenants.create(OPERATOR, "owls", organization_id="nowhere")
    add_user(multi, "ann", "admin")
    for call in (
        lambda: multi.tenants.create(log_in(multi, "ann"), "hawks"),
        lambda: multi.tenants.create_organization(log_in(multi, "ann"), "Hawks"),
    ):
        with pytest.raises(Forbidden):
            call()
