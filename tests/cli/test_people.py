"""Commands for users, workspaces of users and organizations."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.cli import main
from framedex.hub import Hub
from tests.environment import Environment
from tests.hub.people import OPERATOR
from tests.processes import start

Run = Callable[..., tuple[int, str, str]]
PASSWORD = "correct horse"


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """The folder of a workspace that does not exist yet."""
    return tmp_path / "ws"


@pytest.fixture
def run(at: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the workspace, with a text as its input; return its status, output and error output."""

    def call(*arguments: str, text: str = f"{PASSWORD}\n") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(at)])
        captured = capsys.readouterr()
        code = exit_.value.code
        return code if isinstance(code, int) else 0, captured.out, captured.err

    return call


def create(run: Run, *arguments: str) -> tuple[int, str, str]:
    """Create a user with a password from the standard input."""
    return run("users", "create", *arguments, "--password-stdin")


def printed(run: Run, *arguments: str) -> Any:
    """Return the JSON that a command prints."""
    status, out, err = run(*arguments, "--json")
    assert status == 0, err
    return json.loads(out)


def test_users_create__makes_the_workspace_and_its_admin(run: Run, at: Path) -> None:
    """The first user makes the workspace and its users, as an admin who can log in."""
    assert create(run, "ann", "--admin")[:2] == (0, "created ann, admin of 'Default Workspace'\n")
    with Workspace(at) as workspace, Hub(workspace) as hub:
        assert not hub.sessions.log_in("ann", PASSWORD).must_change_password


@pytest.mark.slow
def test_users_create__has_a_role_and_names(run: Run) -> None:
    """A user has the given names and role; a new admin takes the place of the former, which is said."""
    create(run, "ann", "--admin")
    status, out, _ = create(run, "bob", "--role", "editor", "--email", "b@example.org", "--first-name", "Bob")
    assert (status, out) == (0, "created bob, editor of 'Default Workspace'\n")
    _, out, _ = create(run, "cleo", "--role", "admin")
    assert out.splitlines() == [
        "created cleo, admin of 'Default Workspace'",
        "ann is now editor instead of admin, and logged out",
    ]
    status, out, _ = run("users", "list")
    assert [line.split()[0] for line in out.splitlines()] == ["user", "ann", "bob", "cleo"]
    assert "Default Workspace: admin" in out.splitlines()[3]
    assert [user["username"] for user in printed(run, "users", "list", "--search", "BOB")] == ["bob"]
    assert "password" not in json.dumps(printed(run, "users", "list"))


@pytest.mark.parametrize(
    ("arguments", "text", "reason"),
    [
        (["ab"], PASSWORD, "3 to 255 characters"),
        (["ann", "--role", "owner"], PASSWORD, "viewer, editor, admin, not 'owner'"),
        (["ann", "--admin", "--role", "editor"], PASSWORD, "contradict each other"),
        (["ann", "--in-workspace", "nowhere"], PASSWORD, "no workspace 'nowhere'"),
        (["ann", "--email", "x"], PASSWORD, "no e-mail address"),
        (["ann"], "short\n", "a password has 8"),
        (["ann"], "", "first line of the standard input"),
    ],
)
def test_users_create__refusals(run: Run, arguments: list[str], text: str, reason: str) -> None:
    """A value that cannot be is refused in one line, with status 1, and no user is created."""
    status, _, err = run("users", "create", *arguments, "--password-stdin", text=text)
    assert (status, reason in err, err.count("\n")) == (1, True, 1)
    assert run("users", "list")[1].count("\n") <= 1


def test_users_create__has_no_password_argument(run: Run) -> None:
    """A password is no argument, which other users of the machine see, and is not asked for without a terminal."""
    assert run("users", "create", "ann", "--password", PASSWORD)[0] == 2
    assert run("users", "create", "ann", PASSWORD)[0] == 2
    status, _, err = run("users", "create", "ann")
    assert (status, "give --password-stdin" in err) == (1, True)


_TERMINAL = """
import os, pty, sys
command = [sys.executable, "-m", "framedex", "users", "create", "ann", "-w", sys.argv[1]]
sys.exit(os.waitstatus_to_exitcode(pty.spawn(command)))
"""


