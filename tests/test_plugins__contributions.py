"""The rows that one registry gets from other packages."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from framedex import InvalidInput
from framedex.plugins import Contributions, PluginStatus

GROUP = "framedex.things"


@dataclass(frozen=True)
class Thing:
    """A row of a registry."""

    name: str


def publish(site: Path, package: str, points: dict[str, str], code: str) -> None:
    """Put a package with one module of its name on the module search path."""
    (site / f"{package}.py").write_text(f"from {__name__} import Thing\n{code}")
    information = site / f"{package}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (information / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the module search path."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_rows__by_name(site: Path) -> None:
    """Rows come by name, whichever package has them; a registry without contributions is empty."""
    publish(site, "contributes_b", {"b": "contributes_b:B"}, "B = Thing('b')")
    publish(site, "contributes_a", {"a": "contributes_a:A"}, "A = Thing('a')")
    contributions = Contributions(GROUP, Thing)
    assert list(contributions.rows().items()) == [("a", Thing("a")), ("b", Thing("b"))]
    assert {each.status for each in contributions.plugins()} == {PluginStatus.LOADED}
    assert [each.distribution for each in contributions.plugins()] == ["contributes_a", "contributes_b"]
    assert not Contributions("framedex.no_such_group", Thing).rows()


def test_rows__two_of_one_name(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of two packages with one name the first by its own name wins, and the log names the other."""
    publish(site, "names_twice_b", {"x": "names_twice_b:X"}, "X = Thing('x')")
    publish(site, "names_twice_a", {"x": "names_twice_a:X"}, "X = Thing('x')")
    with caplog.at_level(logging.WARNING, "framedex"):
        first, second = Contributions(GROUP, Thing).plugins()
    assert (first.distribution, first.error) == ("names_twice_a", None)
    assert (second.distribution, second.error) == ("names_twice_b", "the name 'x' is taken by another plugin")
    (record,) = caplog.records
    assert record.getMessage() == (
        f"the plugin 'x' of names_twice_b 1.0 ({GROUP}) was left out: the name 'x' is taken by another plugin"
    )


def test_rows__a_package_that_asks_for_them_while_it_loads(site: Path) -> None:
    """A package may use the registry that it contributes to; what is there so far comes back."""
    publish(site, "asks", {"asks": "asks:A"}, f"import {__name__} as t\nassert not t.ASKED.rows()\nA = Thing('asks')")
    assert list(ASKED.rows()) == ["asks"]


def test_rows__check_of_the_registry(site: Path) -> None:
    """A registry may refuse a row by what it knows of the others."""

    def check(row: Thing, others: object) -> None:
        if others:
            raise InvalidInput(f"{row.name} is one too many")

    points = {"a": "many:A", "b": "many:B"}
    publish(site, "many", points, "A, B = Thing('a'), Thing('b')")
    assert [each.error for each in Contributions(GROUP, Thing, check=check).plugins()] == [None, "b is one too many"]


ASKED = Contributions(GROUP, Thing)
