"""Services that lost their users or their catalog."""

import os
from pathlib import Path

import pytest

from framedex import NotAuthenticated, Workspace
from framedex.access import Action, Role, operator_actor
from framedex.cli import main
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.gallery import SETTINGS
from tests.hub.people import OPERATOR, PASSWORD, add_user


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with two tenants, a dataset in each, and a grant."""
    home = tmp_path / "ws"
    with Workspace(home, settings=SETTINGS) as workspace, Hub(workspace, is_multi=True) as hub:
        add_user(hub, "ann", "admin")
        birds = hub.tenants.create(OPERATOR, "birds")
        add_user(hub, "ben", "admin", tenant_id=birds.id)
        own = workspace.in_namespace(birds.id).create_draft("of the birds")
        pets = workspace.create_draft("pets")
        hub.datasets.adopt(own.id, birds.id, hub.users.find(OPERATOR, "ben").id)
        hub.datasets.adopt(pets.id, DEFAULT_ID, None)
        hub.datasets.share(OPERATOR, pets.id, "ben", Role.EDITOR)
    return home


def run(*arguments: str) -> int:
    """Run a command and return its status."""
    with pytest.raises(SystemExit) as exit_:
        main([*arguments])
    return int(exit_.value.code or 0)


@pytest.mark.slow
def test_recover__a_new_admin(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """After the loss of all users an admin is made on the command line, who has all datasets."""
    (home / "service.db").write_bytes(b"damaged" * 5000)
    assert run("check", "--workspace", str(home)) == 1
    assert (
        "service.db: is damaged: file is not a database (restore it from a backup with users;"
        in capsys.readouterr().out
    )
    assert run("users", "create", "eve", "--admin", "--workspace", str(home)) == 1
    assert "error: " in capsys.readouterr().err
    assert run("recover", str(home)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"kept: {home / 'service.db.damaged-1'}"
    assert "`framedex users create --admin NAME` makes an admin again" in lines[1]
    assert len(lines) == 3
    assert run("check", "--workspace", str(home)) == 1
    remedy = capsys.readouterr().out.splitlines()[0].partition("(")[2]
    assert ("`framedex users create --admin NAME`" in remedy, "recover" in remedy) == (True, False)
    read, write = os.pipe()
    os.write(write, b"a long password\n")
    os.close(write)
    with os.fdopen(read) as file:
        monkeypatch.setattr("sys.stdin", file)
        assert run("users", "create", "eve", "--admin", "--password-stdin", "--workspace", str(home)) == 0
    assert run("check", "--workspace", str(home)) == 0
    with Workspace(home, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        eve = hub.sessions.actor(hub.sessions.log_in("eve", "a long password").token)
        assert {each.display_name for each in hub.datasets.visible(eve)} == {"pets", "of the birds"}
        for record in hub.datasets.visible(eve):
            hub.datasets.open(eve, record.id, Action.DATASET_DELETE)
        with pytest.raises(NotAuthenticated):
            hub.sessions.log_in("ann", PASSWORD)


def test_recover__homes_fit_again(home: Path) -> None:
    """After the loss of the catalog datasets belong to whom they did, and are shared as before."""
    (home / "catalog.db").write_bytes(b"damaged" * 5000)
    Workspace.recover(home)
    with Workspace(home, settings=SETTINGS) as workspace, Hub(workspace, is_multi=True) as hub:
        hub.sweep()
        ben = hub.sessions.actor(hub.sessions.log_in("ben", PASSWORD).token)
        assert {each.display_name for each in hub.datasets.visible(ben)} == {"pets", "of the birds"}
        pets = workspace.dataset("pets")
        assert [(each.email, each.role) for each in hub.datasets.members(operator_actor("o"), pets.id)] == [
            ("ben", "editor")
        ]
