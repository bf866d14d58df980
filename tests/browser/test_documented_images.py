"""The images of the documentation show the app as it is."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image
from playwright.sync_api import Browser

from framedex import demo
from tests.browser.pages import CHROMIUM
from tests.scripts import load_script

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "make_images.py"
FOLDER = ROOT / "docs" / "images"
NAMES = ("overview", "images", "duplicates", "map", "report", "clean-up")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that takes the images."""
    return load_script(SCRIPT)


@pytest.fixture(scope="module")
def taken(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the images as they are now, which another process takes: this one has a browser."""
    assert browser.is_connected()
    folder = tmp_path_factory.mktemp("images")
    command = [sys.executable, str(SCRIPT), "--browser", str(CHROMIUM), "--into", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def frames(path: Path) -> list[Image.Image]:
    """Return the frames of an image; of one that does not move itself."""
    with Image.open(path) as image:
        count = getattr(image, "n_frames", 1)
        found = []
        for number in range(count):
            image.seek(number)
            found.append(image.convert("RGB"))
    return found


@pytest.mark.slow
@pytest.mark.only_soak
def test_images__show_the_app(script: ModuleType, taken: Path) -> None:
    """No image is missing or left over; texts and frames are those of the present pages: else run `make pictures`.

    Texts are equal but for times and sizes. Each frame differs from the page by no more than the limit that the script
    explains. This is one test, as to take the images takes long.
    """
    names = sorted(each.name for each in FOLDER.iterdir())
    assert names == sorted(each.name for each in taken.iterdir())
    assert names == sorted(["letters.txt", *(f"{each}{kind}" for each in NAMES for kind in (".txt", ".webp"))])
    width, own_width = ((each / script.LETTERS).read_text(encoding="utf-8") for each in (taken, FOLDER))
    limit = script.SAME_LETTERS if width == own_width else script.OTHER_LETTERS
    for name in NAMES:
        present_text, committed_text = ((each / f"{name}.txt").read_text(encoding="utf-8") for each in (taken, FOLDER))
        assert present_text == committed_text, name
        present, committed = frames(taken / f"{name}.webp"), frames(FOLDER / f"{name}.webp")
        assert [each.size for each in present] == [each.size for each in committed], name
        differences = [script.difference(*pair) for pair in zip(present, committed, strict=True)]
        assert max(differences) <= limit, (name, differences)


@pytest.mark.slow
def test_difference__sees_what_is_wrong(script: ModuleType) -> None:
    """Pages differ by more than each limit, and one without a part of it by more than the lower one."""
    pages = [frames(FOLDER / f"{name}.webp")[0] for name in ("overview", "images", "duplicates", "map")]
    for number, page in enumerate(pages):
        assert script.difference(page, page) == 0
        for other in pages[:number]:
            assert script.difference(page, other) > script.OTHER_LETTERS
    for page, box in (
        (pages[1], (200, 150, 450, 340)),
        (pages[3], (0, 46, 172, 768)),
        (pages[2], (190, 200, 680, 530)),
    ):
        damaged = page.copy()
        damaged.paste((0, 0, 0) if page is pages[3] else (255, 255, 255), box)
        assert script.difference(page, damaged) > script.SAME_LETTERS, box


def test_images__are_small_and_shown() -> None:
    """All images take at most 2.5 MB, the moving one at most 1.5 MB and about ten seconds; a document shows each."""
    sizes = {each.stem: each.stat().st_size for each in FOLDER.glob("*.webp")}
    assert sum(sizes.values()) < 2_500_000
    assert sizes["clean-up"] < 1_500_000
    with Image.open(FOLDER / "clean-up.webp") as moving:
        durations = []
        for number in range(getattr(moving, "n_frames", 1)):
            moving.seek(number)
            moving.load()
            durations.append(moving.info["duration"])
    assert 8_000 <= sum(durations) <= 13_000
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = re.findall(
        r"!\[[^\]]{10,}\]\([a-z/]*images/([\w-]+)\.webp\)", "".join(each.read_text() for each in documents)
    )
    assert set(shown) == set(sizes)


def test_photographs__have_licences(script: ModuleType) -> None:
    """The page on the app names the licence of each photograph of the demo, or the images do not show it."""
    text = (ROOT / "docs" / "app.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"`(\w+)`", text.partition("## Licences of the photographs")[2].partition("The demo also")[0])
    )
    photographs = {Path(name).stem for name in (*demo._SKIMAGE, *demo._SKLEARN)}
    assert named & photographs == photographs - set(script.NOT_SHOWN)
    texts = "".join(each.read_text(encoding="utf-8") for each in FOLDER.glob("*.txt"))
    assert not re.search(r"\b(moon|page)[-.\w]*\.(jpg|webp)", texts)
