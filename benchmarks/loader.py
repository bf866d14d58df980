"""Loading for training: view.to_torch against torchvision's ImageFolder on the same files, in one run.

Both give images of Pillow to one transform, in a DataLoader with no, two and four workers, forked and spawned. Workers
stay between epochs; the first epoch, in which they start, does not count. The ratio is that of one round.
"""

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import arguments, median, require, save, table, verdict
from framedex.encoders.torch_vision import import_torchvision

import_torchvision()

import torch  # noqa: E402 - torchvision is imported in a way of its own
from torch.utils.data import DataLoader  # noqa: E402
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

from framedex import Workspace  # noqa: E402

WAYS = ((0, None), (2, "fork"), (4, "fork"), (2, "spawn"), (4, "spawn"))
AIM = 1.0
_CLASSES = 10


class OneValue:
    """A transform that only needs the pixels to be decoded."""

    def __call__(self, image: Any) -> int:
        """Return a value of the image."""
        image.load()
        return int(image.size[0])


def crops() -> Any:
    """Return the transform of a usual classifier."""
    return transforms.Compose([transforms.Resize(232), transforms.CenterCrop(224), transforms.ToTensor()])


TRANSFORMS = {"decode": OneValue, "resize and crop": crops}


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = fill(Path(folder) / "classes", require(options.data, "photos/imagenet-sample"), options.images)
        with Workspace(Path(folder) / "workspace") as workspace:
            dataset = workspace.create_dataset("d", root, class_folders=True)
            result = measure(dataset, root, options.rounds)
    print(
        table(
            ("transform", "workers", "Framedex, images/s", "ImageFolder, images/s", "ratio", "PSS a worker, MiB"),
            rows(result),
        )
    )
    for name, each in result.items():
        print(verdict(name, each["ratio"], AIM))
    save("loader", result)


def fill(root: Path, photos: Path, count: int) -> Path:
    """Write so many photos to folders of classes, each file its own; return the folder."""
    paths = sorted(path for path in photos.iterdir() if path.suffix.lower() in (".jpeg", ".jpg"))
    for number in range(count):
        path = paths[number % len(paths)]
        home = root / f"class {number % _CLASSES}"
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{number:05}.jpg").write_bytes(path.read_bytes())
    return root


def measure(dataset: Any, root: Path, rounds: int) -> dict[str, Any]:
    """Return rates, their ratio, and the memory of a worker, by transform and workers."""
    result = {}
    for name, make in TRANSFORMS.items():
        ours, theirs = dataset.to_torch(make(), "label"), ImageFolder(str(root), make())
        assert len(ours) == len(theirs)
        for workers, method in WAYS:
            loaders = [loader(images, workers, method) for images in (ours, theirs)]
            for each in loaders:
                rate(each)  # the workers start
            pairs = [tuple(map(rate, loaders)) for _ in range(rounds)]
            label = f"{name}, {workers} {method or ''}".strip()
            result[label] = {
                "framedex": median(a for a, _ in pairs),
                "imagefolder": median(b for _, b in pairs),
                "ratio": median(a / b for a, b in pairs),
                "pss_mib": list(map(memory_mib, loaders)),
            }
            print(f"{label}: {result[label]['ratio']:.2f}", file=sys.stderr)
    return result


def loader(images: Any, workers: int, method: str | None) -> Any:
    """Return a loader whose workers stay between epochs."""
    return DataLoader(
        images, batch_size=32, shuffle=True, num_workers=workers, multiprocessing_context=method,
        persistent_workers=workers > 0,
    )  # fmt: skip


def rate(images: Any) -> float:
    """Return the images a second of an epoch."""
    start = time.perf_counter()
    count = sum(len(batch[1]) for batch in images)
    return count / (time.perf_counter() - start)


def memory_mib(images: Any) -> float:
    """Return the mean proportional memory of a worker in MiB; 0 without any."""
    found = [pss_mib(each.pid) for each in getattr(images._iterator, "_workers", [])]
    return sum(found) / len(found) if found else 0.0


def pss_mib(pid: int) -> float:
    """Return the proportional set size of a process: memory that it shares counts by its part."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def rows(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of the table."""
    return [
        (*name.split(", "), f"{each['framedex']:.0f}", f"{each['imagefolder']:.0f}", f"{each['ratio']:.2f}",
         " and ".join(f"{value:.0f}" for value in each["pss_mib"]))
        for name, each in result.items()
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
