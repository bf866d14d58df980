"""The queues of findings, the clean-up and the history in a browser, by keys alone."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from framedex import Dataset, Workspace, vql
from tests.browse.test_near_images import write_shots
from tests.browser.site import Site, all_saved, first_image
from tests.gallery import COPIES, NEAR, VERIFYING
from tests.image_files import detailed, encode, photo
from tests.inside import layout_of
from tests.videos import write_video

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
    expect(page.get_by_text(f"{extra} images leave the dataset")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=f"Remove {extra} images, ")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Removed {extra} images. Undo: Ctrl Z")).to_be_visible()
    assert len(dataset.view) == len(before) - extra
    assert all((own_site.gallery / name).exists() for name in COPIES)
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Removed")).to_be_visible()
    assert dataset.view.to_arrow().equals(before)


@pytest.mark.slow
def test_plan__is_what_is_shown(own_site: Site, open_page: Open) -> None:
    """Basket and rules are one list, each row beside what stays; a row is taken out; it is one step and one undo."""
    dataset = own_site.dataset
    before = dataset.view.media_ids()
    dataset.basket.add(dataset.media_id("towns/05.png"))
    plan = dataset.plan_cleanup(duplicates=0.96, issues=["corrupted"], basket=True)
    page = open_page(own_site, "/d/pets/cleanup")
    status = page.get_by_role("status").filter(has_text="the dataset")
    expect(status).to_have_text("1 image leaves the dataset. The files stay on the disk.")
    page.get_by_role("combobox", name="Duplicates of at least").select_option("0.96")
    page.get_by_role("checkbox", name="Damaged files").check()
    expect(status).to_have_text(f"{len(plan)} images leave the dataset. The files stay on the disk.")
    for name, reason in (("In the basket", "basket"), ("Duplicates", "duplicates"), ("Damaged files", "corrupted")):
        section = page.get_by_role("region", name=name)
        expect(section.get_by_role("listitem")).to_have_count(plan.summary.counts[reason])
        expect(section.get_by_role("heading")).to_contain_text(f"{plan.summary.counts[reason]:,} image")
    copies = page.get_by_role("region", name="Duplicates").get_by_role("listitem")
    expect(copies.first.get_by_role("img")).to_have_count(2)
    expect(copies.first.get_by_role("img").last).to_have_accessible_name(re.compile("^What stays: "))
    page.get_by_role("button", name="Keep towns/05.png").click()
    expect(page.get_by_role("button", name="Remove towns/05.png")).to_be_visible()
    n = len(plan) - 1
    expect(status).to_have_text(f"{n} images leave the dataset. The files stay on the disk.")
    page.get_by_role("button", name=f"Remove {n} images").click()
    dialog = page.get_by_role("dialog", name=re.compile(f"^Remove {n} images, [0-9]"))
    expect(dialog.get_by_role("listitem")).to_have_count(n)
    dialog.get_by_role("button", name=f"Remove {n} images").click()
    expect(page.get_by_text(f"Removed {n} images. Undo: Ctrl Z")).to_be_visible()
    expect(status).to_have_text("1 image leaves the dataset. The files stay on the disk.")
    left = [each for each in before if each not in plan.removed_ids() or each == dataset.media_id("towns/05.png")]
    assert dataset.view.media_ids() == left
    assert [each.operation for each in dataset.journal()] == ["cleanup", "basket"]
    page.keyboard.press("Control+z")
    expect(page.get_by_text(f"Undone: Removed {n} images")).to_be_visible()
    assert dataset.view.media_ids() == before


@pytest.mark.slow
def test_plan__keeps_what_a_person_chose(own_site: Site, open_page: Open) -> None:
    """What K keeps stays when a rule and the basket name the whole group; the choice can be taken back."""
    dataset = own_site.dataset
    page = open_page(own_site, "/d/pets/duplicates")
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    group = dataset.duplicates()[0]
    place = next(number for number, each in enumerate(group.media_ids) if each != group.keep)
    kept = group.media_ids[place]
    for _ in range(place):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^Put . images? into the basket"))).to_be_visible()
    all_saved(page)
    assert dataset.kept_ids() == [kept]
    page.keyboard.press("g")
    page.keyboard.press("x")
    page.get_by_role("combobox", name="Duplicates of at least").select_option("0.96")
    n = sum(len(each.media_ids) - 1 for each in dataset.duplicates())
    expect(page.get_by_text(f"{n} images leave the dataset")).to_be_visible()
    stays = page.get_by_role("region", name="These stay").get_by_role("listitem")
    expect(stays).to_have_count(1)
    expect(stays).to_contain_text("kept: a person chose it")
    page.get_by_role("button", name=f"Remove {n} images").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Remove {n} images").click()
    expect(page.get_by_text(f"Removed {n} images. Undo: Ctrl Z")).to_be_visible()
    assert set(dataset.view.media_ids()) & set(group.media_ids) == {kept}
    page.keyboard.press("Control+z")
    expect(page.get_by_text(f"Undone: Removed {n} images")).to_be_visible()
    page.get_by_role("button", name=re.compile("^May be removed: ")).click()
    expect(page.get_by_text("1 image may be removed. Undo: Ctrl Z")).to_be_visible()
    all_saved(page)
    assert dataset.kept_ids() == []


@pytest.mark.slow
def test_plan__that_is_outdated(own_site: Site, open_page: Open) -> None:
    """A plan that another user's edit made wrong removes nothing: it is made anew and shown."""
    dataset = own_site.dataset
    group = dataset.duplicates()[0]
    rest = [each for each in group.media_ids if each != group.keep]
    dataset.basket.add(rest)
    page = open_page(own_site, "/d/pets/cleanup", allowed=("409",))
    words = page.get_by_role("button", name=re.compile("^Remove [0-9]+ image"))
    words.wait_for()
    words.click()
    dataset.keep(rest[0])
    before = dataset.view.media_ids()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Remove [0-9]+ image")).click()
    expect(page.get_by_text("Nothing was removed: the dataset has changed.")).to_be_visible()
    expect(page.get_by_role("region", name="In the basket").get_by_role("listitem")).to_have_count(len(rest) - 1)
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


