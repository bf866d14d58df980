"""Checks of ``acceptance.py``: findings, queues, clean-up, clusters."""

import re
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from playwright.sync_api import expect

from acceptance_site import Place, number_in, saved
from framedex import Dataset, vql
from web_data import NAME

_ROWS = 1000
_GROUPS, _LEVEL = 10, 0.98
_PAIRS = 100_000
_DIMENSION = 64
_LEVELS = (0.06, 0.11, 0.21, 0.31, 0.51)


def overview_has_the_counts_of_the_commands(place: Place) -> str:
    """Compare the findings of the demo with what the commands print as JSON."""
    place.demo()
    issues = Counter(row["issue_type"] for row in place.json("issues", "demo", "--limit", "100000"))
    groups = place.json("duplicates", "demo")
    place.serve()
    page = place.page("/d/demo")
    page.locator(".finding").first.wait_for()
    seen = {}
    for kind, count in issues.items():
        review = {"duplicates": "duplicates", "mislabels": "labels"}.get(kind, f"issues/{kind}")
        finding = page.locator(".finding", has=page.locator(f"a[href$='/d/demo/{review}']"))
        seen[kind] = number_in(finding.locator(".finding-count"))
        assert seen[kind] == count, (kind, seen[kind], count)
    assert page.locator(".finding").count() == len(issues), (page.locator(".finding").count(), issues)
    members = len({each for group in groups for each in group["media_ids"]})
    assert issues["duplicates"] == members, (issues["duplicates"], members)
    return ", ".join(f"{kind} {count}" for kind, count in sorted(seen.items()))


def accepted_groups_stay_accepted(place: Place) -> str:
    """Accept ten groups by Enter, load the page again, refuse one, and index again."""
    dataset = place.vectors(_ROWS)
    groups = dataset.duplicates(_LEVEL)
    place.serve()
    page = place.page(f"/d/{NAME}/duplicates?level={_LEVEL}")
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    for left in range(len(groups), len(groups) - _GROUPS, -1):
        expect(page.get_by_text(f"Group 1 of {left} ")).to_be_visible()
        page.keyboard.press("Enter")
    expect(page.get_by_text(f"Group 1 of {len(groups) - _GROUPS} ")).to_be_visible()
    saved(page)
    page.reload()
    expect(page.get_by_text(f"Group 1 of {len(groups) - _GROUPS} ")).to_be_visible()
    removed = {each for group in groups[:_GROUPS] for each in group.media_ids if each != group.keep}
    assert set(dataset.basket.media_ids()) == removed
    refused = next(group for group in dataset.duplicates(_LEVEL) if not removed & set(group.media_ids))
    page.keyboard.press("a")
    expect(page.get_by_text("not duplicates. Undo: Ctrl Z")).to_be_visible()
    saved(page)
    dataset.reindex(thresholds=_LEVELS)
    again = [set(group.media_ids) for group in dataset.duplicates(_LEVEL)]
    assert set(refused.media_ids) not in again
    page.reload()
    expect(page.get_by_text(f"Group 1 of {len(groups) - _GROUPS - 1} ")).to_be_visible()
    return f"{_GROUPS} of {len(groups)} groups, {len(removed)} images in the basket; the refused one did not come back"


def cleanup_is_undone_as_a_whole(place: Place) -> str:
    """Apply a plan and undo it: rows, tags, labels and decisions are as before, and all files are there."""
    dataset = place.vectors(_ROWS)
    ids = dataset.view.media_ids()
    dataset.tag(ids[:50], "keep")
    dataset.set_labels(ids[50:60], ["set by hand"])
    groups = dataset.duplicates()
    dataset.not_duplicates(groups[0].media_ids)
    dataset.basket.add([group.media_ids[-1] for group in groups[1:30]])
    before = (dataset.view.to_arrow(), dataset.duplicate_decisions(), dataset.tags())
    files = sorted((place.folder / "workspace-files").rglob("*.jpg"))
    place.serve()
    page = place.page(f"/d/{NAME}/cleanup")
    expect(page.get_by_text("29 images in the basket")).to_be_visible()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Apply").press("Enter")
    expect(page.get_by_text(re.compile(r"Removed 29 images.*Undo: Ctrl Z"))).to_be_visible()
    assert len(dataset.view) == _ROWS - 29
    assert sorted((place.folder / "workspace-files").rglob("*.jpg")) == files
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Removed")).to_be_visible()
    after = (dataset.view.to_arrow(), dataset.duplicate_decisions(), dataset.tags())
    assert after[0].equals(before[0])
    assert after[1:] == before[1:]
    return f"29 of {_ROWS:,} rows removed and back, all {after[0].num_columns} columns equal"


