"""Saved views and notifications of the client, beside those of the library."""

import pytest

from framedex import Client, Dataset, InvalidInput, NotFound, Workspace, vql
from framedex.errors import Conflict, Unavailable
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import fill
from tests.inside import layout_of
from tests.service.live import live_service
from tests.tuning import Tuning


@pytest.mark.slow
def test_saved_views__are_those_of_the_library(client: Client, dataset: Dataset) -> None:
    """A view that the client saves is the library's, with its filters, its trend and its alerts."""
    pets = client.dataset("pets")
    saved = pets.save_view("Sharp", pets.where(~vql.issues("blur")))
    own = dataset.saved_view("sharp")
    record = saved.record
    assert record.model_copy(update={"creator_id": None}) == own.record
    assert (saved.id, saved.name, record.filters.threshold) == (own.id, "Sharp", None)
    assert sorted(saved.view().ids) == sorted(own.view().ids)
    assert pets.save_view("words", caption="dog", threshold=0.5).record.filters.threshold == "0.5"
    assert [each.name for each in pets.views()] == ["words", "Sharp"]
    assert pets.saved_view("SHARP").id == pets.saved_view(saved.id).id == saved.id
    dataset.add_media(fill(layout_of(dataset).root.parent / "more", 2))
    assert saved.trend().model_dump() == own.trend().model_dump()
    assert repr(saved).startswith("<framedex.ClientSavedView 'Sharp': ")
    saved.set_alerting(enabled=False)
    assert own.record.alerting_enabled is False
    saved.delete()
    for call in (saved.delete, saved.trend, lambda: saved.record, lambda: pets.saved_view("sharp")):
        with pytest.raises(NotFound):
            call()


def test_save_view__refuses(client: Client) -> None:
    """Views of more than filters, names that are taken, and filters that are wrong are refused."""
    pets = client.dataset("pets")
    for view in (pets.view.limit(3), pets.sort_by("blur"), pets.view.search("x")):
        with pytest.raises(InvalidInput, match="filters alone"):
            pets.save_view("x", view)
    words = pets.save_view("x", caption="dog")
    with pytest.raises(Conflict, match="'x' exists already"):
        pets.save_view("X")
    with pytest.raises(InvalidInput, match=r"ds\.search\('dog'\)"):
        words.view()
    assert pets.save_view("videos", entity_type="VIDEOS").view().count() == 0
    assert pets.save_view("objects", pets.objects).record.filters.entity_type == "OBJECTS"


@pytest.mark.slow
def test_notifications__are_listed_and_read(client: Client, hub: Hub, dataset: Dataset) -> None:
    """Notifications are listed, counted and marked."""
    for name in ("one", "two"):
        dataset.save_view(name)
    dataset.add_media(fill(layout_of(dataset).root.parent / "more", 1))
    hub.notifications.deliver()
    page = client.notifications.list(limit=1)
    assert (page.notifications[0].metadata.view_name, page.total, page.has_more) == ("two", 2, True)
    assert client.notifications.unread_count() == client.notifications.unread_count(dataset.id) == 2
    client.notifications.read(page.notifications[0].id)
    with pytest.raises(NotFound, match="Notification not found"):
        client.notifications.read(page.notifications[0].id)
    assert client.notifications.list(unread_only=True, dataset_id=dataset.id).total == 1
    assert client.notifications.read_all() == 1


@pytest.mark.slow
def test_stream__continues_after_a_break(workspace: Workspace, hub: Hub, dataset: Dataset, tuning: Tuning) -> None:
    """The stream of a client yields each notification once, also after the service was stopped and started again."""
    tuning.client_pause_s = 0.05
    dataset.save_view("all")
    folder = workspace.path.parent
    dataset.add_media(fill(folder / "0", 1, first_seed=100))
    hub.notifications.deliver()
    with live_service(workspace, hub, ServiceSettings()) as (url, state), Client(url) as client:
        first = client.notifications.list().notifications[0]
        stream = client.notifications.stream(dataset.id, last_id=first.id)
        dataset.add_media(fill(folder / "1", 2, first_seed=200))
        assert next(stream).metadata.result_count == 2
        state.stopping.set()  # ends the connection; the next one begins and ends at once
        dataset.add_media(fill(folder / "2", 3, first_seed=300))
        hub.notifications.deliver()
        state.stopping.clear()
        assert next(stream).metadata.result_count == 3
        with pytest.raises(NotFound, match="Dataset not found"):
            next(client.notifications.stream("00000000-0000-0000-0000-0000000000aa"))
    with Client("http://127.0.0.1:1") as nowhere, pytest.raises(Unavailable):
        next(nowhere.notifications.stream())
