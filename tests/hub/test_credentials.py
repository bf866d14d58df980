"""API keys: their secrets, rotation, revocation and users."""

import pytest

from framedex import Forbidden, InvalidInput, NotFound, Workspace, WorkspaceError
from framedex.access import ANONYMOUS, Via, local_actor
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from tests.environment import Environment
from tests.failures import failing
from tests.hub.people import OPERATOR, Clock, add_user, log_in


@pytest.mark.slow
def test_get__shows_the_secret_once(hub: Hub) -> None:
    """The first call makes the key and shows its secret; later calls show the key alone, with the reason."""
    add_user(hub, "ann")
    ann = log_in(hub, "ann")
    first, second = hub.credentials.get(ann), hub.credentials.get(ann)
    assert first.api_key == second.api_key
    assert len(first.api_secret) == 43
    assert second.api_secret == ""
    assert "rotate" in second.message
    assert hub.credentials.secret_of(first.api_key) == first.api_secret


def test_rotate__ends_the_former_secret(hub: Hub) -> None:
    """A rotation keeps the key and shows another secret; the former one is that of no key any more."""
    add_user(hub, "ann")
    ann = log_in(hub, "ann")
    first, second = hub.credentials.get(ann), hub.credentials.rotate(ann)
    assert second.api_key == first.api_key
    assert hub.credentials.secret_of(first.api_key) == second.api_secret != first.api_secret
    add_user(hub, "bob")
    assert hub.credentials.rotate(log_in(hub, "bob")).api_secret != ""  # a first key


def test_revoke__ends_the_key(hub: Hub) -> None:
    """A revoked key is nobody's, and the next one has another name and another secret."""
    add_user(hub, "ann")
    ann = log_in(hub, "ann")
    first = hub.credentials.get(ann)
    hub.credentials.revoke(ann)
    for call in (hub.credentials.actor, hub.credentials.secret_of):
        with pytest.raises(NotAuthenticated, match="Invalid or expired token"):
            call(first.api_key)
    with pytest.raises(NotFound):
        hub.credentials.revoke(ann)
    second = hub.credentials.get(ann)
    assert second.api_key != first.api_key
    assert second.api_secret not in ("", first.api_secret)


def test_secret__of_another_key(hub: Hub) -> None:
    """Secrets of different keys differ, so a token that names another key does not verify; odd names are no keys."""
    add_user(hub, "ann")
    add_user(hub, "bob")
    ann, bob = (hub.credentials.get(log_in(hub, name)) for name in ("ann", "bob"))
    assert hub.credentials.secret_of(bob.api_key) != ann.api_secret
    for key in ("", "\ud800", ann.api_key.upper(), ann.api_key + " ", "' OR 1=1 --"):
        with pytest.raises(NotAuthenticated):
            hub.credentials.secret_of(key)


def test_actor__has_the_user_s_roles_of_this_moment(hub: Hub, clock: Clock) -> None:
    """A key acts for its user, with the roles of the moment; it neither reads credentials nor changes them."""
    user = add_user(hub, "ann")
    key = hub.credentials.get(log_in(hub, "ann")).api_key
    actor = hub.credentials.actor(key)
    assert (actor.user_id, actor.via, set(actor.roles.values())) == (user.id, Via.TOKEN, {"viewer"})
    for call in (hub.credentials.get, hub.credentials.rotate, hub.credentials.revoke):
        with pytest.raises(Forbidden, match="browser session"):
            call(actor)
    clock.move(minutes=5)
    add_user(hub, "cleo", "admin")
    hub.tenants.set_role(log_in(hub, "cleo"), user.id, "editor")  # type: ignore[arg-type] # as text
    assert set(hub.credentials.actor(key).roles.values()) == {"editor"}


def test_actor__with_a_temporary_password(hub: Hub) -> None:
    """After a reset of the password the key rests until the user has chosen a password."""
    user = add_user(hub, "ann")
    key = hub.credentials.get(log_in(hub, "ann")).api_key
    hub.users.reset_password(OPERATOR, user.id, "temporary one")
    with pytest.raises(Forbidden, match="Password change required"):
        hub.datasets.visible(hub.credentials.actor(key))


def test_get__who_has_none(hub: Hub) -> None:
    """Only users have keys: not the operator, the local user, or nobody."""
    for actor, kind in ((OPERATOR, NotFound), (local_actor("me"), Forbidden), (ANONYMOUS, NotAuthenticated)):
        with pytest.raises(kind):
            hub.credentials.get(actor)


def test_master_key__of_a_variable(workspace: Workspace, environment: Environment) -> None:
    """A key in the environment is used and not stored; one that is too short is refused without being repeated."""
    environment["FRAMEDEX_SECRET_KEY"] = "s" * 31
    with pytest.raises(InvalidInput, match="has 31 characters") as error:
        Hub(workspace)
    assert "s" * 31 not in str(error.value)
    secrets: list[str] = []
    for text in ("s" * 32, "s" * 32, "t" * 32):
        environment["FRAMEDEX_SECRET_KEY"] = text
        with Hub(workspace) as hub:
            if not secrets:
                add_user(hub, "ann")
                key = hub.credentials.get(log_in(hub, "ann")).api_key
            secrets.append(hub.credentials.secret_of(key))
    assert secrets[0] == secrets[1] != secrets[2]
    assert not (workspace.path / "service.key").exists()


def test_master_key__of_a_file(workspace: Workspace) -> None:
    """The file is made once, for one user alone; one that others can read, or that is too short, is refused."""
    path = workspace.path / "service.key"
    Hub(workspace).close()
    content = path.read_bytes()
    assert (len(content), path.stat().st_mode & 0o777) == (32, 0o600)
    Hub(workspace).close()
    assert path.read_bytes() == content
    path.chmod(0o644)
    with pytest.raises(WorkspaceError, match=r"mode 644.*chmod 600"):
        Hub(workspace)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(WorkspaceError, match="has 5 bytes"):
        Hub(workspace)
    assert path.read_bytes() == b"short"


@failing("pathlib.Path.hardlink_to", error=OSError("no links here"))
def test_master_key__without_hard_links(workspace: Workspace) -> None:
    """A file system without hard links serves, too."""
    Hub(workspace).close()
    assert len((workspace.path / "service.key").read_bytes()) == 32
    assert [path.name for path in workspace.path.glob(".*.partial")] == []
