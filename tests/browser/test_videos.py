"""Frames of videos, boxes and regions of one image in a browser, by keys alone."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.browser.site import Site
from tests.gallery import SETTINGS
from tests.made_videos import LONG, made_video
from tests.objects import SCENE, scenes
from tests.service.live import live_service
from tests.videos import numbered, write_video

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service of a dataset with a video of two scenes, and images with boxes."""
    home = tmp_path_factory.mktemp("film")
    scenes(home / "images", 2)
    write_video(home / "images" / "film.webm", numbered(30) + numbered(30, seed=7))
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset("film", home / "images")
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            yield Site(url, workspace, dataset, home / "images", state)


@pytest.mark.slow
def test_frames__of_a_damaged_video(film: Site, open_page: Open) -> None:
    """Beside the frames of a damaged video stands what is lost, and its own row is no frame."""
    content = made_video(LONG)
    broken = content[: len(content) // 2] + bytes(3000) + content[len(content) // 2 + 3000 :]
    folder = film.gallery.parent / "broken"
    folder.mkdir()
    (folder / "hole.mp4").write_bytes(broken)
    dataset = film.workspace.create_dataset("broken", folder)
    frames = list(dataset.where([{"media": {"op": "is", "value": "video_frame"}}]).rows(["media_id"]))
    page = open_page(film, f"/d/broken/m/{frames[0]['media_id']}")
    strip = page.get_by_role("region", name="Kept frames of the video")
    expect(strip.get_by_role("status")).to_have_text(re.compile(rf"Frame 1 of {len(frames)} "))
    expect(strip.get_by_text(re.compile(r"The video is damaged: frame.* cannot be decoded"))).to_be_visible()
    expect(strip.get_by_role("listitem")).to_have_count(len(frames))


@pytest.mark.slow
def test_frames__of_a_video(film: Site, open_page: Open) -> None:
    """Keys step through kept frames and scenes with their exact times; Space plays them to the end."""
    frames = [
        row for row in film.dataset.view.rows(["media_id", "frame_timestamp"]) if row["frame_timestamp"] is not None
    ]
    n = len(frames)
    page = open_page(film, "/d/film/pictures")
    expect(page.get_by_role("gridcell").get_by_text("0:03.000")).to_be_visible()
    page.goto(f"/d/film/m/{frames[0]['media_id']}")
    strip = page.get_by_role("region", name="Kept frames of the video")
    place = strip.get_by_role("status")

    def at(number: int) -> None:
        seconds = frames[number - 1]["frame_timestamp"]
        expect(place).to_have_text(f"Frame {number} of {n} · 0:{seconds:06.3f}")

    at(1)
    page.keyboard.press(".")
    at(2)
    page.keyboard.press(">")
    expect(place).to_have_text(re.compile(r"· 0:03\.000$"))
    page.keyboard.press("<")
    at(1)
    page.keyboard.press(",")
    at(1)
    expect(strip.get_by_role("listitem")).to_have_count(n)
    page.keyboard.press("Space")
    expect(strip.get_by_role("button", name="Stop")).to_be_visible()
    at(n)
    expect(strip.get_by_role("button", name="Play the frames")).to_be_visible()
    expect(page).to_have_url(re.compile(frames[-1]["media_id"]))
    page.keyboard.press(",")
    at(n - 1)


@pytest.mark.slow
def test_file__of_a_video(film: Site, open_page: Open) -> None:
    """The file itself is read in ranges from the time of the frame on, where the browser can decode it."""
    frames = [row for row in film.dataset.view.rows(["media_id", "frame_timestamp"]) if row["frame_timestamp"]]
    page = open_page(film, f"/d/film/m/{frames[1]['media_id']}")
    button = page.get_by_role("button", name="Show the file")
    with page.expect_response(lambda answer: answer.url.endswith("/video")) as answered:
        button.click()
    assert answered.value.status == 206
    video = page.locator("video")
    expect(video).to_have_js_property("currentTime", frames[1]["frame_timestamp"])
    button.click()
    expect(video).to_have_count(0)


@pytest.mark.slow
def test_boxes_and_region__by_keys(film: Site, open_page: Open) -> None:
    """Boxes are shown and stepped through; a region is drawn, moved and sized by keys, and Enter searches for it."""
    media_id = film.dataset.media_id("000.png")
    page = open_page(film, f"/d/film/m/{media_id}")
    boxes = page.locator("svg.boxes rect")
    expect(page.get_by_role("region", name="Boxes").get_by_role("listitem")).to_have_count(len(SCENE))
    page.keyboard.press("b")
    expect(boxes).to_have_count(len(SCENE))
    page.keyboard.press("]")
    expect(boxes.first).to_have_class("chosen")
    page.keyboard.press("[")
    expect(boxes.last).to_have_class("chosen")
    page.keyboard.press("b")
    expect(boxes).to_have_count(0)
    page.keyboard.press("r")
    drawn = page.locator("svg.boxes rect.drawn")
    expect(drawn).to_have_attribute("x", "80")
    page.keyboard.press("ArrowLeft")
    expect(drawn).to_have_attribute("x", "72")
    page.keyboard.press("ArrowDown")
    expect(drawn).to_have_attribute("y", "55")
    page.keyboard.press("Shift+ArrowRight")
    expect(drawn).to_have_attribute("width", "170")
    page.keyboard.press("Shift+ArrowUp")
    expect(drawn).to_have_attribute("height", "90")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"pictures\?like={media_id}&region=72%2C55%2C170%2C90"))
    found = film.dataset.similar(media_id, 1000, bounding_box=(72, 55, 170, 90)).to_arrow(["image_filename"])
    first = page.get_by_role("gridcell").first
    expect(first).to_have_accessible_name(re.compile(re.escape(found["image_filename"][0].as_py())))


@pytest.mark.slow
def test_duplicates_of_a_video__are_aligned(tmp_path: Path, open_page: Open) -> None:
    """The strip of a duplicate is at the frame that is like the present one, although its beginning was cut off."""
    frames = numbered(30) + numbered(30, seed=7)
    for name, part in {"film": frames, "trimmed": frames[20:], "other": numbered(40, seed=99)}.items():
        (tmp_path / "videos").mkdir(exist_ok=True)
        write_video(tmp_path / "videos" / f"{name}.webm", part)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset("film", tmp_path / "videos")
        rows = list(dataset.view.rows(["media_id", "video_name", "frame_timestamp"]))
        start = next(each["media_id"] for each in rows if each["video_name"] == "film.webm")
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            page = open_page(Site(url, workspace, dataset, tmp_path, state), f"/d/film/m/{start}")
            copies = page.get_by_role("region", name="Duplicates of the video")
            expect(copies).to_contain_text("trimmed.webm")
            expect(copies).not_to_contain_text("other.webm")
            for second in range(1, 6):
                page.keyboard.press(".")
                expect(page.get_by_text(f"Frame {second + 1} of 6")).to_be_visible()
                if second >= 2:
                    at = f"trimmed.webm: most like this frame at 0:{second - 2:02}.000"
                    expect(copies.get_by_text(at)).to_be_visible()
            expect(copies.locator("[aria-current=true]")).to_have_text("0:03.000")
            copies.locator("[aria-current=true]").press("Enter")
            expect(page.get_by_role("heading", level=1)).to_have_text("trimmed.webm")
            expect(copies).to_contain_text("film.webm: most like this frame at 0:05.000")
            page.context.close()  # it may still read when the service stops
