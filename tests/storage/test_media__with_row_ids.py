"""Lookup of several media in one pass."""

import pytest

from framedex.errors import NotFound
from framedex.storage.media import LOCATION
from tests.gallery import ANIMALS, TOWNS, Gallery
from tests.inside import stored_media


def test_with_row_ids__finds_the_same(gallery: Gallery) -> None:
    """A lookup in one pass finds the same media as single lookups; missing ids are left out."""
    media = stored_media(gallery.dataset)
    unknown = "00000000-0000-4000-8000-000000000000"
    first, second, other = (gallery.ids[name] for name in (ANIMALS[3], TOWNS[5], ANIMALS[7]))
    found = media.with_row_ids([second, first, unknown])
    assert set(found.row_id_of) == {first, second}
    for each in (first, second, other):
        assert found.find(each, ["path", *LOCATION]) == media.find(each, ["path", *LOCATION])
    with pytest.raises(NotFound, match="no media"):
        found.find(unknown, LOCATION)
    assert set(found.with_row_ids([other]).row_id_of) == {first, second, other}
    assert found == media
    assert media.with_row_ids([]).row_id_of == {}