def suggested_labels_are_taken_and_refused(place: Place) -> str:
    """Take a suggestion, undo it, and refuse it: after a new index it does not come back."""
    dataset = place.vectors(_ROWS)
    queue = dataset.issues("mislabels").to_pylist()
    first, n = queue[0], len(queue)
    before = _labels(dataset, first["media_id"])
    place.serve()
    page = place.page(f"/d/{NAME}/labels")
    expect(page.get_by_text(f"1 of {n:,}", exact=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(f"Labelled 1 image as {first['suggested_label']}"))).to_be_visible()
    saved(page)
    assert _labels(dataset, first["media_id"]) == [first["suggested_label"]]
    page.keyboard.press("u")
    expect(page.get_by_text("Undone: Labelled 1 image")).to_be_visible()
    assert _labels(dataset, first["media_id"]) == before
    expect(page.get_by_text(f"1 of {n:,}", exact=True)).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page.get_by_text("The labels of 1 image are right")).to_be_visible()
    saved(page)
    dataset.reindex(thresholds=_LEVELS)
    assert first["media_id"] not in dataset.issues("mislabels")["media_id"].to_pylist()
    return f"the first of {n}: {before[0]} → {first['suggested_label']} → back; refused, and not found again"


def _labels(dataset: Dataset, media_id: str) -> list[str]:
    found: list[str] = dataset.select([media_id]).to_arrow(["labels"])["labels"].to_pylist()[0]
    return found


def many_pairs_are_accepted_in_one_step(place: Place) -> str:
    """Accept the proposals of 100,000 pairs: one step of the journal, one undo."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((_PAIRS // 50, _DIMENSION), np.float32)
    vectors = centres[draw.integers(len(centres), size=_PAIRS)]
    vectors += 0.5 * draw.standard_normal(vectors.shape, np.float32)
    vectors = np.concatenate([vectors, vectors + 0.004 * draw.standard_normal(vectors.shape, np.float32)])
    uris = [f"/images/{number:07}.jpg" for number in range(2 * _PAIRS)]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), _DIMENSION)
    dataset = place.workspace.create_dataset("pairs", pa.table({"uri": uris, "embedding": column}))
    place.serve()
    page = place.page("/d/pairs/duplicates", allowed=("404",))  # there are no files behind the rows
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    page.keyboard.press("Shift+Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("spinbutton").fill("0")
    expect(dialog.get_by_text(f"{_PAIRS:,} images of {_PAIRS:,} groups")).to_be_visible()
    began = time.perf_counter()
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Put {_PAIRS:,} images into the basket")).to_be_visible()
    saved(page)
    accepted = time.perf_counter() - began
    assert len(dataset.journal()) == 1
    assert dataset.basket.count() == _PAIRS
    began = time.perf_counter()
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Put")).to_be_visible()
    undone = time.perf_counter() - began
    assert dataset.basket.count() == 0
    assert accepted < 10, accepted
    return f"{_PAIRS:,} pairs accepted in {accepted:.1f} s, undone in {undone:.1f} s"


def clusters_add_up(place: Place) -> str:
    """Go from level 4 to 0 by Enter; children add up to their parent, and a tag is that of the cluster exactly."""
    dataset = place.vectors(_ROWS)
    place.serve()
    page = place.page(f"/d/{NAME}/clusters?level=4")
    path = page.get_by_role("navigation", name="Where you are").get_by_role("button")
    parent, sizes = _ROWS, []
    for depth in range(1, 6):
        expect(path).to_have_count(depth)
        counts: list[int] = []
        for _ in range(50):  # the former level is shown until the next one is read
            counts = [int(text.replace(",", "")) for text in page.locator(".card-open > .hint").all_inner_texts()]
            if sum(counts) == parent:
                break
            page.wait_for_timeout(100)
        assert sum(counts) == parent, (depth, counts, parent)
        page.locator("[data-cluster='0']").focus()
        parent = counts[0]
        sizes.append(parent)
        page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/pictures"))
    expect(page.locator(".count")).to_have_text(f"{parent:,} of {_ROWS:,} images")
    page.get_by_role("gridcell").first.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("t")
    page.get_by_role("dialog").wait_for()
    page.keyboard.type("cluster")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(f"^Tagged {parent:,} images? with cluster"))).to_be_visible()
    saved(page)
    tagged = dataset.where(vql.tags("cluster")).media_ids()
    cluster = dataset.media_item(tagged[0]).cluster_ids[0]
    assert tagged == dataset.where(vql.cluster(cluster)).media_ids()
    return f"largest clusters {' › '.join(map(str, sizes))}; {len(tagged)} members tagged"


CHECKS: dict[str, Callable[[Place], str]] = {
    "the overview has the counts of the commands": overview_has_the_counts_of_the_commands,
    "accepted groups of duplicates stay accepted": accepted_groups_stay_accepted,
    "a clean-up is undone as a whole": cleanup_is_undone_as_a_whole,
    "suggested labels are taken and refused": suggested_labels_are_taken_and_refused,
    "100,000 pairs are accepted in one step": many_pairs_are_accepted_in_one_step,
    "clusters add up, down to their members": clusters_add_up,
}
