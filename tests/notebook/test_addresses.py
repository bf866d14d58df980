"""Addresses of views, and the views of addresses."""

from collections.abc import Callable

import pytest

from framedex import InvalidInput, View, vql
from framedex.notebook.addresses import address_of, shown_view
from tests.gallery import Gallery
from tests.tuning import Tuning

Make = Callable[[Gallery], View]


@pytest.mark.parametrize(
    "make",
    [
        lambda it: it.dataset.view,
        lambda it: it.dataset.where(vql.labels("animal")),
        lambda it: it.dataset.where(vql.labels("animal")).where(~vql.issues("blur")),
        lambda it: it.dataset.where(vql.file_name("starts", "0")).sort_by("file_name", descending=True),
        lambda it: it.dataset.view.sort_by("width"),
        lambda it: it.dataset.search("animal", None, by="words"),
        lambda it: it.dataset.search("animal", None, by="words").where(vql.labels("fur")),
        lambda it: it.dataset.search("no such word at all", None, by="words"),
        lambda it: it.dataset.objects,
    ],
)
def test_address__leads_back(gallery: Gallery, make: Make) -> None:
    """A view of filters, a search and an order has an address, which selects the same rows in the same order."""
    view = make(gallery)
    found = shown_view(gallery.dataset, address_of(view))
    assert found.media_ids() == view.media_ids()
    assert found.entity_type == view.entity_type


@pytest.mark.parametrize(
    "make",
    [
        lambda it: it.dataset.view.sample(5),
        lambda it: it.dataset.view[3:9],
        lambda it: it.dataset.view.limit(4).where(vql.labels("animal")),
        lambda it: it.dataset.select(list(it.ids.values())[:4]),
        lambda it: it.dataset.similar(next(iter(it.ids.values())), 6),
        lambda it: it.dataset.search("animal", 3, by="words", relevance=0.1),
        lambda it: it.dataset.view.limit(0),
    ],
)
def test_address__of_ids(gallery: Gallery, make: Make) -> None:
    """Another view has the address of its rows, in the order of the dataset."""
    view = make(gallery)
    found = shown_view(gallery.dataset, address_of(view))
    assert sorted(found.media_ids()) == sorted(view.media_ids())


def test_address__of_too_many_ids(gallery: Gallery, tuning: Tuning) -> None:
    """A view of too many ids is refused, with what to do."""
    tuning.address_ids = 3
    with pytest.raises(InvalidInput, match=r"at most 3 rows.*not 4; tag the view"):
        address_of(gallery.dataset.view.limit(4))


def test_address__of_the_app(gallery: Gallery) -> None:
    """Addresses of the app with a similar image and a region are views, too; other pages show all media."""
    first = gallery.ids["animals/00.jpg"]
    found = shown_view(gallery.dataset, f"/d/gallery/pictures?like={first}&region=0,0,80,60")
    assert found.count() > 0
    assert shown_view(gallery.dataset, "/d/gallery/issues").count() == gallery.dataset.view.count()