@pytest.mark.slow
def test_issues__counted_alike(site: Site, open_page: Open) -> None:
    """The tab, the page and the library count the same images beyond a limit, and beyond one that is tried."""
    dataset = site.dataset
    page = open_page(site, "/d/pets/issues/dark")
    n = dataset.where(vql.issues("dark")).count()
    expect(page.get_by_text(f"{n} image{'' if n == 1 else 's'} beyond this limit", exact=True)).to_be_visible()
    slider = page.get_by_role("slider")
    for key in ("End", "PageDown"):
        slider.press(key)
        limit = float(slider.input_value())
        n = dataset.where(vql.quality("dark", "lt", limit)).count()
        expect(page.get_by_text(f"{n} images beyond this limit", exact=True)).to_be_visible()


@pytest.fixture
def mixed(own_site: Site, tmp_path: Path) -> Dataset:
    """Copies of which the original is sure, and of which it is not; pictures of a scene."""
    folder = tmp_path / "mixed"
    write_shots(folder, [(0, number) for number in range(3)])
    files = {
        "like.jpg": encode(detailed(7), "JPEG", quality=75),
        "alike.jpg": encode(detailed(7), "JPEG", quality=76),
        "first.jpg": encode(detailed(8), "JPEG", quality=90),
    }
    files["coarse.jpg"] = encode(np.asarray(Image.open(io.BytesIO(files["first.jpg"]))), "JPEG", quality=40)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with Workspace(layout_of(own_site.workspace).root, settings=VERIFYING) as workspace:
        workspace.create_dataset("mixed", folder, "gist")
    return own_site.workspace.dataset("mixed")