def dialogue(at: Path, answers: list[str]) -> tuple[int, str]:
    """Run `users create` on a terminal, type answers, and return the status and what the terminal shows."""
    process, shown = start(_TERMINAL, at), ""
    assert process.stdin is not None
    assert process.stdout is not None
    while part := os.read(process.stdout.fileno(), 4096).decode():
        shown += part
        if answers and shown.endswith(": "):  # the space comes once nothing is echoed any more
            process.stdin.write(f"{answers.pop(0)}\n")
            process.stdin.flush()
    process.communicate(timeout=60)
    return process.returncode, shown


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_users_create__asks_twice_without_an_echo(at: Path) -> None:
    """On a terminal the password is asked for twice, again if both differ, and never shown."""
    status, shown = dialogue(at, [PASSWORD, "another one", PASSWORD, PASSWORD])
    assert status == 0, shown
    assert "created ann" in shown
    assert PASSWORD not in shown
    assert shown.count("Password of ann") == 2
    with Workspace(at) as workspace, Hub(workspace) as hub:
        hub.sessions.log_in("ann", PASSWORD)


def test_users_list__of_a_workspace_without_users(run: Run, at: Path) -> None:
    """A mistyped folder or a workspace without users is said, and nothing is created."""
    status, _, err = run("users", "list")
    assert (status, "no workspace at" in err, at.exists()) == (1, True, False)
    Workspace(at).close()
    status, _, err = run("users", "list")
    assert (status, "users create --admin" in err) == (1, True)
    assert not (at / "service.db").exists()


def test_users_reset_password__is_temporary(run: Run, at: Path) -> None:
    """A user is found by name or address in any case; the password is temporary."""
    create(run, "ann", "--email", "ann@example.org")
    status, out, _ = run("users", "reset-password", "ANN@example.org", "--password-stdin", text="temporary one\n")
    assert (status, "ann is logged out" in out) == (0, True)
    with Workspace(at) as workspace, Hub(workspace) as hub:
        assert hub.sessions.log_in("ann", "temporary one").must_change_password
    assert run("users", "reset-password", "bob", "--password-stdin")[0] == 1


@pytest.mark.slow
def test_workspaces__have_members(run: Run, at: Path) -> None:
    """Workspaces of users are created in organizations, listed, and get members by name or id."""
    create(run, "ann", "--admin")
    create(run, "bob")
    assert run("organizations", "create", "Birds")[0] == 0
    created = printed(run, "workspaces", "create", "owls", "--organization", "Birds")
    assert run("workspaces", "add-member", "owls", "bob", "--role", "admin")[1] == "bob is admin of 'owls'\n"
    assert run("workspaces", "add-member", created["id"], "ann", "--role", "admin")[1].splitlines() == [
        "ann is admin of 'owls'", "bob is now editor instead of admin, and logged out",
    ]  # fmt: skip
    assert [each["name"] for each in printed(run, "workspaces", "list")] == ["Default Workspace", "owls"]
    assert "Birds" in run("workspaces", "list")[1]
    assert [each["name"] for each in printed(run, "organizations", "list")] == ["Birds", "Default Organization"]
    assert "Birds" in run("organizations", "list")[1]
    create(run, "cleo", "--in-workspace", "owls", "--role", "editor")
    with Workspace(at) as workspace, Hub(workspace) as hub:
        assert [each.username for each in hub.tenants.members(OPERATOR, created["id"])] == ["ann", "bob", "cleo"]


def test_workspaces__names_of_several(run: Run) -> None:
    """A name that two organizations use needs an id; unknown names and roles are refused."""
    create(run, "ann")
    run("organizations", "create", "Birds")
    ids = [printed(run, "workspaces", "create", "owls", *more)["id"] for more in ([], ["--organization", "Birds"])]
    status, _, err = run("workspaces", "add-member", "owls", "ann")
    assert (status, all(each in err for each in ids)) == (1, True)
    for arguments in (
        ["add-member", ids[0], "ann", "--role", "owner"],
        ["add-member", ids[0], "nobody"],
        ["add-member", "nowhere", "ann"],
        ["create", "hawks", "--organization", "nowhere"],
        ["create", "owls"],
    ):
        assert run("workspaces", *arguments)[0] == 1, arguments


