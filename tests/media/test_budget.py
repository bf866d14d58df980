"""The pixels that are decoded at the same time stay within a budget."""

import threading

import numpy as np
import pytest

from framedex.media.budget import HeldOn, PixelBudget
from framedex.media.decode import decode
from framedex.media.decoded_image import DecodedImage
from tests.image_files import encode, photo
from tests.pauses import wait_until

MAX_PIXELS = 10_000_000


def test_budget__bounds_what_is_held_together() -> None:
    """Two holders fit together only within the budget; the second waits for the first."""
    budget = PixelBudget(100)
    entered, leave, second_in = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with budget.hold(60):
            entered.set()
            leave.wait(10)

    def second() -> None:
        with budget.hold(50):
            second_in.set()

    threads = [threading.Thread(target=first)]
    threads[0].start()
    assert entered.wait(10)
    with budget.hold(40):
        pass  # fits beside the first
    threads.append(threading.Thread(target=second))
    threads[1].start()
    assert not second_in.wait(0.05)
    leave.set()
    assert second_in.wait(10)
    for thread in threads:
        thread.join(10)


def test_budget__in_the_order_of_requests() -> None:
    """A large image is not overtaken by small ones that would fit, so it does not wait for ever."""
    budget, order = PixelBudget(100), list[str]()
    asked = threading.Barrier(2)

    def ask(name: str, pixels: int) -> None:
        asked.wait(10)
        with budget.hold(pixels):
            order.append(name)

    threads = []
    with budget.hold(60):
        for name, pixels in (("large", 1000), ("small", 30), ("other", 30)):
            threads.append(threading.Thread(target=ask, args=(name, pixels)))
            threads[-1].start()
            asked.wait(10)
            wait_until(lambda: budget.waiting == len(threads))
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order[0] == "large"
    assert sorted(order) == ["large", "other", "small"]


def test_budget__a_larger_image_is_taken_alone() -> None:
    """An image beyond the whole budget is decoded when nothing else is held, and lets others in afterwards."""
    budget = PixelBudget(10)
    with budget.hold(1000):
        pass
    with pytest.raises(ValueError, match="inside"), budget.hold(10):
        raise ValueError("inside")
    for file_format in ("PNG", "JPEG"):
        assert decode(encode(photo(1), file_format), max_pixels=MAX_PIXELS, budget=budget).width == 160
    with budget.hold(10):
        pass


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
def test_budget__is_held_on_while_an_image_is_used(file_format: str) -> None:
    """Pixels count until the block ends; whoever decodes in it anew lets go of what was held before."""
    budget, data = PixelBudget(1_000_000), encode(photo(1, width=1200, height=1000), file_format)
    waiting = threading.Thread(target=lambda: budget.hold(1).__enter__())
    with HeldOn(budget) as held:
        for _ in range(2):
            decode(data, max_pixels=MAX_PIXELS, budget=held)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join()


def test_budget__many_threads_decode_all() -> None:
    """Threads that compete for a small budget all come through, with the right images."""
    budget = PixelBudget(30_000)
    files = [encode(photo(seed), "JPEG" if seed % 2 else "PNG", quality=95) for seed in range(8)]
    found: dict[int, DecodedImage] = {}

    def work(place: int) -> None:
        found[place] = decode(files[place % 8], max_pixels=MAX_PIXELS, budget=budget)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 32
    for place, image in found.items():
        assert np.abs(image.pixels.astype(float) - photo(place % 8).astype(float)).mean() <= 4
