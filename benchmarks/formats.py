"""Import and export of annotations by Framedex, datumaro and FiftyOne: seconds and memory for each format.

The data are generated, see ``formats_inputs.py``: images are one small JPEG file, so that pixels do not matter. Each
measured process does one import or export. In a round all tools do the same one after the other; ratios are taken
within the round, of processor time, because machines are shared. Memory is the peak of the whole process.

Import, with its imports of modules left out:

- Framedex reads a folder as ``create_dataset`` does, but without pixels, crops and index: it lists the images, reads
  the annotation files into its index, and asks the index for the labels and boxes of each image. The size of an image,
  which a creation has from its header, is given.
- datumaro: ``Dataset.import_from``, and all annotations of each item.
- FiftyOne: the importer of the format alone, whose samples are kept in a list. Its packages have no server of
  MongoDB where that cannot be downloaded, so what ``Dataset.from_dir`` stores in the database is not measured: FiftyOne
  takes longer than this.

Export is without image files. Framedex reads from its tables on the disk and writes one ZIP file. The others write
files from objects in memory; they were read from COCO before the clock starts, and are in the peak of memory. Of
FiftyOne these are the exporters alone, without its database. Framedex's YOLO and VOC exports have a table of labels
beside, and COCO's have their captions.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from common import Run, arguments, environment, median, run_worker, save, table, verdict

SIZES = (1_000, 10_000)
IMPORTS = {
    "coco": ("datumaro", "fiftyone"),
    "yolo": ("datumaro", "fiftyone"),
    "voc": ("datumaro", "fiftyone"),
    "cvat": ("datumaro", "fiftyone"),
    "fiftyone": ("fiftyone",),
    "label_studio": (),
    "labelme": (),
    "csv": (),
    "parquet": (),
}
"""Formats that Framedex reads, and the other tools that read them."""
EXPORTS = {
    "coco": ("datumaro", "fiftyone"),
    "yolo": ("datumaro", "fiftyone"),
    "voc": ("datumaro", "fiftyone"),
    "labelme": (),
    "csv": (),
    "parquet": (),
    "json": (),
}
"""Formats that Framedex writes, and the other tools that write them."""
_OWN = "framedex"
_SCRIPT = Path(__file__).resolve().parent / "formats_workers.py"


@dataclass(frozen=True)
class Figures:
    """What a tool needs for one import or export.

    Attributes:
        task: ``read`` or ``write``.
        format: the format.
        images: of the data set.
        tool: the tool.
        seconds: median by the clock.
        processor_s: median of processor time.
        peak_mib: largest of the processes' peaks.
        times_own: Framedex's processor time divided by the tool's, median of the rounds; 1 for Framedex.
    """

    task: str
    format: str
    images: int
    tool: str
    seconds: float
    processor_s: float
    peak_mib: float
    times_own: float


class Tools:
    """The environments of the tools.

    Args:
        peers: folder of the environments.
        names: the other tools to compare with.
    """

    def __init__(self, peers: Path, names: Sequence[str]) -> None:
        self._pythons = {_OWN: Path(sys.executable), **{name: environment(peers, name) for name in names}}

    def run(self, tool: str, task: str, name: str, folder: Path) -> Run:
        """Run a task of a tool on a format."""
        return run_worker(self._pythons[tool], f"{tool}:{task}:{name}", folder, script=_SCRIPT)

    def compare(
        self, task: str, name: str, others: Sequence[str], folder: Path, images: int, rounds: int
    ) -> list[Figures]:
        """Run a task of all tools in turn; end the program where they have not read the same."""
        tools = (_OWN, *(other for other in others if other in self._pythons))
        runs = [{tool: self.run(tool, task, name, folder) for tool in tools} for _ in range(rounds)]
        counts = {(run.result.get("images"), run.result.get("boxes")) for each in runs for run in each.values()}
        if len(counts) > 1:
            raise SystemExit(f"{task} {name}: the tools have read different numbers of images and boxes: {counts}")
        return [
            Figures(
                task,
                name,
                images,
                tool,
                median(each[tool].call_s for each in runs),
                median(each[tool].call_processor_s for each in runs),
                max(each[tool].peak_mib for each in runs),
                median(each[_OWN].call_processor_s / each[tool].call_processor_s for each in runs),
            )
            for tool in tools
        ]


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("--images", type=int, nargs="+", default=list(SIZES), help="of the data sets")
    parser.add_argument("--rounds", type=int, default=3, help="of all tools in turn")
    parser.add_argument("--tools", nargs="*", default=["datumaro", "fiftyone"], help="to compare with")
    parser.add_argument("--formats", nargs="*", help="all by default")
    parser.add_argument("--tasks", nargs="*", choices=("read", "write"), default=["read", "write"])
    parser.add_argument("--work", type=Path, help="folder for temporary files")
    options = parser.parse_args()
    tools, found = Tools(options.peers, options.tools), list[Figures]()
    for images in options.images:
        with tempfile.TemporaryDirectory(prefix="bench-formats-", dir=options.work) as work:
            (Path(work) / "work").mkdir()
            for task, names in (("read", IMPORTS), ("write", EXPORTS)):
                if task in options.tasks:
                    chosen = {each: names[each] for each in names if each in (options.formats or names)}
                    found += _measure(tools, task, chosen, Path(work), images, options.rounds)
    _judge(found)
    save("formats", {"figures": [asdict(each) for each in found]})


def _measure(
    tools: Tools, task: str, formats: dict[str, tuple[str, ...]], folder: Path, images: int, rounds: int
) -> list[Figures]:
    print(f"\n{task}, {images:,} images\n", flush=True)
    if task == "write":
        if not (folder / "coco").exists():
            tools.run(_OWN, "make", f"coco={images}", folder)
        made = tools.run(_OWN, "store", "coco", folder)
        print(f"a dataset of them made in {made.call_s:.0f} s", flush=True)
    found: list[Figures] = []
    for name, others in formats.items():
        if task == "read":
            tools.run(_OWN, "make", f"{name}={images}", folder)
        figures = tools.compare(task, name, others, folder, images, rounds)
        print(_lines(figures), flush=True)
        found += figures
    return found


def _lines(figures: Sequence[Figures]) -> str:
    rows = [
        [f"{each.format}: {each.tool}", each.seconds, each.processor_s, each.peak_mib, each.times_own]
        for each in figures
    ]
    return table(["", "s", "processor s", "peak MiB", "framedex / it"], rows)


def _judge(found: Sequence[Figures]) -> None:
    print()
    for task, name, images in dict.fromkeys((each.task, each.format, each.images) for each in found):
        ratios = [
            each.times_own
            for each in found
            if (each.task, each.format, each.images) == (task, name, images) and each.tool != _OWN
        ]
        if ratios:
            print(verdict(f"{task} {name}, {images:,} images, times the faster", max(ratios), 1.0, at_most=True))


if __name__ == "__main__":
    main()
