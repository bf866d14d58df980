"""Checks of the web app from outside: a server and commands in processes of their own, Chromium, and the library.

Each check says in a sentence what holds, and compares what the page shows with what the library reads. The tests of the
app (``tests/browser``) look at more cases, on small data and with the service in their own process; here are those that
need another process or many rows.
"""

import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

import acceptance_large
import acceptance_people
import acceptance_queues
from acceptance_site import ARGUMENTS, Place
from common import arguments, save, table

CHECKS: dict[str, Callable[[Place], str]] = {**acceptance_queues.CHECKS, **acceptance_people.CHECKS}


def main() -> None:
    """Run the checks, print a line for each, and fail if one of them did."""
    parser = arguments(__doc__)
    parser.add_argument("--large", type=Path, help="workspace of a million rows that web.py --keep made")
    parser.add_argument("--only", nargs="*", default=[], help="words of the names of the checks")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is absent: install it, so that it is on the PATH")
    expect.set_options(timeout=20_000)
    checks = {**CHECKS, **(acceptance_large.CHECKS if options.large else {})}
    rows = []
    with tempfile.TemporaryDirectory(prefix="acceptance-") as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for number, (name, check) in enumerate(checks.items()):
            if options.only and not any(word in name for word in options.only):
                continue
            rows.append(_checked(name, check, browser, Path(scratch) / str(number), options.large))
            print(*rows[-1], sep=": ", flush=True)
        browser.close()
    print(table(["check", "holds", "seconds", "seen"], rows))
    save("acceptance", {"checks": rows})
    if any(row[1] == "NO" for row in rows):
        sys.exit("not all checks hold")


def _checked(name: str, check: Callable[[Place], str], browser: Browser, folder: Path, large: Path | None) -> list[str]:
    folder.mkdir()
    began = time.perf_counter()
    with Place(browser, folder, large) as place:
        try:
            seen, holds = check(place), "yes"
            if place.problems:
                seen, holds = f"the browser logged {place.problems}", "NO"
        except Exception:
            traceback.print_exc()
            seen, holds = traceback.format_exc(limit=1).strip().splitlines()[-1][:120], "NO"
    shutil.rmtree(folder, ignore_errors=True)
    return [name, holds, f"{time.perf_counter() - began:.0f}", seen]


if __name__ == "__main__":
    main()