@pytest.mark.slow
def test_duplicates__facts_and_unsure_groups(own_site: Site, open_page: Open, mixed: Dataset) -> None:
    """A table shows what tells the original; a switch accepts groups, too, of which the original is not sure."""
    page = open_page(own_site, "/d/mixed/duplicates")
    table = page.get_by_role("table", name="Facts of the members")
    rows = table.get_by_role("row")
    expect(rows).to_have_count(3)
    for name in ("Pixels", "Detail, MP", "Quality", "Compressed twice", "Clipped", "Metadata", "Changed"):
        expect(table.get_by_role("columnheader", name=name, exact=True)).to_be_visible()
    group = mixed.duplicates()[0]
    kept = group.file_names[group.media_ids.index(group.keep)]
    expect(table.get_by_role("rowheader", name=f"★ {kept}")).to_be_visible()
    page.get_by_role("button", name="Accept all…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("spinbutton").fill("0")
    expect(dialog.get_by_role("status")).to_contain_text("1 image of 1 group, ")
    expect(dialog.get_by_role("status")).to_contain_text("1 group is left to you, as the original is not sure.")
    dialog.get_by_role("checkbox", name="Also groups of which it is not sure which image is the original").check()
    expect(dialog.get_by_role("status")).to_contain_text("2 images of 2 groups, ")
    dialog.get_by_role("button", name="Put 2 images into the basket").click()
    expect(page.get_by_text("There are no open groups of duplicates at this similarity.")).to_be_visible()
    all_saved(page)
    assert mixed.basket.count() == 2


@pytest.mark.slow
def test_near__decided_group_by_group(own_site: Site, open_page: Open, mixed: Dataset) -> None:
    """Near images are a choice of their own, never accepted all at once; a clean-up has them if it is asked to."""
    page = open_page(own_site, "/d/mixed/duplicates")
    page.get_by_role("combobox", name="Similarity at least").select_option("near")
    expect(page.get_by_text("Group 1 of 1 ")).to_be_visible()
    expect(page.get_by_text("alike, no copy")).to_have_count(2)
    page.keyboard.press("Shift+Enter")
    words = "Which of several images of a scene stays is for you to say, group by group."
    expect(page.get_by_text(words).first).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("link", name="Clean-up").first.click()
    status = page.get_by_role("status").filter(has_text="the dataset")
    page.get_by_role("combobox", name="Duplicates of at least").select_option("0.96")
    expect(status).to_have_text("1 image leaves the dataset. The files stay on the disk.")
    page.get_by_role("combobox", name="Duplicates of at least").select_option("near")
    expect(status).to_have_text("3 images leave the dataset. The files stay on the disk.")
    expect(page.get_by_role("region", name="Near images").get_by_role("listitem")).to_have_count(2)
    assert mixed.count() == 7


@pytest.mark.slow
def test_frames__of_one_video(own_site: Site, open_page: Open, mixed: Dataset, tmp_path: Path) -> None:
    """Where there are videos, their frames are grouped and thinned out on request."""
    page = open_page(own_site, "/d/mixed/duplicates")
    choice = page.get_by_role("combobox", name="Similarity at least")
    expect(choice.get_by_role("option", name="near images, no copies")).to_be_attached()
    expect(choice.get_by_role("option", name="0.96, also frames of one video")).to_have_count(0)
    mixed.add_media(write_video(tmp_path / "still.mp4", [photo(21)] * 4, fps=1), auto_reindex=True)
    page.reload()
    choice.select_option("0.96, also frames of one video")
    expect(page.get_by_text(f"Group 1 of {len(mixed.duplicates(within_videos=True))} ")).to_be_visible()
    page.keyboard.press("Shift+Enter")
    expect(page.get_by_text("The clean-up thins out the frames of all videos at once.").first).to_be_visible()
    page.get_by_role("link", name="Clean-up").first.click()
    page.get_by_role("combobox", name="Duplicates of at least").select_option("0.96, also frames of one video")
    status = page.get_by_role("status").filter(has_text="the dataset")
    n = len(mixed.plan_cleanup(duplicates=0.96, within_videos=True))
    assert n == len(mixed.plan_cleanup(duplicates=0.96)) + 3
    expect(status).to_have_text(f"{n} images leave the dataset. The files stay on the disk.")
