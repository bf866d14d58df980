"""Comparisons of states, trends and the map through the client, and what is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import Client, Dataset, Workspace
from framedex.client import ClientDataset, calls
from framedex.errors import Conflict, InvalidInput, NotAuthenticated, NotFound, WorkspaceError
from framedex.hub import Hub
from tests.gallery import SETTINGS
from tests.service.client import BASE, LOCAL, client_of
from tests.service.users import OPERATOR
from tests.tuning import Tuning

Keys = tuple[object, dict[str, tuple[str, str]]]


@pytest.fixture
def pets(client: Client) -> ClientDataset:
    """The dataset of the service, of which 20 media have a tag since the snapshot ``before``."""
    dataset = client.dataset("pets")
    dataset.snapshot("before")
    dataset.tag(dataset.view.limit(20), "seen")
    return dataset


@pytest.mark.slow
def test_report__is_that_of_the_library(client: Client, dataset: Dataset, tmp_path: Path) -> None:
    """The page has the same sections, images and words, but for the encoder, also of a filtered view."""
    pets = client.dataset("pets")
    expected = dataset.report(tmp_path / "expected.html", extra="<p>hello</p>").read_text()
    found = pets.report(tmp_path / "found.html", extra="<p>hello</p>").read_text()
    jpegs = [re.findall("data:image/jpeg;base64,", each) for each in (expected, found)]
    pages = [re.sub('data:image/jpeg;base64,[^"]*', "", each) for each in (expected, found)]  # others have other sizes
    assert (re.sub(" · encoder [^<]*", "", pages[0]), jpegs[0]) == (pages[1], jpegs[1])
    towns = [{"labels": {"op": "is", "value": "town"}}]
    page = pets.where(towns).report(tmp_path / "towns.html", level=2).read_text()
    assert f"{dataset.where(towns).count()} images" in page
    with pytest.raises(InvalidInput, match="explore takes filters"):
        pets.view.limit(3).report(tmp_path / "few.html")
    assert not (tmp_path / "few.html").exists()


@pytest.mark.slow
@pytest.mark.only_soak
def test_compare__in_pages(pets: ClientDataset, dataset: Dataset, tuning: Tuning) -> None:
    """Rows that come in several pages are those of the library, from any offset and up to any limit."""
    tuning.client_page_rows = 7
    found, own = pets.compare("before"), dataset.compare("before")
    for offset, limit in ((0, None), (3, None), (0, 14), (5, 9), (19, 5), (20, None), (50, 3), (0, 0)):
        pages = found.to_arrow("retagged", offset=offset, limit=limit)
        assert pages.to_pylist() == own.to_arrow("retagged", offset=offset, limit=limit).to_pylist()
        assert pages.schema == own.to_arrow().schema


@pytest.mark.slow
@pytest.mark.only_soak
def test_compare__stays_as_it_is(pets: ClientDataset) -> None:
    """A comparison with the present state does not change with the dataset."""
    found = pets.compare("before")
    rows = found.to_arrow()
    pets.tag(pets.view.limit(30), "again")
    assert found.to_arrow() == rows
    assert found.view("retagged").count() == found.counts["retagged"] == 20
    assert pets.compare("before").counts["retagged"] == 30


def test_compare__refuses(pets: ClientDataset, tuning: Tuning) -> None:
    """States and changes that do not exist are refused, and what no view of a service can hold."""
    for before, after in (("never", "head"), ("before", "never")):
        with pytest.raises(NotFound, match="'never'"):
            pets.compare(before, after)
    found = pets.compare("before")
    for call in (found.to_arrow, found.view):
        with pytest.raises(InvalidInput, match=r"a change is one of added, removed, .*, not 'tagged'"):
            call("tagged")
    with pytest.raises(InvalidInput, match=r"to_arrow\('removed'\)"):
        found.view("removed")
    with pytest.raises(InvalidInput, match="offset"):
        found.to_arrow("added", offset=-1)
    tuning.client_ids = 19
    with pytest.raises(InvalidInput, match="up to 19 rows, not 20"):
        found.view("retagged")


def test_states__of_an_empty_dataset(client: Client) -> None:
    """A dataset without an index has no comparison, no trends and no map."""
    draft = client.create_draft("empty")
    refused: list[Callable[[], Any]] = [lambda: draft.compare("head"), draft.trends, draft.map, draft.start_map]
    for call in refused:
        with pytest.raises(Conflict, match="nothing to show yet"):
            call()


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__is_made_when_it_is_asked_for(client: Client, dataset: Dataset) -> None:
    """Without a map the service has none to read; the first call waits for the task that makes it."""
    pets = client.dataset("pets")
    with pytest.raises(NotFound, match="there is no map of the present index"):
        pets._connection.table(calls.MAP, dataset_id=pets.id)
    places = pets.map()
    assert places == dataset.map()
    assert places.num_rows > 10
    task = dataset.last_task
    assert task is not None
    assert task.task_type == "MAP"
    assert pets.map() == places
    assert dataset.last_task == task
    for call in (pets.map, pets.start_map):
        with pytest.raises(InvalidInput, match="entity_type"):
            call("CATS")


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__of_a_service_that_changes_nothing(workspace: Workspace, dataset: Dataset) -> None:
    """A service that may only read does not make a map; it has the one that was made."""
    with (
        Workspace(workspace.path, read_only=True, settings=SETTINGS) as reader,
        Hub(reader) as hub,
        client_of(reader, hub, LOCAL) as served,
        Client(BASE, transport=served._transport) as client,
    ):
        pets = client.dataset("pets")
        for call in (pets.map, pets.start_map):
            with pytest.raises(WorkspaceError, match="cannot be written"):
                call()
        places = dataset.map()
        assert pets.map() == places
        assert pets.compare("head").counts == dataset.compare("head").counts
        assert pets.trends() == dataset.trends()


@pytest.mark.slow
@pytest.mark.only_soak
def test_states__by_rights(keys: Keys, dataset: Dataset) -> None:
    """A viewer may compare and make the map; nobody without a key may."""
    transport, found = keys
    viewer = Client(BASE, *found["vic"], transport=transport).dataset("pets")
    assert viewer.compare("head").counts == dataset.compare("head").counts
    assert viewer.trends() == dataset.trends()
    assert viewer.map() == dataset.map()
    nobody = ClientDataset(Client(BASE, transport=transport)._connection, dataset.id)
    for call in (lambda: nobody.compare("head"), nobody.trends, nobody.map, nobody.start_map):
        with pytest.raises(NotAuthenticated):
            call()


def test_states__of_others(keys: Keys, workspace: Workspace, hub: Hub) -> None:
    """What the user may not view does not exist."""
    transport, found = keys
    tenant = hub.tenants.create(OPERATOR, "elsewhere")
    hidden = workspace.in_namespace(tenant.id).create_draft("hidden")
    theirs = ClientDataset(Client(BASE, *found["vic"], transport=transport)._connection, hidden.id)
    for call in (lambda: theirs.compare("head"), theirs.trends, theirs.map, theirs.start_map):
        with pytest.raises(NotFound, match="Dataset not found"):
            call()
