"""The files of a dataset on its overview: what differs in the folders, what is missing, and a folder that moved."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from framedex import vql
from tests.browser.site import Site
from tests.gallery import TOWNS, fill

Open = Callable[..., Page]


@pytest.mark.slow
def test_sources__moved_files_and_folder(own_site: Site, open_page: Open) -> None:
    """What differs is shown and applied; a folder that is gone is relocated; what is missing leads to its images."""
    (own_site.gallery / TOWNS[0]).rename(own_site.gallery / "town.png")
    (own_site.gallery / TOWNS[1]).unlink()
    page = open_page(own_site, "/d/pets")
    files = page.get_by_role("region", name="Files")
    files.get_by_role("button", name="Compare with the folders").click()
    expect(files.get_by_text("1 file moved")).to_be_visible()
    expect(files.get_by_text("1 file missing")).to_be_visible()
    files.get_by_role("button", name="Apply").click()
    expect(files.get_by_role("link", name="1 image marked as missing")).to_be_visible()
    assert own_site.dataset.where(vql.missing()).count() == 1
    away = own_site.gallery.rename(own_site.gallery.with_name("away"))
    page.reload()
    expect(files.get_by_text("there is no such folder")).to_be_visible()
    files.get_by_role("button", name="Relocate").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Now").fill(str(away))
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.get_by_text("found")).to_be_visible()
    dialog.get_by_role("button", name="Relocate").click()
    expect(files.get_by_text("there is no such folder")).not_to_be_visible()
    assert own_site.dataset.info.source_uri == str(away)
    files.get_by_role("link", name="1 image marked as missing").click()
    expect(page).to_have_url(re.compile("/pictures"))


@pytest.mark.slow
def test_sources__folder_that_is_empty(own_site: Site, open_page: Open) -> None:
    """Files of a folder that is empty now are named first, and marked only where one says so."""
    disk = fill(own_site.gallery / "disk", 6, first_seed=700)
    own_site.dataset.add_media(own_site.gallery)
    for path in disk.iterdir():
        path.unlink()
    page = open_page(own_site, "/d/pets")
    files = page.get_by_role("region", name="Files")
    files.get_by_role("button", name="Compare with the folders").click()
    expect(files.get_by_role("alert")).to_contain_text(f"6 files of {disk} cannot be found")
    expect(files.get_by_role("button", name="Apply")).not_to_be_visible()
    files.get_by_label("Mark them as missing nevertheless (6 files)").check()
    files.get_by_role("button", name="Apply").click()
    expect(files.get_by_role("link", name="6 images marked as missing")).to_be_visible()
    assert own_site.dataset.where(vql.missing()).count() == 6


@pytest.mark.slow
def test_left_out__with_examples(own_site: Site, open_page: Open) -> None:
    """What an addition left out is shown by reason; a reason opens its examples."""
    (own_site.gallery / "object_annotations.csv").write_text(
        "filename,col_x,row_y,width,height,label\n000.png,0,0,9,9,cat\n000.png,5,5,-4,9,dog\n"
    )
    fill(own_site.gallery, 1, first_seed=700)
    own_site.dataset.add_media(own_site.gallery)
    page = open_page(own_site, "/d/pets")
    part = page.get_by_role("region", name="Left out")
    example = part.get_by_text("width -4")
    expect(example).not_to_be_visible()
    part.get_by_text("parts of annotations that cannot be used as they are: 1").click()
    expect(example).to_be_visible()


@pytest.mark.slow
def test_preview__of_a_list(own_site: Site, open_page: Open) -> None:
    """A list on the server is shown as it is understood: its columns, its rows, and the files that are not there."""
    rows = f"photo;label;weight\n{TOWNS[0]};cat;1,5\ngone.png;dog;2,5\n"
    (own_site.gallery / "list.csv").write_text(rows)
    page = open_page(own_site, "/import")
    page.get_by_label("Or a folder or a list on the server").fill(str(own_site.gallery / "list.csv"))
    page.get_by_role("button", name="Preview").click()
    part = page.get_by_role("region", name="Preview")
    expect(part.get_by_text("A list of paths, cells between semicolons")).to_be_visible()
    expect(part.get_by_text("1 of the first 2 files are there")).to_be_visible()
    expect(part.get_by_role("columnheader")).to_have_text(
        ["photopath of the image", "labellabels", re.compile("^weightfield: ")]
    )
    expect(part.get_by_role("row")).to_have_count(3)