def test_multi_workspace__is_a_setting(run: Run, environment: Environment) -> None:
    """With FRAMEDEX_MULTI_WORKSPACE a new admin leaves the others as they are."""
    environment["FRAMEDEX_MULTI_WORKSPACE"] = "true"
    create(run, "ann", "--admin")
    assert create(run, "bob", "--admin")[1] == "created bob, admin of 'Default Workspace'\n"
    assert run("users", "list")[1].count(": admin") == 2
    environment["FRAMEDEX_MULTI_WORKSPACE"] = "perhaps"
    assert "FRAMEDEX_MULTI_WORKSPACE is 'perhaps': it must be true or false" in run("users", "list")[2]


@pytest.mark.slow
def test_users__one_is_shown_and_changed(run: Run, at: Path) -> None:
    """A user is shown, renamed, disabled and enabled, by name, address or id."""
    create(run, "ann", "--admin", "--email", "ann@example.org")
    create(run, "bob", "--first-name", "Bob")
    shown = run("users", "show", "ANN@example.org")[1]
    assert all(part in shown for part in ("ann", "Default Workspace: admin", "manage-users"))
    user = printed(run, "users", "show", "bob")
    assert (user["username"], user["firstName"], user["enabled"]) == ("bob", "Bob", True)
    assert run("users", "rename", user["id"], "rob")[1] == "bob is now rob\n"
    assert run("users", "disable", "rob")[1] == "rob is logged out and cannot log in\n"
    assert printed(run, "users", "show", "rob")["enabled"] is False
    assert run("users", "enable", "rob")[1] == "rob can log in\n"
    for arguments, reason in (
        (["show", "bob"], "User not found"),
        (["rename", "rob", "ann"], "Username 'ann' is already taken"),
        (["rename", "rob", "r"], "3 to 255 characters"),
        (["disable", "ann"], "The last admin cannot be disabled"),
        (["delete", "ann", "--yes"], "The last admin cannot be deleted"),
    ):
        status, _, err = run("users", *arguments)
        assert (status, reason in err) == (1, True), (arguments, err)
    with Workspace(at) as workspace, Hub(workspace) as hub:
        hub.sessions.log_in("rob", PASSWORD)


def test_users_delete__asks(run: Run, at: Path) -> None:
    """A deletion needs --yes without a terminal; the datasets go to the admin."""
    create(run, "ann", "--admin")
    create(run, "bob", "--role", "editor")
    with Workspace(at) as workspace, Hub(workspace) as hub:
        bob = hub.sessions.actor(hub.sessions.log_in("bob", PASSWORD).token)
        dataset_id = hub.datasets.create(bob, "pets").id
    status, _, err = run("users", "delete", "bob")
    assert (status, "give --yes to confirm" in err) == (1, True)
    assert run("users", "delete", "bob", "--yes")[1] == "deleted bob\n"
    assert [each["username"] for each in printed(run, "users", "list")] == ["ann"]
    assert printed(run, "share", dataset_id) == [{"email": "ann", "role": "owner"}]
    for role in ("owner", "admin"):
        status, _, err = run("share", dataset_id, "ann", "--role", role)
        assert (status, err) == (1, f"error: a dataset is shared with a viewer or an editor, not {role!r}\n")


def test_users__sessions_end(run: Run, at: Path) -> None:
    """The sessions of a user are listed, and end with a log-out."""
    create(run, "ann")
    with Workspace(at) as workspace, Hub(workspace) as hub:
        for _ in range(2):
            hub.sessions.log_in("ann", PASSWORD, ip="192.0.2.1")
    assert [each["ipAddress"] for each in printed(run, "users", "sessions", "ann")] == ["192.0.2.1"] * 2
    assert run("users", "sessions", "ann")[1].count("192.0.2.1") == 2
    assert run("users", "log-out", "ann")[1] == "ended 2 sessions of ann\n"
    assert printed(run, "users", "sessions", "ann") == []


