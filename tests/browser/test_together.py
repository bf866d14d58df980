"""Two browsers and the command line that change a dataset at the same time: nothing is lost or overwritten silently."""

import os
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from framedex import vql
from tests.browser.site import Site, all_saved, first_image
from tests.programs import Program

Open = Callable[..., Page]
PICTURES = "/d/pets/pictures?sort=image_filename%3Aasc"

pytestmark = pytest.mark.slow


def in_process(site: Site, statement: str) -> None:
    """Run a statement on the dataset ``pets`` in a process of its own."""
    program = (
        "import sys; from framedex import Workspace\n"
        f"with Workspace(sys.argv[1]) as workspace:\n    pets = workspace.dataset('pets')\n    {statement}\n"
    )
    environment = {**os.environ, "FRAMEDEX_USER": "third@example.org"}
    assert Program(["-c", program, site.workspace.path], env=environment).wait(120) == 0


def label(page: Page, text: str) -> None:
    """Give the image with the focus a label."""
    page.keyboard.press("l")
    page.get_by_label("Labels, with commas between them").fill(text)
    page.keyboard.press("Enter")


def labels_of(site: Site, media_id: str) -> list[str]:
    """Return the labels of an image that the library reads."""
    return list(site.dataset.select([media_id]).to_arrow(["labels"])["labels"].to_pylist()[0])


def test_edits__of_other_images_are_all_kept(own_site: Site, open_page: Open) -> None:
    """Two pages and another process change different images and different values of one: all changes are kept."""
    ids = own_site.dataset.view.sort_by("image_filename").media_ids()
    one, two = open_page(own_site, PICTURES), open_page(own_site, PICTURES)
    first_image(one)
    first_image(two)
    two.keyboard.press("ArrowRight")
    one.keyboard.press("x")
    two.keyboard.press("x")
    in_process(own_site, f"pets.tag(['{ids[0]}', '{ids[2]}'], 'third')")
    for page in (one, two):
        expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
        all_saved(page)
    assert own_site.dataset.basket.media_ids() == sorted(ids[:2], key=own_site.dataset.view.media_ids().index)
    assert set(own_site.dataset.where(vql.tags("third")).media_ids()) == {ids[0], ids[2]}
    in_process(own_site, f"pets.tag(['{ids[2]}'], 'last')")  # a page that saved late has seen the others' changes
    one.get_by_role("button", name="Show", exact=True).click()
    expect(one.locator("[data-position='1']")).to_have_accessible_name(re.compile("in the basket"))
    expect(one.locator("[data-position='2']")).to_contain_text("third")


def test_edits__of_one_value_are_refused(own_site: Site, open_page: Open) -> None:
    """Of two pages that replace the same labels the later one is refused, says so, and shows what the other one set."""
    ids = own_site.dataset.view.sort_by("image_filename").media_ids()
    one = open_page(own_site, PICTURES, allowed=("409",))
    two = open_page(own_site, PICTURES, allowed=("409",))
    first_image(one)
    first_image(two)
    label(one, "wolf")
    expect(one.get_by_text("Labelled 1 image as wolf")).to_be_visible()
    label(two, "dog")
    expect(two.get_by_text("Not changed, because somebody else changed it meanwhile")).to_be_visible()
    expect(two.get_by_role("gridcell").first).to_have_accessible_name(re.compile("wolf"))
    assert labels_of(own_site, ids[0]) == ["wolf"]
    label(two, "dog")
    expect(two.get_by_text("Labelled 1 image as dog")).to_be_visible()
    assert labels_of(own_site, ids[0]) == ["dog"]
    in_process(own_site, f"pets.set_labels(['{ids[0]}'], ['fox'])")
    label(one, "cat")
    expect(one.get_by_text("Not changed, because somebody else changed it meanwhile")).to_be_visible()
    expect(one.get_by_role("gridcell").first).to_have_accessible_name(re.compile("fox"))
    assert labels_of(own_site, ids[0]) == ["fox"]


def test_undo__of_what_others_changed_since(own_site: Site, open_page: Open) -> None:
    """A step whose values somebody else has replaced is not undone, and the page says so."""
    ids = own_site.dataset.view.sort_by("image_filename").media_ids()
    page = open_page(own_site, PICTURES, allowed=("409",))
    first_image(page)
    label(page, "wolf")
    expect(page.get_by_text("Labelled 1 image as wolf")).to_be_visible()
    in_process(own_site, f"pets.set_labels(['{ids[0]}'], ['fox'])")
    page.keyboard.press("Control+z")
    expect(page.get_by_text(re.compile("^Not changed"))).to_be_visible()
    assert labels_of(own_site, ids[0]) == ["fox"]
