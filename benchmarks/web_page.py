"""What is measured in a page of the web app, by its own clock: from a key, or from the start of loading, to a frame."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Request

from web_data import NAME

WIDTH, HEIGHT = 1400, 900
THUMBNAILS = 40
_TILE = 96  # so that a screen has more than so many thumbnails
LIMIT_MS = 60_000
_SCROLL_MS = 4000

_SMALL_TILES = f"localStorage.setItem('framedex.tile-size', '{_TILE}');"
SCRIPT = """
window.bench = {
  // The time of the first frame in which something is true.
  until: (test) => new Promise((resolve, reject) => {
    const began = performance.now();
    const look = () => {
      if (test()) resolve(performance.now());
      else if (performance.now() - began > %d) reject(new Error('not within the time: ' + test));
      else requestAnimationFrame(look);
    };
    look();
  }),
  // The milliseconds from the next event of a kind to the first frame in which something is true.
  after: (kind, test) => new Promise((resolve, reject) => {
    addEventListener(kind, (event) => {
      bench.until(test).then((at) => resolve(at - event.timeStamp), reject);
    }, {capture: true, once: true});
  }),
  key: (test) => bench.after('keydown', test),
  images: () => [...document.querySelectorAll('.cell img')].filter((each) => each.complete && each.naturalWidth).length,
  // Whether all tiles within the window of the grid have their image.
  settled: () => {
    const window = document.querySelector('.grid-scroller')?.getBoundingClientRect();
    const cells = [...document.querySelectorAll('.cell')].filter((each) => {
      const box = each.getBoundingClientRect();
      return box.top < window.bottom && box.bottom > window.top;
    });
    return cells.length > 0 && cells.every((each) => each.querySelector('.tile.shown img'));
  },
  shown: (position) => {
    const image = document.querySelector(`[data-position="${position}"] img`);
    return !!image && image.complete && image.naturalWidth > 0;
  },
  // The milliseconds from the next key until its change is shown as pending, and until the server has confirmed it.
  edit: () => new Promise((resolve, reject) => {
    const bar = document.querySelector('.status-line');
    const isPending = () => document.querySelector('.cell.pending') || /Saving/.test(bar.textContent);
    addEventListener('keydown', (event) => {
      let shown = null;
      setTimeout(() => reject(new Error(`not confirmed; shown: ${shown}`)), %d);
      const observer = new MutationObserver(() => {
        if (isPending()) shown ??= performance.now();
        else if (shown !== null) {
          observer.disconnect();
          resolve([shown - event.timeStamp, performance.now() - event.timeStamp]);
        }
      });
      const changes = {subtree: true, childList: true, characterData: true, attributeFilter: ['class']};
      observer.observe(document.body, changes);
    }, {capture: true, once: true});
  }),
  go: (query) => {
    history.pushState(null, '', location.pathname + query);
    dispatchEvent(new PopStateEvent('popstate'));
  },
  passed: (test) => {
    const began = performance.now();
    return bench.until(test).then((at) => at - began);
  },
  frames: (pixels, lasts) => new Promise((resolve) => {
    const scroller = document.querySelector('.grid-scroller'), times = [], began = performance.now();
    let last = began, way = pixels;
    const step = (now) => {
      if (now > last) times.push(now - last);
      last = now;
      if (now - began > lasts) return resolve(times);
      const before = scroller.scrollTop;
      scroller.scrollTop += way;
      if (scroller.scrollTop === before) way = -way;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }),
};
""" % (LIMIT_MS, LIMIT_MS)  # noqa: UP031 - the script has many braces


@dataclass
class Traffic:
    """Requests of a page.

    Attributes:
        site: address of the server.
        requests: their number.
        size_bytes: of the bodies of answers, as they were sent.
        others: addresses of other hosts.
    """

    site: str
    requests: int = 0
    size_bytes: int = 0
    others: list[str] = field(default_factory=list)

    def add(self, request: Request) -> None:
        """Count a request that has ended."""
        self.requests += 1
        if urlsplit(request.url).netloc != urlsplit(self.site).netloc:
            self.others.append(request.url)
        self.size_bytes += request.sizes()["responseBodySize"]


def measure_page(browser: Browser, site: str, rows: int) -> dict[str, float]:
    """Return what is measured in the pages of a dataset, in milliseconds where no other unit is named."""
    with _context(browser, site) as context:
        found = _opened(context, site, "first made")
    with _context(browser, site, "") as context:
        found |= _first_page(context, site)
    with _context(browser, site) as context:
        page = context.new_page()
        found |= _opened(context, site, "on disk", page)
        found |= _moved(page, rows) | _scrolled(page) | _filtered(page) | _edited(page) | _size_of(context, page)
        page.goto(f"/d/{NAME}/duplicates")
        found |= _accepted(page)
        found["elements of the queue"] = _elements(page)
        page.goto(f"/d/{NAME}")
        found["overview"] = page.evaluate("bench.until(() => document.querySelector('.finding img'))")
    return found


def _context(browser: Browser, site: str, preferences: str = _SMALL_TILES) -> BrowserContext:
    context = browser.new_context(base_url=site, viewport={"width": WIDTH, "height": HEIGHT})
    context.add_init_script(preferences + SCRIPT)
    context.set_default_timeout(LIMIT_MS)
    return context


def _opened(context: BrowserContext, site: str, which: str, page: Page | None = None) -> dict[str, float]:
    """Measure the first view of the images; the second time their thumbnails are on disk."""
    page, traffic = page or context.new_page(), Traffic(site)
    page.on("requestfinished", traffic.add)
    page.goto(f"/d/{NAME}/pictures", wait_until="commit")
    usable = page.evaluate(
        "bench.until(() => document.querySelector('.count')?.textContent && document.querySelector('nav a'))"
    )
    images = page.evaluate(f"bench.until(() => bench.images() >= {THUMBNAILS})")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null")
    page.wait_for_timeout(500)
    page.remove_listener("requestfinished", traffic.add)
    return {
        f"first contentful paint, {which}": paint,
        f"shell usable, {which}": usable,
        f"{THUMBNAILS} thumbnails, {which}": images,
        f"requests, {which}": traffic.requests,
        f"kB, {which}": traffic.size_bytes / 1000,
        f"other hosts, {which}": len(traffic.others),
    }


def _first_page(context: BrowserContext, site: str) -> dict[str, float]:
    """Count what the first view of the images asks for at the size of tiles that the app begins with."""
    page, traffic = context.new_page(), Traffic(site)
    page.on("requestfinished", traffic.add)
    page.goto(f"/d/{NAME}/pictures", wait_until="commit")
    page.evaluate("bench.until(bench.settled)")
    page.wait_for_timeout(500)
    figures = {"requests of the first page": traffic.requests, "kB of the first page": traffic.size_bytes / 1000}
    filtered = _filtered(page, 10)
    return {**figures, **{f"{name}, tiles of the app": each for name, each in filtered.items() if "images" in name}}


def _pressed(page: Page, keys: str, test: str) -> float:
    """Press a key; return the milliseconds until a test holds."""
    page.evaluate(f"window.measured = bench.key(() => {test}); 0")
    page.keyboard.press(keys)
    return float(page.evaluate("measured"))


def _moved(page: Page, rows: int) -> dict[str, float]:
    page.locator("[data-position='0']").focus()
    page.evaluate("bench.until(() => bench.shown(0))")
    there = _pressed(page, "Control+End", f"bench.shown({rows - 1})")
    back = _pressed(page, "Control+Home", "bench.shown(0)")
    focus = "document.activeElement?.dataset.position === '%d'"
    steps = [_pressed(page, "ArrowRight", focus % place) for place in range(1, 21)]
    page.keyboard.press("Enter")
    page.locator(".canvas img").first.wait_for()
    page.keyboard.press("Escape")
    page.evaluate("bench.until(() => bench.shown(20))")
    page.wait_for_timeout(300)
    is_back = page.evaluate("document.activeElement?.dataset.position === '20'")
    return {"last image": there, "first image again": back, "key to focus": median(steps), "focus is back": is_back}


def _scrolled(page: Page) -> dict[str, float]:
    found: dict[str, float] = {}
    for pixels in (40, 400, 4000):
        times = sorted(page.evaluate(f"bench.frames({pixels}, {_SCROLL_MS})"))
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            found[f"scroll {pixels} px a frame, {name}"] = times[int(share * (len(times) - 1))]
        found[f"scroll {pixels} px a frame, longest"] = times[-1]
        settled = page.evaluate("bench.passed(() => bench.images() >= 20)")
        found[f"images after scrolling {pixels} px a frame"] = settled
    return found


def _filtered(page: Page, label: int = 3) -> dict[str, float]:
    """Show the images of labels from a number on, each the first time."""
    counts, images = [], []
    for number in range(5):
        text = f'[{{"labels":{{"op":"is","value":"class {number + label:02}"}}}}]'
        query = "?" + urlencode({"f": text})
        both = page.evaluate(
            """async (query) => {
                const before = document.querySelector('.count').textContent, began = performance.now();
                bench.go(query);
                const count = await bench.until(() => document.querySelector('.count').textContent !== before);
                const images = await bench.until(bench.settled);
                return [count - began, images - began];
            }""",
            query,
        )
        counts.append(both[0])
        images.append(both[1])
    page.evaluate("bench.go('')")
    page.evaluate("bench.until(() => !/ of /.test(document.querySelector('.count').textContent) && bench.shown(0))")
    return {
        "filter to count, first": counts[0],
        "filter to count": median(counts[1:]),
        "filter to images, first": images[0],
        "filter to images": median(images[1:]),
    }


def _edited(page: Page) -> dict[str, float]:
    """Put single images into the basket."""
    shown, confirmed = [], []
    page.locator("[data-position='0']").focus()
    for place in range(8):
        page.evaluate("window.measured = bench.edit(); 0")
        page.keyboard.press("x")
        times = page.evaluate("measured")
        shown.append(times[0])
        confirmed.append(times[1])
        if place < 7:
            page.keyboard.press("ArrowRight")
    return {
        "edit shown": median(shown),
        "edit confirmed, first": confirmed[0],
        "edit confirmed": median(confirmed[1:]),
        "edit confirmed, slowest": max(confirmed[1:]),
    }


def _accepted(page: Page) -> dict[str, float]:
    """Accept proposals of the queue of duplicates."""
    began = page.evaluate("bench.until(() => document.querySelector('.member img'))")
    steps = []
    for _ in range(6):
        page.evaluate("bench.until(() => document.querySelectorAll('.member').length > 1)")
        page.evaluate("window.before = document.querySelector('.members')")
        steps.append(
            _pressed(
                page, "Enter", "document.querySelector('.members') !== before && document.querySelector('.member')"
            )
        )
    return {"queue of duplicates": began, "accept to next group": median(steps)}


def _size_of(context: BrowserContext, page: Page) -> dict[str, float]:
    session = context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    values: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    heap = next(float(each["value"]) for each in values if each["name"] == "JSHeapUsedSize")
    return {"JS heap, MB": heap / 1e6, "elements of the grid": _elements(page)}


def _elements(page: Page) -> float:
    return float(page.evaluate("document.getElementsByTagName('*').length"))