def test_users_roles__are_replaced(run: Run) -> None:
    """Roles are shown without arguments and replaced by those that are given; unknown ones are refused here."""
    create(run, "ann", "--admin")
    create(run, "bob")
    assert run("users", "roles", "bob")[1] == "bob: no roles\n"
    assert run("users", "roles", "bob", "query-groups", "view-users")[1] == "bob: view-users, query-groups\n"
    assert printed(run, "users", "roles", "bob") == ["view-users", "query-groups"]
    assert run("users", "roles", "bob", "--none")[1] == "bob: no roles\n"
    for arguments, reason in ((["owner"], "no role 'owner'"), (["view-users", "--none"], "either roles or --none")):
        status, _, err = run("users", "roles", "bob", *arguments)
        assert (status, reason in err) == (1, True)


def test_workspaces__roles_of_members(run: Run) -> None:
    """The members of a workspace are listed, and their roles changed, with all that follows."""
    create(run, "ann", "--admin")
    create(run, "bob", "--email", "bob@example.org")
    assert run("workspaces", "set-role", "Default Workspace", "bob", "editor")[1] == (
        "bob is editor of 'Default Workspace'\n"
    )
    assert run("workspaces", "set-role", "Default Workspace", "bob@example.org", "admin")[1].splitlines() == [
        "bob is admin of 'Default Workspace'",
        "ann is now editor instead of admin, and logged out",
    ]
    found = printed(run, "workspaces", "members", "Default Workspace")
    assert {each["username"]: each["role"] for each in found} == {"ann": "editor", "bob": "admin"}
    assert "bob@example.org" in run("workspaces", "members", "Default Workspace")[1]
    for arguments in (["bob", "owner"], ["bob", "viewer"], ["nobody", "viewer"]):
        assert run("workspaces", "set-role", "Default Workspace", *arguments)[0] == 1


@pytest.mark.slow
def test_share__with_a_user(run: Run, at: Path) -> None:
    """A dataset is shared by its name or id, the role changes, and sharing ends."""
    create(run, "ann", "--admin")
    create(run, "bob", "--email", "bob@example.org")
    with Workspace(at) as workspace:
        workspace.create_draft("pets")
    assert run("share", "pets", "bob")[1] == "pets is shared with bob as viewer\n"
    assert printed(run, "share", "pets", "BOB@example.org", "--role", "editor") == [
        {"email": "bob@example.org", "role": "editor"}
    ]
    assert "bob@example.org" in run("share", "pets")[1]
    assert run("share", "pets", "bob", "--remove")[1] == "pets is no longer shared with bob\n"
    assert printed(run, "share", "pets") == []
    for arguments, reason in (
        (["pets", "--remove"], "--remove needs a user"),
        (["pets", "nobody"], "No registered account"),
        (["pets", "bob", "--role", "admin"], "a viewer or an editor"),
        (["pets", "bob", "--role", "owner"], "not 'owner'"),
        (["cats", "bob"], "cats"),
    ):
        status, _, err = run("share", *arguments)
        assert (status, reason in err) == (1, True), (arguments, err)


def test_audit__lists_who_did_what(run: Run, at: Path) -> None:
    """The audit has the newest entry first, and is chosen by user, action, dataset and time."""
    create(run, "ann", "--admin")
    create(run, "bob")
    with Workspace(at) as workspace, Hub(workspace) as hub:
        ann = hub.sessions.actor(hub.sessions.log_in("ann", PASSWORD, ip="192.0.2.1").token)
        dataset_id = hub.datasets.create(ann, "pets").id
    out = run("audit")[1]
    assert [line.split()[3] for line in out.splitlines()[1:]] == [
        "dataset.create", "log_in", "users.create", "users.create",
    ]  # fmt: skip
    assert "192.0.2.1" in out
    assert [each["action"] for each in printed(run, "audit", "--user", "ann")] == ["dataset.create", "log_in"]
    assert [each["username"] for each in printed(run, "audit", "--action", "users")] == ["local", "local"]
    assert [each["action"] for each in printed(run, "audit", "--dataset", dataset_id)] == ["dataset.create"]
    assert printed(run, "audit", "--until", "2020-01-01") == []
    assert "3 older entries are left out" in run("audit", "--limit", "1")[1]
    assert run("audit", "--since", "soon")[0] == 1
