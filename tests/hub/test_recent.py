"""Values that were read a moment ago: kept while nothing changes, and never from before a change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.errors import NotFound
from framedex.hub.recent import Recent
from tests.gallery import SETTINGS
from tests.inside import catalog_of
from tests.tuning import Tuning


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace."""
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as opened:
        yield opened


class Names:
    """Reads the names of a workspace's datasets, and counts how often."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.times = workspace, 0

    def __call__(self) -> list[str]:
        self.times += 1
        return [each.display_name for each in self.workspace.datasets()]


def test_recent__until_a_commit(workspace: Workspace) -> None:
    """A value is read once, and again after a commit of this or another process."""
    values, read = Recent[list[str]](catalog_of(workspace)), Names(workspace)
    assert [values.get("names", read) for _ in range(5)] == [[]] * 5
    assert read.times == 1
    workspace.create_draft("one")
    assert values.get("names", read) == ["one"]
    with Workspace(workspace.path, settings=SETTINGS) as other:
        other.create_draft("two")
    assert values.get("names", read) == ["two", "one"]
    assert (values.get("names", read), read.times) == (["two", "one"], 3)
    assert values.get("other", read) == ["two", "one"]
    assert read.times == 4
    values.close()
    assert values.get("names", read) == ["two", "one"]
    values.close()


def test_recent__ends_with_its_age(workspace: Workspace, tuning: Tuning) -> None:
    """What no commit tells, such as the death of a process, is seen within the age."""
    tuning.recent_s = 0.0
    values, read = Recent[list[str]](catalog_of(workspace)), Names(workspace)
    assert [values.get("names", read) for _ in range(3)] == [[]] * 3
    assert read.times == 3
    values.close()


def test_recent__is_never_from_before_a_change(workspace: Workspace) -> None:
    """A slow reading that another thread overtakes is not kept."""
    values, read = Recent[list[str]](catalog_of(workspace)), Names(workspace)

    def slowly() -> list[str]:
        before = read()
        workspace.create_draft("one")
        assert values.get("names", read) == ["one"]
        return before

    assert values.get("names", slowly) == []
    assert values.get("names", read) == ["one"]
    values.close()


def test_recent__keeps_no_errors(workspace: Workspace) -> None:
    """A reading that fails is repeated."""
    values = Recent[str](catalog_of(workspace))

    def fail() -> str:
        raise NotFound("nothing there")

    for _ in range(2):
        with pytest.raises(NotFound, match="nothing there"):
            values.get("name", fail)
    assert values.get("name", lambda: "there") == "there"
    values.close()
