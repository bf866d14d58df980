"""The queues of findings, the clean-up and the history in a browser, by keys alone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from framedex import vql
from tests.browser.site import Site, all_saved, first_image
from tests.gallery import COPIES, NEAR

Open = Callable[..., Page]


@pytest.mark.slow
def test_duplicates__cleaned_and_undone(own_site: Site, open_page: Open) -> None:
    """Accepted proposals fill the basket; the clean-up removes it, files stay, and Ctrl Z brings all of it back."""
    dataset = own_site.dataset
    before = dataset.view.to_arrow()
    page = open_page(own_site, "/d/pets")
    page.get_by_role("heading", name="pets").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("d")
    groups = len(dataset.duplicates())
    for left in range(groups, 0, -1):
        expect(page.get_by_text(f"Group 1 of {left} ")).to_be_visible()
        expect(page.get_by_role("button", name="★ keep")).to_be_visible()
        page.keyboard.press("Enter")
    expect(page.get_by_text("There are no open groups of duplicates at this similarity.")).to_be_visible()
    all_saved(page)
    extra = len(COPIES) - 1 + len(NEAR)
    assert dataset.basket.count() == extra
    page.keyboard.press("g")
    page.keyboard.press("x")
    expect(page.get_by_text(f"{extra} images in the basket")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Remove the images of the plan")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Removed {extra} images from the dataset. Undo: Ctrl Z")).to_be_visible()
    assert len(dataset.view) == len(before) - extra
    assert all((own_site.gallery / name).exists() for name in COPIES)
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Removed")).to_be_visible()
    assert dataset.view.to_arrow().equals(before)


@pytest.mark.slow
def test_plan__is_used_once(own_site: Site, open_page: Open) -> None:
    """A plan says what goes, stays and why; once it was applied it is gone, and Ctrl Z brings the images back."""
    dataset = own_site.dataset
    before = dataset.view.media_ids()
    plan = dataset.plan_cleanup(duplicates=0.96)
    page = open_page(own_site, "/d/pets/cleanup")
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_have_attribute("aria-disabled", "true")
    page.get_by_role("combobox", name="Duplicates of at least").select_option("0.96")
    page.get_by_role("button", name="Make the plan").click()
    rows = page.get_by_role("row")
    expect(rows).to_have_count(1 + plan.summary.removed + plan.summary.kept)
    expect(page.get_by_role("status").filter(has_text="media to remove")).to_have_text(plan.words)
    apply.click()
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.get_by_text(f"Removed {plan.summary.removed} images. Undo: Ctrl Z")).to_be_visible()
    expect(rows).to_have_count(0)
    expect(apply).to_have_attribute("aria-disabled", "true")
    assert len(dataset.view) == len(before) - plan.summary.removed
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Removed")).to_be_visible()
    assert dataset.view.media_ids() == before


@pytest.mark.slow
def test_duplicates__that_are_none(own_site: Site, open_page: Open) -> None:
    """A group that is kept whole is a decision: it does not come back."""
    dataset = own_site.dataset
    groups = len(dataset.duplicates())
    page = open_page(own_site, "/d/pets/duplicates")
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text(f"Group 1 of {groups - 1} ")).to_be_visible()
    expect(page.get_by_text("not duplicates. Undo: Ctrl Z")).to_be_visible()
    page.reload()
    expect(page.get_by_text(f"Group 1 of {groups - 1} ")).to_be_visible()
    assert len(dataset.duplicates()) == groups - 1


@pytest.mark.slow
def test_duplicates__all_at_once(own_site: Site, open_page: Open) -> None:
    """All proposals are shown before they are accepted, as one step; they stay decided."""
    dataset = own_site.dataset
    groups = dataset.duplicates()
    removed = [each for group in groups for each in group.media_ids if each != group.keep]
    page = open_page(own_site, "/d/pets/duplicates")
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    page.keyboard.press("Shift+Enter")
    page.get_by_role("spinbutton").fill("0")
    expect(page.get_by_text(f"{len(removed)} images of {len(groups)} groups")).to_be_visible()
    assert dataset.basket.count() == 0
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Put {len(removed)} images into the basket")).to_be_visible()
    assert dataset.basket.media_ids() == sorted(removed, key=dataset.view.media_ids().index)
    page.reload()
    expect(page.get_by_text("There are no open groups of duplicates at this similarity.")).to_be_visible()
    page.get_by_label("Groups").select_option("done")
    expect(page.get_by_text(f"Group 1 of {len(groups)} ")).to_be_visible()
    assert len(dataset.journal()) == 1


@pytest.mark.slow
def test_duplicates__of_an_image(site: Site, open_page: Open) -> None:
    """The copies of one image are shown alone; an image without copies says so."""
    page = open_page(site, f"/d/pets/duplicates?of={site.dataset.media_id(COPIES[1])}")
    expect(page.get_by_text(f"Group 1 of 1 · {len(COPIES)} images")).to_be_visible()
    alone = site.dataset.media_id("towns/05.png")
    page.goto(f"/d/pets/duplicates?of={alone}")
    expect(page.get_by_text("This image has no duplicates at this similarity.")).to_be_visible()


@pytest.mark.slow
def test_issues__into_the_basket_or_not(own_site: Site, open_page: Open) -> None:
    """An image goes into the basket, or is tagged as no issue; both leave the queue and can be undone."""
    dataset = own_site.dataset
    count = dataset.where(vql.issues("dark")).count()
    page = open_page(own_site, "/d/pets/issues/dark")
    worst = page.locator(".worst li")
    expect(worst).to_have_count(count)
    page.keyboard.press("Backspace")
    expect(worst).to_have_count(count - 1)
    expect(page.get_by_text("Tagged 1 image with ok:dark")).to_be_visible()
    assert dataset.where(vql.tags("ok:dark")).count() == 1
    page.keyboard.press("u")
    expect(worst).to_have_count(count)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
    assert dataset.basket.count() == 1


@pytest.mark.slow
def test_image__with_its_neighbours(site: Site, open_page: Open) -> None:
    """An image opens from the grid; arrows lead through the list, Escape back to where the list then is."""
    page = open_page(site, "/d/pets/pictures?sort=image_filename%3Aasc")
    names = site.dataset.view.sort_by("image_filename").to_arrow(["image_filename"])["image_filename"].to_pylist()
    first_image(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=names[0].rpartition("/")[2], exact=True)).to_be_visible()
    for step in (1, 2):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_text(f"{step + 1} of {len(names)}")).to_be_visible()
    expect(page.get_by_role("heading", name=names[2].rpartition("/")[2], exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[data-position='2']")).to_have_attribute("tabindex", "0")


@pytest.mark.slow
def test_clusters__down_to_images(site: Site, open_page: Open) -> None:
    """Enter leads through the levels to the images of a cluster; the path says where one is."""
    page = open_page(site, "/d/pets/clusters?level=1")
    page.locator("[data-cluster='0']").wait_for()
    members = site.dataset.explore("IMAGES", 1).clusters[0].n_images
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Where you are").get_by_role("button")).to_have_count(2)
    page.locator("[data-cluster='0']").wait_for()
    page.get_by_role("button", name="All").click()
    expect(page.get_by_role("navigation", name="Where you are").get_by_role("button")).to_have_count(1)
    page.goto("/d/pets/clusters?level=1")
    page.get_by_role("link", name="Show the images").first.click()
    expect(page.locator(".count")).to_have_text(f"{members} of {len(site.dataset.view)} images")


@pytest.mark.slow
def test_clusters__members_are_tagged(own_site: Site, open_page: Open) -> None:
    """A tag that is given to a cluster is given to its members, all of them and no others."""
    dataset = own_site.dataset
    largest = dataset.explore("IMAGES", 1).clusters[0]
    page = open_page(own_site, "/d/pets/clusters?level=1")
    page.locator("[data-cluster='0']").wait_for()
    page.keyboard.press("t")
    page.keyboard.type("group")
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Tagged {largest.n_images} images with group")).to_be_visible()
    members = dataset.where(vql.cluster(largest.cluster_id)).media_ids()
    assert dataset.where(vql.tags("group")).media_ids() == members


@pytest.mark.slow
def test_history__undoes_a_step(own_site: Site, open_page: Open) -> None:
    """The journal has the steps of all users; one of them is undone there."""
    dataset = own_site.dataset
    dataset.tag(dataset.view.media_ids()[:3], "keep")
    page = open_page(own_site, "/d/pets/history")
    row = page.get_by_role("row", name="1 Tag 3")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("undone by")).to_be_visible()
    assert dataset.where(vql.tags("keep")).count() == 0
