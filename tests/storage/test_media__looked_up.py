"""Media that are looked for together."""

import pytest

from framedex.errors import NotFound
from framedex.operations.context import open_media
from framedex.storage.media import LOCATION
from tests.gallery import ANIMALS, TOWNS, Gallery


def test_looked_up__finds_the_same(gallery: Gallery) -> None:
    """What was looked for in one pass is found as one by one; others still are, and what there is none of is not."""
    media = open_media(gallery.workspace._context, gallery.dataset.id)
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
