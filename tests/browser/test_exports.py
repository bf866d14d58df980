"""Exports, and what is shown copied as code, in a browser: what they select is what the page shows."""

import io
import json
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from framedex import Dataset
from framedex.cli import main
from tests.browser.site import Site, first_image

Open = Callable[..., Page]
ANIMALS = [{"labels": {"op": "is", "value": "animal"}}]


@pytest.mark.slow
def test_export__of_selected_images(site: Site, open_page: Open, tmp_path: Path) -> None:
    """Selected images are exported by keys alone; the file is listed with its size and end, and downloaded."""
    page = open_page(site, "/d/pets/pictures")
    ids = site.dataset.view.media_ids()
    first_image(page)
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("e")
    dialog = page.get_by_role("dialog", name="Export 2 images")
    expect(dialog.get_by_role("radio", name="JSON")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("radio", name="Parquet")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The export pets.zip is ready")).to_be_visible()
    row = dialog.get_by_role("listitem").first
    expect(row).to_contain_text("kept until")
    with page.expect_download() as started:
        row.get_by_role("link", name="Download").click()
    started.value.save_as(tmp_path / "pets.zip")
    with zipfile.ZipFile(tmp_path / "pets.zip") as archive:
        table = pq.read_table(io.BytesIO(archive.read("metadata.parquet")))
    assert table["media_id"].to_pylist() == ids[:2]


@pytest.mark.slow
def test_export__of_a_search_for_training(site: Site, open_page: Open) -> None:
    """Without a selection all that is shown is exported; wrong shares are refused, and YOLO has options of its own."""
    page = open_page(site, f"/d/pets/pictures?{urlencode({'f': json.dumps(ANIMALS)})}", allowed=("422",))
    first_image(page)
    page.keyboard.press("e")
    dialog = page.get_by_role("dialog", name="Export 12 images")
    dialog.get_by_role("radio", name="YOLO").check()
    dialog.get_by_label("With the image files").check()
    dialog.get_by_label("Without place, camera and comments").check()
    dialog.get_by_label("Divide the images for training").check()
    dialog.get_by_label("Training, %").fill("90")
    dialog.get_by_role("button", name="Start the export").click()
    expect(page.get_by_text("at most 1 together")).to_be_visible()
    dialog.get_by_label("Training, %").fill("50")
    dialog.get_by_label("Validation, %").fill("50")
    dialog.get_by_label("Lines of YOLO").select_option("outlines")
    dialog.get_by_role("button", name="Start the export").click()
    expect(page.get_by_text("The export pets.zip is ready")).to_be_visible()
    record = next(each for each in site.dataset.exports() if each.status == "COMPLETED" and each.entities_count == 12)
    assert "train" in record.result_message


def _code(page: Page, *kinds: str) -> list[str]:
    """Return what the dialog would copy, for each kind."""
    page.keyboard.press("y")
    texts = []
    for kind in kinds:
        page.get_by_role("radio", name=kind, exact=True).check()
        texts.append(page.get_by_label("Text to copy").input_value())
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    return texts


def _ids_of_python(text: str) -> list[str]:
    found: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        exec(text, found)
    ids: list[str] = found["view"].media_ids()
    found["ws"].close()
    return ids


def _ids_of_curl(text: str) -> list[str]:
    answer = subprocess.run(["bash", "-ec", text], capture_output=True, check=True, text=True).stdout
    return [row["media_id"] for row in json.loads(answer)["rows"]]


def _ids_of_command(text: str, folder: Path, workspace: Path) -> list[str]:
    """Return the ids that a command prints, or those in the file that it writes."""
    arguments = shlex.split(text)[1:]
    path = folder / "out.json"
    if arguments[0] == "export":
        arguments[2] = str(path)
    printed = io.StringIO()
    at = arguments.index("--") if "--" in arguments else len(arguments)
    with redirect_stdout(printed), suppress(SystemExit):
        main([*arguments[:at], "--json", "--workspace", str(workspace), *arguments[at:]])
    if arguments[0] == "export":
        return [item["media_id"] for item in json.loads(path.read_text())["media_items"]]
    return [row["media_id"] for row in json.loads(printed.getvalue())]


def _screens(dataset: Dataset) -> list[tuple[str, list[str]]]:
    """Return addresses of pages, each with the ids that it shows, in their order."""
    one = dataset.media_id("animals/03.jpg")
    animals = dataset.where(ANIMALS)
    searched = {"q": "street number", "by": "words", "f": json.dumps([{"file_name": {"op": "contains", "value": "'"}}])}
    cluster = dataset.explore("IMAGES", 1).clusters[0].cluster_id
    steps = json.dumps([{"level": 1, "id": cluster, "name": "x"}])
    return [
        ("pictures", dataset.view.media_ids()),
        (
            f"pictures?{urlencode({'f': json.dumps(ANIMALS), 'sort': 'blur:desc'})}",
            animals.sort_by("blur", descending=True).media_ids(),
        ),
        (
            f"pictures?{urlencode({'f': json.dumps(ANIMALS), 'like': one, 'region': '10,20,60,50'})}",
            animals.similar(one, 1000, bounding_box=(10, 20, 60, 50)).media_ids(),
        ),
        (
            f"pictures?{urlencode({'q': 'street', 'by': 'words'})}",
            dataset.search("street", None, by="words").media_ids(),
        ),
        (f"pictures?{urlencode(searched)}", []),
        (f"m/{one}", [one]),
        (
            f"clusters?{urlencode({'in': steps})}",
            dataset.where([{"cluster": {"op": "is", "value": cluster}}]).media_ids(),
        ),
        ("duplicates?level=0.98", dataset.where([{"duplicates": {"op": "duplicates", "value": 0.98}}]).media_ids()),
        ("issues/dark", dataset.where([{"issues": {"op": "issue", "value": "dark"}}]).sort_by("dark").media_ids()),
    ]


@pytest.mark.slow
def test_copied_code__selects_what_is_shown(site: Site, open_page: Open, tmp_path: Path) -> None:
    """Python, curl, filters and commands of many screens select the same rows, in the same order if they have one."""
    dataset, page = site.dataset, open_page(site, "/d/pets")
    page.get_by_role("heading", name="pets").wait_for()
    for path, ids in _screens(dataset):
        page.goto(f"/d/pets/{path}")
        page.get_by_role("heading", level=1).wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        python, curl, vql, command = _code(page, "Python", "curl", "Filter (VQL)", "Command line")
        assert _ids_of_python(python) == ids, (path, python)
        local = python.replace(f'framedex.Client("{site.url}")', f"framedex.Workspace({str(site.workspace.path)!r})")
        assert local != python
        assert _ids_of_python(local) == ids, (path, local)
        assert _ids_of_curl(curl) == ids, (path, curl)
        elements = json.loads(vql)
        if "q=" not in path:
            assert sorted(dataset.where(elements).media_ids()) == sorted(ids), (path, vql)
        found = _ids_of_command(command, tmp_path, site.workspace.path)
        assert (found if "like=" in path or "q=" in path else sorted(found)) == (
            ids if "like=" in path or "q=" in path else sorted(ids)
        ), (path, command)


@pytest.mark.slow
def test_copy__to_the_clipboard(site: Site, open_page: Open) -> None:
    """Y and Enter copy; where a page has no clipboard, the text is selected and the dialog says what to press."""
    page = open_page(site, "/d/pets/pictures")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    first = first_image(page)
    page.keyboard.press("y")
    expect(page.get_by_role("radio", name="Python")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("import framedex")
    expect(first).to_be_focused()
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.keyboard.press("y")
    expect(page.get_by_text("copy it with Ctrl C")).to_be_visible()
    expect(page.get_by_label("Text to copy")).to_be_focused()
    selected = page.evaluate("[document.activeElement.selectionStart, document.activeElement.selectionEnd]")
    assert selected == [0, len(page.get_by_label("Text to copy").input_value())]
